// The two kinds of things in a list: cases of DSB-IFEval and conversations of DyaFDB. What they are filtered by, sorted by, and
// which columns of the list they show.
"use strict";

const yes = (value) => (value === true ? "yes" : value === false ? "no" : "");
const partOf = (name, text) => (text ? [name, text] : null);

// A trial after the first is called ID~tN.
const caseOf = (row) => row.id.split("~")[0];
const trialOf = (row) => row.id.split("~t")[1] || "1";
const pairOf = (row) => (row.model_a ? [row.model_a, row.model_b].sort().join(" ~ ") : "");
const brief = (model) => model.slice(model.lastIndexOf("/") + 1);
const side = (row, of) => (row[`model_${of}`] ? `${brief(row[`model_${of}`])} (${row[`role_${of}`]})` : "–");
const score = (row, of, run) =>
  row[`score_${of}`] === null ? dsb.h("span", { class: "none" }, "–") : dsb.shownFact(row[`score_${of}`], "f2", { "data-row": `/scores/${of}/score`, "data-id": row.id, "data-run": String(run), "data-item": "dyad" });

dsb.kinds = {
  case: {
    list: "cases",
    title: "Cases",
    of: "cases",
    filters: [
      ["role", "role"],
      ["probe", "probe"],
      ["level", "level"],
      ["action", "action"],
      ["outcome", "outcome"],
      ["exercised", "exercised", (row) => yes(row.exercised)],
      ["borderline", "in detector's error", (row) => yes(row.borderline)],
      ["persona", "persona"],
    ],
    // Known to addresses, not shown as fields of their own
    hidden: [
      ["scored_as", (row) => row.scored_as],
      ["matched", (row) => yes(Boolean(row.audio_key && row.audio_key.startsWith("IFD-M-")))],
      ["instance", (row) => String(row.instance)],
    ],
    sorts: [
      ["", "order of the pack"],
      ["margin", "margin, worst first"],
      ["-margin", "margin, best first"],
      ["near", "margin, nearest to the limit"],
      ["pas", "PAS, lowest first"],
    ],
    margins: true,
    columns: [
      ["outcome", (row) => dsb.badge(row.outcome)],
      ["case", null],
      ["action", (row) => dsb.label(row.action || "–"), "wide"],
      ["margin", (row, run) => (row.margin === null ? dsb.h("span", { class: "none" }, "–") : [dsb.fact(row, "/margin", "+f3", run), row.margin_unit === "s" ? " s" : ""]), "figure"],
      ["PAS", (row, run) => (row.pas === null ? dsb.h("span", { class: "none" }, "–") : dsb.fact(row, "/pas", "int", run, "persona")), "figure wide"],
      ["in words", (row) => dsb.h("span", { class: "words", dir: "auto" }, row.message || ""), "words"],
    ],
    words: (row) => `${row.id} ${row.message || ""}`,
    neighbours: (row, all) =>
      [
        partOf("Other trials", all.filter((other) => other.id !== row.id && caseOf(other) === caseOf(row))),
        partOf("The same conversation at other levels", all.filter((other) => caseOf(other) !== caseOf(row) && trialOf(other) === trialOf(row) && other.role === row.role && other.probe === row.probe && other.instance === row.instance)),
        partOf("The same recording in other roles", row.audio_key ? all.filter((other) => other.audio_key === row.audio_key && other.role !== row.role && trialOf(other) === trialOf(row)) : []),
      ].filter((found) => found && found[1].length),
    neighbour: (row, other) => (caseOf(row) === caseOf(other) ? `trial ${trialOf(other)}` : row.role === other.role ? other.level : `${other.role} ${other.level}`),
    about: (row) => [
      ["role", dsb.report.names[row.role] ? `${row.role} ${dsb.report.names[row.role]}` : row.role],
      ["probe", dsb.report.names[row.probe] ? `${row.probe} ${dsb.report.names[row.probe]}` : row.probe],
      ["level", row.level],
      ["instance", `instance ${row.instance}`],
      ...(trialOf(row) === "1" ? [] : [["trial", `trial ${trialOf(row)}`]]),
    ],
  },

  dyad: {
    list: "conversations",
    title: "Conversations",
    of: "conversations",
    filters: [
      ["task", "task"],
      ["scenario", "scenario"],
      ["pair", "models", pairOf],
      ["role", "role of side a", (row) => row.role_a || ""],
      ["opener", "opener"],
      ["outcome", "outcome"],
      ["exercised", "exercised", (row) => yes(row.exercised)],
    ],
    hidden: [
      ["repeat", (row) => String(row.repeat)],
      ["seats", (row) => row.seats],
    ],
    sorts: [
      ["", "order of the run"],
      ["score", "score of side a, lowest first"],
      ["-score", "score of side a, highest first"],
    ],
    columns: [
      ["outcome", (row) => dsb.badge(row.outcome)],
      ["conversation", null],
      ["side a", (row) => side(row, "a"), "wide"],
      ["side b", (row) => side(row, "b"), "wide"],
      ["score a", (row, run) => score(row, "a", run), "figure wide"],
      ["score b", (row, run) => score(row, "b", run), "figure wide"],
      ["in words", (row) => dsb.h("span", { class: "words", dir: "auto" }, row.message || ""), "words"],
    ],
    words: (row) => `${row.id} ${row.model_a} ${row.model_b} ${row.role_a} ${row.role_b} ${row.message || ""}`,
    neighbours: (row, all) => [partOf("The same scenario", all.filter((other) => other.id !== row.id && other.scenario === row.scenario).slice(0, 24))].filter((found) => found && found[1].length),
    neighbour: (row, other) => other.id.replace(`DYA-${other.scenario}-`, ""),
    about: (row) => [
      ["task", row.task],
      ["side a", `a ${row.model_a} (${row.role_a})`],
      ["side b", `b ${row.model_b} (${row.role_b})`],
      ["opener", `${row.opener} opens`],
    ].filter(([, text]) => text && !text.includes("undefined") && !text.includes("null")),
    facts: (page, run) => [dsb.sides("Scores", page.row, "scores", run), dsb.sides("Turn-taking", page.row, "turn_taking", run)],
  },
};
