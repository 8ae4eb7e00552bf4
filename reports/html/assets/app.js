// Routes, navigation, light and dark.
"use strict";

const leaving = [];
dsb.leave = (what) => leaving.push(what);

const NAV = () => {
  const of = dsb.report;
  const has = (kind) => of.runs.some((run) => run[kind]);
  return [
    of.pages.changes && ["changes", "Changes"],
    of.pages.overview && ["overview", "Overview"],
    has("cases") && ["cases", "Cases"],
    of.pages.dyads && ["dyads", "Dyads"],
    ...Object.keys(of.pages).filter((name) => name.startsWith("dyads-")).map((name) => [name, of.pages[name].title]),
    has("dyads") && ["conversations", "Conversations"],
    of.pages.published && ["published", "Published"],
    of.pages.about && ["about", "About the run"],
  ].filter(Boolean);
};

const ROUTES = {
  cases: (into, { query }) => dsb.showList("case", into, query),
  case: (into, { name, query }) => dsb.showRecording("case", into, name, query),
  conversations: (into, { query }) => dsb.showList("dyad", into, query),
  dyad: (into, { name, query }) => dsb.showRecording("dyad", into, name, query),
};
const BELONGS = { case: "cases", dyad: "conversations" };

let turn = 0;
const scrolled = new Map();
let before = null;

const show = async () => {
  const mine = ++turn;
  const address = dsb.address();
  const page = address.page || NAV()[0]?.[0] || "overview";
  if (before) scrolled.set(before, scrollY);
  const same = before && before.split("?")[0] === location.hash.split("?")[0];
  before = location.hash;
  leaving.splice(0).forEach((what) => what());
  const into = document.createDocumentFragment();
  document.title = `${page} · dsbeval`;
  try {
    if (ROUTES[page]) await ROUTES[page](into, address);
    else if (dsb.report.pages[page]) dsb.showPage(page, into);
    else into.append(dsb.h("h1", {}, "Not here"), dsb.h("p", { class: "notice warning" }, `This report has no page ${page}.`));
  } catch (error) {
    console.error(error);
    into.append(dsb.h("h1", {}, "This page cannot be shown"), dsb.h("p", { class: "notice warning" }, error.message));
  }
  if (mine !== turn) return;
  const main = document.getElementById("main");
  main.replaceChildren(into);
  dsb.fit();
  main.dataset.page = page;
  main.dataset.ready = String(mine);
  performance.mark("ready");
  for (const link of document.querySelectorAll("#nav a")) {
    const here = link.dataset.page === (BELONGS[page] || page);
    if (here) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  const anchor = dsb.report.pages[page] && address.name && document.getElementById(`s-${address.name}`);
  const focus = dsb.refocus && document.getElementById(dsb.refocus);
  dsb.refocus = null;
  if (focus) focus.focus();
  else if (turn > 1 && !anchor) main.focus({ preventScroll: true });
  if (anchor) anchor.scrollIntoView();
  else if (!same) scrollTo(0, ROUTES[page] && !BELONGS[page] ? scrolled.get(location.hash) || 0 : 0);
};

// Light, dark, or as the system has it. From disk a browser may keep nothing.
const THEMES = ["auto", "light", "dark"];
const kept = {
  get: () => { try { return localStorage.getItem("dsbeval-theme"); } catch { return null; } },
  set: (value) => { try { localStorage.setItem("dsbeval-theme", value); } catch { /* nothing is lost but a preference */ } },
};
const theme = (name) => {
  document.documentElement.dataset.theme = name;
  const button = document.getElementById("theme");
  button.textContent = { auto: "◐ Auto", light: "○ Light", dark: "● Dark" }[name];
  button.setAttribute("aria-label", `Theme: ${name}. Change`);
};

document.getElementById("theme").addEventListener("click", () => {
  const next = THEMES[(THEMES.indexOf(document.documentElement.dataset.theme) + 1) % THEMES.length];
  kept.set(next);
  theme(next);
});
theme(THEMES.includes(kept.get()) ? kept.get() : "auto");

dsb.load("report", true).then(
  (report) => {
    dsb.report = report;
    const agents = report.documents.slice(0, report.runs.length).map((one) => one.fingerprint.agent);
    document.getElementById("whose").textContent = report.runs.length > 1 ? report.runs.map((run) => run.name).join(" · ") : agents[0];
    document.getElementById("nav").append(...NAV().map(([page, name]) => dsb.h("a", { href: dsb.href(page), "data-page": page }, name)));
    addEventListener("hashchange", show);
    return show();
  },
  (error) => document.getElementById("main").replaceChildren(dsb.h("p", { class: "notice warning" }, error.message))
);
