"""The figures of the papers beside the run's own, marked as published, and what differs in how they came about."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dsbeval.dyadic import published as dyadic
from dsbeval.ifeval.pack import LEVELS
from reports.html.page import Block, Part, Ref, label, mean, of_run, plain, rate, section, small, table, tag, text
from reports.html.view import View
from reports.tables import EFFECT_NAMES

TAG: Part = tag("published")
PROFILE = ("directive_wins", "persona_wins", "balanced", "incoherent")
Row = tuple[Sequence[Part], Sequence[dict[str, Any]]]


def page(view: View) -> dict[str, Any] | None:
    """Return the page, or None where no run has anything that was published."""
    sections = []
    scored = view.part("ifeval")
    if scored.sides and any(side.root["ias"]["all"]["overall"]["n"].value for side in scored.sides):
        sections += [section("differs", "What differs from DSB-IFEval as published", *_differs(view))]
        sections += [section("ifeval", "DSB-IFEval", *_ifeval(scored), *_judged(view))]
    spoken = View(tuple(side for side in view.part("dyadic").sides if side.root.get("matrices")), view.names)
    if spoken.sides:
        sections += [
            section("dyadic-differs", "What differs from DyaFDB as published", *_dyads_differ(view)),
            section("dyadic", "DyaFDB", *_dyads(spoken)),
        ]
    return {"title": "Published", "sections": sections} if sections else None


def _cited(found: Ref | None, form: str, scale: float) -> dict[str, Any]:
    if found is None or found.value is None:
        return {"p": [], "tone": "published"}
    return {**plain(found, form), "tone": "published", "heat": found.value / scale}


def _with_published(
    view: View, cells: Any, key: Sequence[str], columns: Sequence[str | int], form: str = "f1", scale: float = 100.0
) -> list[Row]:
    """Return the rows of the runs and below them those of the papers' systems."""
    rows: list[Row] = [([of_run(side.name) if view.several else "this run"], cells(side.root)) for side in view.sides]
    reference = view.sides[0].root["published"]
    for key_ in key:
        reference = reference[key_]
    for model, found in reference.items():
        rows.append(([label(model), " ", TAG], [_cited(found.get(column), form, scale) for column in columns]))
    return rows


def _ifeval(view: View) -> list[Block]:
    def levels(root: Ref) -> list[dict[str, Any]]:
        return [rate(root.get("ias", "reactive", level)) for level in LEVELS]

    def effects(root: Ref) -> list[dict[str, Any]]:
        return [plain(root.get("effects", "reactive", effect), "points") for effect in EFFECT_NAMES]

    actions = list(
        view.sides[0].root["published"]["by_action"][view.sides[0].root["published"]["models"][0].value].value
    )
    roles = [f"R{k}" for k in range(1, 9)]
    return [
        table(
            "IAS, reactive cells, %", ["", *LEVELS], _with_published(view, levels, ["ias_reactive"], LEVELS), heat=True
        ),
        table(
            "Effects, reactive cells, points",
            ["", *EFFECT_NAMES.values()],
            _with_published(view, effects, ["effects"], list(EFFECT_NAMES), "+f1"),
        ),
        table(
            "IAS by base action, %",
            ["", *actions],
            _with_published(
                view, lambda root: [rate(root.get("by_action", action)) for action in actions], ["by_action"], actions
            ),
            heat=True,
        ),
        table(
            "Entailment Gap by role, points",
            ["", *roles],
            _with_published(
                view,
                lambda root: [plain(root.get("by_role_gap", role), "points") for role in roles],
                ["by_role_gap"],
                roles,
                "+f1",
            ),
        ),
        table(
            "IAS on matched audio, %",
            ["", *roles[:3]],
            _with_published(
                view,
                lambda root: [rate(root.get("matched_audio", role)) for role in roles[:3]],
                ["matched_audio"],
                [0, 1, 2],
            ),
            heat=True,
        ),
    ]


