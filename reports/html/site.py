"""The report as a folder: a page, its assets, data in pieces, tables and summary; made from run folders alone.

::

    report/index.html         the page; opens from disk and from any static host
    report/assets/            script and style, the same in every report
    report/data/report.js     summaries, pages, plots
    report/data/rK-cases-N.js the list of the cases of run K in pieces;  rK-case-N.js  what some case pages show
    report/data/rK-dyads-N.js the same of conversations;  rK-dyad-N.js
    report/audio/             links to the recordings, or clips, where the report is portable
    report/summary.json, report/tables/*.csv

Every piece is small and loaded when it is needed, so the page is as quick with 7,560 conversations as with one.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from dsbeval import __version__
from dsbeval.audio import atomic_write
from dsbeval.dyadic.runs import Earlier
from dsbeval.ifeval.score import ITEM as FLOOR
from dsbeval.results import Row, RunFolder
from reports.csv_tables import write_tables
from reports.html import cases, dyads, plot_dyads, plot_ifeval, published
from reports.html.about import about
from reports.html.changes_page import changes
from reports.html.clips import Clips
from reports.html.comparison import changed
from reports.html.dyad_page import dyads as dyads_page
from reports.html.dyad_page import judged_page
from reports.html.modes import Audio
from reports.html.names import names_of
from reports.html.overview import overview
from reports.html.page import Ref
from reports.html.recorded import Recorded, recorded_or_why
from reports.html.shards import pieces, write_shard
from reports.html.view import Side, View
from reports.judged import join_persona
from reports.summary import build

PAGES_A_SHARD = 24
"""Pages in one piece of data: about 200 kB."""
LINES_A_SHARD = 1000
"""Lines of the list in one piece of data: about 300 kB."""
WORKERS = 4

Progress = Callable[[str, int, int], None]
"""Called with the name of a run, how many of its pages are made, and how many there are."""


@dataclass(frozen=True)
class Run:
    """A run of a report: its folder, the name that it goes by, its rows and its summary."""

    folder: RunFolder
    name: str
    rows: list[Row]
    summary: dict[str, Any]

    @classmethod
    def read(cls, folder: RunFolder, name: str, earlier: Sequence[Earlier] = ()) -> Run:
        """Read a run. Conversations of ``earlier`` runs join its figures. Raises :class:`~dsbeval.errors.RunError`."""
        rows = join_persona(folder.rows(), folder)
        return cls(folder, name, rows, build(folder, rows, earlier=earlier))

    @property
    def floor(self) -> list[Row]:
        """The rows of the floor."""
        return [row for row in self.rows if row["item"] == FLOOR]


def write_report(
    runs: Sequence[Run],
    out: Path,
    *,
    audio: Audio = "linked",
    comparison: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
) -> Path:
    """Write the report of one run, or of several side by side, into ``out`` and return the path of its page.

    Parameters
    ----------
    runs : sequence of Run
        The first is the one that the others are compared with.
    out : Path
        Folder of the report; its ``data`` and ``assets`` are replaced.
    audio : "linked", "portable" or "none"
        Whether pages play links to the recordings, small clips, or nothing. Of several runs only what has changed gets
        clips.
    comparison : mapping, optional
        Of :func:`reports.html.comparison.compare_runs`, where there are several runs.
    progress : callable, optional
    """
    _clear(out)
    if comparison is None:
        write_tables(runs[0].summary, out / "tables")
        _write_json(out / "summary.json", runs[0].summary)
    else:
        _write_json(out / "comparison.json", comparison)
    summaries = [(run.name, run.summary) for run in runs]
    plots = plot_ifeval.plots(summaries, [run.floor for run in runs]) | plot_dyads.plots(summaries)
    plots |= plot_dyads.plots_by_judge(summaries)
    view = _view(runs, comparison)
    pages = _pages(view, plots)
    only = None
    if comparison is not None:
        pages = {"changes": changes(Ref(len(runs), comparison)), **pages}
        only = changed([run.rows for run in runs]) if audio == "portable" else None
    listed = [
        _write_run(run, index, out, Clips(out, f"r{index}", audio, only), progress) for index, run in enumerate(runs)
    ]
    write_shard(
        out / "data" / "report.js",
        "report",
        {
            "version": __version__,
            "audio": "changed" if only is not None else audio,
            "names": view.names,
            "runs": [{"name": run.name, **found} for run, found in zip(runs, listed, strict=True)],
            "documents": [*(run.summary for run in runs), *([] if comparison is None else [comparison])],
            "pages": pages,
            "plots": plots,
        },
    )
    return _write_page(out)


def _view(runs: Sequence[Run], comparison: Mapping[str, Any] | None) -> View:
    sides = []
    for index, run in enumerate(runs):
        change = None
        if comparison is not None and index:
            change = Ref(len(runs), comparison["changes"][index], ("changes", str(index)), change=True)
        sides.append(Side(run.name, Ref(index, run.summary), change))
    return View(tuple(sides), names_of(runs[0].summary["fingerprint"]))


def _pages(view: View, plots: Mapping[str, str]) -> dict[str, Any]:
    pages: dict[str, Any] = {}
    blocks = {key for side in view.sides for key in ("ifeval", "dyadic") if side.root.get(key) is not None}
    if "ifeval" in blocks:
        pages["overview"] = overview(view, plots)
    if "dyadic" in blocks:
        pages["dyads"] = dyads_page(view, plots)
    for k, judge in enumerate(view.keys("judged")):
        pages[f"dyads-{k}"] = judged_page(view, judge, k, plots)
    if (found := published.page(view)) is not None:
        pages["published"] = found
    return pages | {"about": about(view)}


def _clear(out: Path) -> None:
    (out / "index.html").unlink(missing_ok=True)  # a report that is broken off has no page
    for name in ("data", "assets"):
        shutil.rmtree(out / name, ignore_errors=True)
    (out / "data").mkdir(parents=True)


def _write_json(path: Path, data: Any) -> None:
    with atomic_write(path) as file:
        file.write(json.dumps(data, ensure_ascii=False, indent=1, allow_nan=False).encode() + b"\n")


def _write_page(out: Path) -> Path:
    with resources.as_file(resources.files("reports.html") / "assets") as assets:
        shutil.copytree(assets, out / "assets", ignore=shutil.ignore_patterns("index.html"))
        page = (assets / "index.html").read_bytes()
    with atomic_write(out / "index.html") as file:
        file.write(page)
    return out / "index.html"


# The lists and pages of a run

Page = tuple[str, dict[str, Any], Any]
"""Id, what its page shows, and the key of its user's audio."""


