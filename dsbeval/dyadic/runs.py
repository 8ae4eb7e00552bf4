"""Earlier run folders beside a run: a new model is scored by recording only its own pairings.

    earlier = read_earlier([Path("runs/moshi"), ...], folder.fingerprint(), root=folder.root)
    summarise([*rows, *(row for one in earlier for row in one.rows)])

Conventions
-----------
* What joins is the result rows of an earlier folder as they lie there. Nothing is recorded, measured or judged again, and
  nothing is written there.
* Runs that were made or judged otherwise are refused, by the name of what differs (:func:`comparable`). Windows may differ:
  the analyses keep them apart.
* A name stands for one model: with other arguments or another checkpoint elsewhere it is refused, since a matrix would
  mix the two.
* A conversation counts once: two folders that hold the same one of the same model are refused.

Source: DyaFDB reports a fourth model that was added in this way; how runs are put together is ours.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dsbeval.dyadic.scenarios import load_scenarios
from dsbeval.errors import OptionError, RunError
from dsbeval.ifeval.metrics import counts
from dsbeval.judge.dyads import conversation_ids, dyad_rows
from dsbeval.results import Row, RunFolder
from dsbeval.resuming import BY_PARTNER

OPTION = "--with-run"
PARTED = ("window_s", "partner_args", *BY_PARTNER)
"""What conversations were had with and may differ: windows are kept apart, arguments and checkpoints belong to a model."""


@dataclass(frozen=True)
class Earlier:
    """The conversations of an earlier run folder."""

    folder: RunFolder
    fingerprint: Mapping[str, Any]
    cases: tuple[str, ...]
    rows: tuple[Row, ...]

    @property
    def name(self) -> str:
        """The name of the folder, without where it lies."""
        return self.folder.root.name

    def as_dict(self) -> dict[str, Any]:
        """Return what a summary says of it: whose run, and how much of it has no scores."""
        return {"run": self.name, "agent": self.fingerprint["agent"], **counts(self.rows, self.cases)}


def comparable(fingerprint: Mapping[str, Any], *, judge: bool = True) -> dict[str, Any]:
    """Return what must be equal for conversations to stand in one matrix, by name."""
    versions = fingerprint["versions"]
    out = {
        "seed": fingerprint["seed"],
        "latency": fingerprint["latency"],
        "dsbeval version": versions["dsbeval"],
        "resampler": versions["resampler"],
        **{name: value for name, value in fingerprint["dyadic"].items() if name not in PARTED},
    }
    if judge:
        out["judge"] = fingerprint["judge"]["id"]
        out["judge's prompts"] = fingerprint["judge"]["prompts"]
    return out


def read_earlier(
    paths: Iterable[Path], fingerprint: Mapping[str, Any], *, root: Path, judge_id: str | None = None
) -> list[Earlier]:
    """Read the conversations of earlier run folders.

    Parameters
    ----------
    paths : paths of run folders
    fingerprint : mapping
        Of the run that they join.
    root : Path
        The folder of that run.
    judge_id : str or None
        Score their recordings by the judgements of this judge that lie in their folders, instead of taking their rows.

    Raises
    ------
    RunError, OptionError
        In one line, for a folder that is not a run, holds no conversations, or is unlike the run or one another.
    """
    found: list[Earlier] = []
    begun = RunFolder(root).rows() if (root / "run.json").exists() else []
    known = [(root, _models(fingerprint, begun))]
    for path in paths:
        folder = RunFolder.open(path)
        if any(path.resolve() == other.resolve() for other, _ in known):
            what = "the run itself" if path.resolve() == root.resolve() else "named twice"
            raise OptionError(f"{OPTION}: {path} is {what}; leave it out")
        own = folder.fingerprint()
        cases = conversation_ids(folder)
        if not cases or "dyadic" not in own:
            raise RunError(f"{OPTION}: {path} holds no conversations of two agents; leave it out")
        _check_alike(path, own, fingerprint, judge=judge_id is None)
        rows = folder.rows() if judge_id is None else dyad_rows(folder, load_scenarios(), judge_id)
        conversations = tuple(row for row in rows if row["item"] == "dyad")
        models = _models(own, conversations)
        for other, there in known:
            _check_models(path, models, other, there)
        known.append((path, models))
        found.append(Earlier(folder, own, tuple(cases), conversations))
    return found


def join_earlier(paths: Sequence[Path], folder: RunFolder, judge_id: str | None = None) -> list[Earlier]:
    """Read the earlier runs that join a finished one; as :func:`read_earlier`, and checked by :func:`check_apart`."""
    if not paths:
        return []
    fingerprint = folder.fingerprint()
    if "dyadic" not in fingerprint:
        raise RunError(f"{OPTION}: {folder.root} holds no conversations of two agents that an earlier run could join")
    found = read_earlier(paths, fingerprint, root=folder.root, judge_id=judge_id)
    check_apart((), fingerprint, folder.root, found)
    return found


def check_apart(cases: Iterable[str], fingerprint: Mapping[str, Any], root: Path, earlier: Sequence[Earlier]) -> None:
    """Raise :class:`OptionError` when two folders hold the same conversation of the same model.

    ``fingerprint`` and ``root`` are those of the run that the earlier ones join, ``cases`` what it will hold besides.
    """
    begun = conversation_ids(RunFolder(root)) if (root / "run.json").exists() else []
    seen: dict[tuple[str, str, float, str], Path] = {}
    runs = [(root, fingerprint, [*begun, *cases]), *((run.folder.root, run.fingerprint, run.cases) for run in earlier)]
    for path, print_, names in runs if earlier else []:
        dyadic = print_.get("dyadic", {})
        where = (str(print_["agent"]), str(dyadic.get("medium")), float(dyadic.get("window_s", 0)))
        for name in names:
            other = seen.setdefault((*where, name), path)
            if other != path:
                raise OptionError(
                    f"{OPTION}: {other} and {path} both hold {name} of {where[0]}; a conversation counts once: leave one out"
                )


def _check_alike(path: Path, own: Mapping[str, Any], fingerprint: Mapping[str, Any], *, judge: bool) -> None:
    one, other = (comparable(print_, judge=judge) for print_ in (own, fingerprint))
    # A conversation in text has no segments and one in speech no budget of words: what only one of them has cannot differ.
    unlike = [name for name in one if name in other and name != "medium" and one[name] != other[name]]
    if unlike:
        raise RunError(f"{OPTION}: {path} was made with another {', '.join(unlike)}; it cannot stand in one matrix")


Model = tuple[dict[str, Any], dict[str, Any]]
"""Arguments, and the checkpoint as ``{"name", "sha256"}``."""


def _check_models(path: Path, here: Mapping[str, Model], other: Path, there: Mapping[str, Model]) -> None:
    for name in here.keys() & there.keys():
        if here[name][0] != there[name][0] or not _same_checkpoint(here[name][1], there[name][1]):
            raise RunError(
                f"{OPTION}: {name} in {path} has other arguments or another checkpoint than in {other}; one name is one "
                "model in a matrix: leave the run out"
            )


def _models(fingerprint: Mapping[str, Any], rows: Iterable[Row]) -> dict[str, Model]:
    """Return what each name of a run stands for: the agent, and the partners with what each of them got."""
    partners = {*fingerprint["selection"].get("partners", []), *(row["partner"] for row in rows if "partner" in row)}
    told = fingerprint["dyadic"]
    own, weights = told.get("partners", {}), told.get("partner_checkpoints", {})
    out = {
        str(name): _model(own.get(name, {}).get("args", told["partner_args"]), weights.get(name)) for name in partners
    }
    return out | {str(fingerprint["agent"]): _model(fingerprint["agent_args"], fingerprint["checkpoint"])}


def _model(args: Mapping[str, Any], checkpoint: Mapping[str, Any] | None) -> Model:
    given = dict(args)
    named = given.pop("checkpoint", None)
    return given, dict(checkpoint) if checkpoint else {"name": named, "sha256": None}


def _same_checkpoint(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    if one.get("sha256") and other.get("sha256"):
        return bool(one["sha256"] == other["sha256"])  # wherever the file lies
    return one.get("name") == other.get("name")
