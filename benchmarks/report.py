"""What a large report weighs and how soon it is there: 1,038 cases and 7,560 conversations against budgets.

    python -m benchmarks.report [--run RUN] [--cases 1038] [--dyads 7560]

RUN is a run folder of DSB-IFEval with its recordings; without one a few cases are recorded and stand for all. Budgets:
15 MB without audio, 2 s until the page can be used, 1 GB of memory while it is made. Ratios are to these; below 1 is
within. The browser's times are of this machine; the median of five fresh loads.
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from dsbeval.ifeval.pack import DEFAULT_PACK, load_pack
from dsbeval.results import RunFolder
from tests.reports.browser import open_browser
from tests.reports.html.page import Page
from tests.reports.html.runs import CASES, dyadic_run, ifeval_run

BYTES, READY_S, MEMORY = 15e6, 2.0, 1e9
LOADS = 5
SCENARIOS = ["T1-1-01", "T4-2-01"]


def many_cases(root: Path, count: int) -> RunFolder:
    """Return a run of the whole pack, of which a few recorded cases stand for all."""
    few = ifeval_run(root / "few", "turn_based", CASES, judge="offline")
    rows = {(row["id"], row["item"]): row for row in few.rows()}
    cases = list(load_pack(DEFAULT_PACK).cases.values())[:count]
    folder = RunFolder.create(root / "cases", few.fingerprint(), [case.id for case in cases])
    for k, case in enumerate(cases):
        source = CASES[k % len(CASES)]
        meta = json.loads((few.recordings / f"{source}.rec.json").read_text())
        meta |= {"test_case_id": case.id, "audio": f"../../few/recordings/{meta['audio']}"}
        (folder.recordings / f"{case.id}.rec.json").write_text(json.dumps(meta))
        named = {"id": case.id, "role": case.role, "probe": case.probe, "level": case.level, "instance": case.instance}
        for item in ("floor", "persona"):
            folder.append(rows[source, item] | named)
    return folder


def many_dyads(root: Path, count: int) -> RunFolder:
    """Return a run of many conversations between three models, of which a few recorded ones stand for all."""
    few = dyadic_run(root / "two", "achiever", "forfeiter", SCENARIOS)
    found = few.rows()
    names = []
    for k in range(count):
        seats, opener = ("ab", "ba")[k % 2], "AB"[k // 2 % 2]
        names.append(f"DYA-{found[k % len(found)]['task']}-{k // 12 % 20 + 1:02}-{seats}-o{opener}-r{k // 4 + 1}")
    folder = RunFolder.create(root / "dyads", few.fingerprint(), names)
    models = ("one", "two", "three")
    for k, name in enumerate(names):
        row = found[k % len(found)]
        meta = json.loads((few.recordings / f"{row['id']}.rec.json").read_text())
        meta |= {"test_case_id": name, "audio": f"../../two/recordings/{meta['audio']}"}
        (folder.recordings / f"{name}.rec.json").write_text(json.dumps(meta))
        pair = {"model_a": models[k % 3], "model_b": models[k // 3 % 3]}
        folder.append(row | pair | {"id": name, "scenario": f"{row['task']}-{k // 12 % 20 + 1:02}"})
    return folder


def made(folder: RunFolder, out: Path) -> tuple[float, float]:
    """Make the report in a process of its own; return its seconds and the largest memory of any child so far, in bytes."""
    began = time.perf_counter()
    subprocess.run(
        [sys.executable, "-m", "dsbeval.cli", "report", str(folder.root), "-o", str(out), "--audio=none"], check=True
    )
    return time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024


def loaded(driver: Any, out: Path, to: str) -> float:
    """Return the median of the seconds until a page can be used."""
    found = []
    for _ in range(LOADS):
        page = Page(driver, (out / "index.html").as_uri(), out.as_uri())
        driver.get("about:blank")
        driver.get(page.address + to)
        found.append(page.until("performance.getEntriesByName('ready')[0]?.startTime") / 1000)
    return float(statistics.median(found))


def heap(driver: Any, out: Path, kind: str, names: list[str]) -> float:
    """Return the bytes of script memory after the list and many pages were looked at."""
    page = Page(driver, (out / "index.html").as_uri(), out.as_uri()).open(
        f"#/{kind}s" if kind == "case" else "#/conversations"
    )
    for name in names:
        page.go(f"#/{kind}/{name}")
    driver.execute_cdp_cmd("HeapProfiler.collectGarbage", {})
    return float(driver.execute_cdp_cmd("Runtime.getHeapUsage", {})["usedSize"])


def told(what: str, value: float, unit: str, budget: float) -> None:
    """Print a figure and its ratio to its budget."""
    print(f"{what:54} {value:10.2f} {unit:3}  ratio {value / budget:.2f}")


def main() -> None:
    """Make both reports and look at them."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--run", type=Path)
    parser.add_argument("--cases", type=int, default=1038)
    parser.add_argument("--dyads", type=int, default=7560)
    arguments = parser.parse_args()
    with ExitStack() as stack:
        root = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        runs = [("case", RunFolder.open(arguments.run) if arguments.run else many_cases(root, arguments.cases)),
                ("dyad", many_dyads(root, arguments.dyads))]  # fmt: skip
        driver = None
        if shutil.which("chromedriver"):
            driver = stack.enter_context(open_browser(root / "profile"))
        for kind, folder in runs:
            out = root / f"report-{kind}"
            count = len(folder.cases())
            seconds, memory = made(folder, out)
            size = sum(path.stat().st_size for path in out.rglob("*") if path.is_file())
            print(f"{count} {kind}s: made in {seconds:.0f} s, {1000 * seconds / count:.0f} ms each")
            told("  memory while it is made", memory / 1e6, "MB", MEMORY / 1e6)
            told("  size without audio", size / 1e6, "MB", BYTES / 1e6 * max(1.0, count / 1038))
            if driver is not None:
                first, last = ("#/overview", "#/cases") if kind == "case" else ("#/dyads", "#/conversations")
                told("  overview ready", loaded(driver, out, first), "s", READY_S)
                told("  list ready", loaded(driver, out, last), "s", READY_S)
                told(
                    "  script memory after 60 pages",
                    heap(driver, out, kind, folder.cases()[:: max(1, count // 60)]) / 1e6,
                    "MB",
                    100,
                )


if __name__ == "__main__":
    main()
