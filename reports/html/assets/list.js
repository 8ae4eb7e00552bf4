// The list of cases or conversations: filters that live in the address, so that a link keeps them; sorted by margin if wanted.
"use strict";

const AT_ONCE = 150;

// Rows of all runs, joined by id: fields are those of the first run that has the row; .runs holds each run's own, or null.
const joined = new Map();

const objects = (piece) => piece.rows.map((values) => Object.fromEntries(piece.columns.map((name, k) => [name, values[k]])));

const rowsOfRun = async (kind, run) => {
  const name = kind === "case" ? "cases" : "dyads";
  const count = dsb.report.runs[run][`${name}_pieces`];
  const pieces = await Promise.all(Array.from({ length: count }, (_, k) => dsb.load(`r${run}-${name}-${k}`)));
  return pieces.flatMap(objects);
};

dsb.rows = (kind) => {
  if (!joined.has(kind)) {
    joined.set(
      kind,
      Promise.all(dsb.report.runs.map((_, run) => rowsOfRun(kind, run))).then((lists) => {
        const all = new Map();
        lists.forEach((list, run) =>
          list.forEach((row) => {
            if (!all.has(row.id)) all.set(row.id, { ...row, runs: lists.map(() => null) });
            all.get(row.id).runs[run] = row;
          })
        );
        return [...all.values()];
      })
    );
  }
  return joined.get(kind);
};

// Whether runs differ in a case, and which way the last one went from the first
const VERDICT = new Set(["passed", "failed"]);

dsb.changeOf = (row) => {
  const outcomes = row.runs.map((one) => (one ? one.outcome : "missing"));
  const [first, last] = [outcomes[0], outcomes[outcomes.length - 1]];
  if (outcomes.every((one) => one === first)) return "same";
  if (VERDICT.has(first) && VERDICT.has(last) && first !== last) return last === "passed" ? "gained" : "lost";
  return "other";
};

const filtersOf = (kind) => {
  const of = dsb.kinds[kind];
  const more = dsb.report.runs.length > 1 ? [["change", "change", dsb.changeOf]] : [];
  const shown = [...more, ...of.filters].map(([key, title, value]) => ({ key, title, value: value || ((row) => row[key] ?? "") }));
  return { shown, all: [...shown, ...of.hidden.map(([key, value]) => ({ key, value }))] };
};

const SORTS = {
  "": null,
  margin: (row) => row.margin,
  "-margin": (row) => (row.margin === null ? null : -row.margin),
  near: (row) => (row.margin === null ? null : Math.abs(row.margin)),
  pas: (row) => row.pas,
  score: (row) => row.score_a,
  "-score": (row) => (row.score_a === null ? null : -row.score_a),
};

// The rows that an address asks for, in its order. A row without the value that is sorted by comes last.
dsb.chosen = (kind, rows, query) => {
  const of = dsb.kinds[kind];
  const tests = filtersOf(kind)
    .all.filter(({ key }) => query.get(key))
    .map(({ key, value }) => {
      const wanted = new Set(query.get(key).split(","));
      return (row) => wanted.has(String(value(row)));
    });
  for (const [key, keep] of [["min", (margin, limit) => margin >= limit], ["max", (margin, limit) => margin <= limit]]) {
    if (query.get(key) && Number.isFinite(Number(query.get(key)))) tests.push((row) => row.margin !== null && keep(row.margin, Number(query.get(key))));
  }
  const words = (query.get("q") || "").toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length) tests.push((row) => { const text = of.words(row).toLowerCase(); return words.every((word) => text.includes(word)); });
  const found = rows.filter((row) => tests.every((test) => test(row)));
  const sort = SORTS[query.get("sort") || ""];
  if (!sort) return found;
  return found
    .map((row, k) => ({ row, k, by: sort(row) }))
    .sort((a, b) => (a.by === null || a.by === undefined) - (b.by === null || b.by === undefined) || a.by - b.by || a.k - b.k)
    .map(({ row }) => row);
};

const inOrder = (values) => [...values].sort((a, b) => a.localeCompare(b, "en", { numeric: true }));

const control = (filter, rows, query, change) => {
  const id = `f-${filter.key}`;
  const wanted = query.get(filter.key) || "";
  const values = new Set(rows.map((row) => String(filter.value(row))));
  values.delete("");
  if (wanted) values.add(wanted);
  if (values.size < 2 && !wanted) return null;
  const name = (value) => (dsb.report.names[value] ? `${value} ${dsb.report.names[value]}` : value.replace(",", " or "));
  return dsb.h(
    "div",
    { class: "field" },
    dsb.h("label", { for: id }, filter.title),
    dsb.h("select", { id, onchange: (event) => change(filter.key, event.target.value) }, dsb.h("option", { value: "" }, "any"), inOrder(values).map((value) => dsb.h("option", { value, selected: value === wanted }, name(value))))
  );
};

