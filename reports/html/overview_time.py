"""When the agent acted, case by case, and whether it held real time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reports.html.addresses import cases_at
from reports.html.page import Block, Part, Ref, drawn, label, link, mean, of_run, plain, table
from reports.html.view import View


def latency(view: View, plots: Mapping[str, str]) -> list[Block]:
    """Return the latencies by action."""
    fields = ("p10_s", "p25_s", "median_s", "p75_s", "p90_s")
    rows = []
    for action in view.keys("latency"):

        def cells(root: Ref, action: str = action) -> list[dict[str, Any]]:
            found = root.get("latency", action)
            if found is None:
                return [{"p": []}] * (len(fields) + 3)
            limits: list[Part] = []
            if not found.change:
                for k in range(len(found["limits_s"].value)):
                    limits += [*([", "] if limits else []), found["limits_s"][k].number("f1")]
            return [
                *(plain(found.get(name), "f2") for name in fields),
                plain(found.get("measured"), "int"),
                plain(found.get("none"), "int"),
                {"p": limits},
            ]

        rows += view.rows([link(cases_at(scored_as=action), label(action))], cells)
    return [
        *drawn(
            plots,
            "latency",
            "Each dot is a case; a dot opens it. The bars are the limits that applied, the line is the median.",
            "Latency of each case by action, with limits",
        ),
        table(
            "Latency, s",
            ["action", "p10", "p25", "median", "p75", "p90", "measured", "none", "limits"],
            rows,
            note="TAKE_TURN and INTERRUPT: onset after the window opens. YIELD and CONTINUE: how long it spoke on after the "
            "barge-in, where it was speaking. none: it gave no onset or no offset.",
        ),
    ]


def trials(view: View) -> list[Block]:
    """Return what the spread over trials of a case says, or nothing where each was tried once."""
    part = view.part("trials")
    if not any(side.root.get("pass_at_1") is not None for side in part.sides):
        return []
    rows = part.rows(["pass@1"], lambda root: [rate_of(root.get("pass_at_1"))]) + part.rows(
        ["alike in every trial"], lambda root: [plain(root.get("alike"), "pct")]
    )
    for name, title in (("pass_hat_k", "pass^{}"), ("pass_at_k", "pass@{}")):
        for k in (key for key in part.keys(name) if key != "1"):
            rows += part.rows([label(title.format(k))], lambda root, name=name, k=k: [rate_of(root.get(name, k))])
    for half in part.keys("trials_for"):
        needed = label(f"trials for an interval of ± {100 * float(half):g} points")
        rows += part.rows([needed], lambda root, half=half: [plain(root.get("trials_for", half), "int")])
    return [
        table(
            "Trials, % of cases",
            ["", "value"],
            rows,
            note="Over cases with a verdict in every trial; pass^k: k trials of a case all pass, pass@k: one of them does.",
        )
    ]


def rate_of(cell: Ref | None) -> dict[str, Any]:
    """Return a table cell of a rate that has no count of passes."""
    return mean(cell, "pct", "rate")


def services(view: View) -> list[Block]:
    """Return what was used of services, or nothing where none was."""
    rows = []
    for side in view.sides:
        used = side.root.get("usage")
        if used is None:
            continue
        for k in range(len(used.value)):
            of = {key: value for key, value in used[k].value.items() if key not in ("agent", "counts", "cost_usd")}
            name = ", ".join(str(value) for value in of.values())
            head = [label(f"{used[k]['agent'].value} {name}"), *([" ", of_run(side.name)] if view.several else [])]
            counted = [
                part
                for key, cell in used[k]["counts"].items()
                for part in (f"{key.replace('_', ' ')} ", cell.number("int"), "; ")
            ]
            rows.append((head, [{"p": counted[:-1]}, plain(used[k].get("cost_usd"), "f2")]))
    return (
        [
            table(
                "Services",
                ["", "used", "US dollars"],
                rows,
                note="Everything that was used counts, cases that ended in an error too. "
                "No cost: no price was given, or the service did not say what it took.",
            )
        ]
        if rows
        else []
    )


def realtime(view: View) -> list[Block]:
    """Return how the agent stood against real time, or nothing where that was not measured."""
    part = view.part("realtime")
    rows = []
    fields = {
        "rtf_mean": ("real-time factor, mean", "f3"),
        "rtf_p95_max": ("real-time factor of a frame, p95 at worst", "f3"),
        "max_lag_s": ("largest lag, s", "f3"),
        "behind": ("cases behind real time", "int"),
        "jitter_ms_p99_max": ("frames sent late, p99 at worst, ms", "f1"),
        "jitter_ms_max": ("frames sent late, at most, ms", "f1"),
        "n": ("cases measured", "int"),
    }
    for key, (title, form) in fields.items():
        if any(side.root.get(key) is not None for side in part.sides):
            rows += part.rows([title], lambda root, key=key, form=form: [plain(root.get(key), form)])
    return [table("Against real time", ["", "value"], rows)] if rows else []
