// What everything stands on: making elements, loading data, reading addresses. Scripts of a page opened from disk cannot be
// modules, so there is one name, dsb. Text goes into the page as text: nothing here or elsewhere parses it as markup.
"use strict";

const dsb = {};

// Elements. A child is a node, a string, a list of children, or nothing.
dsb.h = (tag, attributes, ...children) => {
  const element = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (key === "style") for (const [name, of] of Object.entries(value)) element.style.setProperty(name, of);
    else element.setAttribute(key, value === true ? "" : value);
  }
  dsb.fill(element, children);
  return element;
};

dsb.fill = (element, children) => {
  for (const child of [children].flat(Infinity)) {
    if (child === null || child === undefined || child === "") continue;
    element.append(child instanceof Node ? child : String(child));
  }
  return element;
};

// Data. Each piece is a script that calls dsb.take; a few of the last ones are kept, so that a long look round holds little.
const KEPT = 16;
const pieces = new Map();
const waiting = new Map();

dsb.take = (name, value) => {
  const found = waiting.get(name);
  waiting.delete(name);
  if (found) found.resolve(value);
};

dsb.load = (name, keep) => {
  if (pieces.has(name)) {
    const piece = pieces.get(name);
    pieces.delete(name);
    pieces.set(name, piece);
    return piece.promise;
  }
  const promise = new Promise((resolve, reject) => {
    waiting.set(name, { resolve });
    const script = dsb.h("script", { src: `data/${name}.js`, charset: "utf-8" });
    script.onload = () => script.remove();
    script.onerror = () => {
      script.remove();
      waiting.delete(name);
      pieces.delete(name);
      reject(new Error(`data/${name}.js is missing or cannot be read; make the report again`));
    };
    document.head.append(script);
  });
  pieces.set(name, { promise, keep });
  const loose = [...pieces].filter(([, piece]) => !piece.keep);
  for (const [old] of loose.slice(0, Math.max(0, loose.length - KEPT))) pieces.delete(old);
  return promise;
};

// Addresses: #/page/name?key=value&...
dsb.address = () => {
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
  const [page, ...rest] = path.split("/");
  return { page, name: decodeURIComponent(rest.join("/")), query: new URLSearchParams(query || "") };
};

dsb.href = (page, name, query) => {
  const found = query ? query.toString() : "";
  return `#/${page}${name ? `/${encodeURIComponent(name).replace(/%40/g, "@")}` : ""}${found ? `?${found}` : ""}`;
};

// Small pieces of every page
const SIGNS = { passed: "✓", failed: "✕", error: "!", skipped: "–", missing: "∅" };

dsb.badge = (outcome, short) =>
  dsb.h("span", { class: `badge ${outcome}` }, dsb.h("span", { "aria-hidden": "true" }, SIGNS[outcome] || "?"), short ? dsb.h("span", { class: "unseen" }, outcome) : ` ${outcome}`);

dsb.label = (text) => dsb.h("span", { class: "label" }, text);

// A box that scrolls sideways can be reached and scrolled by keyboard; one that has nothing to scroll is no stop on the way.
dsb.scroller = (name, ...children) => dsb.h("div", { class: "scroller", "data-name": name }, children);

dsb.fit = () => {
  for (const box of document.querySelectorAll(".scroller")) {
    const scrolls = box.scrollWidth > box.clientWidth;
    for (const [key, value] of Object.entries({ role: "region", "aria-label": box.dataset.name, tabindex: "0" })) {
      if (scrolls) box.setAttribute(key, value);
      else box.removeAttribute(key);
    }
  }
};
addEventListener("resize", dsb.fit);
