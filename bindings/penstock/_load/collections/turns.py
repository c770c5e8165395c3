"""Turns: a collection is read by one thread at a time, whichever loaders of the process share it.

A backed AnnData breaks when two threads index it ("identifier is not of specified type"). Two of one file
do not break.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from typing import Any

from penstock._load.collections.reading import Parts, items_of


class _Turn:
    """The lock of one object."""

    def __init__(self) -> None:
        self.lock = threading.RLock()


_turns: weakref.WeakValueDictionary[int, _Turn] = weakref.WeakValueDictionary()  # by id()
_adding = threading.Lock()


def _begin_anew() -> None:
    # In a forked child: the threads that held locks are the parent's.
    global _turns, _adding
    _turns, _adding = weakref.WeakValueDictionary(), threading.Lock()


os.register_at_fork(after_in_child=_begin_anew)


class Turns:
    """The locks of a collection's parts, as a context manager. It keeps the collection, so that no id is used again."""

    def __init__(self, collection: Any) -> None:
        """Takes no lock yet."""
        self._collection = collection
        with _adding:
            self._turns = [_turns.setdefault(number, _Turn()) for number in sorted(set(_ids_of(collection)))]
        self._held = threading.local()

    def __enter__(self) -> None:
        """Waits for all of them, in one order everywhere."""
        with ExitStack() as stack:
            for turn in self._turns:
                stack.enter_context(turn.lock)
            self._held.stack = stack.pop_all()

    def __exit__(self, *_: object) -> None:
        """Lets go of them."""
        self._held.stack.close()


def _ids_of(collection: Any) -> Iterator[int]:
    if isinstance(collection, Parts | Mapping | tuple):
        for _, part in items_of(collection):
            yield from _ids_of(part)
    else:
        yield id(collection)
