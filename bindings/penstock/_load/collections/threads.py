"""Fetches read in this process: by the caller, or ahead by a background thread."""

from __future__ import annotations

import atexit
import os
import threading
import weakref
from collections import deque
from typing import Any

from penstock._load.collections.fetching import FailedError, Fetcher
from penstock._load.collections.planning import Fetch

PATIENCE_S = 5.0  # how long who ends readers waits for a read that is under way: it may hang for ever


class Reading:
    """A fetch on its way; what was read belongs to it."""

    def __init__(self, fetch: Fetch, fetcher: Fetcher) -> None:
        """Not read yet."""
        self.fetch = fetch
        self.dropped = False
        self._fetcher = fetcher
        self._done = threading.Event()
        self._fetched: Any = None
        self._error: BaseException | None = None

    def read(self) -> None:
        """Reads it, and keeps an error for who asks for it."""
        try:
            self._fetched = self._fetcher.fetch(self.fetch.indices)
        except BaseException as error:
            self._error = error
        self._done.set()

    def read_now(self) -> None:
        """Reads it, unless it was; raises what it meets."""
        if not self._done.is_set():
            self._fetched = self._fetcher.fetch(self.fetch.indices)
            self._done.set()

    def drop(self) -> None:
        """Nobody asks for it any more; who waits is let go."""
        self.dropped = True
        self._done.set()

    def batch(self, number: int) -> Any:
        """Batch `number` of it; waits until it was read."""
        self._done.wait()
        if self._error is not None:
            raise self._error
        if self.dropped:
            raise FailedError("the fetch was dropped")
        return self._fetcher.batch(self._fetched, self.fetch.places[number])


class ThreadReader:
    """Reads fetches in the order in which they are started; batches are taken from them by the caller.

    One thread at a time calls it; `drop` any thread. The background thread is a daemon, and the interpreter's end waits
    for a read under way, since libraries such as HDF5 do not survive that otherwise. There is one, since a backed
    AnnData breaks when two threads index it, and HDF5 has one lock anyway.
    """

    def __init__(self, fetcher: Fetcher, threads: int) -> None:
        """Starts nothing.

        Args:
            fetcher: reads.
            threads: 1: it reads ahead; 0: `batch` reads.
        """
        self._fetcher = fetcher
        self._queue = _Queue() if threads > 0 else None
        self.end = self._queue.stop if self._queue is not None else _nothing  # does not wait, and keeps no fetcher

    def start(self, fetch: Fetch) -> Reading:
        """Has a fetch read, after those before it."""
        reading = Reading(fetch, self._fetcher)
        if self._queue is not None:
            self._queue.put(reading)
        return reading

    def batch(self, reading: Reading, number: int) -> Any:
        """Batch `number` of a fetch that was started; waits for it.

        Raises:
            FailedError, InvalidArgumentError: as `Fetcher`.
        """
        if self._queue is None:
            reading.read_now()
        return reading.batch(number)

    def drop(self) -> None:
        """Forgets what was started."""
        if self._queue is not None:
            self._queue.drop()

    def close(self) -> None:
        """Ends the thread, and waits for what it is reading, at most `PATIENCE_S`. Once; nothing is started after it.

        What the fetcher has opened is let go.
        """
        del self._fetcher
        if self._queue is not None:
            self._queue.close()


class _Queue:
    """Fetches that wait to be read, and the thread that reads them.

    It knows a collection and hooks by what waits alone: a hook may refer to what owns the loader, and neither a thread
    that idles nor who ends it may keep that alive.
    """

    def __init__(self) -> None:
        self._waiting: deque[Reading] = deque()
        self._changed = threading.Condition()
        self._stopped = False
        self._thread: threading.Thread | None = None
        self.owner = os.getpid()

    def put(self, reading: Reading) -> None:
        with self._changed:
            self._waiting.append(reading)
            self._changed.notify()
        if self._thread is None:
            self._start()

    def drop(self) -> None:
        with self._changed:
            waiting, self._waiting = self._waiting, deque()
        for reading in waiting:
            reading.drop()

    def stop(self) -> None:
        with self._changed:
            self._stopped = True
            self._changed.notify_all()
        self.drop()

    def close(self) -> None:
        self.stop()
        if self._thread is not None:
            self._thread.join(PATIENCE_S)

    def _start(self) -> None:
        thread = threading.Thread(target=self._run, name="penstock-reader", daemon=True)
        _running.add(self)
        # Last in, first out: before the exit handlers of libraries that were imported by now.
        atexit.unregister(_close_running)
        atexit.register(_close_running)
        thread.start()
        self._thread = thread

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._waiting and not self._stopped:
                    self._changed.wait()
                if self._stopped:
                    return
                reading = self._waiting.popleft()
            reading.read()
            del reading  # what was read belongs to who asked for it


_running: weakref.WeakSet[_Queue] = weakref.WeakSet()


def _close_running() -> None:
    # A forked child has none of the threads, and their locks as they were.
    ours = [queue for queue in _running if queue.owner == os.getpid()]
    for queue in ours:
        queue.stop()
    for queue in ours:
        queue.close()


def _nothing() -> None:
    pass
