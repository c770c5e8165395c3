"""Workers under way, and what they do: items go out, results come back in the order of the items."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol

from penstock._base.errors import Error
from penstock._make.errors import InputError, ThereError, WorkerError


class Work(Protocol):
    """The work of a pool's workers; it is pickled.

    On a cluster its paths are absolute, and an item whose worker was lost is done again: an attempt that finds the
    shard of its own task finished answers as if it had made it.
    """

    def begin(self) -> Callable[[Any], Any]:
        """Called once in each worker: what it calls for each item that was submitted."""

    def place(self, item: Any) -> str:
        """Where an item begins, for messages."""

    def for_thread(self) -> Work:
        """The same work for each thread but the first of several that do it."""


class Pool(Protocol):
    """Workers under way. One thread at a time."""

    @property
    def started(self) -> int:
        """How many workers there are."""

    def has_room(self) -> bool:
        """True if `submit` may be called now."""

    def submit(self, item: Any) -> None:
        """Hands the next item to a worker."""

    def next_results(self) -> Iterator[Any]:
        """Waits for a worker where nothing is ready; then gives the results that are next in order.

        Raises:
            InputError: Something of the next item cannot be used.
            penstock.Error: It cannot be written, or not be used either.
            WorkerError: A worker ended.
        """

    def pending(self) -> bool:
        """True if results are still to come."""

    def check(self) -> None:
        """Looks whether all workers are alive, where nothing else does.

        Raises:
            WorkerError: One ended.
        """

    def close(self) -> None:
        """Ends the workers, at once. May be called twice."""


class Executor(Protocol):
    """Where items are worked on. One that has no `is_far`, or a true one, may have its workers on other machines."""

    def pool(self, work: Work) -> Pool:
        """Workers that do `work`."""


def results_of(pool: Pool, items: Iterable[Any]) -> Iterator[Any]:
    """Has all items worked on, taking the next one when there is room; the results in order.

    Raises:
        InputError, penstock.Error, WorkerError: As `Pool.next_results`.
    """
    for item in items:
        while not pool.has_room():
            yield from pool.next_results()
        pool.submit(item)
    while pool.pending():
        yield from pool.next_results()


def answer(work: Work, process: Callable[[Any], Any], item: Any) -> Any:
    """A worker's answer to an item: the result, or the error that `Pool.next_results` raises."""
    try:
        return process(item)
    except (InputError, Error) as error:
        return error
    except Exception as error:
        message = f"{type(error).__name__} in the task that begins with {work.place(item)}: {error}"
        return WorkerError(message, "\n" + traceback.format_exc())


class InOrder:
    """The part of a pool that orders results: they come in any order and are given in that of their items.

    Attributes:
        _results: what is received and not given, by the item's number: a result, or the error to raise in its place.
        _sent: items that were submitted.
        _taken: results that were given.
    """

    def __init__(self) -> None:
        self._results: dict[int, Any] = {}
        self._sent = 0
        self._taken = 0

    def _receive(self) -> None:
        """Waits for a worker, and puts what came into `_results`."""
        raise NotImplementedError

    def next_results(self) -> Iterator[Any]:
        """Waits for a worker where nothing is ready; then gives the results that are next in order.

        Raises:
            InputError: Something of the next item cannot be used.
            penstock.Error: It cannot be written, or not be used either.
            WorkerError: Its worker ended.
        """
        if self._taken not in self._results and self._sent > self._taken:
            self._receive()
        while self._taken in self._results:
            result = self._results.pop(self._taken)
            if isinstance(result, WorkerError) and result.there:
                raise result from ThereError(result.there)
            if isinstance(result, BaseException):
                raise result
            self._taken += 1
            yield result

    def pending(self) -> bool:
        """True if results are still to come."""
        return self._sent > self._taken
