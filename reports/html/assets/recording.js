// The page of one case or conversation: hear it, see it, read why.
"use strict";

const spoken = (message) => {
  const cut = message.indexOf(" (window ");
  return cut < 0 ? [message, ""] : [message.slice(0, cut), message.slice(cut + 2, -1)];
};

const describe = (take) => {
  const s = (t) => `${t.toFixed(2)} s`;
  const out = [`${take.channels.join(" above ")}, ${s(take.duration)} long.`];
  if (take.window) out.push(`Scored window ${s(take.window[0])} to ${s(take.window[1])}.`);
  if (take.limit !== null && take.limit !== undefined) out.push(`Limit at ${s(take.limit)}.`);
  for (const [t, name] of take.measured || []) out.push(`Measured ${name} at ${s(t)}.`);
  return out.join(" ");
};

const key = (take) =>
  dsb.h(
    "ul",
    { class: "key", "aria-label": "What the picture shows" },
    dsb.h("li", { class: "k-speech" }, "speech"),
    take.window ? dsb.h("li", { class: "k-window" }, "scored window") : null,
    take.lead_in ? dsb.h("li", { class: "k-lead-in" }, "lead-in") : null,
    take.limit === null || take.limit === undefined ? null : dsb.h("li", { class: "k-limit" }, "limit"),
    (take.measured || []).length ? dsb.h("li", { class: "k-measured" }, "measured") : null
  );

const KEY_HELP = [
  ["Space", "play, pause"],
  ["← →", "a second; with Shift a tenth"],
  ["W", "play the window"],
  ["Z", "zoom"],
  ["[ ]", "previous, next"],
];

const takeOf = (kind, page, run) => {
  const many = dsb.report.runs.length > 1;
  const name = many ? dsb.h("h2", { class: "run" }, dsb.report.runs[run].name) : null;
  const head = [name];
  const result = page.row;
  if (many && result) head.push(dsb.h("p", {}, dsb.badge(result.outcome), " ", dsb.h("span", { dir: "auto" }, result.message || "")));
  if (page.talk) return { element: dsb.h("section", { class: "take", "aria-label": "Conversation" }, head, dsb.h("p", { class: "notice note" }, "A conversation in writing: there is nothing to hear.")), player: null };
  if (!page.duration) {
    const why = page.problem || (result ? (result.outcome === "skipped" ? "Skipped: there is no recording." : "There is no recording.") : "The run was cut before this case: there is no recording.");
    return { element: dsb.h("section", { class: "take", "aria-label": "Recording" }, head, dsb.h("p", { class: "notice note" }, why)), player: null };
  }
  const wave = dsb.wave(page, describe(page));
  const player = dsb.player(page, wave);
  return { element: dsb.h("section", { class: "take", "aria-label": "Recording" }, head, wave.element, key(page), player.controls, player.state), player };
};

dsb.showRecording = async (kind, into, name, query) => {
  const of = dsb.kinds[kind];
  const all = await dsb.rows(kind);
  const own = all.find((row) => row.id === name);
  if (!own) {
    into.append(dsb.h("h1", {}, "Not here"), dsb.h("p", { class: "notice warning" }, `${name} is not in this report. `, dsb.h("a", { href: dsb.href(of.list) }, `All ${of.of}`)));
    return;
  }
  const pages = await Promise.all(own.runs.map(async (row, run) => (row ? { ...(await dsb.load(`r${run}-${kind}-${row.shard}`))[name], id: name } : null)));
  const listed = dsb.chosen(kind, all, query);
  const place = listed.findIndex((row) => row.id === name);
  const go = (to, text, sign, shortcut) =>
    to ? dsb.h("a", { href: dsb.href(kind, to.id, query), class: "go", "aria-keyshortcuts": shortcut }, sign[0], text, sign[1]) : dsb.h("span", { class: "go none" }, sign[0], text, sign[1]);
  const [sentence, rest] = spoken(own.message || "");
  const many = own.runs.length > 1;
  const filtered = [...query.keys()].some((one) => one !== "sort");
  into.append(
    dsb.h(
      "div",
      { class: "way" },
      dsb.h("a", { href: dsb.href(of.list, "", query) }, filtered ? `${of.title}, filtered` : of.title),
      dsb.h("span", { class: "where" }, place < 0 ? "" : `${dsb.format("int", place + 1)} of ${dsb.format("int", listed.length)}`),
      dsb.h("nav", { "aria-label": "Neighbours in the list" }, go(listed[place - 1], "previous", ["← ", ""], "["), go(place < 0 ? null : listed[place + 1], "next", ["", " →"], "]"))
    ),
    dsb.h(
      "header",
      { class: "verdict" },
      dsb.h("h1", { tabindex: "-1" }, many ? dsb.label(name) : [dsb.badge(own.outcome), " ", dsb.h("span", { dir: "auto" }, sentence || name)]),
      rest && !many ? dsb.h("p", { class: "rest" }, rest) : null,
      dsb.h("p", { class: "about" }, dsb.label(name), of.about(own).map(([title, text]) => [" · ", dsb.h("span", { class: "unseen" }, `${title} `), dsb.h("span", { class: "label" }, text)]))
    )
  );
  const takes = pages.map((page, run) => page && takeOf(kind, page, run));
  into.append(...takes.filter(Boolean).map((take) => take.element));
  const columns = pages.map((page, run) => {
    if (!page) return null;
    const player = takes[run].player;
    return dsb.h(
      "div",
      { class: "cards" },
      many ? dsb.h("h2", { class: "run" }, dsb.report.runs[run].name) : null,
      page.traceback ? dsb.h("section", { class: "card" }, dsb.h("h2", {}, "Traceback"), dsb.scroller("Traceback", dsb.h("pre", {}, page.traceback))) : null,
      player ? dsb.transcript(page, player) : null,
      page.talk ? dsb.talk(page) : null,
      dsb.judged(page, run),
      dsb.readback(page),
      of.facts ? of.facts(page, run) : dsb.measurements(page.row, run),
      page.prompts ? dsb.prompts(page) : null,
      run === 0 || !pages[0] ? dsb.neighbours(kind, own, all, query) : null,
      dsb.events(page)
    );
  });
  into.append(dsb.h("div", { class: many ? "versus" : null }, columns));
  into.append(dsb.h("p", { class: "keys" }, KEY_HELP.map(([keys, what]) => [dsb.h("kbd", {}, keys), ` ${what} `])));
  const turn = (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, select, textarea")) return;
    const to = event.key === "[" ? listed[place - 1] : event.key === "]" && place >= 0 ? listed[place + 1] : null;
    if (to) location.hash = dsb.href(kind, to.id, query);
  };
  document.addEventListener("keydown", turn);
  dsb.leave(() => document.removeEventListener("keydown", turn));
  document.title = `${name} · dsbeval`;
};