def _judged(view: View) -> list[Block]:
    judges = view.keys("judges")
    if not judges:
        return []
    out: list[Block] = []
    reference = view.part("ifeval").sides[0].root["published"]
    rows: list[Row] = []
    conflicts: dict[str, list[Row]] = {"L4a": [], "L4b": []}
    for judge in judges:
        for side in view.part("judges", judge).sides:
            head: list[Part] = [*([of_run(side.name), ", "] if view.several else []), "judge ", label(judge)]
            rows.append((head, [mean(side.root.get("pas", "by_level", level)) for level in LEVELS]))
            for level, found in conflicts.items():
                if side.root["conflict"][level]["n"].value:
                    found.append((head, [plain(side.root["conflict"][level][name], "pct") for name in PROFILE]))
    for model, cited in reference["pas"].items():
        rows.append(([label(model), " ", TAG], [_cited(cited.get(level), "f1", 100) for level in LEVELS]))
    out.append(table("PAS", ["", *LEVELS], rows))
    for level, found in conflicts.items():
        for model, shares in reference["conflict"].items():
            found.append(
                ([label(model), " ", TAG], [_cited(shares.get(level, k), "f1", 100) for k in range(len(PROFILE))])
            )
        out.append(table(f"Conflict profile at {level}, %", ["", *(name.replace("_", " ") for name in PROFILE)], found))
    return out


def _differs(view: View) -> list[Block]:
    out: list[Block] = []
    for side in view.sides:
        fingerprint = side.root["fingerprint"]
        items: list[list[Part]] = [
            [
                "Roles, probes, grid, verifiers and metrics are the published ones. Personas, directives, contradictions and "
                "conversations are this project's own, written to the published specification; the user has other voices."
            ],
            ["Detected edges are moved inwards over exact digital silence, where nothing was said."],
            ["A run is one seed; the published figures are too."],
        ]
        judge = str(fingerprint["judge"]["id"].value)
        if judge != "none":
            items.append(
                [
                    "The judge is ",
                    label(judge),
                    " with this project's own prompts; the published one is ",
                    label("gpt-4o"),
                    ".",
                ]
            )
        if fingerprint["latency"].value != "none":
            items.append(
                [
                    "The agent was charged its compute time (",
                    label(str(fingerprint["latency"].value)),
                    "); published figures charge none.",
                ]
            )
        if not str(fingerprint["acoustics"].value).startswith("clean"):
            items.append(["The user's side was altered: ", label(str(fingerprint["acoustics"].value)), "."])
        counts = side.root["counts"]
        reactive = (
            side.root["ifeval"]["ias"]["reactive"]["overall"]["n"] if side.root.get("ifeval") is not None else None
        )
        if reactive is not None:
            items.append(
                ["Over ", reactive.number("int"), " reactive cases of ", counts["cases"].number("int"), " asked for."]
            )
        if view.several:
            out.append(text(of_run(side.name)))
        out.append({"b": "list", "items": items})
    return out


def _dyads_differ(view: View) -> list[Block]:
    out: list[Block] = []
    for side in view.sides:
        data = side.root.get("dyadic")
        if data is None or data.get("window_s") is None:
            continue
        items: list[list[Part]] = [
            [
                "Tasks, protocol, detector, turn-taking measures and analyses are the published ones; scenarios and role "
                "prompts are this project's own, written to the published recipes."
            ],
            ["The models are ", label(", ".join(data["models"].value)), "."],
            [
                "The window is ",
                data["window_s"].number("int"),
                " s; over ",
                data["conversations"].number("int"),
                " conversations.",
            ],
        ]
        judges = ", ".join(data["judges"].value)
        if judges:
            items.append(["The judge is ", label(judges), "; the published one is ", label("Claude Opus-5"), "."])
        if view.several:
            out.append(text(of_run(side.name)))
        out.append({"b": "list", "items": items})
    return out


def _dyads(view: View) -> list[Block]:
    reference = view.sides[0].root["published"]
    models = reference["models"].value
    rows: list[Row] = []
    for measure, terms in reference["turn_taking_eta2"].items():
        rows.append(([measure.replace("_", " "), " ", TAG], [_cited(found, "f2", 1) for _, found in terms.items()]))
    heads = list(next(iter(reference["turn_taking_eta2"].value.values())))
    profiles = [
        (
            [label(dyadic.NAMES[model]), " ", TAG],
            [_cited(found.get(model), "f2", 1) for _, found in reference["profiles"].items()],
        )
        for model in models
    ]
    return [
        text(small("Score matrices stand beside the run's own on the page of the dyads.")),
        table("Shares of the variance", ["", *heads], rows),
        table("Profiles", ["", *(name.replace("_", " ") for name in reference["profiles"].value)], profiles),
    ]