def _write_run(run: Run, index: int, out: Path, clips: Clips, progress: Progress | None) -> dict[str, Any]:
    """Write the lists and pages of a run; return what a reader must know to find them."""
    replies = cases.replies(run.folder)
    making = _Making(run, index, out, clips, progress)
    found = cases.Results.read(run.folder, run.rows, replies)
    spoken = dyads.Results.read(run.folder, run.rows, replies)
    making.total = len(found.ids) + len(spoken.ids)
    lines = []
    for shard, name, page in making.pages("case", found.ids, lambda name, it: cases.detail(found, name, it)):
        lines.append(cases.line(found, name, shard, page.get("audio_key")))
    case_pieces = making.lines("cases", cases.COLUMNS, lines)
    lines = [
        dyads.line(spoken, name, shard)
        for shard, name, _ in making.pages("dyad", spoken.ids, lambda name, it: dyads.detail(spoken, name, it))
    ]
    clips.sweep()
    return {
        "cases": len(found.ids),
        "cases_pieces": case_pieces,
        "dyads": len(spoken.ids),
        "dyads_pieces": making.lines("dyads", dyads.COLUMNS, lines),
    }


@dataclass
class _Making:
    """What makes the pages of a run."""

    run: Run
    index: int
    out: Path
    clips: Clips
    progress: Progress | None
    total: int = 0
    done: int = 0

    def pages(
        self, kind: str, names: Sequence[str], detail: Callable[[str, Recorded | None], dict[str, Any]]
    ) -> Iterator[tuple[int, str, dict[str, Any]]]:
        """Write pages a piece at a time and yield them: a few recordings are read at once, and one piece is in memory."""

        def make(name: str) -> dict[str, Any]:
            recorded, problem = recorded_or_why(self.run.folder.recordings, name)
            try:
                page = detail(name, recorded)
            except (KeyError, TypeError) as error:  # rec.json that is JSON, but not of a recording
                recorded, problem = None, f"the recording cannot be shown: {type(error).__name__} {error}"
                page = detail(name, None)
            if recorded is not None:
                page |= {"audio": self.clips.place(recorded), "audio_key": recorded.meta.get("audio_key")}
            return page if problem is None else page | {"problem": problem}

        with ThreadPoolExecutor(WORKERS) as pool:
            for shard, piece in enumerate(pieces(names, PAGES_A_SHARD)):
                made = dict(zip(piece, pool.map(make, piece), strict=True))
                name = f"r{self.index}-{kind}-{shard}"
                write_shard(self.out / "data" / f"{name}.js", name, made)
                self.done += len(made)
                if self.progress is not None:
                    self.progress(self.run.name, self.done, self.total)
                for one, page in made.items():
                    yield shard, one, page

    def lines(self, kind: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> int:
        """Write the lines of a list in pieces and return how many pieces there are."""
        cut = pieces(rows, LINES_A_SHARD)
        for number, piece in enumerate(cut):
            name = f"r{self.index}-{kind}-{number}"
            write_shard(self.out / "data" / f"{name}.js", name, {"columns": columns, "rows": piece})
        return len(cut)
