"""Threads of this process that work on items; results come back in the order of the items."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from penstock._base.words import NO_MEMORY, NO_NEW_THREAD, NO_THREAD, is_of_memory
from penstock._make.errors import WorkerError
from penstock._make.pools import InOrder, Work, answer

_ITEMS_EACH = 2  # as of processes: one in work, one waiting
_PATIENCE = 10.0  # seconds for items in work, when the run is given up
_own = threading.local()


class StoppedError(BaseException):
    """The pool of this thread was closed."""


def check_stopped() -> None:
    """Called between the steps of an item's work.

    Raises:
        StoppedError: This thread is one of a pool that was closed.
    """
    stopped: threading.Event | None = getattr(_own, "stopped", None)
    if stopped is not None and stopped.is_set():
        raise StoppedError


@contextmanager
def starting() -> Iterator[None]:
    """Around what starts threads.

    Raises:
        WorkerError: There is no memory for one, or the process may have no more.
    """
    try:
        yield
    except RuntimeError as error:
        if str(error) != NO_NEW_THREAD:
            raise
        raise WorkerError(f"no thread can be started: {NO_THREAD}; use fewer --workers") from error


class ThreadPool(InOrder):
    """Keeps `count` threads busy and gives their results in order. One thread at a time.

    Memory is bounded: at most twice as many items as threads have in their hands are not yet taken.
    """

    def __init__(self, count: int, work: Work) -> None:
        """Starts nothing yet: a thread starts when there is an item for it."""
        super().__init__()
        self._count = count
        self._work = work
        self._threads: list[threading.Thread] = []
        self._items: queue.SimpleQueue[tuple[int, Any] | None] = queue.SimpleQueue()
        self._answers: queue.SimpleQueue[tuple[int, Any]] = queue.SimpleQueue()
        self._in_work = 0
        self._stopped = threading.Event()

    @property
    def started(self) -> int:
        """How many threads there are."""
        return len(self._threads)

    def has_room(self) -> bool:
        """True if `submit` may be called now."""
        if self._sent - self._taken >= 2 * _ITEMS_EACH * self._count:
            return False
        return self._in_work < _ITEMS_EACH * self._count

    def submit(self, item: Any) -> None:
        """Hands the next item to whichever thread is free first."""
        if len(self._threads) < min(self._count, self._in_work + 1):
            name = f"penstock-worker-{len(self._threads)}"
            # A process that ends does not wait for one.
            thread = threading.Thread(target=self._run, args=(not self._threads,), name=name, daemon=True)
            with starting():
                thread.start()
            self._threads.append(thread)
        self._items.put((self._sent, item))
        self._sent += 1
        self._in_work += 1

    def check(self) -> None:
        """Nothing: a thread ends when the pool is closed."""

    def close(self) -> None:
        """Ends the threads: each after the step, or the item, that it works on. May be called twice."""
        self._stopped.set()
        with suppress(queue.Empty):
            while True:
                self._items.get_nowait()
        for _ in self._threads:
            self._items.put(None)
        until = time.monotonic() + _PATIENCE
        for thread in self._threads:
            thread.join(max(0.0, until - time.monotonic()))
        self._threads = []

    def _receive(self) -> None:
        number, result = self._answers.get()
        self._results[number] = result
        self._in_work -= 1

    def _run(self, is_first: bool) -> None:
        process: Any = None
        _own.stopped = self._stopped
        while (given := self._items.get()) is not None:
            number, item = given
            try:
                if process is None:
                    work = self._work if is_first else self._work.for_thread()
                    process = work.begin()
                result = answer(work, process, item)
            except BaseException as error:  # of `begin`, or what ends a process
                words = NO_MEMORY if is_of_memory(error) else f"{type(error).__name__}: {error}"
                result = error if isinstance(error, ValueError) else WorkerError(words)
            self._answers.put((number, result))
            del given, item, result
