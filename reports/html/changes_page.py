"""What has changed from one run to another: metrics with their tests, cases that flipped, margins that moved."""

from __future__ import annotations

from typing import Any

from dsbeval.stats import SMALL_N
from reports.comparison import FAMILIES
from reports.html.addresses import cases_at, conversations_at
from reports.html.notices import Notice
from reports.html.page import Block, Part, Ref, label, link, plain, section, small, table, text

SHOWN = 40
"""So many flips and margins are listed."""
ITEMS = {"floor": "case", "persona": "case", "dyad": "dyad"}


def changes(comparison: Ref) -> dict[str, Any]:
    """Return the page of a comparison."""
    names = comparison["runs"].value
    sections = []
    for index in range(1, len(names)):
        against = comparison["against"][index]
        sections.append(
            section(f"run-{index}", f"{names[0]} and then {names[index]}", *_head(against), *_metrics(against))
        )
        sections.append(section(f"flips-{index}", "Cases that flipped", *_flips(against)))
        if against["margins_moved"]:
            sections.append(section(f"margins-{index}", "Margins that moved", *_moved(against)))
    return {"title": "Changes", "sections": sections}


def _head(against: Ref) -> list[Block]:
    pairs = against["pairs"]
    out: list[Block] = [
        Notice("warning", ("The runs are unlike in ", label(line), ". Figures are compared all the same.")).block()
        for line in against["unlike"].value
    ]
    if against["differs"]:
        out.append({"b": "list", "items": [["differs in ", label(line)] for line in against["differs"].value]})
    out.append(
        text(
            pairs["both"].number("int"),
            " pairs are compared; ",
            pairs["base_only"].number("int"),
            " more in the first run only, ",
            pairs["new_only"].number("int"),
            " in the other only.",
        )
    )
    return out


def _metrics(against: Ref) -> list[Block]:
    out: list[Block] = []
    found = [against["metrics"][k] for k in range(len(against["metrics"].value))]
    for family, title in FAMILIES.items():
        rows = [
            ([label(str(one["title"].value))], _metric(one))
            for one in found
            if one["family"].value == family and one["delta"].value is not None
        ]
        if rows:
            out.append(table(title, ["", "first", "then", "change", "pairs", "p", "evidence"], rows))
    if not out:
        out.append(text("The runs have no case in common that both have a verdict on."))
    return out


def _metric(one: Ref) -> list[dict[str, Any]]:
    shares = one["unit"].value == "points"
    form, signed = ("pct", "points") if shares else ("f2", "+f2")
    few = min(one["n_base"].value, one["n_new"].value) < SMALL_N
    delta: list[Part] = [one["delta"].number(signed)]
    limits = one["ci95"]
    if limits.value is not None and not few:
        delta += [" ", small("[", limits[0].number(signed), ", ", limits[1].number(signed), "]")]
    verdict = str(one["verdict"].value)
    values = [plain(one["base"], form), plain(one["new"], form)]
    if few and one["counts"].value is not None:
        counts = one["counts"]
        values = [
            {"p": [counts[k].number("int"), "/", one[f"n_{of}"].number("int")]} for k, of in enumerate(("base", "new"))
        ]
    return [
        *values,
        {"p": delta},
        plain(one["n_new"], "int"),
        {"p": [one["p_holm"].number("p")] if one["p_holm"].value is not None else []},
        {"p": [verdict], "tone": verdict.replace(" ", "-")},
    ]


def _flips(against: Ref) -> list[Block]:
    out: list[Block] = []
    for way, title, change in (
        ("to_fail", "Passed, then failed", "lost"),
        ("to_pass", "Failed, then passed", "gained"),
    ):
        found = against["flips"][way]
        count = len(found.value)
        if not count:
            out.append(text(f"{title}: none."))
            continue
        rows = [
            (
                [link(f"#/{ITEMS[one['item'].value]}/{one['id'].value}?change={change}", label(str(one["id"].value)))],
                [
                    {"p": [label(str(one["item"].value))]},
                    {"p": [label(str(one["action"].value))]},
                    plain(one["margin_base"], "+f3"),
                    plain(one["margin_new"], "+f3"),
                ],
            )
            for one in (found[k] for k in range(min(count, SHOWN)))
        ]
        out.append(table(title, ["case", "item", "action", "margin", "then"], rows))
    both = {"change": "lost,gained"}
    lists = (link(cases_at(**both), "cases"), ", ", link(conversations_at(**both), "conversations"))
    return [*out, text("All: ", *lists, ". Each is heard in both runs.")]


def _moved(against: Ref) -> list[Block]:
    found = against["margins_moved"]
    rows = [
        (
            [link(f"#/case/{one['id'].value}", label(str(one["id"].value)))],
            [
                {"p": [label(str(one["action"].value))]},
                plain(one["base"], "+f3"),
                plain(one["new"], "+f3"),
                plain(one["delta"], "+f3"),
            ],
        )
        for one in (found[k] for k in range(min(len(found.value), SHOWN)))
    ]
    return [table("Furthest first, s", ["case", "action", "margin", "then", "change"], rows)]
