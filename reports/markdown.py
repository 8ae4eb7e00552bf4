"""A run in a few lines of Markdown, for the comment on a pull request. No rate without its n."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from dsbeval.ifeval.pack import LEVELS
from dsbeval.judge.contract import is_offline
from dsbeval.stats import SMALL_N
from reports.dyad_tables import TASK_NAMES
from reports.html import notices
from reports.html.page import Part, Ref
from reports.html.shown import shown
from reports.tables import EFFECT_NAMES, SUBSET_NAMES, percent, points

WORST = 10
"""So many errors are listed."""


def markdown(summary: Mapping[str, Any], name: str) -> str:
    """Return the summary of a run."""
    lines = [f"### dsbeval: {_plain(str(summary['fingerprint']['agent']))}", "", f"Run `{name}`", ""]
    root = Ref(0, summary)
    if "ifeval" in summary:
        lines += [_counted("DSB-IFEval", summary["counts"], "cases"), ""]
        lines += _noted(notices.of_run(root), summary)
        lines += _ifeval(summary)
    if "dyadic" in summary:
        lines += [_counted("DyaFDB", summary["dyadic"]["outcomes"], "conversations"), ""]
        lines += _noted(notices.of_dyads(root), summary)
        lines += _dyadic(summary["dyadic"])
    return "\n".join(lines).rstrip() + "\n"


def _plain(text: str) -> str:
    """Return text that Markdown takes as text, on one line."""
    text = " ".join(text.split())
    for sign in ("\\", "`", "*", "_", "[", "]", "<", ">", "|", "#", "~"):
        text = text.replace(sign, f"\\{sign}")
    return text


def _counted(benchmark: str, counts: Mapping[str, int], what: str) -> str:
    return (
        f"**{benchmark}**: {counts['cases']} {what}: {counts['passed']} passed, {counts['failed']} failed, "
        f"{counts['error']} error, {counts['skipped']} skipped, {counts['missing']} missing"
    )


def _noted(found: Iterable[notices.Notice], summary: Mapping[str, Any]) -> list[str]:
    lines = [f"> {'**Warning.** ' if one.tone == 'warning' else ''}{_sentence(one.parts, summary)}" for one in found]
    return [part for line in lines for part in (line, "")]


def _sentence(parts: Sequence[Part], summary: Mapping[str, Any]) -> str:
    return _plain("".join(shown(part, [summary]) for part in parts))


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    rule = ["---", *["---:"] * (len(head) - 1)]
    return [f"| {' | '.join(row)} |" for row in (head, rule, *rows)] + [""]


def _ifeval(summary: Mapping[str, Any]) -> list[str]:
    data = summary["ifeval"]
    if not data["ias"]["all"]["overall"]["n"]:
        return _broken(summary["errors"])
    levels = [level for level in (*LEVELS, "overall") if data["ias"]["all"][level]["n"]]
    lines = _table(
        ["IAS, %", *levels],
        [[title, *(percent(data["ias"][cells][level]) for level in levels)] for cells, title in SUBSET_NAMES.items()],
    )
    effects = [
        [title, *(_effect(data["effects"][cells], effect) for cells in SUBSET_NAMES)]
        for effect, title in EFFECT_NAMES.items()
        if any(data["effects"][cells][effect] is not None for cells in SUBSET_NAMES)
    ]
    if effects:
        lines += _table(["Effects, points", *SUBSET_NAMES.values()], effects)
    lines += ["<details><summary>By action and by role</summary>", ""]
    lines += _table(
        ["action", "IAS, %"], [[f"`{action}`", percent(cell)] for action, cell in data["by_action"].items()]
    )
    lines += _table(["role", "IAS, %"], [[role, percent(cell)] for role, cell in data["by_role"].items()])
    lines += ["</details>", ""]
    for judge, table in summary["judges"].items():
        overall = table["pas"]["overall"]
        if overall["n"]:
            mark = " (a proxy, not comparable with a language model)" if is_offline(judge) else ""
            few = overall["ci95"] is None or overall["n"] < SMALL_N
            limits = "" if few else f" [{overall['ci95'][0]:.1f}, {overall['ci95'][1]:.1f}]"
            lines += [f"PAS {overall['mean']:.1f}{limits}, n {overall['n']}; judge {_plain(judge)}{mark}", ""]
    return lines + _broken(summary["errors"])


def _effect(found: Mapping[str, Any], effect: str) -> str:
    if found[effect] is None:
        return "-"
    one, other = found["n"][effect]
    limits = found["ci95"][effect]
    between = "" if limits is None else f" [{100 * limits[0]:+.1f}, {100 * limits[1]:+.1f}]"
    return f"{points(found[effect])} ({one}, {other}){between}"


def _broken(errors: Sequence[Mapping[str, str]]) -> list[str]:
    if not errors:
        return []
    lines = [f"- `{entry['id']}`: {_plain(entry['message'])}" for entry in errors[:WORST]]
    more = [f"- and {len(errors) - WORST} more"] if len(errors) > WORST else []
    return ["<details><summary>Errors</summary>", "", *lines, *more, "", "</details>", ""]


def _dyadic(data: Mapping[str, Any]) -> list[str]:
    lines: list[str] = []
    if data.get("matrices"):
        rows = [
            [
                f"{task} {TASK_NAMES.get(task, '')}",
                _plain(model),
                "-" if average is None else f"{average:.2f} ({cells} cells)",
                str(sum(counts)),
            ]
            for task, matrix in data["matrices"].items()
            for model, average, cells, counts in zip(
                matrix["models"], matrix["row_average"], matrix["row_cells"], matrix["n"], strict=True
            )
            if any(counts)
        ]
        lines += _table(["task", "model", "mean score over partners", "n"], rows)
    return lines + _broken(data["errors"])
