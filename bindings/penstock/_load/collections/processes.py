"""Fetches read by worker processes, each with a collection of its own; batches come back one by one, in order."""

from __future__ import annotations

import io
import multiprocessing.process
import os
import pickle
import queue
import threading
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from multiprocessing import connection, get_context
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from penstock._base.errors import InvalidArgumentError
from penstock._base.processes import GUARD, how_it_ended, surroundings_of_workers
from penstock._load.collections.fetching import FailedError, Fetcher, Hooks
from penstock._load.collections.planning import Fetch
from penstock._load.collections.reading import detached
from penstock._load.collections.threads import PATIENCE_S, Reading, ThreadReader

if TYPE_CHECKING:
    from multiprocessing.context import SpawnProcess

_PARENT_S = 1.0  # how often a worker looks whether its parent lives, should the pipe not tell


@dataclass(frozen=True)
class Opening:
    """All that a process needs to make a `Fetcher`; it is pickled.

    Attributes:
        collection: it, or the function that opens it.
        opens: whether it is that function.
        count: observations.
        hooks: what is called.
    """

    collection: Any
    opens: bool
    count: int
    hooks: Hooks

    def open(self) -> Fetcher:
        """Opens the collection."""
        return Fetcher(self.collection() if self.opens else self.collection, self.count, self.hooks)

    def pickled(self) -> bytes:
        """For worker processes.

        Raises:
            InvalidArgumentError: a part of it does not pickle, or does by a copy of its file.
        """
        name = f"the function {self.collection!r:.80}" if self.opens else f"this {type(self.collection).__name__}"
        advice = "it must be a function of a module" if self.opens else "pass a function that opens it"
        try:
            with io.BytesIO() as file:
                _Pickler(file).dump(self)
                return file.getvalue()
        except _MapError as error:
            raise InvalidArgumentError(f"processes: {name} would be pickled as a copy of its file: {advice}") from error
        except Exception:
            for each, hook in vars(self.hooks).items():
                _check_pickles(each, hook, "it must be a function of a module")
            _check_pickles(name, self.collection, advice)
            raise


class _MapError(Exception):
    """A memory map, or an array of one, is to be pickled."""


class _Pickler(pickle.Pickler):
    """Refuses memory maps, wherever they are met: inside of a sparse matrix, say."""

    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file, protocol=pickle.HIGHEST_PROTOCOL)

    def reducer_override(self, thing: Any) -> Any:
        base = thing
        while isinstance(base, np.ndarray):
            if isinstance(base, np.memmap):
                raise _MapError
            base = base.base
        return NotImplemented


class RemoteError(Exception):
    """The traceback of an error in a worker process, as the cause of its copy here."""

    def __str__(self) -> str:
        """The traceback."""
        return f"\n{self.args[0]}"


class Lost(Exception):
    """The worker process ended."""


