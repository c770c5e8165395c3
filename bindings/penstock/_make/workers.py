"""Processes of this machine that work on items; results come back in the order of the items."""

from __future__ import annotations

import os
import queue
import sys
import threading
from contextlib import suppress
from multiprocessing import connection, current_process, get_context
from multiprocessing.connection import Connection
from typing import Any

from penstock._base.errors import InvalidArgumentError
from penstock._base.processes import GUARD, BoundProcess, how_it_ended, surroundings_of_workers
from penstock._make.errors import WorkerError
from penstock._make.pools import InOrder, Work, answer

_BATCHES_EACH = 2  # sent to one worker and not answered: one in work, one waiting
_READY = -1  # stands for an item's number in a worker's first message


def refuse_in_workers_import() -> None:
    """Refuses a run that a worker of another one begins, because it imports a script without a guard.

    Raises:
        InvalidArgumentError: This process is such a worker.
    """
    if getattr(current_process(), "_inheriting", False):  # until the main module is imported
        raise InvalidArgumentError(f"this is a worker process: {GUARD}")


class WorkerPool(InOrder):
    """Keeps `count` spawned processes busy and gives their results in order. One thread at a time.

    Memory is bounded: at most two batches a worker are in its hands, and at most twice as many are not yet taken.
    """

    def __init__(self, count: int, work: Work) -> None:
        """Starts nothing yet: a process starts when there is a batch for it, so that little input takes few."""
        super().__init__()
        self._count = count
        self._work = work
        self._context = get_context("spawn")
        self._processes: list[BoundProcess] = []
        self._connections: list[Connection] = []
        self._waiting: list[int] = []  # batches in the hands of each
        self._ready: set[int] = set()

    def _start(self) -> None:
        name = f"penstock-worker-{len(self._processes)}"
        try:
            ours, theirs = self._context.Pipe()
            process = BoundProcess(target=_run_worker, args=(theirs, self._work), name=name, daemon=True)
            with theirs, surroundings_of_workers():
                process.start()
                self._processes.append(process)
                self._connections.append(ours)
                self._waiting.append(0)
        except OSError as error:
            raise WorkerError(f"{name} cannot be started: {error.strerror or error}; use fewer --workers") from error

    @property
    def started(self) -> int:
        """How many processes there are."""
        return len(self._processes)

    def has_room(self) -> bool:
        """True if `submit` may be called now."""
        if self._sent - self._taken >= 2 * _BATCHES_EACH * self._count:
            return False
        return len(self._processes) < self._count or min(self._waiting) < _BATCHES_EACH

    def submit(self, item: Any) -> None:
        """Hands the next item to the worker with the least to do."""
        if len(self._processes) < self._count and all(self._waiting):
            self._start()
        index = self._waiting.index(min(self._waiting))
        try:
            self._connections[index].send((self._sent, item))
        except OSError:
            self._raise_dead(index)
        self._waiting[index] += 1
        self._sent += 1

    def check(self) -> None:
        """Looks whether all processes are alive.

        Raises:
            WorkerError: One ended.
        """
        for index, process in enumerate(self._processes):
            if process.exitcode is not None:
                self._raise_dead(index)

    def close(self) -> None:
        """Ends the processes, at once. May be called twice."""
        for process, each in zip(self._processes, self._connections, strict=False):
            process.kill()
            each.close()
        for process in self._processes:
            process.join()
        self._processes, self._connections = [], []

    def _receive(self) -> None:
        ready = connection.wait([*self._connections, *(process.sentinel for process in self._processes)])
        for index, (process, each) in enumerate(zip(self._processes, self._connections, strict=True)):
            if each in ready:
                try:
                    sequence, result = each.recv()
                except (EOFError, OSError):
                    self._raise_dead(index)
                if sequence == _READY:
                    self._ready.add(index)
                    continue
                self._results[sequence] = result
                self._waiting[index] -= 1
            elif process.sentinel in ready:
                self._raise_dead(index)

    def _raise_dead(self, index: int) -> None:
        process = self._processes[index]
        process.join(10)
        words = f"worker {index} (process {process.pid}) {how_it_ended(process, 'then use fewer --workers')}"
        with suppress(EOFError, OSError):  # what it sent before, which was not received
            if index not in self._ready and self._connections[index].poll():
                self._connections[index].recv()
                self._ready.add(index)
        imported = index in self._ready or (process.exitcode or 0) < 0
        why = "it says above why" if _is_command() else GUARD
        raise WorkerError(words if imported else f"{words} before it was ready: {why}")


def _is_command() -> bool:
    """True where workers import penstock's own command, which has a guard."""
    main = sys.modules.get("__main__")
    spec = getattr(main, "__spec__", None)
    name: str = spec.name if spec else getattr(main, "__file__", None) or ""
    return name.rpartition("/")[2].startswith("penstock")


def _run_worker(pipe: Connection, work: Work) -> None:
    with suppress(BrokenPipeError, ConnectionResetError):
        pipe.send((_READY, None))
    batches: queue.SimpleQueue[tuple[int, Any] | None] = queue.SimpleQueue()
    threading.Thread(target=_receive_batches, args=(pipe, batches), daemon=True).start()
    process = work.begin()
    while (item := batches.get()) is not None:
        sequence, given = item
        with suppress(BrokenPipeError, ConnectionResetError):
            pipe.send((sequence, answer(work, process, given)))


def _receive_batches(pipe: Connection, batches: queue.SimpleQueue[tuple[int, Any] | None]) -> None:
    # A thread of its own, so that the parent's send never waits for a batch in work.
    with suppress(EOFError, OSError):
        while True:
            batches.put(pipe.recv())
    # The parent is gone: so is the reason to go on.
    os._exit(0)
