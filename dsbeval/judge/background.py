"""Judging while the run goes on: a question is asked as soon as its case is recorded, and its row is there when it is wanted."""

from __future__ import annotations

import threading
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from dsbeval.ifeval.pack import Pack
from dsbeval.judge.cache import Store
from dsbeval.judge.contract import Judge
from dsbeval.judge.parallel import PARALLEL
from dsbeval.judge.pas import PAS_PASS, judge_case
from dsbeval.results import Row


class BackgroundJudge:
    """Asks a judge in the background, a few questions at a time.

    Replies are on disk when they come, so nothing that was paid for is lost when the run is stopped.
    """

    def __init__(self, judge: Judge, recordings: Path, pack: Pack, store: Store, *, pas_pass: int = PAS_PASS) -> None:
        self.judge = judge
        self._recordings, self._pack, self._store, self._pas_pass = recordings, pack, store, pas_pass
        self._pool = ThreadPoolExecutor(PARALLEL, thread_name_prefix="judge")
        self._rows: dict[str, Future[Row]] = {}
        self._lock = threading.Lock()

    def submit(self, case_id: str) -> Future[Row]:
        """Ask about a recorded case, once."""
        with self._lock:
            if case_id not in self._rows:
                self._rows[case_id] = self._pool.submit(self._judge, case_id)
            return self._rows[case_id]

    def row(self, case_id: str) -> Row:
        """Return the row of a recorded case, waiting for the reply. Raises what asking raised."""
        return self.submit(case_id).result()

    def close(self) -> None:
        """Drop what has not been asked, and let go of the judge."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        self.judge.stop()
        self._pool.shutdown(wait=True)
        self.judge.close()

    def _judge(self, case_id: str) -> Row:
        return judge_case(self.judge, self._recordings, case_id, self._pack, self._store, pas_pass=self._pas_pass)
