"""Iterators that threads of their own run ahead of the one that takes their items, as far as memory allows."""

from __future__ import annotations

import os
import queue
import threading
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from typing import Any, Generic, TypeVar

from penstock._make.threads import starting

_T = TypeVar("_T")

_ITEMS = 3  # of each iterator that are made and not taken, the one in work among them
_LOOK = 0.5  # seconds between two calls of `while_waiting`
_PATIENCE = 2.0  # seconds for items in work, when the rest is not wanted


class _Source:
    """One iterator that a thread runs.

    Attributes:
        begin: makes it, in that thread.
        items: made and not taken: (item, None), or what it ended with: (None, error or None).
        room: for items.
    """

    def __init__(self, begin: Callable[[], Generator[Any, None, None]]) -> None:
        self.begin = begin
        self.items: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.room = threading.Semaphore(_ITEMS)


class Ahead(Generic[_T]):
    """Gives the items of iterators, one iterator after the other, to one thread; others run iterators ahead of it.

    Memory is bounded: of each of `count` iterators a few items are made and not taken.
    """

    def __init__(
        self, begins: Sequence[Callable[[], Generator[_T, None, None]]], are_ahead: Sequence[bool], count: int
    ) -> None:
        """Starts no thread yet.

        Args:
            begins: Make the iterators, in their order.
            are_ahead: Whether each is run ahead; others are run by the thread that takes their items.
            count: Iterators that are run at a time.
        """
        ahead = {index: _Source(begins[index]) for index, is_ahead in enumerate(are_ahead) if is_ahead}
        self._sources = list(ahead.values())
        self._order = iter([ahead.get(index, begin) for index, begin in enumerate(begins)])
        self._begun = 0  # of the sources
        self._lock = threading.Lock()
        self._turns = threading.Semaphore(count)  # to begin one
        self._count = min(count, len(self._sources))
        self._threads: list[threading.Thread] = []
        self._ended = False
        self._process = os.getpid()

    def next(self, while_waiting: Callable[[], None]) -> Iterator[_T]:
        """The items of the next iterator, which are taken to their end.

        Raises what the iterator raises, behind its last item, and what `while_waiting` does, which is called every
        half second that there is no item.
        """
        source = next(self._order)
        return self._taken(source, while_waiting) if isinstance(source, _Source) else source()

    def close(self) -> None:
        """Ends the threads, each after the item that it makes. May be called twice."""
        if self._ended or self._process != os.getpid():  # a fork has no threads, and their locks may be held
            return
        self._ended = True
        for _ in self._threads:
            self._turns.release()
        with self._lock:
            begun = self._sources[: self._begun]
        for source in begun:
            source.room.release()
        until = time.monotonic() + _PATIENCE
        for thread in self._threads:
            thread.join(max(0.0, until - time.monotonic()))
        self._threads = []

    def _taken(self, source: _Source, while_waiting: Callable[[], None]) -> Iterator[_T]:
        self._start()
        while True:
            try:
                item, end = source.items.get(timeout=_LOOK)
            except queue.Empty:
                assert not self._ended
                while_waiting()
                continue
            if item is None:
                break
            source.room.release()
            yield item
            del item  # else it is kept until the next one is there
        self._turns.release()
        if end is not None:
            raise end

    def _start(self) -> None:
        while len(self._threads) < self._count:
            name = f"penstock-ahead-{len(self._threads)}"
            # A process that ends does not wait for one.
            thread = threading.Thread(target=self._run, name=name, daemon=True)
            with starting():
                thread.start()
            self._threads.append(thread)

    def _run(self) -> None:
        while (source := self._next_source()) is not None:
            end: BaseException | None = None
            try:
                self._make(source)
            except BaseException as error:  # raised where the items are taken
                end = error
            source.items.put((None, end))
            del source, end

    def _next_source(self) -> _Source | None:
        self._turns.acquire()
        with self._lock:
            index, self._begun = self._begun, self._begun + 1
        return None if self._ended or index >= len(self._sources) else self._sources[index]

    def _make(self, source: _Source) -> None:
        with closing(source.begin()) as items:
            while True:
                source.room.acquire()
                if self._ended or (item := next(items, None)) is None:
                    return
                source.items.put((item, None))
                del item