const typed = (key, title, query, change, more) =>
  dsb.h(
    "div",
    { class: "field" },
    dsb.h("label", { for: `f-${key}` }, title),
    dsb.h("input", { id: `f-${key}`, value: query.get(key) || "", onchange: (event) => change(key, event.target.value.trim()), ...more })
  );

const form = (kind, rows, query, change) => {
  const of = dsb.kinds[kind];
  const { shown, all } = filtersOf(kind);
  const hidden = all.filter(({ key }) => query.get(key) && !shown.some((one) => one.key === key));
  return dsb.h(
    "form",
    { class: "filters", role: "search", "aria-label": `Filter ${of.of}`, onsubmit: (event) => event.preventDefault() },
    shown.map((filter) => control(filter, rows, query, change)),
    of.margins ? [typed("min", "margin from", query, change, { type: "number", step: "any" }), typed("max", "margin to", query, change, { type: "number", step: "any" })] : null,
    typed("q", "words", query, change, { type: "search" }),
    dsb.h(
      "div",
      { class: "field" },
      dsb.h("label", { for: "f-sort" }, "sort"),
      dsb.h("select", { id: "f-sort", onchange: (event) => change("sort", event.target.value) }, of.sorts.map(([value, name]) => dsb.h("option", { value, selected: value === (query.get("sort") || "") }, name)))
    ),
    hidden.map(({ key }) => dsb.h("button", { type: "button", class: "chip", onclick: () => change(key, "") }, `${key}: ${query.get(key)} `, dsb.h("span", { "aria-hidden": "true" }, "✕"), dsb.h("span", { class: "unseen" }, "remove this filter"))),
    [...query.keys()].length ? dsb.h("a", { class: "clear", href: dsb.href(of.list) }, "clear") : null
  );
};

dsb.showList = async (kind, into, query) => {
  const of = dsb.kinds[kind];
  const rows = await dsb.rows(kind);
  const change = (key, value) => {
    const next = new URLSearchParams(query);
    if (value) next.set(key, value);
    else next.delete(key);
    location.replace(dsb.href(of.list, "", next));
    dsb.refocus = `f-${key}`;
  };
  const found = dsb.chosen(kind, rows, query);
  const many = dsb.report.runs.length > 1;
  const count = dsb.h("p", { class: "count", role: "status", "data-shown": String(found.length), "data-all": String(rows.length) }, dsb.h("b", {}, dsb.format("int", found.length)), ` of ${dsb.format("int", rows.length)} ${of.of}`);
  const body = dsb.h("tbody", {});
  const line = (row) =>
    dsb.h(
      "tr",
      { "data-id": row.id },
      of.columns.map(([name, make, tag]) => {
        if (make === null) return dsb.h("th", { scope: "row" }, dsb.h("a", { href: dsb.href(kind, row.id, query), class: "id" }, row.id));
        const values = many && name !== "in words" ? row.runs.map((one, run) => dsb.h("div", { class: "of-run" }, one ? make(one, run) : dsb.badge("missing"))) : make(row, 0);
        return dsb.h("td", { class: tag || null }, values);
      })
    );
  let next = 0;
  const more = dsb.h("button", { type: "button", class: "more", onclick: () => extend() }, "");
  const extend = () => {
    body.append(...found.slice(next, next + AT_ONCE).map(line));
    next = Math.min(found.length, next + AT_ONCE);
    more.hidden = next >= found.length;
    more.textContent = `Show ${dsb.format("int", Math.min(AT_ONCE, found.length - next))} more`;
  };
  extend();
  into.append(
    dsb.h("h1", {}, of.title),
    form(kind, rows, query, change),
    count,
    found.length
      ? dsb.scroller(
          of.title,
          dsb.h("table", { class: "list" }, dsb.h("thead", {}, dsb.h("tr", {}, of.columns.map(([name, , tag]) => dsb.h("th", { scope: "col", class: tag || null }, name)))), body)
        )
      : dsb.h("p", { class: "notice note" }, rows.length ? `No ${of.of} match the filters.` : `This run holds no ${of.of}.`),
    more
  );
  const watch = new IntersectionObserver((entries) => entries.some((entry) => entry.isIntersecting) && !more.hidden && extend(), { rootMargin: "600px" });
  watch.observe(more);
  dsb.leave(() => watch.disconnect());
};