class ProcessReader:
    """Spreads fetches over spawned processes in turn. One thread at a time.

    A worker takes batches from its fetch as they are asked for, while it reads its next one. It ends when its end of
    the pipe closes or its parent is gone.
    """

    def __init__(self, opening: Opening, count: int, threads: int) -> None:
        """Starts nothing.

        Args:
            opening: what each opens.
            count: processes.
            threads: of each that read ahead: 0 or 1.
        """
        self._opening = opening
        self._count = count
        self._threads = threads
        self._context = get_context("spawn")
        self._workers: list[_Handle] = []
        self.end = partial(_end, self._workers)  # keeps neither collection nor hooks
        self._generation = 0  # messages of those before are of fetches that were dropped
        self._started = 0

    def start(self, fetch: Fetch) -> tuple[int, Fetch]:
        """Has a fetch read; returns what `batch` wants."""
        number = self._started
        try:
            if not self._workers:
                self._spawn()
            with suppress(OSError):  # it is dead: said at its batch
                self._workers[number % self._count].send(("fetch", self._generation, number, fetch))
        except BaseException:  # half a message may have been sent
            self.close()
            raise
        self._started += 1
        return number, fetch

    def batch(self, started: tuple[int, Fetch], number: int) -> Any:
        """Batch `number` of a fetch that was started; waits for it. All of them are asked for in order.

        Raises:
            FailedError: a hook or the collection raised, or the process died.
            InvalidArgumentError: as `Fetcher`.
        """
        worker = self._workers[started[0] % self._count]
        wanted = (self._generation, started[0], number)
        try:
            while True:
                place, kind, value = pickle.loads(worker.receive())
                if kind == "ready":
                    worker.is_ready = True
                elif kind == "broken":
                    self.close()
                    _raise(value)
                elif place == wanted:
                    break
        except Lost as error:
            self.close()
            raise FailedError(str(error)) from error.__cause__
        except (FailedError, InvalidArgumentError):
            raise
        except BaseException:  # half a message may have been read
            self.close()
            raise
        if kind == "batch":
            return value
        _raise(value)

    def drop(self) -> None:
        """Forgets what was started."""
        self._generation += 1
        self._started = 0
        try:
            for worker in self._workers:
                with suppress(OSError):
                    worker.send(("drop", self._generation, 0, None))
        except BaseException:  # half a message may have been sent
            self.close()
            raise

    def close(self) -> None:
        """Ends the processes, at once. They start again when there is a fetch."""
        self.end()

    def _spawn(self) -> None:
        """Starts all of them, which takes as long as one; then sends each what it opens."""
        with surroundings_of_workers():  # also blocks Ctrl-C
            for _ in range(self._count):
                ours, theirs = self._context.Pipe()
                process = self._context.Process(
                    target=run_worker,
                    args=(theirs, os.getpid(), self._threads),
                    name="penstock-collection",
                    daemon=True,
                )
                process.start()
                # Else the exit of a forked child of this process joins what is not its own, and fails.
                getattr(multiprocessing.process, "_children", set()).discard(process)
                theirs.close()
                self._workers.append(_Handle(process, ours))
        opening = self._opening.pickled()
        for worker in self._workers:
            with suppress(OSError):
                worker.pipe.send_bytes(opening)
                worker.send(("drop", self._generation, 0, None))


class _Handle:
    """A worker process as its parent sees it."""

    def __init__(self, process: SpawnProcess, pipe: Connection) -> None:
        self.process = process
        self.pipe = pipe
        self.is_ready = False

    def send(self, message: Any) -> None:
        self.pipe.send_bytes(pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL))

    def receive(self) -> bytes:
        """The next message; of a dead process those that it still sent."""
        ready = connection.wait([self.pipe, self.process.sentinel])
        if self.pipe not in ready and not self.pipe.poll():
            self._raise_lost(None)
        try:
            return self.pipe.recv_bytes()
        except (EOFError, OSError) as error:
            self._raise_lost(error)

    def _raise_lost(self, error: Exception | None) -> NoReturn:
        self.process.join(10)
        hint = "" if self.is_ready or (self.process.exitcode or 0) < 0 else f" before it was ready: {GUARD}"
        lost = Lost(f"worker process {self.process.pid} {how_it_ended(self.process)}{hint}")
        raise lost from (error or EOFError("its pipe closed"))


def _end(workers: list[_Handle]) -> None:
    ended = list(workers)
    workers.clear()
    for worker in ended:
        worker.process.kill()
        worker.pipe.close()
    for worker in ended:
        worker.process.join(PATIENCE_S)


