"""Functions of rows: those of a loader's `PerRow` columns, and the threads of Python that call them."""

from __future__ import annotations

import errno
import pickle
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from penstock import _native
from penstock._base.arguments import index, shown
from penstock._base.errors import InvalidArgumentError, IoError
from penstock._base.resources import default_threads
from penstock._base.words import excerpt
from penstock._data.arrays import BatchLayout, GivenArray
from penstock._data.column_kinds import PerRow
from penstock._data.dtype import numpy_dtype
from penstock._data.fields import stored_dtype
from penstock._data.given_row import RowFacts, RowSpan, fields_of
from penstock._data.spans import Spans
from penstock._load.row_function import GivenRow, RowFunction, WorkerEndedError

if TYPE_CHECKING:
    from penstock._load.row_process import RowProcess

_MOST_WORKERS = 1 << 10
_SAME_WORDS = 200  # of messages, which are cut
_JOIN_SECONDS = 10.0  # for functions that are at work when their loader is closed


@dataclass(frozen=True)
class RowFunctions:
    """The functions of a loader's `PerRow` columns, and who calls them.

    Attributes:
        functions: in the order of the columns.
        workers: threads or processes.
        processes: which of them.
    """

    functions: tuple[RowFunction, ...]
    workers: int
    processes: bool

    @property
    def arrays(self) -> tuple[GivenArray, ...]:
        """Arrays of all functions."""
        return tuple(array for each in self.functions for array in each.arrays)


def row_functions(columns: Iterable[Any]) -> RowFunctions | None:
    """The functions of a loader's columns, which are checked to be columns; None: there are none.

    Raises:
        InvalidArgumentError: an argument that cannot be; columns that want other workers; a function that does not
            pickle, for processes.
    """
    found = [each for each in columns if isinstance(each, PerRow)]
    if not found:
        return None
    if len({(each.workers, bool(each.processes)) for each in found}) > 1:
        raise InvalidArgumentError("columns=: all PerRow(…) of a loader have the same workers= and processes=")
    functions = tuple(RowFunction(_function(each), _arrays(each)) for each in found)
    names = [array.name for each in functions for array in each.arrays]
    for name in names:
        if names.count(name) > 1:
            raise InvalidArgumentError(f"PerRow: the array {excerpt(name)!r} is there twice")
    processes = found[0].processes
    if not isinstance(processes, bool):
        raise InvalidArgumentError(f"PerRow(processes={shown(processes)}): must be True or False")
    workers = found[0].workers
    count = default_threads() if workers is None else index("PerRow: workers", workers, 1, _MOST_WORKERS)
    if processes and _is_daemon():
        raise InvalidArgumentError(
            "PerRow(processes=True): this process, a worker of a DataLoader, may start none: leave processes= out"
        )
    for each in functions if processes else ():
        _check_pickles(each)
    return RowFunctions(functions, count, processes)


def _is_daemon() -> bool:
    from multiprocessing import current_process  # which nothing else of a loader needs

    return current_process().daemon


def _function(given: PerRow) -> Any:
    if not callable(given.function):
        raise InvalidArgumentError(f"PerRow({shown(given.function)}): is no function of a row and a generator")
    return given.function


def _arrays(given: PerRow) -> tuple[GivenArray, ...]:
    if not isinstance(given.arrays, Mapping) or not given.arrays:
        raise InvalidArgumentError(
            f'PerRow(arrays={shown(given.arrays)}): {{name: type}} is wanted, as {{"mask": ("u1", (16,))}}'
        )
    found = []
    for name, wanted in given.arrays.items():
        if not isinstance(name, str) or not name:
            raise InvalidArgumentError(f"PerRow(arrays=…): {shown(name)} is no name")
        dtype = numpy_dtype(wanted, f"PerRow: {name}")
        base, dims = dtype.subdtype or (dtype, ())
        base = base.newbyteorder("<")
        if base.kind not in "biufc" or base.itemsize > 16 or (base.kind != "c" and base.itemsize > 8):
            raise InvalidArgumentError(
                f"PerRow: {excerpt(name)}: {shown(wanted)}: must be of bools, integers, floats or complex numbers"
            )
        found.append(GivenArray(name, base, tuple(dims)))
    return tuple(found)


