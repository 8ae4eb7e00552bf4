"""Judging while the run goes on: a question is asked once what it is about is recorded; its row is there when wanted."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from concurrent.futures import Future, ThreadPoolExecutor

from dsbeval.judge.cache import Store
from dsbeval.judge.contract import Judge
from dsbeval.judge.parallel import PARALLEL
from dsbeval.results import Row


class BackgroundJudge:
    """Asks a judge in the background, a few questions at a time.

    Replies are on disk when they come, so nothing that was paid for is lost when the run is stopped.
    """

    def __init__(self, judge: Judge, store: Store) -> None:
        self.judge, self.store = judge, store
        self._pool = ThreadPoolExecutor(PARALLEL, thread_name_prefix="judge")
        self._rows: dict[Hashable, Future[Row]] = {}
        self._lock = threading.Lock()

    def submit(self, what: Hashable, ask: Callable[[], Row]) -> Future[Row]:
        """Ask in the background, once for each ``what``; the result raises what asking raised."""
        with self._lock:
            if what not in self._rows:
                self._rows[what] = self._pool.submit(ask)
            return self._rows[what]

    def close(self) -> None:
        """Drop what has not been asked, and let go of the judge."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        self.judge.stop()
        self._pool.shutdown(wait=True)
        self.judge.close()
