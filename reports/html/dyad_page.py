"""The overview of DyaFDB: score and turn-taking matrices, and what of them is the model's and what its partner's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dsbeval.dyadic import published
from reports.dyad_tables import MEASURES, TASK_NAMES
from reports.html import notices
from reports.html.addresses import OUTCOMES, conversations_at
from reports.html.dyad_behaviour import balance, factors, profiles, robustness, times, windows
from reports.html.page import (
    Block,
    Part,
    Ref,
    figure,
    label,
    of_run,
    plain,
    section,
    side_by_side,
    small,
    table,
    tag,
    text,
)
from reports.html.view import Side, View

TERMS = ("task", "model", "partner", "interaction", "residual")


def dyads(view: View, plots: Mapping[str, str]) -> dict[str, Any]:
    """Return the page. ``plots`` are those that could be drawn."""
    part = view.part("dyadic")
    sections = [section("run", "The conversations", *_run(view))]
    spoken = View(tuple(side for side in part.sides if side.root.get("matrices")), part.names)
    if spoken.sides:
        sections += [
            section("scores", "Scores", *_scores(spoken)),
            section("turns", "Turn-taking", *_turns(spoken)),
            section("variance", "Whose doing it is", *_variance(spoken, plots)),
            section("times", "When it happened", *times(spoken, plots)),
            section("factors", "Act and succeed", *factors(spoken, plots)),
            section("profiles", "Profiles", *profiles(spoken)),
            section(
                "balance",
                "Balance, windows, robustness",
                *balance(spoken, plots),
                *windows(spoken),
                *robustness(spoken),
            ),
        ]
    written = part.part("text")
    if written.sides:
        tables = [*_scores(written), *factors(written, {}), *profiles(written)]
        sections.append(section("writing", "In writing", *tables))
    return {"title": "Dyads", "sections": sections}


def judged_page(view: View, judge: str, index: int, plots: Mapping[str, str]) -> dict[str, Any]:
    """Return the page of the conversations by the judge of this place among those that were asked after the run."""
    mark = f"{index}-"
    own = {name.removeprefix(mark): svg for name, svg in plots.items() if name.startswith(mark)}
    page = dyads(view.part("judged", judge), own)
    _rename_plots(page, mark)
    return {**page, "title": f"Dyads, judged by {judge}"}


def _rename_plots(block: Any, mark: str) -> None:
    """Let the figures of a page name the plots of their judge."""
    if isinstance(block, dict):
        if block.get("b") == "figure":
            block["plot"] = mark + block["plot"]
        block = list(block.values())
    if isinstance(block, list):
        for inner in block:
            _rename_plots(inner, mark)


def _run(view: View) -> list[Block]:
    out: list[Block] = []
    for side in view.sides:
        data = side.root.get("dyadic")
        if data is None:
            continue
        counts = data["outcomes"]
        head: list[Part] = [{"big": [label(str(side.root["fingerprint"]["agent"].value))]}]
        out.append(text(*([of_run(side.name), " "] if view.several else []), *head))
        out.append(
            {
                "b": "tally",
                "total": counts["cases"].number("int"),
                "of": "conversations",
                "items": [
                    {"name": outcome, "n": counts[outcome].number("int"), "href": conversations_at(outcome=outcome)}
                    for outcome in OUTCOMES
                ],
            }
        )
        if data.get("window_s") is not None:
            judges = ", ".join(data["judges"].value) or "none"
            out.append(
                text(
                    small(
                        "Over ",
                        data["window_s"].number("int"),
                        " s; judge ",
                        label(judges),
                        ". Not exercised: ",
                        data["not_exercised"].number("int"),
                        ".",
                    )
                )
            )
        out += [notice.block() for notice in notices.of_dyads(side.root)]
    return out


def short(models: Sequence[str]) -> list[str]:
    """Return names of models without folders, where that leaves them different."""
    cut = [model.rpartition("/")[2] for model in models]
    return cut if len(set(cut)) == len(cut) else list(models)


def _matrix(matrix: Ref, i: int, j: int, href: str | None = None, *, heat: bool = True) -> dict[str, Any]:
    value = matrix.get("values", i, j)
    if value is None or value.value is None:
        return {"p": []}
    if matrix.change:
        return plain(value, "f2")
    parts: list[Part] = [value.number("f2"), " ", small("n ", matrix["n"][i][j].number("int"))]
    limits = matrix.get("ci95", i, j)
    if limits is not None and limits.value is not None and matrix["n"][i][j].value >= 10:
        parts += [" ", small("[", limits[0].number("f2"), ", ", limits[1].number("f2"), "]")]
    return {"p": parts, **({"heat": value.value} if heat else {}), **({"href": href} if href else {})}


def _pair(one: str, other: str) -> str:
    return " ~ ".join(sorted((one, other)))


def _scores(view: View) -> list[Block]:
    out: list[Block] = [
        text(
            small(
                "Rows: the model that is scored. Columns: the partner it met. Mean score, n of seats; the average is "
                "over partners."
            )
        )
    ]
    for task in view.keys("matrices"):
        title = [label(task), " ", TASK_NAMES.get(task, "")]
        beside = [_score_table(view, side, task) for side in view.sides if side.root.get("matrices", task) is not None]
        reference = _published_scores(view.sides[0].root, task)
        out += [text(*title, tone="title"), side_by_side(*beside, *([reference] if reference else []))]
    return out


def _score_table(view: View, side: Side, task: str) -> Block:
    matrix = side.root["matrices"][task]
    models = matrix["models"].value
    names = short(models)
    rows = []
    for i, name in enumerate(names):
        if not any(matrix["n"][i].value):
            continue
        cells = [
            _matrix(matrix, i, j, conversations_at(task=task, pair=_pair(models[i], models[j])))
            for j in range(len(models))
        ]
        rows.append(([label(name)], [*cells, _average(matrix, i)]))
        changed = side.change.get("matrices", task) if side.change is not None else None
        if changed is not None and changed.value is not None:
            rows.append(
                (
                    [of_run("change")],
                    [*(_matrix(changed, i, j) for j in range(len(models))), plain(changed.get("row_average", i), "f2")],
                )
            )
    caption = f"{task}, {side.name}" if view.several else f"{task}, this run"
    return table(caption, ["", *names, "average"], rows, heat=True)


def _average(matrix: Ref, i: int) -> dict[str, Any]:
    value = matrix["row_average"][i]
    if value.value is None:
        return {"p": []}
    limits, cells = matrix.get("row_ci95", i), matrix["row_cells"][i]
    between = (
        [" ", small("[", limits[0].number("f2"), ", ", limits[1].number("f2"), "]")]
        if limits is not None and limits.value
        else []
    )
    return {
        "p": [value.number("f2"), *between, " ", small(cells.number("int"), " cell" if cells.value == 1 else " cells")]
    }


def _published_scores(root: Ref, task: str) -> Block | None:
    found = root.get("published", "scores", task)
    if found is None:
        return None
    names = [published.NAMES[model] for model in root["published"]["models"].value]
    rows = [
        ([label(name)], [{**plain(found[i][j], "f2"), "heat": found[i][j].value} for j in range(len(names))])
        for i, name in enumerate(names)
    ]
    return table(f"{task}, published", ["", *map(_first, names)], rows, heat=True)


def _first(name: str) -> str:
    return name.split("-")[0].split(" ")[0]


def _turns(view: View) -> list[Block]:
    out: list[Block] = []
    for side in view.sides:
        found = side.root.get("turn_taking")
        if found is None:
            continue
        models = found["tor_pause"]["models"].value
        names = short(models)
        tables = []
        for measure, title in MEASURES.items():
            rows = []
            for i, name in enumerate(names):
                cells = [
                    _matrix(
                        found[measure],
                        i,
                        j,
                        conversations_at(pair=_pair(models[i], models[j])),
                        heat=measure != "backchannels",
                    )
                    for j in range(len(models))
                ]
                if any(cell["p"] for cell in cells):
                    rows.append(([label(name)], cells))
            if rows:
                tables.append(
                    table(f"{title}{f', {side.name}' if view.several else ''}", ["", *names], rows, heat=True)
                )
        out.append(side_by_side(*tables))
    out.append(
        text(
            small(
                "From audio alone, one model (row) against its partner (column), over all tasks. TOR_pause: pauses of the "
                "partner that it cut into. TOR_end: turn ends that it took. Backchannels a conversation. Barge-in: started "
                "over the partner, who yielded. Occupancy: its share of the time in which one speaks alone."
            )
        )
    )
    return out


def _variance(view: View, plots: Mapping[str, str]) -> list[Block]:
    out: list[Block] = []
    rows = []
    reasons: dict[str, None] = {}
    for kind in ("turn_taking", "tasks"):
        for name in view.keys("variance", kind):
            title = MEASURES.get(name, name)
            for side in view.sides:
                found = side.root.get("variance", kind, name)
                if found is None:
                    continue
                if "reason" in found.value:
                    reasons[str(found["reason"].value)] = None
                    continue
                head = [label(title), *([" ", of_run(side.name)] if view.several else [])]
                rows.append((head, [plain(found.get("eta2", term), "f2") for term in TERMS]))
            reference = view.sides[0].root.get("published", "turn_taking_eta2", name) if kind == "turn_taking" else None
            if reference is not None and rows:
                rows.append(
                    (
                        [label(title), " ", tag("published")],
                        [{**plain(reference.get(term), "f2"), "tone": "published"} for term in TERMS],
                    )
                )
    if "eta2" in plots:
        out.append(
            figure(
                "eta2",
                "Shares of the variance between cells; hatched bars: published.",
                "Eta squared of each measure by term",
            )
        )
    if any("tag" not in str(head) for head, _ in rows):
        out.append(
            table(
                "Share of the variance (eta squared)",
                ["", *TERMS],
                rows,
                note="Between the means of task, model and partner; of a task's own score matrix without the task.",
            )
        )
    return out + [text(small(f"Not decomposed: {reason}.")) for reason in reasons]