def _check_pickles(given: RowFunction) -> None:
    try:
        pickle.dumps(given)
    except Exception as error:
        raise InvalidArgumentError(
            f"{given.called}: processes get it by pickle: {excerpt(error)}; define it in a module, or leave "
            "processes= out"
        ) from error


class SourceRows(NamedTuple):
    """How rows of one native source look."""

    name: str
    path: str
    seed: int
    stored: np.dtype[Any] | None
    visible: np.dtype[Any] | None
    apart: bool
    metadata: Any


def source_rows(view: Any, seed: int) -> list[SourceRows]:
    """Rows of a loader's view, by the numbers of its native sources."""
    found = []
    for name, each in view._views().items():
        visible = each.dtype if each.dtype is not None and each.dtype.names else None
        source = each._source
        own = _native.MixtureOrder.source_seed(seed, name) if name else seed
        stored = None if visible is None else stored_dtype(visible, source.stored_record_bytes)
        found.append(SourceRows(name, str(each.dataset.path), own, stored, visible, source.fields_apart, each.metadata))
    return found * len(view._windows())


class RowThreads:
    """Threads of Python that finish the rows of one loader; each has a process of its own, if so wanted.

    They end with the native loader's hand-over, which its close() closes, and hold nothing of the loader itself.
    """

    def __init__(self, functions: RowFunctions, sources: Sequence[SourceRows], layout: BatchLayout) -> None:
        """Starts nothing yet."""
        self._functions, self._sources = functions, sources
        self._places = [layout.given_of[each.name].number for each in functions.arrays]
        self._decoders = layout.decoders
        self._hand_over: Any = None
        self._are_started = False
        self._threads: list[threading.Thread] = []
        self._workers: list[_Worker] = []

    def serve(self, hand_over: Any) -> None:
        """Starts the threads, if those of this hand-over do not run."""
        if hand_over is not self._hand_over:  # those of another one ended with it
            self._hand_over, self._workers, self._threads, self._are_started = hand_over, [], [], False
        for worker in self._workers:
            worker.forget_cancelled()
        if self._are_started:
            return
        while len(self._threads) < self._functions.workers:
            worker = _Worker(hand_over, self._functions, self._sources, self._places, self._decoders)
            name = f"penstock-rows-{len(self._threads)}"
            thread = threading.Thread(target=worker.run, name=name, daemon=True)
            try:
                thread.start()
            except RuntimeError as error:  # the system has no more threads
                if not self._threads:
                    words = f"PerRow: no thread can be started: {error}; use fewer threads="
                    raise IoError(errno.EAGAIN, words) from None
                break
            self._workers.append(worker)
            self._threads.append(thread)
        self._are_started = True

    def cause_of(self, error: Exception) -> BaseException | None:
        """The exception of a function, whose words `error` has."""
        for worker in self._workers:
            failed = worker.failed
            if failed is not None and str(error)[:_SAME_WORDS] == failed.words[:_SAME_WORDS]:
                worker.failed = None  # its frames hold the batch
                return failed.cause
        return None

    def close(self) -> None:
        """Waits for the threads, whose hand-over is closed; processes are ended at once."""
        for worker in self._workers:
            worker.end_process()
        end = time.monotonic() + _JOIN_SECONDS
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join(max(0.0, end - time.monotonic()))
        self._threads, self._workers, self._hand_over = [], [], None


class _Failed(NamedTuple):
    """An exception of a function, the words of its error, and the rows that it was for."""

    words: str
    cause: BaseException
    taken: Any


