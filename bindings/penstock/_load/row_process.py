"""A process that calls functions of rows for one thread, and ends with it."""

from __future__ import annotations

import os
import pickle
import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress
from multiprocessing import get_context, process
from multiprocessing.connection import Connection
from typing import Any, NamedTuple, NoReturn

import numpy.typing as npt

from penstock._base.processes import GUARD, BoundProcess, how_it_ended, surroundings_of_workers
from penstock._load.row_function import GivenRow, RowFunction, WorkerEndedError

_starting = threading.Lock()  # the environment of children is the process's
_READY = "ready"


class _Failed(NamedTuple):
    """An exception on its way to the other process: its pickle, if it has one, and its words."""

    pickled: bytes
    words: str

    @classmethod
    def of(cls, error: BaseException) -> _Failed:
        pickled, words = b"", type(error).__name__
        with suppress(Exception):
            words = f"{words}: {error}"
        with suppress(Exception):
            pickled = pickle.dumps(error)
        return cls(pickled, words)

    def error(self) -> BaseException:
        """The exception; where this process cannot make it, one with its words."""
        with suppress(Exception):
            made = pickle.loads(self.pickled)
            if isinstance(made, BaseException):
                return made
        return RuntimeError(self.words)


class RowProcess:
    """A spawned process; the kernel kills it when the thread that started it ends. One thread, but for end()."""

    def __init__(self, functions: Sequence[RowFunction]) -> None:
        """Starts it.

        Raises:
            WorkerEndedError: it ended before it was ready.
        """
        self._pipe, theirs = get_context("spawn").Pipe()
        self._process = BoundProcess(target=_serve, args=(theirs, tuple(functions)), name="penstock-row", daemon=True)
        with _starting, surroundings_of_workers():
            self._process.start()
        # multiprocessing would end it at the exit of a forked child, whose it is not; the kernel ends it at ours.
        process._children.discard(self._process)  # type: ignore[attr-defined]
        theirs.close()
        self._is_ready = False
        self._is_ready = self._receive() == (_READY, None)

    def call(self, rows: list[bytes]) -> Iterator[list[npt.NDArray[Any]]]:
        """The functions' values of each row, a pickled GivenRow, in their order.

        Raises:
            WorkerEndedError: it ended.
            Exception: what a function raised, after the rows before.
        """
        try:
            self._pipe.send(rows)
        except OSError:
            self._raise_ended()
        for _ in rows:
            made, failed = self._receive()
            if failed is not None:
                raise failed.error()
            yield made

    def end(self) -> None:
        """Ends it at once. Any thread, and again."""
        with suppress(ValueError, AttributeError, OSError):  # it is closed already
            self._process.kill()
            self._process.join()
        with suppress(OSError):
            self._pipe.close()

    def _receive(self) -> tuple[Any, Any]:
        try:
            return self._pipe.recv()  # type: ignore[no-any-return]
        except (EOFError, OSError):
            self._raise_ended()

    def _raise_ended(self) -> NoReturn:
        self._process.join(10)
        words = how_it_ended(self._process, "then use fewer workers=")
        pid = self._process.pid
        self.end()
        advice = "" if self._is_ready else f" before it was ready: {GUARD}, and functions lie in modules that it finds"
        raise WorkerEndedError(f"its process {pid} {words}{advice}")


def _serve(pipe: Connection, functions: Sequence[RowFunction]) -> None:
    with suppress(EOFError, OSError):
        pipe.send((_READY, None))
        while True:
            for row in pipe.recv():
                try:
                    given: GivenRow = pickle.loads(row)
                    answer: tuple[Any, Any] = [array for each in functions for array in each(given)], None
                except BaseException as error:
                    answer = None, _Failed.of(error)
                pipe.send(answer)
                if answer[1] is not None:
                    break
    os._exit(0)  # the parent is gone: so is the reason to go on
