// What is known of a case besides its sound: transcript, measurements, what the judge said, what it was told, its neighbours.
"use strict";

const row = (name, ...value) => [dsb.h("dt", {}, name), dsb.h("dd", {}, value)];
const card = (title, ...body) => dsb.h("section", { class: "card" }, dsb.h("h2", {}, title), body);

// Lines of both channels by time; the one that is heard is marked, and each can be gone to.
dsb.transcript = (take, player) => {
  const lines = take.channels.flatMap((channel, k) => dsb.phrases(take, channel).map((phrase) => ({ ...phrase, k })));
  lines.sort((a, b) => a.start - b.start);
  if (!lines.length) return card("Transcript", dsb.h("p", { class: "none" }, "Nobody said anything in words."));
  const items = lines.map((line) =>
    dsb.h(
      "li",
      { class: `channel-${line.k}` },
      dsb.h("button", { type: "button", class: "when", onclick: () => player.seek(line.start) }, dsb.h("span", { class: "unseen" }, "go to "), `${line.start.toFixed(1)} s`),
      dsb.h("span", { class: "who" }, take.channels[line.k]),
      dsb.h("span", { class: "words", dir: "auto" }, line.text.trim())
    )
  );
  player.follow((t) => lines.forEach((line, k) => items[k].classList.toggle("now", t >= line.start && t < line.end)));
  return card("Transcript", dsb.h("ol", { class: "transcript" }, items));
};

// A conversation in writing: its turns in order.
dsb.talk = (page) =>
  card(
    "Conversation",
    page.talk.length
      ? dsb.h(
          "ol",
          { class: "transcript written" },
          page.talk.map(([side, text, cut]) =>
            dsb.h(
              "li",
              { class: `channel-${page.channels.indexOf(side)}` },
              dsb.h("span", { class: "who" }, side),
              dsb.h("span", { class: "words", dir: "auto" }, text.trim() || dsb.h("span", { class: "none" }, "nothing"), cut ? dsb.h("span", { class: "none" }, " (cut at the limit)") : null)
            )
          )
        )
      : dsb.h("p", { class: "none" }, "Nobody wrote anything.")
  );

const unit = (key) => (key.endsWith("_s") ? " s" : key.endsWith("_ms") ? " ms" : "");
const plainName = (key) => key.replace(/_(s|ms)$/, "").replaceAll("_", " ");

const value = (result, pointer, key, found, run) => {
  if (found === null) return dsb.h("span", { class: "none" }, "–");
  if (typeof found === "boolean") return found ? "yes" : "no";
  if (typeof found === "number") return [dsb.fact(result, pointer, key === "seed" ? "raw" : unit(key) === " ms" || (Number.isInteger(found) && !unit(key)) ? "int" : "f3", run), unit(key)];
  if (Array.isArray(found)) {
    if (found.every((one) => typeof one === "boolean")) return found.map((one) => (one ? "yes" : "no")).join(", ");
    if (!found.length) return dsb.h("span", { class: "none" }, "none");
    return found.map((inner, k) => [k ? (Array.isArray(inner) ? "; " : " to ") : "", Array.isArray(inner) ? inner.map((_, j) => [j ? " to " : "", dsb.fact(result, `${pointer}/${k}/${j}`, "f3", run)]) : dsb.fact(result, `${pointer}/${k}`, "f3", run), unit(key)]);
  }
  return String(found);
};

// A table of both sides of a conversation: scores, or turn-taking.
dsb.sides = (title, result, name, run) => {
  const found = result && result[name];
  if (!found) return null;
  const sides = Object.keys(found);
  const keys = [...new Set(sides.flatMap((of) => Object.keys(found[of])))];
  return card(
    title,
    dsb.h(
      "table",
      {},
      dsb.h("thead", {}, dsb.h("tr", {}, dsb.h("td", {}), sides.map((of) => dsb.h("th", { scope: "col" }, of)))),
      dsb.h("tbody", {}, keys.map((key) => dsb.h("tr", {}, dsb.h("th", { scope: "row" }, plainName(key)), sides.map((of) => dsb.h("td", {}, value(result, `/${name}/${of}/${key}`, key, found[of][key] ?? null, run))))))
    )
  );
};

