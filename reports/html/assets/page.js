// Pages that the report's maker has laid out as data: sections of texts, tables, tallies and plots.
"use strict";

const part = (of) => {
  if (typeof of === "string") return of;
  if (Array.isArray(of)) return of.map(part);
  if ("k" in of) return dsb.number(of.k, of.f, of.d);
  if ("rate" in of) return dsb.rate(of.rate, of.d);
  if ("small" in of) return dsb.h("small", {}, of.small.map(part));
  if ("big" in of) return dsb.h("span", { class: "big" }, of.big.map(part));
  if ("label" in of) return dsb.label(of.label);
  if ("run" in of) return dsb.h("span", { class: "run" }, of.run);
  if ("tag" in of) return dsb.h("span", { class: "tag" }, of.tag);
  if ("a" in of) return dsb.h("a", { href: of.a }, of.t.map(part));
  throw new Error(`a part of a page is unknown: ${Object.keys(of)}`);
};

dsb.parts = (list) => list.map(part);

const cell = (of, heat) => {
  const text = dsb.parts(of.p);
  const body = text.length ? text : dsb.h("span", { class: "none" }, "–");
  const inside = of.href ? dsb.h("a", { href: of.href }, body) : body;
  const warm = heat && typeof of.heat === "number";
  return dsb.h(
    "td",
    { class: [warm && "heat", of.tone, of.tag].filter(Boolean).join(" ") || null, style: warm ? { "--heat": `${(100 * of.heat).toFixed(1)}%` } : null },
    of.above ? dsb.h("span", { class: "above" }, dsb.parts(of.above)) : null,
    inside
  );
};

const table = (block) =>
  dsb.h(
    "figure",
    { class: "table" },
    dsb.scroller(
      `Table: ${block.caption}`,
      dsb.h(
        "table",
        { class: block.heat ? "heated" : null },
        dsb.h("caption", {}, block.caption),
        dsb.h("thead", {}, dsb.h("tr", {}, block.head.map((name, k) => (k || name ? dsb.h("th", { scope: "col" }, dsb.label(name)) : dsb.h("td", {}))))),
        dsb.h("tbody", {}, block.rows.map((row) => dsb.h("tr", {}, dsb.h("th", { scope: "row" }, dsb.parts(row.h)), row.c.map((of) => cell(of, block.heat)))))
      )
    ),
    block.note ? dsb.h("figcaption", {}, block.note) : null
  );

// A plot comes as SVG from the report's maker. It is parsed as XML, which runs nothing, and stands in the page to take its colours.
const figure = (block) => {
  const parsed = new DOMParser().parseFromString(dsb.report.plots[block.plot], "image/svg+xml").documentElement;
  const svg = document.importNode(parsed, true);
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", block.alt);
  return dsb.h("figure", { class: "plot", "data-plot": block.plot }, dsb.scroller(`Plot: ${block.caption}`, svg), dsb.h("figcaption", {}, block.caption));
};

const tally = (block) => {
  const total = dsb.at(dsb.report.documents[block.total.d || 0], block.total.k);
  const share = (item) => (total ? dsb.at(dsb.report.documents[item.n.d || 0], item.n.k) / total : 0);
  return dsb.h(
    "div",
    { class: "tally" },
    dsb.h("p", { class: "total" }, dsb.h("b", {}, part(block.total)), ` ${block.of}`),
    dsb.h(
      "ul",
      {},
      block.items.map((item) =>
        dsb.h("li", { class: share(item) ? item.name : `${item.name} zero` }, dsb.h("a", { href: item.href }, dsb.h("b", {}, part(item.n)), " ", item.name))
      )
    ),
    dsb.h("div", { class: "bar", "aria-hidden": "true" }, block.items.map((item) => dsb.h("span", { class: item.name, style: { "flex-grow": String(share(item)) } })))
  );
};

const figures = (block) =>
  dsb.h("dl", { class: "figures" }, block.items.map((item) => dsb.h("div", {}, dsb.h("dt", {}, dsb.parts(item.name)), dsb.h("dd", {}, dsb.parts(item.p)))));

const BLOCKS = {
  text: (block) => dsb.h("p", { class: block.tone || null }, dsb.parts(block.p)),
  notice: (block) => dsb.h("p", { class: `notice ${block.tone}`, role: "note" }, dsb.parts(block.p)),
  list: (block) => dsb.h("ul", { class: "plain" }, block.items.map((item) => dsb.h("li", {}, dsb.parts(item)))),
  row: (block) => dsb.h("div", { class: "row" }, block.blocks.map((inner) => BLOCKS[inner.b](inner))),
  table,
  figure,
  tally,
  figures,
};

dsb.showPage = (name, into) => {
  const page = dsb.report.pages[name];
  const contents = dsb.h(
    "nav",
    { class: "contents", "aria-label": "Sections" },
    dsb.h("ol", {}, page.sections.map((one) => dsb.h("li", {}, dsb.h("a", { href: dsb.href(name, one.id) }, one.title))))
  );
  const sections = page.sections.map((one) =>
    dsb.h("section", { id: `s-${one.id}`, "aria-labelledby": `h-${one.id}` }, dsb.h("h2", { id: `h-${one.id}` }, one.title), one.blocks.map((block) => BLOCKS[block.b](block)))
  );
  into.append(dsb.h("div", { class: "paged" }, contents, dsb.h("div", { class: "sections" }, dsb.h("h1", { class: "unseen" }, page.title), sections)));
};
