"""`penstock.shuffle` on several workers: parts of the input are put aside in files, then each shard is made of all."""

from __future__ import annotations

import json
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from penstock import _native
from penstock._base.errors import InvalidArgumentError
from penstock._data.open import open as open_dataset
from penstock._make.folder import Folder, ShardTaker
from penstock._make.shard_folder import ShardFolder

if TYPE_CHECKING:
    from penstock._make.workers import Executor, Pool

Job = TypeVar("Job", "Aside", "Make")

_PART_BYTES = 256 << 20  # of the input, put aside in one file: whole shards, together no fewer


class Aside(NamedTuple):
    """A job: put the pieces of the input's shards [begin, end) aside in file `number`."""

    number: int
    begin: int
    end: int


class Make(NamedTuple):
    """A job: make these shards of the buckets [first_bucket, end_bucket).

    Attributes:
        shards: number, task, first destination and the one behind the last of each.
        first_bucket: of those that the workers know.
        end_bucket: behind the last.
    """

    shards: list[tuple[int, str, int, int]]
    first_bucket: int
    end_bucket: int


@dataclass
class Shuffling:
    """What the workers of a shuffle do.

    Attributes:
        planned: for `_native.ShuffleWork`: all that decides the bytes, and the buckets.
        aside: the folder of the files that are put aside.
        parts: how many of them there are.
        is_synced: whether they have to outlast the loss of the machine that wrote them.
        folder: of the result.
        run: the run that the writers belong to.
        overwrite: whether a published dataset is there.
    """

    planned: dict[str, Any]
    aside: str
    parts: int
    is_synced: bool
    folder: Folder
    run: str
    overwrite: bool

    def begin(self) -> Callable[[Aside | Make], None]:
        """What is called for each job."""
        native = _native.ShuffleWork(**self.planned)

        def work(job: Aside | Make) -> None:
            if isinstance(job, Aside):
                self._put_aside(native, job)
            else:
                self._make(native, job)

        return work

    def place(self, job: Aside | Make) -> str:
        """What the job is about."""
        if isinstance(job, Aside):
            return f"{self.planned['path']}: shard {job.begin:,}"
        return f"{self.folder.path}: shard {job.shards[0][0]:,}"

    def _file(self, number: int) -> Path:
        return Path(self.aside) / f"{number:06}"

    def _put_aside(self, native: Any, job: Aside) -> None:
        if not Path(self.aside).is_dir():
            raise InvalidArgumentError(f"{self.aside}: not there: what is put aside must be where all workers have it")
        if not self._file(job.number).exists():  # an earlier attempt may have been killed before it could say so
            native.put_aside(job.begin, job.end, str(self._file(job.number)), self.is_synced)

    def _make(self, native: Any, job: Make) -> None:
        try:
            uploads = self.folder.shard_uploads()
            if uploads is None:
                self._write(native, job, self.folder.path, self.overwrite, self.run)
            else:
                self._upload(native, job, uploads)
        except InvalidArgumentError:
            # An earlier attempt may have finished some and been killed before it could say so.
            there = self.folder.finished(self.overwrite, now=True)
            made = [(each.number, each.task) for each in there]
            left = [each for each in job.shards if (each[0], json.loads(each[1])) not in made]
            if left == job.shards:
                raise
            if left:
                self._make(native, job._replace(shards=left))

    def _write(self, native: Any, job: Make, out: str, overwrite: bool, run: str | None) -> None:
        files = [str(self._file(number)) for number in range(self.parts)]
        native.make_shards(job.shards, job.first_bucket, job.end_bucket, files, out, overwrite, run)

    def _upload(self, native: Any, job: Make, uploads: ShardTaker) -> None:
        try:
            self._write(native, job, uploads.path, False, None)
            for number, *_ in job.shards:
                uploads.begin(number)
            uploads.wait()
        except BaseException:
            uploads.abort(keep=True)
            raise
        finally:
            uploads.close()


class Planned(NamedTuple):
    """What follows from the input's index.

    Attributes:
        identity: what tells this shuffle from others.
        tasks: of each shard of the result, as its shard.json has it.
        ranges: of each shard the first destination, the one behind the last, and its bytes.
        buckets: destinations [begin, end) of each: a part of a shard, or several whole ones.
        input_bytes: of each shard of the input.
    """

    identity: str
    tasks: list[str]
    ranges: list[tuple[int, int, int]]
    buckets: list[tuple[int, int]]
    input_bytes: list[int]

    def shards_of(self, numbers: Sequence[int]) -> tuple[list[Make], list[tuple[int, int]]]:
        """Jobs that make these shards, ascending, and the buckets that they need."""
        makes, buckets = list[Make](), list[tuple[int, int]]()
        known = 0  # of the planned buckets, those that are in `buckets` or are not needed
        for number in numbers:
            begin, end, _ = self.ranges[number]
            shard = (number, self.tasks[number], begin, end)
            first = bisect_right(self.buckets, begin, key=itemgetter(0)) - 1  # which may begin in a shard before
            behind = bisect_left(self.buckets, end, key=itemgetter(0))
            if makes and first < known:
                makes[-1].shards.append(shard)
                continue
            first = max(first, 0)
            makes.append(Make([shard], len(buckets), len(buckets) + behind - first))
            buckets += self.buckets[first:behind]
            known = behind
        return makes, buckets


