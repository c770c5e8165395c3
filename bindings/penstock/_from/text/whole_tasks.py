"""`penstock write` on many machines: tasks are cut here, and each is done as a whole wherever the executor runs it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock._from.text.documents import DocumentReader
from penstock._from.text.pipeline import Summary
from penstock._from.text.pool import Work
from penstock._from.text.shards import Digest, Made, Make, Measure, Piece, ShardWork
from penstock._from.text.skip_list import SkipList
from penstock._from.text.skipping import Limit, described
from penstock._make.errors import InputError, UsageError
from penstock._make.shard_folder import ShardFolder
from penstock._make.workers import Executor, Pool, results_of

if TYPE_CHECKING:
    import numpy.typing as npt


@dataclass
class TaskWriter:
    """One run. `observe` is called when a task is done, with the bytes of text that are done, of how many, and that
    were written by this run; `measured` with the inputs that are measured and all. `limit` is how many documents may be
    left out; None: any number."""

    reader: DocumentReader
    work: Work
    folder: ShardFolder
    writing: dict[str, Any]
    task_bytes: int
    executor: Executor
    options: dict[str, Any]
    observe: Callable[[int, int, int], None] = lambda done, total, text: None
    measured: Callable[[int, int], None] = lambda done, total: None
    limit: Limit | None = None
    _summary: Summary = field(default_factory=Summary)
    _done_bytes: int = 0

    def __post_init__(self) -> None:
        self.skipped = SkipList(self.folder, self.reader.inputs, self.work.skips, self.limit)

    def run(self) -> Summary:
        """Cuts tasks, has them done, and publishes.

        Raises:
            UsageError: Standard input, which only this machine has.
            InputError: An input that cannot be used; no documents at all; too many that are left out.
            WorkerError: A worker was lost too often.
            penstock.Error: The output cannot be written.
        """
        begin = time.perf_counter()
        pool: Pool | None = None
        with self.folder.told_at_the_end():
            try:
                pool = self.executor.pool(self._shard_work())
                self._write(pool)
                self._summary.workers = pool.started
            finally:
                self._end(pool)
                self.folder.close()
        self._summary.seconds = time.perf_counter() - begin
        return self._summary

    def _end(self, pool: Pool | None) -> None:
        """Ends the workers, and removes what they left unfinished."""
        if pool is not None:
            pool.close()
        with suppress(Exception):  # what ended the run is the error to tell
            self.folder.clean_after()

    def _shard_work(self) -> ShardWork:
        if not all(each.rereadable for each in self.reader.inputs):
            raise UsageError("standard input and pipes are on this machine alone: save them to a file first")
        # Workers have another working directory.
        inputs = [replace(each, path=each.path and each.path.absolute()) for each in self.reader.inputs]
        work = self.work
        if work.tokenizer.file is not None:
            file = Path(work.tokenizer.file).expanduser()
            if file.exists():
                work = work._replace(tokenizer=replace(work.tokenizer, file=str(file.absolute())))
        return ShardWork(inputs, work, self.task_bytes, self.options, self.folder.folder.absolute(), self.writing)

    def _write(self, pool: Pool) -> None:
        pieces = list(self._cut(pool))
        if not pieces:
            raise InputError("there are no documents in the input: nothing was written")
        total = sum(each.size_bytes for each in pieces)
        self.skipped.know_total(sum(each.documents for each in pieces))
        waiting = self._keep(pool, pieces, total)
        for piece in waiting:
            self.folder.make_room(piece.number)
        for piece, made in zip(waiting, results_of(pool, map(Make, waiting)), strict=True):
            self._made(piece, made, total)
        self.skipped.end()
        self.folder.publish(len(pieces))
        self.skipped.clean()
        self._summary.skipped = self.skipped.count

    def _cut(self, pool: Pool) -> Iterator[Piece]:
        inputs = len(self.reader.inputs)
        cutter = Cutter(self.task_bytes)
        for done, sizes in enumerate(results_of(pool, map(Measure, range(inputs))), 1):
            yield from cutter.add(sizes)
            self.measured(done, inputs)
        yield from cutter.end()

    def _keep(self, pool: Pool, pieces: list[Piece], total: int) -> list[Piece]:
        """Pieces whose shard is not there."""
        there = [each for each in pieces if self.folder.may_keep(each.number, self.options)]
        stale = []
        for piece, task in zip(there, results_of(pool, map(Digest, there)), strict=True):
            is_kept, skipped = self.skipped.may_keep(task, self.options)
            if not is_kept:
                stale.append(piece)
                continue
            self._summary.kept_tasks += 1
            self._count(piece, skipped, self.folder.kept_tokens(piece.number), total)
        kept = {each.number for each in there} - {each.number for each in stale}
        return [each for each in pieces if each.number not in kept]

    def _made(self, piece: Piece, made: Made, total: int) -> None:
        self.folder.made(piece.number, described(made.task, self.options, made.skipped))
        self.skipped.know(piece.number, made.skipped)
        self._summary.new_tokens += made.tokens
        self._summary.text_bytes += piece.size_bytes
        self._summary.tokenizing_seconds += made.tokenizing_seconds
        self._count(piece, 0 if made.skipped is None else made.skipped["documents"], made.tokens, total)

    def _count(self, piece: Piece, skipped: int, tokens: int, total: int) -> None:
        self._summary.tasks += 1
        self._summary.documents += piece.documents - skipped
        self._summary.tokens += tokens
        self._done_bytes += piece.size_bytes
        self.observe(self._done_bytes, total, self._summary.text_bytes)


class Cutter:
    """Cuts the inputs' documents into pieces by their sizes, exactly as `tasks.cut` does."""

    def __init__(self, task_bytes: int) -> None:
        """Of no input yet."""
        self._task_bytes = task_bytes
        self._number = 0
        self._inputs = 0
        self._documents = 0
        self._begin: tuple[int, int, int] | None = None  # input, its first document, document: where a piece began
        self._size = 0

    def add(self, sizes: npt.NDArray[Any]) -> Iterable[Piece]:
        """The pieces that end in the next input, whose documents count `sizes`."""
        ends = np.cumsum(sizes, dtype=np.uint64)
        first, at, before = self._documents, 0, 0
        while at < len(sizes):
            if self._begin is None:
                self._begin = (self._inputs, first, first + at)
            # The document that brings the piece to task_bytes is its last.
            last = int(np.searchsorted(ends, before + self._task_bytes - self._size))
            if last >= len(sizes):
                self._size += int(ends[-1]) - before
                break
            self._size += int(ends[last]) - before
            before, at = int(ends[last]), last + 1
            yield self._end(first + at)
        self._documents += len(sizes)
        self._inputs += 1

    def end(self) -> Iterable[Piece]:
        """The last piece, if there is something in it."""
        if self._begin is not None:
            yield self._end(self._documents)

    def _end(self, end: int) -> Piece:
        assert self._begin is not None
        index, begins, first = self._begin
        piece = Piece(self._number, index, begins, first, end - first, self._size)
        self._number += 1
        self._begin, self._size = None, 0
        return piece
