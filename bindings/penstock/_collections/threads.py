"""Fetches read in this process: by the caller, or ahead by a background thread."""

from __future__ import annotations

import atexit
import os
import threading
import weakref
from collections import deque
from typing import Any

from penstock._collections.fetching import Fetcher
from penstock._collections.planning import Fetch

PATIENCE_S = 5.0  # how long who ends readers waits for a read that is under way: it may hang for ever
_running: weakref.WeakSet[ThreadReader] = weakref.WeakSet()


class Reading:
    """A fetch on its way; what was read belongs to it."""

    def __init__(self, fetch: Fetch) -> None:
        """Not read yet."""
        self.fetch = fetch
        self.done = threading.Event()
        self.dropped = False
        self.fetched: Any = None
        self.error: BaseException | None = None

    def read(self, fetcher: Fetcher) -> None:
        """Reads it, and keeps an error for who asks for it."""
        try:
            self.fetched = fetcher.fetch(self.fetch.indices)
        except BaseException as error:
            self.error = error
        self.done.set()


class ThreadReader:
    """Reads fetches in the order in which they are started; batches are taken from them by the caller.

    One thread at a time calls it; `drop` and `stop` any thread. The background thread is a daemon, and the
    interpreter's end waits for a read under way, since libraries such as HDF5 do not survive that otherwise. There is
    one, since a backed AnnData breaks when two threads index it, and HDF5 has one lock anyway.
    """

    def __init__(self, fetcher: Fetcher, threads: int) -> None:
        """Starts nothing.

        Args:
            fetcher: reads.
            threads: 1: it reads ahead; 0: `batch` reads.
        """
        self._fetcher = fetcher
        self._reads_ahead = threads > 0
        self._thread: threading.Thread | None = None
        self._waiting: deque[Reading] = deque()
        self._changed = threading.Condition()
        self._stopped = False
        self.owner = os.getpid()

    def start(self, fetch: Fetch) -> Reading:
        """Has a fetch read, after those before it."""
        reading = Reading(fetch)
        if self._reads_ahead:
            with self._changed:
                self._waiting.append(reading)
                self._changed.notify()
            if self._thread is None:
                self._start_thread()
        return reading

    def batch(self, reading: Reading, number: int) -> Any:
        """Batch `number` of a fetch that was started; waits for it.

        Raises:
            FailedError, InvalidArgumentError: as `Fetcher`.
        """
        if not self._reads_ahead and not reading.done.is_set():
            reading.fetched = self._fetcher.fetch(reading.fetch.indices)
            reading.done.set()
        reading.done.wait()
        if reading.error is not None:
            raise reading.error
        return self._fetcher.batch(reading.fetched, reading.fetch.places[number])

    def drop(self) -> None:
        """Forgets what was started."""
        with self._changed:
            waiting, self._waiting = self._waiting, deque()
        for reading in waiting:
            reading.dropped = True
            reading.done.set()

    def stop(self) -> None:
        """Has the thread end after what it is reading; does not wait."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()
        self.drop()

    def close(self) -> None:
        """Ends the thread, and waits for what it is reading, at most `PATIENCE_S`."""
        self.stop()
        if self._thread is not None:
            self._thread.join(PATIENCE_S)

    def _start_thread(self) -> None:
        self._thread = threading.Thread(target=self._run, name="penstock-reader", daemon=True)
        _running.add(self)
        # Last in, first out: before the exit handlers of libraries that were imported by now.
        atexit.unregister(_close_running)
        atexit.register(_close_running)
        self._thread.start()

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._waiting and not self._stopped:
                    self._changed.wait()
                if self._stopped:
                    return
                reading = self._waiting.popleft()
            reading.read(self._fetcher)
            del reading  # what was read belongs to who asked for it


def _close_running() -> None:
    # A forked child has none of the threads, and their locks as they were.
    ours = [reader for reader in _running if reader.owner == os.getpid()]
    for reader in ours:
        reader.stop()
    for reader in ours:
        reader.close()
