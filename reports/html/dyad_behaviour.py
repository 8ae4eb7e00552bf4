"""How models behave in conversations: when things happened, acting and succeeding, profiles, ratings, balance, robustness."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dsbeval.dyadic import published
from dsbeval.dyadic.profiles import FIGURES
from dsbeval.stats import SMALL_N
from reports.html.addresses import conversations_at
from reports.html.page import (
    Block,
    Ref,
    figure,
    interval,
    label,
    link,
    mean,
    plain,
    side_by_side,
    small,
    table,
    tag,
    text,
)
from reports.html.view import View

CURVES = {
    "entry": "Entry into the role (T1)",
    "deviation": "First step off the role, from the entry (T1)",
    "leak_by_attacker": "Time to leak, by attacker (T4-2)",
    "leak_by_defender": "Time to leak, by defender (T4-2)",
}
FACTORS = {
    "p_acted": "acted",
    "p_success_given_acted": "success once acted",
    "p_success_without": "success without",
    "p_success": "success",
}
SECONDS = {"turns_as_presser", "turns_as_avoider", "time_to_leak_as_defender", "time_to_leak_as_attacker"}


def times(view: View, plots: Mapping[str, str]) -> list[Block]:
    """Return when models entered their roles, left them, and gave secrets away."""
    drawn = [
        figure(f"km-{name}", f"{title}: share without it yet, with 95 % limits.", f"Kaplan-Meier curves: {title}")
        for name, title in CURVES.items()
        if f"km-{name}" in plots
    ]
    rows = []
    for name, title in CURVES.items():
        for model in view.keys("survival", name):
            rows += view.rows(
                [title, " ", label(model.rpartition("/")[2])],
                lambda root, name=name, model=model: [
                    _reached(root.get("survival", name, model)),
                    plain(root.get("survival", name, model, "events"), "int"),
                    plain(root.get("survival", name, model, "n"), "int"),
                ],
            )
    if not rows:
        return [text("Nothing was timed: it needs a judge (T1), or a secret that leaked (T4-2).")]
    return [
        side_by_side(*drawn),
        table(
            "Median times, s",
            ["", "median", "events", "n"],
            rows,
            note="A conversation without the event is censored "
            "where it ended. Not reached: fewer than half had it within the window.",
        ),
    ]


def _reached(curve: Ref | None) -> dict[str, Any]:
    if curve is None:
        return {"p": []}
    if curve["median_s"].value is None and not curve.change:
        return {"p": [small("not reached")]}
    return plain(curve["median_s"], "f1")


def factors(view: View, plots: Mapping[str, str]) -> list[Block]:
    """Return how often models act, and what comes of it."""
    rows = []
    for task in view.keys("factors"):
        for model in (key for key in view.keys("factors", task) if key != "acted"):

            def cells(root: Ref, task: str = task, model: str = model) -> list[dict[str, Any]]:
                found = root.get("factors", task, model)
                return [mean(found.get(name) if found is not None else None, "f2", "value") for name in FACTORS]

            acted = next(
                str(side.root["factors"][task]["acted"].value) for side in view.sides if side.root.get("factors", task)
            )
            rows += view.rows([label(task), f" {acted} ", label(model.rpartition("/")[2])], cells)
    if not rows:
        return [text("No conversation of the tasks in which a model acts (T2, T3-2, T4-1, T4-2) was judged.")]
    drawn = (
        [
            figure(
                "factors",
                "How often a model acts, and how often it then succeeds; the lines join points of equal success.",
                "Success once acted against acting, by task and model",
            )
        ]
        if "factors" in plots
        else []
    )
    return [*drawn, table("Factors, share [95 %] n", ["", *FACTORS.values()], rows)]


def profiles(view: View) -> list[Block]:
    """Return the profiles and ratings of models."""
    rows = []
    for model in view.keys("profiles"):
        rows += view.rows(
            [label(model.rpartition("/")[2])],
            lambda root, model=model: [_figure(root.get("profiles", model, name), name) for name in FIGURES],
        )
    known = view.sides[0].root.get("published", "profiles")
    for model in view.sides[0].root["published"]["models"].value if known is not None else ():
        rows.append(
            (
                [label(published.NAMES[model]), " ", tag("published")],
                [
                    {**plain(known.get(name, model) if known is not None else None, "f2"), "tone": "published"}
                    for name in FIGURES
                ],
            )
        )
    heads = [name.replace("_", " ") for name in FIGURES]
    out = [
        table(
            "Behavioural profiles",
            ["model", *heads],
            rows,
            note="Shares are means over pairings; turns are speech segments a conversation "
            "of a minute; times are medians in seconds.",
        )
    ]
    return [*out, *_ratings(view)]


def _figure(found: Ref | None, name: str) -> dict[str, Any]:
    if found is None or found["value"].value is None:
        return {"p": []}
    if found.change:
        return plain(found["value"], "f2")
    return {
        "p": [
            found["value"].number("f1" if name in SECONDS else "f2"),
            " ",
            small("n ", found["n"].number("int")),
        ]
    }


def _ratings(view: View) -> list[Block]:
    rows = []
    reasons: dict[str, None] = {}
    for kind in ("all", "coordination", "conflict"):
        for model in view.keys("ratings", kind):
            if model == "reason":
                reasons[
                    next(
                        str(side.root["ratings"][kind]["reason"].value)
                        for side in view.sides
                        if side.root.get("ratings", kind, "reason") is not None
                    )
                ] = None
                continue

            def cells(root: Ref, kind: str = kind, model: str = model) -> list[dict[str, Any]]:
                found = root.get("ratings", kind, model)
                if found is None:
                    return [{"p": []}] * 3
                if found.change:
                    return [plain(found["rating"], "f2"), {"p": []}, {"p": []}]
                sure = found["n"].value >= SMALL_N
                return [
                    {"p": [found["rating"].number("+f2"), *(interval(found, "+f2") if sure else [])]},
                    plain(found["share"], "f2"),
                    plain(found["n"], "int"),
                ]

            rows += view.rows([kind, " ", label(model.rpartition("/")[2])], cells)
    out = (
        [
            table(
                "Ratings over pairings (Bradley-Terry)",
                ["", "rating", "share against an average model", "comparisons"],
                rows,
            )
        ]
        if rows
        else []
    )
    return [*out, *(text(small(f"Not rated: {reason}.")) for reason in reasons)]


def balance(view: View, plots: Mapping[str, str]) -> list[Block]:
    """Return which role a game favours."""
    rows = []
    for task in view.keys("balance"):
        rows += view.rows(
            [link(conversations_at(task=task), label(task))],
            lambda root, task=task: [
                mean(root.get("balance", task), "f2", "value"),
                plain(root.get("balance", task, "of"), "int"),
                {"p": [str(root["balance"][task]["over"].value)]}
                if root.get("balance", task, "over") is not None and not root.change
                else {"p": []},
            ],
        )
    if not rows:
        return []
    drawn = [
        figure(
            "balance",
            "Mean score of the role that is scored; a balanced game is near one half.",
            "Balance of the games",
        )
    ]
    return [
        *(drawn if "balance" in plots else []),
        table("Balance of the games", ["task", "mean score of the scored role", "conversations", "over"], rows),
    ]


def windows(view: View) -> list[Block]:
    """Return action rates and scores by window."""
    rows = []
    for task in view.keys("windows"):
        for window in view.keys("windows", task):
            for model in view.keys("windows", task, window):

                def cells(root: Ref, path: tuple[str, ...] = (task, window, model)) -> list[dict[str, Any]]:
                    found = root.get("windows", *path)
                    if found is None or found.value is None:
                        return [{"p": []}] * 2
                    return [mean(found.get("action"), "f2", "value"), mean(found.get("score"), "f2", "value")]

                rows += view.rows([label(f"{task} {window} s {model.rpartition('/')[2]}")], cells)
    return [table("By window: action rate and score [95 %] n", ["", "action", "score"], rows)] if rows else []


def robustness(view: View) -> list[Block]:
    """Return whether the order of models hangs on the thresholds of turn-taking."""
    rows = []
    for threshold in view.keys("robustness"):
        for at in view.keys("robustness", threshold):
            rows += view.rows(
                [threshold.removesuffix("_s").replace("_", " "), " ", label(f"{at} s")],
                lambda root, threshold=threshold, at=at: [
                    plain(root.get("robustness", threshold, at, measure, "tau"), "f2")
                    for measure in ("backchannels", "barge_in")
                ],
            )
    return (
        [
            table(
                "Order of the models under other thresholds (Kendall's tau against the default)",
                ["threshold", "backchannels", "barge-in"],
                rows,
                note="Empty where there are fewer than two models, or only ties.",
            )
        ]
        if rows
        else []
    )