def run_worker(pipe: Connection, parent: int, threads: int) -> None:
    """The work of a worker process, until its pipe closes or its parent is gone."""
    threading.Thread(target=_watch, args=(parent,), daemon=True).start()
    work: queue.SimpleQueue[tuple[int, int, Reading]] = queue.SimpleQueue()
    try:
        given = pipe.recv_bytes()
    except (EOFError, OSError):
        return
    try:
        reader = ThreadReader(pickle.loads(given).open(), threads)
    except Exception as error:
        _send(pipe, (0, 0, 0), "broken", _described(error, "opening the collection in a worker process"))
        return
    _send(pipe, (0, 0, 0), "ready", None)
    current = _Generation()
    threading.Thread(target=_receive, args=(pipe, reader, work, current), daemon=True).start()
    while True:
        generation, number, reading = work.get()
        for each in range(len(reading.fetch.batches)):
            if generation != current.number or not _serve(pipe, reader, reading, (generation, number, each)):
                break
        del reading


class _Generation:
    number = 0


def _watch(parent: int) -> None:
    # A forked child of the parent keeps the pipe open, also in the middle of a message.
    while os.getppid() == parent:
        time.sleep(_PARENT_S)
    os._exit(0)


def _receive(
    pipe: Connection,
    reader: ThreadReader,
    work: queue.SimpleQueue[tuple[int, int, Reading]],
    current: _Generation,
) -> None:
    # A thread of its own, so that the parent's send never waits for a fetch or a batch.
    try:
        while True:
            kind, generation, number, fetch = pickle.loads(pipe.recv_bytes())
            if kind == "drop":
                current.number = generation
                reader.drop()
            else:
                work.put((generation, number, reader.start(fetch)))
    except (EOFError, OSError):  # the parent is gone, or has closed the loader
        os._exit(0)
    except BaseException:
        traceback.print_exc()
        os._exit(1)


def _serve(pipe: Connection, reader: ThreadReader, reading: Reading, place: tuple[int, int, int]) -> bool:
    """Sends a batch or an error; whether the next batch of the fetch is wanted."""
    try:
        batch = reader.batch(reading, place[2])
        batch = detached(batch)
    except Exception as error:
        if not reading.dropped:
            _send(pipe, place, "error", _described(error, "reading"))
        return False
    try:
        message = pickle.dumps((place, "batch", batch), protocol=pickle.HIGHEST_PROTOCOL)
    except Exception as error:
        _send(pipe, place, "error", _described(error, f"pickling the batch, a {type(batch).__name__},"))
        return False
    del batch
    with suppress(BrokenPipeError, ConnectionResetError):
        pipe.send_bytes(message)
    return True


def _send(pipe: Connection, place: tuple[int, int, int], kind: str, value: Any) -> None:
    with suppress(BrokenPipeError, ConnectionResetError):
        pipe.send_bytes(pickle.dumps((place, kind, value), protocol=pickle.HIGHEST_PROTOCOL))


def _described(error: BaseException, doing: str) -> tuple[str, str, BaseException | None, str]:
    """(kind, message, cause, traceback) of an error, of what pickles."""
    if isinstance(error, InvalidArgumentError):
        return "invalid", str(error), None, ""
    cause: BaseException = error
    text = f"{doing} raised {type(error).__name__}: {error}"
    if isinstance(error, FailedError):
        cause, text = error.__cause__ or error, str(error)
    trace = "".join(traceback.format_exception(type(cause), cause, cause.__traceback__))
    try:
        pickle.loads(pickle.dumps(cause))
    except Exception:
        cause = RuntimeError(f"{type(cause).__name__}: {cause}")
    return "failed", text, cause, trace


def _raise(described: tuple[str, str, BaseException | None, str]) -> NoReturn:
    kind, text, cause, trace = described
    if kind == "invalid" or cause is None:
        raise InvalidArgumentError(text)
    cause.__cause__ = RemoteError(trace)
    raise FailedError(text) from cause


def _check_pickles(name: str, thing: Any, advice: str) -> None:
    try:
        pickle.dump(thing, _Discard(), protocol=pickle.HIGHEST_PROTOCOL)
    except Exception as error:
        raise InvalidArgumentError(
            f"processes: {name} does not pickle, as what worker processes are sent must ({error}): {advice}"
        ) from error


class _Discard:
    """A file that keeps nothing."""

    write: Callable[..., int] = staticmethod(lambda data: len(data))
