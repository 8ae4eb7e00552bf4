"""The commands ``dsbeval judge`` and ``dsbeval agree``: judge a finished run again, and compare its judges."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dsbeval.errors import OptionError, near

if TYPE_CHECKING:
    from dsbeval.dyadic.runs import Earlier
    from dsbeval.judge.run import Plan
    from dsbeval.results import Row

UNJUDGED = 1
INTERRUPTED = 130


@click.command("judge")
@click.argument("run", type=click.Path(path_type=Path))
@click.option(
    "--judge", "spec", required=True, metavar="SPEC", help="Who judges: offline, openai:MODEL or anthropic:MODEL."
)
@click.option(
    "--judge-base-url",
    "base_url",
    metavar="URL",
    help="A server of your own that speaks the protocol. Its key, if it has one, is read from DSBEVAL_JUDGE_API_KEY.",
)
@click.option(
    "--judge-repeats",
    "repeats",
    type=click.IntRange(1, 100),
    default=1,
    metavar="K",
    help="Ask each question K times and report how the judge agrees with itself.",
)
@click.option("--price", metavar="IN,OUT", help="US dollars a million tokens, in and out.")
@click.option("--pas-pass", type=click.IntRange(0, 100), default=50, show_default=True, help="Lowest PAS that passes.")
@click.option("--pack", "root", type=click.Path(path_type=Path), help="The pack of the run. Default: the suite's own.")
@click.option(
    "--with-run",
    "with_runs",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="An earlier run whose conversations of two agents join the matrices, as this judge has judged them there.",
)
def judge(
    run: Path,
    spec: str,
    base_url: str | None,
    repeats: int,
    price: str | None,
    pas_pass: int,
    root: Path | None,
    with_runs: tuple[Path, ...],
) -> None:
    """Judge the persona items and the conversations of RUN again, from its recordings alone.

    Only what is missing is asked; answers of other judges stay beside these. Replies go to RUN/judgements.jsonl as they come, so
    an interrupt loses nothing: run the same command to go on. Exit status 1: some case could not be judged.
    """
    from dsbeval.dyadic.runs import join_earlier
    from dsbeval.ifeval.pack import DEFAULT_PACK, load_pack
    from dsbeval.judge.cache import Store
    from dsbeval.judge.choose import make_judge
    from dsbeval.judge.cost import parse_price
    from dsbeval.judge.run import plan_run
    from dsbeval.results import RunFolder

    folder = RunFolder.open(run)
    pack = load_pack((root or DEFAULT_PACK).resolve())
    chosen = make_judge(spec, base_url, price=None if price is None else parse_price(price))
    if chosen is None:
        raise OptionError("--judge: none judges nothing; give offline, openai:MODEL or anthropic:MODEL")
    store = Store.of_run(folder.root)
    if store.torn:
        click.echo(f"{store.path.name}: {store.torn} torn line(s) passed over; what they held is asked again")
    try:
        earlier = join_earlier(with_runs, folder, chosen.id)
        plan = plan_run(chosen, folder, pack, store, repeats=repeats)
        _print_plan(plan)
        written = _carry_out(plan)
    finally:
        chosen.close()
    _print_totals(written)
    if repeats > 1:
        _print_self(store, chosen.id)
    sys.exit(_print_summary(folder, pack, store, chosen.id, pas_pass, earlier))


def _print_plan(plan: Plan) -> None:
    from dsbeval.judge.cost import estimate

    calls = [call.question for call in plan.calls]
    cases = sum(len(call.places) for call in plan.calls)
    expected = estimate(calls, getattr(plan.judge, "price", None))
    shared = f" ({cases - len(calls)} share a prompt)" if cases > len(calls) else ""
    click.echo(f"judge {plan.judge.id}: {plan.wanted} judgements, {plan.there} there already, {cases} to do{shared}")
    if plan.judge.address is not None:
        click.echo(f"at {plan.judge.address}: {expected}")
    for cases_without, what in ((plan.without_recording, "without a recording"), (plan.without_text, "without text")):
        if cases_without:
            click.echo(
                f"{len(cases_without)} cases {what}: {', '.join(cases_without[:5])}{' ...' * (len(cases_without) > 5)}"
            )


def _carry_out(plan: Plan) -> list[Row]:
    from dsbeval.judge.run import carry_out

    def interrupted() -> None:
        click.echo("\ninterrupted: waiting for the calls under way; interrupt again to leave them", err=True)

    try:
        with _progress(len(plan.calls)) as advance:
            return carry_out(plan, progress=advance, on_interrupt=interrupted)
    except KeyboardInterrupt:
        click.echo("interrupted; nothing is lost, run the same command to go on", err=True)
        sys.exit(INTERRUPTED)


@contextmanager
def _progress(total: int) -> Iterator[Callable[[], None]]:
    """Show a bar with rate and time left, where there is a terminal and something to wait for."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TimeRemainingColumn
    from rich.text import Text

    class Rate(ProgressColumn):
        def render(self, task: Task) -> Text:
            return Text(f"{task.finished_speed or task.speed or 0:.1f}/s")

    console = Console(stderr=True)
    columns = (BarColumn(), MofNCompleteColumn(), Rate(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal or not total) as bar:
        task = bar.add_task("judging", total=total)
        yield lambda: bar.advance(task)


def _print_totals(written: list[Row]) -> None:
    from dsbeval.judge.cost import in_words, totals

    if written:
        click.echo(in_words(totals(written)))


def _print_self(store: Any, judge_id: str) -> None:
    from dsbeval.judge.agreement import self_agreement
    from dsbeval.judge.tables import render_self

    rows = [row for row in store.latest().values() if row["judge"] == judge_id]
    click.echo("")
    _echo(render_self(judge_id, self_agreement(rows)))


def _print_summary(folder: Any, pack: Any, store: Any, judge_id: str, pas_pass: int, earlier: list[Earlier]) -> int:
    """Write the judge's own summary, print its tables, and return the exit status."""
    from dsbeval.ifeval.score import case_ids
    from dsbeval.judge.contract import is_offline
    from dsbeval.judge.metrics import summarise
    from dsbeval.judge.run import persona_rows
    from dsbeval.judge.tables import render

    summary: dict[str, Any] = {"judge": judge_id, "offline": is_offline(judge_id)}
    unjudged = False
    cases = case_ids(folder)
    if cases:
        floor = [row for row in folder.rows() if row["item"] == "floor"]
        rows = persona_rows(folder, pack, store, judge_id, pas_pass=pas_pass)
        summary = {**summarise(rows, floor, cases), "pas_pass": pas_pass, "rows": rows}
        unjudged = bool(summary["counts"]["unjudged"])
        click.echo("")
        _echo(render(summary))
    conversations = _dyads(folder, judge_id, earlier)
    if conversations is not None:
        from reports.dyad_tables import render as render_dyads

        summary["dyadic"] = conversations
        unjudged |= any(entry["message"].startswith("unjudged") for entry in conversations["errors"])
        click.echo("")
        _echo(render_dyads(conversations, folder.fingerprint().get("agent", "?")))
    click.echo(f"summary: {folder.write_summary(summary, summary_name(judge_id))}")
    return UNJUDGED if unjudged else 0


def _dyads(folder: Any, judge_id: str, earlier: list[Earlier]) -> dict[str, Any] | None:
    """Return the block of the conversations of two agents as one judge has judged them; None where there are none."""
    from dsbeval.dyadic.scenarios import load_scenarios
    from dsbeval.judge.dyads import conversation_ids, dyad_rows
    from reports.summary import dyadic_block

    conversations = conversation_ids(folder)
    if not conversations:
        return None
    return dyadic_block(dyad_rows(folder, load_scenarios(), judge_id), conversations, earlier)


def summary_name(judge_id: str) -> str:
    """Return the name of a judge's summary in the report folder; judges have files of their own."""
    return f"judge-{re.sub(r'[^A-Za-z0-9._]+', '-', judge_id)}.json"


def _echo(lines: list[str]) -> None:
    for line in lines:
        click.echo(line)


@click.command("agree")
@click.argument("run", type=click.Path(path_type=Path))
@click.option("--judges", nargs=2, required=True, metavar="A B", help="Two judges that have judged the run.")
@click.option(
    "--human",
    type=click.Path(path_type=Path),
    metavar="CSV",
    help="Labels of people: id, field, annotator, label. Each judge is put beside their majority.",
)
def agree(run: Path, judges: tuple[str, str], human: Path | None) -> None:
    """Compare two judges of RUN with each other, and with people.

    Exact match, Cohen's kappa, Spearman's rho over ordered labels, confusion (A down, B across), published figures beside ours.
    """
    from dsbeval.judge.agreement import agreement_of
    from dsbeval.judge.cache import Store
    from dsbeval.judge.humans import agreement_with_humans, read_humans
    from dsbeval.judge.run import judges_of
    from dsbeval.judge.tables import render_agreement
    from dsbeval.results import RunFolder

    folder = RunFolder.open(run)
    store = Store.of_run(folder.root)
    known = judges_of(store)
    one, other = (_known_judge(name, known) for name in judges)
    if one == other:
        raise OptionError(f"--judges: {one} twice; for a judge against itself use dsbeval judge --judge-repeats")
    rows = {
        name: [row for (who, _, _, repeat), row in store.latest().items() if who == name and repeat == 0]
        for name in (one, other)
    }
    found: dict[str, Any] = {"judges": [one, other], "agreement": agreement_of(rows[one], rows[other])}
    _echo(render_agreement(f"{one} and {other}", found["agreement"]))
    if human is not None:
        people = read_humans(human)
        found["humans"] = {"annotators": people.annotators, "without_majority": people.without_majority}
        click.echo(f"\n{people.annotators} annotators; {people.without_majority} cases without a majority left out")
        for name in (one, other):
            found["humans"][name] = agreement_with_humans(rows[name], people)
            click.echo("")
            _echo(render_agreement(f"{name} and the majority of people", found["humans"][name]))
    click.echo(
        f"summary: {folder.write_summary(found, f'agreement-{summary_name(one)[6:-5]}-{summary_name(other)[6:]}')}"
    )


def _known_judge(name: str, known: list[str]) -> str:
    if name in known:
        return name
    begun = [judge for judge in known if judge.startswith(f"{name}@")]  # the same model, at one address only
    if len(begun) == 1:
        return begun[0]
    if not known:
        raise OptionError("--judges: nobody has judged this run; run dsbeval judge first")
    raise OptionError(f"--judges: {name!r} has not judged this run; {near(name, known)}")
