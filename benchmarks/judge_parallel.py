"""What asking in parallel gives: a run judged by a local server of 200 ms latency, serially and eight at a time.

    python -m benchmarks.judge_parallel [--questions 64] [--latency 0.2]

Also how long 1,038 offline judgements take. Times are ratios of one machine; the connections are counted, not timed.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

from dsbeval.judge.cache import Store
from dsbeval.judge.choose import make_judge
from dsbeval.judge.contract import Judge
from dsbeval.judge.metrics import summarise
from dsbeval.judge.parallel import PARALLEL, ask_all
from dsbeval.judge.run import carry_out, persona_rows, plan_run
from tests.judge.support import make_run, numbered, pack, pas_reply, question
from tests.servers import Answer, OpenAIServer, Seen


class SlowServer(OpenAIServer):
    """Answers after a fixed latency, and keeps how many requests were open at most."""

    def __init__(self, latency_s: float) -> None:
        def plan(seen: Seen) -> Answer:
            answer = self.reply(pas_reply(), seen)
            return Answer(answer.status, answer.body, delay_s=latency_s)

        super().__init__(plan)
        self.open = self.most = 0

    def _answer(self, seen: Seen) -> Answer:
        with self._lock:
            self.open += 1
            self.most = max(self.most, self.open)
        out = super()._answer(seen)
        with self._lock:
            self.open -= 1
        return out


def timed(latency_s: float, questions: int, parallel: int) -> tuple[float, int]:
    """Return the seconds and the most connections of asking all questions."""
    with SlowServer(latency_s) as server:
        judge = make_judge("openai:judge-1", server.base_url)
        assert isinstance(judge, Judge)
        asked = [question(said=f"What about step {k}?") for k in range(questions)]
        ask_all(judge, asked[:1])  # connects, and imports what the SDK imports late
        began = time.perf_counter()
        ask_all(judge, asked, parallel=parallel)
        took = time.perf_counter() - began
        judge.close()
    return took, server.most


def offline(cases: int) -> float:
    """Return the seconds of judging this many recorded cases offline, summary included."""
    with tempfile.TemporaryDirectory() as folder:
        run = make_run(Path(folder) / "run", list(pack().cases.values())[:cases], numbered)
        judge = make_judge("offline")
        assert isinstance(judge, Judge)
        began = time.perf_counter()
        store = Store.of_run(run.root)
        carry_out(plan_run(judge, run, pack(), store))
        summarise(persona_rows(run, pack(), store, judge.id))
        return time.perf_counter() - began


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--questions", type=int, default=64)
    parser.add_argument("--latency", type=float, default=0.2)
    options = parser.parse_args()
    serial, one = timed(options.latency, options.questions, 1)
    parallel, eight = timed(options.latency, options.questions, PARALLEL)
    print(f"{options.questions} questions at {1000 * options.latency:.0f} ms")
    print(f"  serial    {serial:6.2f} s, {one} connection")
    print(f"  parallel  {parallel:6.2f} s, {eight} connections")
    print(f"  ratio     {serial / parallel:6.2f}")
    print(f"1,038 offline judgements with summary: {offline(1038):.2f} s")


if __name__ == "__main__":
    main()
