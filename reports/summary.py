"""The summary of a run, from its folder alone: the floor, each judge by itself, and the conversations of two agents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dsbeval.attempts import restarted
from dsbeval.caveats import tally
from dsbeval.dyadic.runs import Earlier
from dsbeval.ifeval import crosstabs, published
from dsbeval.ifeval.metrics import counts, summarise
from dsbeval.ifeval.score import case_ids
from dsbeval.judge.cache import Store
from dsbeval.judge.cost import totals
from dsbeval.judge.dyads import conversation_ids
from dsbeval.judge.metrics import summarise_judges
from dsbeval.results import Row, RunFolder
from dsbeval.usage import totals as usage_totals
from reports.benchmarks import ignored
from reports.judged import join_persona, judged_conversations


def build(
    folder: RunFolder,
    rows: Sequence[Row] | None = None,
    fingerprint: dict[str, Any] | None = None,
    earlier: Sequence[Earlier] = (),
) -> dict[str, Any]:
    """Return ``report/summary.json`` of a run. Each benchmark has a block if the run has cases of it.

    ``rows`` and ``fingerprint`` stand in for the run's own where it was scored again. The conversations of ``earlier`` runs join
    the analyses of two agents; outcomes, errors and skips are the run's own. What judges said afterwards is joined too
    (:mod:`reports.judged`).
    """
    rows = join_persona(folder.rows() if rows is None else rows, folder)
    cases, conversations = case_ids(folder), conversation_ids(folder)
    floor = [row for row in rows if row["item"] == "floor"]
    persona = [row for row in rows if row["item"] == "persona"]
    judges = summarise_judges(persona, floor)
    asked = Store.of_run(folder.root).rows if judges else []
    for judge, table in judges.items():
        judged = {row["id"] for row in persona if row["judge"] == judge}
        table["counts"]["missing"] = len(set(cases) - judged)
        table["asked"] = totals(row for row in asked if row["judge"] == judge)
    out = {**summarise(floor, cases, fingerprint or folder.fingerprint()), "judges": judges}
    out["ifeval"] |= {**crosstabs.tables(floor), "published": published.as_dict()}
    if conversations:
        found = [row for row in rows if row["item"] == "dyad"]
        options = list(ignored(str(out["fingerprint"].get("acoustics", "clean"))))
        out["dyadic"] = {
            **({"ignored": options} if options else {}),
            **dyadic_block(found, conversations, earlier),
        }
        if later := judged_conversations(folder, out["dyadic"]["judges"]):
            out["judged"] = later
        if not cases:
            del out["ifeval"]
    if used := usage_totals(folder.root):
        out["usage"] = used
    if again := restarted(row for row in rows if row["item"] != "persona"):
        out["restarts"] = again
    return out


def dyadic_block(rows: Sequence[Row], conversations: Sequence[str], earlier: Sequence[Earlier] = ()) -> dict[str, Any]:
    """Return the block of the conversations that were to be run, from their rows."""
    from dsbeval.dyadic.summary import summarise as analyse

    def told(outcome: str) -> list[dict[str, Any]]:
        return [{"id": row["id"], "message": row["message"]} for row in rows if row["outcome"] == outcome]

    every = [*rows, *(row for run in earlier for row in run.rows)]
    return {
        "outcomes": counts(rows, conversations),
        "judges": sorted({str(row["judge"]) for row in rows if row.get("judge", "none") != "none"}),
        "not_exercised": sum(not row["exercised"] for row in rows if row["outcome"] in ("passed", "failed")),
        "errors": told("error"),
        "skipped": told("skipped"),
        "missing": sorted(set(conversations) - {str(row["id"]) for row in rows}),
        **({"with_runs": [run.as_dict() for run in earlier]} if earlier else {}),
        **({"caveats": told_of} if (told_of := tally((row for row in every if "scores" in row), "")) else {}),
        **analyse(every),
    }