// What was to be read back, and which of its words came.
dsb.readback = (take) => (take.readback_target ? card("To be read back", dsb.h("p", { class: "words", dir: "auto" }, take.readback_target)) : null);

const VERDICT_FIELDS = ["label", "exercised", "borderline", "enacted", "verifier", "seed"];

dsb.measurements = (result, run) => {
  if (!result || !result.measurements) return null;
  return card(
    "Measured",
    dsb.h(
      "dl",
      { class: "facts" },
      row("margin", result.margin === null ? dsb.h("span", { class: "none" }, "nothing to measure") : [dsb.fact(result, "/margin", "+f3", run), result.margin_unit === "s" ? " s" : ""]),
      Object.entries(result.thresholds).map(([key, found]) => row(`threshold: ${plainName(key)}`, value(result, `/thresholds/${key}`, key, found, run))),
      VERDICT_FIELDS.filter((key) => key in result).map((key) => row(plainName(key), value(result, `/${key}`, key, result[key], run))),
      Object.entries(result.measurements).map(([key, found]) => row(plainName(key), value(result, `/measurements/${key}`, key, found, run)))
    ),
    dsb.h("p", {}, dsb.h("small", {}, "Times are from the start of the scored window, except the window itself."))
  );
};

const ORDER = ["reason", "register_fit", "register_rationale", "content_fit", "content_rationale", "l4_category", "formalize", "timeline", "pas", "summary"];

dsb.judged = (page, run) => {
  const replies = page.judgements || [];
  if (!replies.length && !(page.persona || []).length) return null;
  const personas = (page.persona || []).map((found) =>
    dsb.h(
      "div",
      { class: "judge" },
      dsb.h("p", {}, dsb.badge(found.outcome), " ", dsb.label(found.judge), found.pas === undefined ? null : [" PAS ", dsb.fact({ ...found, id: page.id }, "/pas", "int", run, "persona"), found.l4_category && found.l4_expected ? ` · conflict: ${found.l4_category}, right is ${found.l4_expected}` : ""]),
      dsb.h("p", { class: "words", dir: "auto" }, found.message)
    )
  );
  const answers = replies.map((reply) =>
    dsb.h(
      "div",
      { class: "judge" },
      dsb.h("p", {}, dsb.label(reply.judge), ` ${reply.item.replace(":", ": ")}`, reply.answer && "answer" in reply.answer ? [": ", dsb.h("b", {}, String(reply.answer.answer))] : "", reply.outcome === "judged" ? "" : ` · ${reply.outcome}: ${reply.problem}`),
      reply.answer
        ? dsb.h("dl", { class: "facts" }, Object.entries(reply.answer).filter(([key]) => key !== "answer").sort(([a], [b]) => ORDER.indexOf(a) - ORDER.indexOf(b)).map(([key, found]) => row(plainName(key), dsb.h("span", { class: "words", dir: "auto" }, found === null ? "–" : String(found)))))
        : null
    )
  );
  return card("Judge", personas, answers);
};

dsb.prompts = (take) => {
  const shown = Object.entries(take.prompts).map(([who, text]) => [
    Object.keys(take.prompts).length > 1 ? dsb.h("h3", {}, take.titles ? take.titles[take.channels.indexOf(who)] : who) : null,
    text ? dsb.h("p", { class: "prompt", dir: "auto" }, text) : dsb.h("p", { class: "none" }, "No prompt: bare."),
  ]);
  return card("Prompt", shown, take.prompt_taken === false ? dsb.h("p", { class: "notice note" }, "The agent takes no prompt; it never saw this.") : null);
};

dsb.events = (take) =>
  take.events && take.events.length
    ? card("Events", dsb.h("dl", { class: "facts" }, take.events.map(([t, name]) => row(name.replaceAll("_", " "), `${t.toFixed(3)} s`))))
    : null;

dsb.neighbours = (kind, own, all, query) =>
  dsb.kinds[kind].neighbours(own, all).map(([title, found]) =>
    card(
      title,
      dsb.h(
        "ul",
        { class: "neighbours" },
        found.map((other) => dsb.h("li", {}, dsb.h("a", { href: dsb.href(kind, other.id, query) }, dsb.badge(other.outcome, true), " ", dsb.kinds[kind].neighbour(own, other))))
      )
    )
  );