def parts_of(input_bytes: Sequence[int], least: int) -> list[Aside]:
    """Runs of the input's shards, each of at least so many bytes but the last."""
    parts, begin, size = list[Aside](), 0, 0
    for end, count in enumerate(input_bytes, 1):
        size += count
        if size >= least or end == len(input_bytes):
            parts.append(Aside(len(parts), begin, end))
            begin, size = end, 0
    return parts


class TaskShuffle:
    """One shuffle. One thread."""

    def __init__(
        self,
        given: dict[str, Any],
        folder: Folder,
        workers: int | Executor,
        progress: Callable[[int, int], None] | None,
    ) -> None:
        """Writes nothing yet.

        Args:
            given: path, seed, window, memory and shard_bytes.
            folder: of the result.
            workers: as of `penstock.shuffle`.
            progress: called with bytes done and in all.
        """
        self._given = given
        self._folder = folder
        self._out = folder.path
        self._workers = workers
        self._progress = progress
        self._pool: Pool | None = None
        self._call: Callable[[Any], None] | None = None
        self._done = self._total = 0

    def run(self, resume: bool, overwrite: bool) -> str:
        """Shuffles; the fingerprint."""
        given = open_dataset(self._given["path"])
        shards = ShardFolder(self._folder, tokenizer=given.tokenizer, resume=resume, overwrite=overwrite)
        try:
            return self._write(shards, given.features)
        finally:
            self._end_workers(shards)
            shards.close()

    def _write(self, shards: ShardFolder, features: Any) -> str:
        planned = Planned(*_native.plan_shuffle(**self._given, progress=lambda done, total: None))
        waiting = self._waiting(shards, planned.tasks)
        for number in waiting:
            shards.make_room(number)
        if waiting:
            self._make(shards, planned, waiting)
        shards.publish(len(planned.tasks), features)
        return shards.folder.fingerprint()

    def _waiting(self, shards: ShardFolder, tasks: list[str]) -> list[int]:
        """Numbers of the shards that are not there.

        Raises:
            InvalidArgumentError: one of another shuffle is.
        """
        waiting = []
        for number, task in enumerate(tasks):
            if not shards.has(number):
                waiting.append(number)
            elif not shards.keep(number, json.loads(task)):
                raise self._other(shards, number)
        if shards.stays and (waiting or shards.has(len(tasks))):
            raise self._other(shards, 0)
        return waiting

    def _other(self, shards: ShardFolder, number: int) -> InvalidArgumentError:
        if shards.stays:
            return InvalidArgumentError(
                f"{self._out}: there is a published dataset, made of another input or with other options: write "
                "elsewhere, or replace it with overwrite"
            )
        return InvalidArgumentError(
            f"{self._out}: shard {number:05}: it was made of another input or with other options than this run's: give "
            "those, or begin anew with overwrite"
        )

    def _make(self, shards: ShardFolder, planned: Planned, waiting: list[int]) -> None:
        asides = parts_of(planned.input_bytes, min(_PART_BYTES, self._given["shard_bytes"]))
        makes, buckets = planned.shards_of(waiting)
        self._total = sum(planned.input_bytes) + sum(planned.ranges[number][2] for number in waiting)
        with self._folder.aside(shards.run, "shuffle") as folder:
            work = Shuffling(
                planned={**self._given, "identity": planned.identity, "buckets": buckets},
                aside=str(folder),
                parts=len(asides),
                is_synced=not isinstance(self._workers, int),
                folder=self._folder,
                run=shards.run,
                overwrite=shards.replaces,
            )
            try:
                for aside in self._done_in_order(work, asides):
                    self._passed(sum(planned.input_bytes[aside.begin : aside.end]))
                for make in self._done_in_order(work, makes):
                    for number, task, *_ in make.shards:
                        shards.made(number, json.loads(task))
                        self._passed(planned.ranges[number][2])
            finally:
                self._end_workers(shards)

    def _done_in_order(self, work: Shuffling, jobs: list[Job]) -> Iterator[Job]:
        """Has the jobs done; each when it is."""
        if self._workers == 1:
            self._call = self._call or work.begin()
            for job in jobs:
                self._call(job)
                yield job
            return
        from penstock._make.workers import executor_of, results_of  # which import multiprocessing

        self._pool = self._pool or executor_of(self._workers).pool(work)
        for job, _ in zip(jobs, results_of(self._pool, jobs), strict=True):
            yield job

    def _passed(self, count: int) -> None:
        self._done += count
        if self._progress is not None:
            self._progress(self._done, self._total)

    def _end_workers(self, shards: ShardFolder) -> None:
        if self._pool is not None:
            shards.end_workers(self._pool)
            self._pool = None
