"""Requests that are made again until the deadline, which is one for all that an operation asks for."""

from __future__ import annotations

import functools
import queue
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar, cast

from penstock import _native

T = TypeVar("T")
Call = TypeVar("Call", bound=Callable[..., Any])
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 5.0  # between attempts


def one_operation() -> Any:
    """A context: requests of this thread inside have one deadline. Within another one it is a part of that."""
    return _native.Operation()


def of_one_operation(call: Call) -> Call:
    """A decorator: all requests of the function are of one operation."""

    @functools.wraps(call)
    def inside(*given: Any, **named: Any) -> Any:
        with one_operation():
            return call(*given, **named)

    return cast(Call, inside)


def apart() -> Any:
    """A context: requests of this thread inside are no part of the operation around it, as after its failure."""
    return _native.Operation(is_apart=True)


def budget_here() -> Any:
    """The budget of the operation that this thread is in; else one for a request alone."""
    return _native.RetryBudget.present() or _native.RetryBudget()


def in_one_operation(call: Callable[..., T]) -> Callable[..., T]:
    """`call` for threads of a pool: part of the operation that this thread is in now."""
    budget = budget_here()

    def inside(*given: Any) -> T:
        with _native.Operation(budget):
            return call(*given)

    return inside


class Silent(Exception):
    """Nothing came in time."""


class Attempts:
    """Counts those of one request, or of requests one after the other that one call of obstore makes.

    Attributes:
        count: those that failed.
        seconds: since the first of them began.
    """

    def __init__(self, deadline: float) -> None:
        """Begins. Raises the error with which the operation was given up, if it was."""
        self._budget = budget_here()
        self._budget.check()
        self._deadline = deadline
        self._first = time.monotonic()
        self.count = 0
        self.passed()

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._first

    def passed(self, *, has_failed: bool = False) -> None:
        """A request was answered well, and the next one begins."""
        self._began = time.monotonic()
        self._left = self._budget.left(self._deadline)
        self._has_failed = has_failed

    def answered(self) -> None:
        """As passed(), told to the operation."""
        self._budget.answered(self._began, self._has_failed)
        self.passed()

    def failed(self, attempts: int) -> bool:
        """Counts some that failed. True if there is time for another one.

        Raises the error with which the operation was given up, if it was.
        """
        self._budget.check()
        self.count += attempts
        self._has_failed = True
        return bool(time.monotonic() - self._began < self._left) and not self._budget.is_spent(self._deadline)

    def pause(self) -> None:
        time.sleep(min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** min(self.count, 10)))

    def give_up(self, number: int, message: str, path: str) -> None:
        """The operation's other requests fail too."""
        self._budget.give_up(number, message, path)


def within(seconds: float, pages: Callable[[], Iterable[T]]) -> Iterator[T]:
    """Pages of an iterable, made and asked on a thread of its own, which is left there where it is silent.

    Raises:
        Silent: It gave nothing for so many seconds.
    """
    given: queue.SimpleQueue[tuple[bool, Any]] = queue.SimpleQueue()
    is_left = threading.Event()

    def ask() -> None:
        try:
            for page in pages():
                given.put((True, page))
                if is_left.is_set():
                    return
            given.put((False, None))
        except BaseException as error:
            given.put((False, error))

    threading.Thread(target=ask, name="penstock-list", daemon=True).start()
    try:
        while True:
            try:
                goes_on, found = given.get(timeout=seconds)
            except queue.Empty:
                raise Silent from None
            if goes_on:
                yield found
            elif found is None:
                return
            else:
                raise found
    finally:
        is_left.set()
