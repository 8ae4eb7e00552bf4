"""Many questions at once, and a stop that loses nothing.

Conventions
-----------
* ``done`` is called for each outcome as it comes, one at a time, from the thread that has it: what has been paid for is
  on disk before the next question is asked.
* An interrupt hands out no further question, makes waiting attempts give up, lets calls under way finish, and is then
  raised. A second one does not wait for them.
* A :class:`JudgeError`, or eight questions in a row to which nothing came back, stops everything in the same way.
* The threads are daemons: a process that is told to end does not wait 90 s for a server.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

from dsbeval.judge.contract import Judge, JudgeError, Judgement, Question, Stopped, Unjudged

PARALLEL = 8
GIVE_UP = 8
"""So many questions in a row without any reply, and the service is taken to be gone."""

Outcome = Judgement | Unjudged
_POLL_S = 0.02


class _Pool:
    def __init__(self, judge: Judge, questions: Sequence[Question], done: Callable[[int, Outcome], None]) -> None:
        self._judge, self._questions, self._done = judge, questions, done
        self._lock = threading.Lock()
        self._next = 0
        self._silent = 0
        self.outcomes: list[Outcome | None] = [None] * len(questions)
        self.failure: BaseException | None = None
        self.stopping = False
        self.ended = 0

    def work(self) -> None:
        """Ask until nothing is left or a reason to stop."""
        try:
            self._work()
        finally:
            with self._lock:
                self.ended += 1

    def wait(self, count: int) -> None:
        """Wait until so many threads have ended.

        Not by joining them: an interrupt inside ``Thread.join`` makes Python take a running thread for one that has ended
        (up to 3.12), and its reply would be lost.
        """
        while self.ended < count:
            time.sleep(_POLL_S)

    def _work(self) -> None:
        while (index := self._take()) is not None:
            outcome: Outcome
            try:
                outcome = self._judge.ask(self._questions[index])
            except Unjudged as error:
                outcome = error
            except Stopped:
                return
            except BaseException as error:
                self.fail(error)
                return
            try:
                self._keep(index, outcome)
            except BaseException as error:
                self.fail(error)
                return

    def fail(self, error: BaseException) -> None:
        """Stop for a reason; the first one counts."""
        with self._lock:
            self.failure = self.failure or error
        self.stop()

    def stop(self) -> None:
        """Hand out no further question, and end what only waits."""
        self.stopping = True
        self._judge.stop()

    def _take(self) -> int | None:
        with self._lock:
            if self.stopping or self._next == len(self._questions):
                return None
            self._next += 1
            return self._next - 1

    def _keep(self, index: int, outcome: Outcome) -> None:
        with self._lock:
            self.outcomes[index] = outcome
            self._done(index, outcome)
            self._silent = self._silent + 1 if isinstance(outcome, Unjudged) and outcome.unreachable else 0
            gone = self._silent >= GIVE_UP
        if gone and isinstance(outcome, Unjudged):
            self.fail(JudgeError(f"--judge: {self._judge.id}: {GIVE_UP} questions in a row got no reply: {outcome}"))


def ask_all(
    judge: Judge,
    questions: Sequence[Question],
    done: Callable[[int, Outcome], None] = lambda index, outcome: None,  # noqa: ARG005
    *,
    parallel: int = PARALLEL,
    on_interrupt: Callable[[], None] = lambda: None,
) -> list[Outcome]:
    """Ask all questions, ``parallel`` at a time; return the outcomes in the order of the questions.

    Raises :class:`KeyboardInterrupt` after an orderly stop (``on_interrupt`` is called when it begins), and whatever stopped
    the run.
    """
    pool = _Pool(judge, questions, done)
    threads: list[threading.Thread] = []
    try:
        for number in range(min(parallel, len(questions))):
            thread = threading.Thread(target=pool.work, daemon=True, name=f"judge-{number}")
            thread.start()
            threads.append(thread)
        pool.wait(len(threads))
    except KeyboardInterrupt:
        on_interrupt()
        pool.stop()
        pool.wait(len(threads))
        raise
    if pool.failure is not None:
        raise pool.failure
    return [outcome for outcome in pool.outcomes if outcome is not None]
