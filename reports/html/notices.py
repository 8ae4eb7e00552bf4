"""What a reader must know before any number: what is missing from a run, and what its numbers may not be compared with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from dsbeval.caveats import SENTENCES
from dsbeval.judge.contract import is_offline
from reports.html.page import Block, Part, Ref, label

Tone = Literal["warning", "note"]


@dataclass(frozen=True, slots=True)
class Notice:
    """A sentence with its numbers."""

    tone: Tone
    parts: tuple[Part, ...]

    def block(self) -> Block:
        """Return it as a block of a page."""
        return {"b": "notice", "tone": self.tone, "p": list(self.parts)}


OFFLINE = Notice(
    "warning",
    ("The offline judge is a proxy made of word rules; its figures are not comparable with a language model's.",),
)


def of_run(root: Ref) -> list[Notice]:
    """Return the notices of the DSB-IFEval part of a run."""
    counts = root["counts"]
    cases = counts["cases"].value
    if not cases:
        return [Notice("warning", ("The run is empty: it holds no case.",))]
    out = list(_unfinished(counts, "cases"))
    out += _caveats(root.get("caveats"))
    out += _restarts(root.get("restarts"))
    judges = root.get("judges")
    if not judges:
        out.append(
            Notice("note", ("No judge: persona adherence was not judged, so there is no PAS and no conflict profile.",))
        )
    return [*out, *_selection(root["fingerprint"])]


def of_dyads(root: Ref) -> list[Notice]:
    """Return the notices of the DyaFDB part of a run."""
    data = root["dyadic"]
    out = [*_unfinished(data["outcomes"], "conversations"), *_caveats(data.get("caveats"))]
    out += _restarts(root.get("restarts"))
    options = data["ignored"].value if data.get("ignored") is not None else ()
    out += [Notice("note", (label(option), " has no part in conversations of two agents.")) for option in options]
    if (earlier := data.get("with_runs")) is not None:
        names = ", ".join(str(one["run"]) for one in earlier.value)
        out.append(
            Notice(
                "note", ("Conversations of earlier runs are in the figures, and not in the list: ", label(names), ".")
            )
        )
    if (garble := data.get("garble")) is not None:
        parts = [garble[key].number("int") for key in ("watched", "flagged", "recorded_again", "garbled")]
        words = (
            " conversations were watched for garbled speech: ",
            " flagged, ",
            " recorded again, ",
            " garbled to the end.",
        )
        out.append(Notice("note", tuple(one for pair in zip(parts, words, strict=True) for one in pair)))
    if not data["judges"]:
        out.append(
            Notice(
                "note",
                (
                    "No judge: what needs one has no score (T1, T2, T3-2, T4-1 and parts of T4); turn-taking needs none.",
                ),
            )
        )
    elif any(map(is_offline, data["judges"].value)):
        out.append(OFFLINE)
    return out


def _restarts(found: Ref | None) -> list[Notice]:
    """Return how much was begun again; what was lost is in no recording."""
    if found is None:
        return []
    cases, times = found["cases"].number("int"), found["restarts"].number("int")
    parts = ("Recordings that were begun again because a session was lost: ", cases, " (", times, " times in all).")
    return [Notice("note", parts)]


def _caveats(found: Ref | None) -> list[Notice]:
    """Return what agents declare about themselves that bears on their scores."""
    if found is None:
        return []
    return [
        Notice(
            "warning",
            (
                label(agent),
                f" {SENTENCES.get(mark, mark)} (",
                cell["n"].number("int"),
                " of ",
                cell["of"].number("int"),
                ").",
            ),
        )
        for agent, marks in found.items()
        for mark, cell in marks.items()
    ]


def _unfinished(counts: Ref, what: str) -> list[Notice]:
    cases, missing, errors = (counts[key] for key in ("cases", "missing", "error"))
    judged = counts["passed"].value + counts["failed"].value
    out = []
    if missing.value:
        out.append(
            Notice(
                "warning",
                ("The run was cut: ", missing.number("int"), " of ", cases.number("int"), f" {what} have no result."),
            )
        )
    if errors.value and not judged:
        out.append(
            Notice(
                "warning",
                (
                    "Errors only: no case has a verdict. ",
                    errors.number("int"),
                    " of ",
                    cases.number("int"),
                    f" {what} broke.",
                ),
            )
        )
    elif errors.value:
        out.append(
            Notice(
                "warning",
                (errors.number("int"), " of ", cases.number("int"), f" {what} ended in an error; they are in no rate."),
            )
        )
    if not judged and not errors.value:
        out.append(Notice("warning", ("No case has a verdict, so there is no rate.",)))
    return out


def _selection(fingerprint: Ref) -> list[Notice]:
    chosen: list[Part] = []
    selection: dict[str, Any] = fingerprint["selection"].value
    for key in ("levels", "roles", "probes"):
        if selection.get(key):
            chosen += [*(["; "] if chosen else []), f"{key} ", label(", ".join(selection[key]))]
    for key in ("sample", "limit"):
        if selection.get(key):
            chosen += [*(["; "] if chosen else []), f"{key} ", fingerprint["selection"][key].number("int")]
    if not chosen:
        return []
    return [
        Notice(
            "note",
            ("A part of the grid was asked for: ", *chosen, ". Compare with published figures level by level only."),
        )
    ]
