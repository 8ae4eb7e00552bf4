"""The command-line options of the suite."""

from __future__ import annotations

import pytest

from dsbeval.clock import LATENCIES
from dsbeval.dyadic.bridge import WINDOW_S, WINDOWS_S
from dsbeval.dyadic.protocol import REPEATS
from dsbeval.ifeval.pack import DEFAULT_PACK
from dsbeval.ifeval.tiers import TIERS
from dsbeval.judge.choose import DEFAULT as DEFAULT_JUDGE
from dsbeval.judge.pas import PAS_PASS
from dsbeval.recording import FORMATS
from dsbeval.speech.acoustics import KINDS
from reports import writing
from reports.html.modes import AUDIO
from reports.placing import DEFAULT_MODEL
from reports.replaying import add_option


def add_options(parser: pytest.Parser) -> None:
    """Declare the options of the suite."""
    group = parser.getgroup("dsbeval", "full-duplex evaluation")
    option = group.addoption
    option(
        "--model",
        default=DEFAULT_MODEL,
        metavar="NAME",
        help="agent: a name, path/to/file.py:Class or package.module:Class",
    )
    option("--model-arg", action="append", default=[], metavar="K=V", help="argument of the agent; may be repeated")
    add_option(group)
    option(
        "--checkpoint",
        default=None,
        metavar="PATH|ORG/NAME[@REV]",
        help="checkpoint that the agent loads: a file, a folder, or an id on the Hugging Face hub",
    )
    option(
        "--models",
        default=None,
        metavar="FILE",
        help="where each model runs: interpreter, checkpoint, device, options (default: models.toml, if there is one)",
    )
    option(
        "--devices-per-worker",
        type=int,
        default=1,
        metavar="N",
        help="GPUs of a worker; with 2 the sides of a conversation have one each (default: 1)",
    )
    option("--per-device", type=int, default=1, metavar="K", help="workers that share a GPU (default: 1)")
    option("--pack", default=str(DEFAULT_PACK), metavar="DIR", help="pack of cases (default: cases/ifeval)")
    option("--levels", default="", metavar="L1,L2", help="conditioning levels to run (default: all)")
    option("--roles", default="", metavar="R1,R4", help="roles to run (default: all)")
    option("--probes", default="", metavar="C1,R1_A", help="probes to run (default: all)")
    option(
        "--sample",
        type=int,
        default=None,
        metavar="N",
        help="cases/ifeval: run N conversations, spread over the actions; cases/dyadic: N scenarios, spread over the tasks",
    )
    option(
        "--tier",
        default=None,
        choices=TIERS,
        help="cases/ifeval: 96, 444 or all 1,038 cases; cases/dyadic: 2, 7 or all scenarios of a task (docs/ci.md)",
    )
    option(
        "--trials", type=int, default=1, metavar="K", help="cases/ifeval: play each case K times, with derived seeds"
    )
    option("--limit", type=int, default=None, metavar="N", help="run only the first N cases of the selection")
    option("--seed", type=int, default=0, metavar="S", help="seed of the run (default: 0)")
    option("--run-dir", default=None, metavar="DIR", help="run folder (default: runs/<time>-<model>)")
    option("--resume", action="store_true", help="go on in a run folder: what is recorded there is kept")
    option(
        "--judge",
        default=DEFAULT_JUDGE,
        metavar="SPEC",
        help="who judges the persona: none, offline, anthropic:MODEL or openai:MODEL (default: offline, a proxy)",
    )
    option(
        "--judge-base-url", default=None, metavar="URL", help="an OpenAI- or Anthropic-compatible server of your own"
    )
    option("--pas-pass", type=int, default=PAS_PASS, metavar="N", help="lowest PAS that passes (default: 50)")
    option("--price", default=None, metavar="IN,OUT", help="price of the judge, US dollars a million tokens in and out")
    option(
        "--acoustics",
        default="clean",
        choices=tuple(KINDS),
        help="cases/ifeval: condition of the user channel (default: clean)",
    )
    option(
        "--latency",
        default="none",
        choices=LATENCIES,
        help="charge the agent the compute time that its steps took (default: none, as published)",
    )
    option(
        "--partner",
        action="append",
        default=[],
        metavar="NAME",
        help="agent that the model talks to, in the forms of --model; may be repeated (default: the model itself)",
    )
    option("--partner-arg", action="append", default=[], metavar="K=V", help="argument of every partner")
    option(
        "--tasks", default=None, metavar="T1-1,T4-2", help="archetypes of conversations (default: the seven main ones)"
    )
    option(
        "--repeats", type=int, default=REPEATS, metavar="N", help=f"repetitions of a conversation (default: {REPEATS})"
    )
    option(
        "--window",
        type=int,
        default=int(WINDOW_S),
        choices=[int(window) for window in WINDOWS_S],
        help=f"seconds of a conversation (default: {WINDOW_S:g})",
    )
    writing.add_option(group)
    option(
        "--garble-watch",
        action="store_true",
        default=None,
        help="record a conversation again, up to five times, while a recogniser does not hear the text in the speech "
        "(default: with models that are known to need it, such as raon)",
    )
    option("--no-garble-watch", dest="garble_watch", action="store_false", help="do not, whatever the model")
    option(
        "--asr",
        default=None,
        metavar="NAME",
        help="recogniser of --garble-watch: pocketsphinx (default) or faster-whisper:DIR",
    )
    option(
        "--with-run",
        action="append",
        default=[],
        metavar="DIR",
        help="earlier run folder whose conversations of two agents join the matrices; may be repeated",
    )
    option(
        "--report",
        default="linked",
        choices=AUDIO,
        help="HTML report at the end: with links to the run's recordings (default), portable with small clips, or none",
    )
    option("--audio-format", default="wav", choices=FORMATS, help="format of the recordings (default: wav)")
