"""What a judge says of the persona: PAS, the IAS-PAS plane, how conflicts were resolved."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reports.html import notices
from reports.html.addresses import cases_at
from reports.html.page import Block, Part, Ref, drawn, label, mean, plain, rate, side_by_side, small, table, text
from reports.html.view import View

PROFILE = {
    "directive_wins": "directive wins",
    "persona_wins": "persona wins",
    "balanced": "balanced",
    "incoherent": "incoherent",
}


def judge_section(view: View, judge: str, plots: Mapping[str, str], index: int) -> list[Block]:
    """Return the blocks of one judge; ``index`` is its place among the judges, by which its plots are named."""
    part = view.part("judges", judge)
    counted = part.sides[0].root["counts"]
    out: list[Block] = [
        text(
            small(
                counted["passed"].number("int"),
                " passed, ",
                counted["failed"].number("int"),
                " failed, ",
                counted["error"].number("int"),
                " error (",
                counted["unjudged"].number("int"),
                " unjudged), ",
                counted["skipped"].number("int"),
                " skipped, ",
                counted["missing"].number("int"),
                " missing",
            )
        ),
    ]
    if (asked := part.sides[0].root.get("asked")) is not None:
        out.append(_asked(asked))
    if part.sides[0].root["offline"].value:
        out.append(notices.OFFLINE.block())
    if not any(side.root["pas"]["overall"]["n"].value for side in part.sides):
        return [*out, text("This judge has judged no case.")]
    out.append(
        side_by_side(
            *drawn(plots, f"pas-{index}", "PAS by level, with 95 % intervals.", "PAS by level"),
            *drawn(
                plots,
                f"plane-{index}",
                "IAS (reactive cells) against PAS, a point a level; grey: published systems.",
                "IAS and PAS of each level in a plane",
            ),
            *drawn(
                plots, f"conflict-{index}", "How conflicts were resolved.", "Conflict profile at both conflict levels"
            ),
        )
    )
    rows = []
    for level in part.keys("ias_pas"):
        rows += part.rows(
            [label(level)],
            lambda root, level=level: [
                rate(root.get("ias_pas", level, "ias"), cases_at(level=level)),
                rate(root.get("ias_pas", level, "ias_reactive")),
                mean(root.get("ias_pas", level, "pas")),
            ],
        )
    rows += part.rows(["overall"], lambda root: [{"p": []}, {"p": []}, mean(root.get("pas", "overall"))])
    out.append(
        table(
            "IAS and PAS", ["level", "IAS, %", "IAS reactive, %", "PAS"], rows, note="PAS is a mark out of a hundred."
        )
    )
    roles = []
    for role in part.keys("pas", "by_role"):
        roles += part.rows(part.named(role), lambda root, role=role: [mean(root.get("pas", "by_role", role))])
    out.append(table("PAS by role", ["role", "PAS"], roles))
    return [*out, *_conflict(part)]


def _asked(found: Ref) -> Block:
    """Return what a judge was asked and what that took."""
    cost: list[Part] = (
        [found["cost_usd"].number("f2"), " US dollars"] if found["cost_usd"].value is not None else ["cost not known"]
    )
    tokens = found["tokens"]
    return text(
        small(
            "Asked ",
            found["asked"].number("int"),
            " questions in ",
            found["attempts"].number("int"),
            " attempts: ",
            tokens["input"].number("int"),
            " tokens in, ",
            tokens["output"].number("int"),
            " out, ",
            *cost,
        )
    )


def _conflict(part: View) -> list[Block]:
    rows = []
    for level in ("L4a", "L4b"):
        if not any(side.root["conflict"][level]["n"].value for side in part.sides):
            continue
        rows += part.rows(
            [label(level)],
            lambda root, level=level: [
                *(plain(root.get("conflict", level, name), "pct") for name in PROFILE),
                plain(root.get("conflict", level, "n"), "int"),
            ],
        )
    if not rows:
        return []
    out = [
        table(
            "Conflict profile, %",
            ["level", *PROFILE.values(), "n"],
            rows,
            note="At L4a the directive is right, at L4b the persona.",
        )
    ]
    override = part.rows(["persona wins at L4b"], lambda root: [_override(root.get("safety_override"))])
    return [*out, table("SafetyOverride, %", ["", "share"], override)]


def _override(found: Ref | None) -> dict[str, Any]:
    if found is None or found.get("mean") is None or found["mean"].value is None:
        return {"p": []}
    return mean(found, "pct")
