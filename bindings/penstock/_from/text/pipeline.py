"""`penstock write`: one reader cuts tasks, processes tokenize them, one writer makes shard k of task k."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from penstock._from.text.documents import DocumentReader
from penstock._from.text.pool import Result, Work, WorkerPool
from penstock._from.text.sink import ShardSink
from penstock._from.text.skip_list import SkipList
from penstock._from.text.skipping import Limit
from penstock._from.text.tasks import Batch, cut
from penstock._make.errors import InputError


@dataclass
class Summary:
    """What the dataset holds and what this run did. Shards kept from an earlier run count in the first five alone."""

    documents: int = 0
    skipped: int = 0
    tokens: int = 0
    tasks: int = 0
    kept_tasks: int = 0
    new_tokens: int = 0
    text_bytes: int = 0
    workers: int = 0
    seconds: float = 0.0
    tokenizing_seconds: float = 0.0

    def as_json(self) -> dict[str, Any]:
        """All figures, rates and the tokenizer's share of the processes' time with them."""
        seconds = max(self.seconds, 1e-9)
        return {
            "documents": self.documents,
            "skipped": self.skipped,
            "tokens": self.tokens,
            "shards": self.tasks,
            "kept_shards": self.kept_tasks,
            "new_tokens": self.new_tokens,
            "text_bytes": self.text_bytes,
            "workers": self.workers,
            "seconds": round(self.seconds, 3),
            "megabytes_per_second": round(self.text_bytes / seconds / 1e6, 3),
            "tokens_per_second": round(self.new_tokens / seconds),
            "tokenizer_share": round(self.tokenizer_share, 3),
        }

    @property
    def tokenizer_share(self) -> float:
        """Of the time that all workers together had, the part spent inside the tokenizer: 1 is the best there is."""
        return self.tokenizing_seconds / max(self.seconds * self.workers, 1e-9)


@dataclass
class TextWriter:
    """One run. `observe` is called after every batch, with the bytes read of the files and their total (0 where that is
    unknown), and the bytes of text that were written. `limit` is how many documents may be left out; None: any number.
    """

    reader: DocumentReader
    work: Work
    sink: ShardSink
    task_bytes: int
    workers: int
    options: dict[str, Any]
    observe: Callable[[int, int, int], None] = lambda done, total, text: None
    limit: Limit | None = None
    _submitted: deque[Batch] = field(default_factory=deque)
    _summary: Summary = field(default_factory=Summary)
    _read_documents: int = 0

    def __post_init__(self) -> None:
        self.skipped = SkipList(self.sink, self.reader.inputs, self.work.skips, self.limit)

    def run(self) -> Summary:
        """Reads, tokenizes, writes and publishes.

        Raises:
            InputError: An input that cannot be used; no documents at all; too many that are left out.
            WorkerError: A process died.
            penstock.Error: The output cannot be written.
        """
        begin = time.perf_counter()
        pool = WorkerPool(self.workers, self.work)
        self.reader.while_waiting = pool.check
        with self.sink.told_at_the_end():
            try:
                self._run(pool)
            except KeyboardInterrupt:
                self.sink.stop_uploading()
                raise
            finally:
                pool.close()
                self.sink.close()
        self._summary.seconds = time.perf_counter() - begin
        return self._summary

    def _run(self, pool: WorkerPool) -> None:
        for batch in self._batches():
            while not pool.has_room():
                self._write(pool.next_results())
            pool.submit(batch.documents)
            self._submitted.append(batch)
            self._observe()
        while pool.pending():
            self._write(pool.next_results())
            self._observe()
        if not self._summary.tasks:
            raise InputError("there are no documents in the input: nothing was written")
        self.skipped.know_total(self._read_documents)
        self.skipped.end()
        self.sink.publish(self._summary.tasks)
        self.skipped.clean()
        self._summary.skipped = self.skipped.count
        self._summary.workers = pool.started

    def _observe(self) -> None:
        self.observe(self.reader.consumed_bytes(), self.reader.total_bytes, self._summary.text_bytes)

    def _batches(self) -> Iterator[Batch]:
        """What is to be done: all batches but those of tasks whose shard is there and was made of the same."""
        names = self.skipped.names if self.work.skips else None
        batches = cut(self.reader.documents(), self.task_bytes, names=names)
        while (batch := next(batches, None)) is not None:
            if not self.sink.may_keep(batch.task, self.options):
                yield batch
            elif batch.completed is not None:
                task = batch.completed
                kept, skipped = self.skipped.may_keep(task, self.options)
                if kept:
                    self._read_documents += task.documents
                    self._summary.tasks += 1
                    self._summary.kept_tasks += 1
                    self._summary.documents += task.documents - skipped
                    self._summary.tokens += self.sink.kept_tokens(task.number)
                    self._observe()
                    continue
                if not self.reader.rereadable:
                    raise InputError(
                        f"shard {task.number:,} was made of other input, and standard input cannot be read again:"
                        " start anew with --overwrite"
                    )
                batches.close()
                batches = cut(self.reader.documents(task.first_document), self.task_bytes, task.number, names)

    def _write(self, results: Iterator[Result]) -> None:
        for result in results:
            batch = self._submitted.popleft()
            self.sink.append(batch.task, result)
            summary = self._summary
            self.skipped.add(batch.documents, result.skipped)
            self._read_documents += len(batch.documents)
            summary.documents += len(batch.documents) - len(result.skipped)
            summary.tokens += len(result.encoded.ids)
            summary.new_tokens += len(result.encoded.ids)
            summary.text_bytes += batch.size_bytes
            summary.tokenizing_seconds += result.tokenizing_seconds
            if batch.completed is not None:
                self.sink.finish(self.skipped.finish(batch.completed, self.options))
                summary.tasks += 1
