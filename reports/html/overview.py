"""The overview of DSB-IFEval: what the run is, what is missing, IAS, effects, and where they come from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dsbeval.ifeval.pack import LEVELS
from reports.html import notices
from reports.html.addresses import OUTCOMES, cases_at
from reports.html.overview_judge import judge_section
from reports.html.overview_time import latency, realtime, services, trials
from reports.html.page import (
    Block,
    Part,
    Ref,
    drawn,
    gap_cell,
    label,
    mean,
    of_run,
    rate,
    section,
    side_by_side,
    small,
    table,
    text,
)
from reports.html.view import View
from reports.tables import EFFECT_NAMES

SUBSETS = {
    "all": "all cells",
    "reactive": "reactive cells (the published headline)",
    "exercised": "exercised cases",
}
GRID = ("C1", "C2", "C3", "C4", "A", "B")


def overview(view: View, plots: Mapping[str, str]) -> dict[str, Any]:
    """Return the page. ``plots`` are those that could be drawn."""
    scored = view.part("ifeval")
    sections = [section("run", "The run", *_run(view))]
    if any(side.root["ias"]["all"]["overall"]["n"].value for side in scored.sides):
        sections += [
            section("ias", "Interaction adherence and effects of the prompt", *_ias(scored, plots), *_effects(scored)),
            section("actions", "By action and level", *_actions(scored)),
            section("grid", "By role and probe", *_grid(scored)),
            section("roles", "By role", *_roles(scored, plots)),
            section("latency", "When it acted", *latency(scored, plots)),
        ]
        if again := trials(scored):
            sections.append(section("trials", "Trials", *again))
    sections += [
        section(f"judge-{k}", f"Persona adherence: judge {judge}", *judge_section(view, judge, plots, k))
        for k, judge in enumerate(view.keys("judges"))
    ]
    if clocked := realtime(view):
        sections.append(section("realtime", "Real time", *clocked))
    if used := services(view):
        sections.append(section("services", "Services", *used))
    return {"title": "Overview", "sections": sections}


def _run(view: View) -> list[Block]:
    out: list[Block] = []
    for side in view.sides:
        counts = side.root["counts"]
        agent = side.root["fingerprint"]["agent"]
        head: list[Part] = [{"big": [label(str(agent.value))]}]
        if (checkpoint := side.root["fingerprint"]["checkpoint"]).value:
            head += [" checkpoint ", label(str(checkpoint["name"].value))]
        if view.several:
            head = [of_run(side.name), " ", *head]
        out.append(text(*head))
        out.append(
            {
                "b": "tally",
                "total": counts["cases"].number("int"),
                "of": "cases",
                "items": [
                    {"name": outcome, "n": counts[outcome].number("int"), "href": cases_at(outcome=outcome)}
                    for outcome in OUTCOMES
                ],
            }
        )
        out += [*_headline(side.root), *(notice.block() for notice in notices.of_run(side.root))]
    return out


def _headline(root: Ref) -> list[Block]:
    """Return the few figures that a reader looks for first."""
    scored = root.get("ifeval")
    if scored is None or not scored["ias"]["all"]["overall"]["n"].value:
        return []
    items: list[dict[str, Any]] = [
        {"name": ["IAS, reactive cells, %"], "p": rate(scored["ias"]["reactive"]["overall"])["p"]},
        {"name": ["IAS, all cells, %"], "p": rate(scored["ias"]["all"]["overall"])["p"]},
        {"name": ["Entailment Gap, points"], "p": _effect(scored["effects"]["all"], "entailment_gap")["p"]},
    ]
    for judge, found in root["judges"].items():
        items.append({"name": ["PAS, judge ", label(judge)], "p": mean(found["pas"]["overall"])["p"]})
    return [{"b": "figures", "items": [item for item in items if item["p"]]}]


def _levels(view: View) -> list[str]:
    return [
        level for level in (*LEVELS, "overall") if any(side.root["ias"]["all"][level]["n"].value for side in view.sides)
    ]


def _ias(view: View, plots: Mapping[str, str]) -> list[Block]:
    levels = _levels(view)
    rows = []
    for subset, title in SUBSETS.items():
        more = {"exercised": "yes"} if subset == "exercised" else {}
        rows += view.rows(
            [title],
            lambda root, subset=subset, more=more: [
                rate(
                    root.get("ias", subset, level),
                    cases_at(**({} if level == "overall" else {"level": level}), **more),
                )
                for level in levels
            ],
        )
    return [
        side_by_side(
            *drawn(
                plots, "ias", "IAS by level, with 95 % intervals.", "IAS by level for all, reactive and exercised cases"
            ),
            *drawn(
                plots,
                "effects",
                "Effects of the prompt, with 95 % intervals.",
                "Entailment Gap, Redundancy Gain and Role Tax",
            ),
        ),
        table(
            "IAS, %",
            ["cells", *levels],
            rows,
            heat=True,
            note="IAS is the pass rate. Passed/n in brackets, then the 95 % interval; of fewer than ten cases the counts alone. "
            "Errors, skips and missing cases are in no rate.",
        ),
        text(
            small(
                "Not exercised (the agent could not have failed or passed by what it did): ",
                *_each(view, "not_exercised"),
                ". Margins inside the detector's error: ",
                *_each(view, "borderline"),
                ".",
            )
        ),
        *_enacted(view),
    ]


def _each(view: View, *keys: str) -> list[Part]:
    out: list[Part] = []
    for side in view.sides:
        found = side.root.get(*keys)
        if found is not None:
            out += [*([", "] if out else []), *([of_run(side.name), " "] if view.several else []), found.number("int")]
    return out


def _enacted(view: View) -> list[Block]:
    if not any(side.root["enacted"]["n"].value for side in view.sides):
        return []
    rows = view.rows(
        ["contradiction enacted on the floor"], lambda root: [rate(root.get("enacted"), cases_at(level="L4a"))]
    )
    return [
        table(
            "L4a, %",
            ["", "rate"],
            rows,
            note="IAS at L4a is against the base action, as published; this is the share "
            "whose floor behaviour was what the contradiction asked for.",
        )
    ]


def _effects(view: View) -> list[Block]:
    rows = []
    for effect, title in EFFECT_NAMES.items():
        rows += view.rows(
            [title], lambda root, effect=effect: [_effect(root["effects"].get(subset), effect) for subset in SUBSETS]
        )
    return [
        table(
            "Effects, percentage points",
            ["effect", *SUBSETS.values()],
            rows,
            note="Entailment Gap: what inferring the behaviour costs against being told it. n of both sides in brackets; of "
            "fewer than ten cases, the pairs that passed at one level only.",
        ),
    ]


def _effect(found: Ref | None, effect: str) -> dict[str, Any]:
    if found is None or found[effect].value is None:
        return {"p": []}
    names = ("ci95", "n", "pairs", "gained", "lost", "p")
    return gap_cell(found[effect], {name: found[name][effect] for name in names} if not found.change else {})


def _actions(view: View) -> list[Block]:
    levels = [level for level in _levels(view) if level != "overall"]
    rows = []
    for action in view.keys("by_action_level"):
        rows += view.rows(
            [label(action)],
            lambda root, action=action: [
                *(
                    rate(root.get("by_action_level", action, level), cases_at(action=action, level=level))
                    for level in levels
                ),
                rate(root.get("by_action", action), cases_at(action=action)),
            ],
        )
    return [table("IAS by base action, %", ["action", *levels, "all"], rows, heat=True)]


def _grid(view: View) -> list[Block]:
    rows = []
    for role in view.keys("by_role_probe"):
        probes = {_column(probe): probe for probe in view.keys("by_role_probe", role)}

        def cells(root: Ref, role: str = role, probes: dict[str, str] = probes) -> list[dict[str, Any]]:
            return [_grid_cell(view, root, role, probes.get(column)) for column in GRID]

        rows += view.rows(view.named(role), cells)
    return [
        table("IAS by role and probe, %", ["role", *GRID], rows, heat=True, note="A and B are the role's own probes.")
    ]


def _column(probe: str) -> str:
    return probe if probe in GRID else probe.split("_")[1]


def _grid_cell(view: View, root: Ref, role: str, probe: str | None) -> dict[str, Any]:
    found = None if probe is None else root.get("by_role_probe", role, probe)
    if found is None or probe is None:
        return {"p": []}
    cell = rate(found, cases_at(role=role, probe=probe))
    if found.change:
        return cell
    above: list[Part] = [label(str(found["action"].value))]
    if probe not in GRID and probe in view.names:
        above += [" ", view.names[probe]]
    return {**cell, "above": above}


def _roles(view: View, plots: Mapping[str, str]) -> list[Block]:
    rows = []
    for role in view.keys("by_role"):
        rows += view.rows(
            view.named(role),
            lambda root, role=role: [
                rate(root.get("by_role", role), cases_at(role=role)),
                _role_gap(root, role),
                rate(root.get("matched_audio", role), cases_at(role=role, matched="yes")),
            ],
        )
    return [
        side_by_side(
            *drawn(plots, "role_gaps", "Entailment Gap of each role.", "Entailment Gap by role"),
            *drawn(
                plots,
                "matched",
                "IAS on the recordings that the first three roles share, byte for byte.",
                "IAS on matched audio by role",
            ),
        ),
        table(
            "By role",
            ["role", "IAS, %", "Entailment Gap, points", "matched audio, %"],
            rows,
            note="p by Holm over the roles. Matched audio: one recording under several roles, so a difference is the prompt's.",
        ),
    ]


def _role_gap(root: Ref, role: str) -> dict[str, Any]:
    found = root.get("gaps", "by_role", role)
    if found is None or found["gap"].value is None:
        return {"p": []}
    return gap_cell(found["gap"], {} if found.change else {**dict(found.items()), "p": found["p_holm"]})
