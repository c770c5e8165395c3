"""What a loader tells of itself beside its batches: counts, rows of any step, whether ranks agree, how it reads."""

from __future__ import annotations

from typing import Any

from penstock._load.agreement import check_agreement
from penstock._load.locate import LocatedRow, Sources, batch_position, locate
from penstock._load.metrics import Metrics, metrics_of
from penstock._load.parallel import Rule, in_words
from penstock._native import Loader as NativeLoader


class Inspected:
    """A native loader, looked at."""

    rank: int
    world_size: int
    _native: NativeLoader
    _sources: Sources
    _balance: tuple[list[Rule], int] | None
    _reader: str | None  # how datasets are read of which no file is here; None: some are

    def metrics(self) -> Metrics:
        """Counts of this loader since it was made, counted by its threads; any thread may ask, at any time.

        While torch.profiler records, each `next` is a range "penstock.next" of its trace.

        Raises:
            InvalidArgumentError: a forked child, which has none of the threads.

        Examples:
            >>> import numpy as np, os, penstock, tempfile
            >>> path = os.path.join(tempfile.mkdtemp(), "tokens.bin")
            >>> np.arange(1000, dtype=np.uint16).tofile(path)
            >>> view = penstock.open(path, dtype="u2").windows(10)
            >>> loader = penstock.Loader(view, batch_size=4, epochs=1)
            >>> metrics = [loader.metrics() for batch in loader][-1]
            >>> metrics.batches, metrics.observations, metrics.bytes_read
            (25, 100, 2000)
        """
        return metrics_of(self._native.metrics())

    def locate(self, step: int | None = None, *, position: int | None = None) -> list[LocatedRow]:
        """Which documents the global batch of any step consists of: past, future, of all ranks.

        Only what tells where documents lie is read: the index, the table of packed rows, and in the ids layout the ids,
        which are in the records. The loader stays where it is.

        Args:
            step: number of the batch in the run, from 0, by this loader's batch sizes; `Resume.step` is one. Or
            position: what a state holds: the batch that comes next there.

        Returns:
            The rows of all ranks' batches, in the order of their positions; padding is not among them.

        Raises:
            InvalidArgumentError: no such step or position.
            CorruptionError, IoError: an index that cannot be read.

        Examples:
            >>> import os, tempfile, penstock
            >>> path = os.path.join(tempfile.mkdtemp(), "corpus")
            >>> with penstock.Writer(path, fields={"token": "u2"}, metadata="json") as writer:
            ...     for number in range(4):
            ...         writer.append(token=range(6), metadata={"number": number})
            >>> view = penstock.open(path).windows(8)
            >>> loader = penstock.Loader(view, batch_size=1, order="sequential", rank=0, world_size=2)
            >>> row = loader.locate(0)[1]
            >>> row.position, row.rank, row.row, row.index, row.first_record
            (1, 1, 0, 1, 8)
            >>> [(span.id.entry, span.start, span.stop, span.offset) for span in row.spans]
            [(1, 0, 4, 2), (2, 4, 8, 0)]
        """
        job = self._native.job
        begin = batch_position(job, step, position)
        return locate(job, self._sources, begin, self._native.row_places(job, begin))

    def check_agreement(self, group: Any = None) -> None:
        """Compares this loader with those of the other processes: each is to give its share of the same batches.

        All processes of the group must call it; all raise the same error. Compared are the job (datasets, views, order,
        seed, skips, weights that were set), the position, the batch sizes, the run's end, `balance=` and `uneven=`, and
        that each rank is there once.

        Args:
            group: a process group of torch.distributed; None: the default one. Where several processes share a rank, as
                those of tensor parallelism do, give one that has each rank once, as `mesh["dp"].get_group()`.

        Raises:
            StateMismatchError: processes differ; the message says which ones, in what.
            InvalidArgumentError: no process group, or one that this process is not in.
        """
        check_agreement(
            self._native.job, self._native.position, (self.rank, self.world_size), group, in_words(self._balance)
        )

    @property
    def reader(self) -> str:
        """How files are read here: "pread", "uring", "direct" or "mmap"; what `reader="auto"` found out by a real read.
        "http" or "python" where all of them are elsewhere.

        Raises:
            InvalidArgumentError: the reader that was asked for is refused on this machine.
        """
        return self._native.reader if self._reader is None else self._reader

    @property
    def threads(self) -> int:
        """Threads of the engine."""
        return self._native.threads
