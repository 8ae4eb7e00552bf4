// Numbers by where they stand. What is shown carries the pointer and the format that it was made from, so that anything can check it.
"use strict";

// RFC 6901
dsb.at = (document, pointer) => {
  let here = document;
  for (const step of pointer.split("/").slice(1)) {
    if (here === null || here === undefined) return undefined;
    here = here[step.replace(/~1/g, "/").replace(/~0/g, "~")];
  }
  return here;
};

// Rounded to even at a tie, as the tables in the terminal are.
const fixed = (value, digits) => {
  const more = 25;
  const exact = Math.abs(value).toFixed(digits + more);
  let out = Math.abs(value).toFixed(digits);
  if (exact.endsWith("5" + "0".repeat(more - 1))) {
    const low = exact.slice(0, digits ? -more : -more - 1);
    if (Number(low.slice(-1)) % 2 === 0) out = low;
  }
  return (value < 0 && Number(out) !== 0 ? "−" : "") + out;
};

const signed = (value, digits) => (Number(fixed(Math.abs(value), digits)) !== 0 && value > 0 ? "+" : "") + fixed(value, digits);
const grouped = (value) => String(value).replace(/\B(?=(\d{3})+$)/g, ",");

const FORMATS = {
  raw: (value) => String(value),
  int: (value) => (Number.isInteger(value) ? (value < 0 ? "−" : "") + grouped(Math.abs(value)) : fixed(value, 1)),
  "+int": (value) => (value > 0 ? "+" : value < 0 ? "−" : "") + grouped(Math.abs(value)),
  pct: (value) => fixed(100 * value, 1),
  points: (value) => signed(100 * value, 1),
  "+f1": (value) => signed(value, 1),
  "+f2": (value) => signed(value, 2),
  "+f3": (value) => signed(value, 3),
  f0: (value) => fixed(value, 0),
  f1: (value) => fixed(value, 1),
  f2: (value) => fixed(value, 2),
  f3: (value) => fixed(value, 3),
  p: (value) => (value < 0.001 ? "<0.001" : fixed(value, 3)),
};

dsb.format = (form, value) => FORMATS[form](value);

const shown = (value, form, data) => {
  const text = value === null || value === undefined ? "–" : dsb.format(form, value);
  return dsb.h("span", { class: "num", "data-format": form, ...data }, text);
};

// A number of a document of the report: a summary, or the comparison.
dsb.number = (pointer, form, index) =>
  shown(dsb.at(dsb.report.documents[index || 0], pointer), form, { "data-key": pointer, "data-doc": String(index || 0) });

// A number of one case, from its result row.
dsb.shownFact = shown;
dsb.fact = (row, pointer, form, run, item) =>
  shown(dsb.at(row, pointer), form, { "data-row": pointer, "data-id": row.id, "data-run": String(run || 0), "data-item": item || row.item || "floor" });

// A rate with what it is over; of few cases the counts say more than a percentage.
const FEW = 10;

dsb.rate = (pointer, index) => {
  const cell = dsb.at(dsb.report.documents[index || 0], pointer);
  const number = (key, form) => dsb.number(`${pointer}/${key}`, form, index);
  const counts = [number("passed", "int"), "/", number("n", "int")];
  if (cell.n < FEW) return counts;
  const limits = cell.ci95 ? [" ", dsb.h("small", {}, "[", number("ci95/0", "pct"), ", ", number("ci95/1", "pct"), "]")] : [];
  return [number("rate", "pct"), " ", dsb.h("small", {}, "(", counts, ")"), limits];
};