class _Worker:
    """One thread's work."""

    def __init__(
        self,
        hand_over: Any,
        functions: RowFunctions,
        sources: Sequence[SourceRows],
        places: Sequence[int],
        decoders: Sequence[Any],
    ) -> None:
        self._hand_over, self._functions, self._sources = hand_over, functions, sources
        self._places, self._decoders = places, decoders
        self._process: RowProcess | None = None
        self.failed: _Failed | None = None

    def run(self) -> None:
        try:
            while not self._hand_over.closed:
                self._step()
        finally:
            self.end_process()

    def end_process(self) -> None:
        process = self._process
        if process is not None:
            process.end()

    def forget_cancelled(self) -> None:
        """Lets go of an error of a batch that nobody gets: its frames hold the batch."""
        if self.failed is not None and self.failed.taken.cancelled:
            self.failed = None

    def _step(self) -> None:
        """Some rows; nothing of their batch is held afterwards."""
        taken = self._hand_over.take()
        if taken is None:
            return
        words, is_process = "", False
        done: list[int] = []
        try:
            spans = Spans(taken.batch.spans(), self._decoders) if self._has_spans() else None
            rows = (self._row(taken, row, spans) for row in range(taken.first, taken.last))
            for made in self._made(taken, rows):
                for place, array in zip(self._places, made, strict=True):
                    taken.write_row(place, taken.first + len(done), array.reshape(-1).view(np.uint8))
                done.append(1)
        except BaseException as error:  # whatever it is, it must not end the thread: the batch would never come
            words = self._words(taken, taken.first + len(done), error)
            is_process = isinstance(error, WorkerEndedError)
            error.__traceback__ = None if is_process else _of_function(error)
            self.failed = _Failed(words, error, taken)
        self._hand_over.give_back(taken, words, is_process)

    def _has_spans(self) -> bool:
        return any(each.metadata is not False for each in self._sources)

    def _made(self, taken: Any, rows: Iterator[GivenRow]) -> Iterator[list[npt.NDArray[Any]]]:
        """The functions' values of each row, until the batch or the loader is given up."""
        functions = self._functions.functions
        if self._functions.processes:
            yield from self._made_elsewhere(rows)
            return
        for row in rows:
            if taken.cancelled or self._hand_over.closed:
                return
            yield [array for each in functions for array in each(row)]

    def _made_elsewhere(self, rows: Iterator[GivenRow]) -> Iterator[list[npt.NDArray[Any]]]:
        ready: list[bytes] = []
        failed: BaseException | None = None
        try:
            for row in rows:
                ready.append(_pickled(row))
        except BaseException as error:  # of one row, after those before it
            failed = error
        if self._process is None:
            from penstock._load.row_process import RowProcess  # 12 ms with multiprocessing

            self._process = RowProcess(self._functions.functions)
        try:
            yield from self._process.call(ready)
        except WorkerEndedError:
            self._process = None  # the next rows get another one
            raise
        if failed is not None:
            raise failed

    def _row(self, taken: Any, row: int, spans: Spans | None) -> GivenRow:
        number, observation, epoch, source, length = taken.row_facts(row)
        of = self._sources[source]
        fields = fields_of(taken.row_bytes(row), of.stored, of.visible, of.apart, length)
        facts = RowFacts(number, observation, epoch, of.name, of.seed)
        found: list[RowSpan] = []
        if spans is not None and of.metadata is not False:
            for each in spans.of_row(row):
                metadata = each.metadata if of.metadata is True else None
                found.append(
                    RowSpan(
                        each.start,
                        each.stop,
                        each.begins,
                        each.ends,
                        each.offset,
                        (each.id.shard, each.id.entry),
                        metadata,
                    )
                )
        return GivenRow(fields, facts, found)

    def _words(self, taken: Any, row: int, error: BaseException) -> str:
        """The words of an error; of one whose own words cannot be had, its kind. Raises nothing."""
        number, _, epoch, source, _ = taken.row_facts(row)
        called = ", ".join(each.called for each in self._functions.functions)
        why = type(error).__name__
        with suppress(BaseException):
            is_said = isinstance(error, InvalidArgumentError | WorkerEndedError)
            why = str(error) if is_said else f"{why}: {excerpt(error)}"
        said = f"{called}: observation {number:,} of {self._sources[source].path} in epoch {epoch}: {why}"
        return said.encode("utf-8", "backslashreplace").decode()


def _pickled(row: GivenRow) -> bytes:
    try:
        return pickle.dumps(row, pickle.HIGHEST_PROTOCOL)
    except Exception as error:
        raise InvalidArgumentError(
            f"its metadata does not pickle, as processes need it: {excerpt(error)}; leave processes= out"
        ) from error


def _of_function(error: BaseException) -> Any:
    """The traceback from the function on: what lies before it holds the batch."""
    traceback = error.__traceback__
    while traceback is not None and traceback.tb_frame.f_code.co_filename == __file__:
        traceback = traceback.tb_next
    return traceback
