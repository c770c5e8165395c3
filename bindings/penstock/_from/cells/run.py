"""The run of an import: look at genes and columns, look at counts, make shards, publish."""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock._base.errors import InvalidArgumentError
from penstock._data.anndata.limits import Limits
from penstock._data.anndata.opened import Input, Opened
from penstock._data.anndata.transpose import Buckets, transpose
from penstock._from.cells.findings import Findings
from penstock._from.cells.identity import Stamps
from penstock._from.cells.odd import noted
from penstock._from.cells.plan import Plan, Planner, Task, check_shapes, cut
from penstock._from.cells.value_range import Range
from penstock._from.cells.work import Compare, Make, Scan, Working, odd_of
from penstock._make.folder import Folder
from penstock._make.shard_folder import ShardFolder
from penstock._places.scratch import telling_of

if TYPE_CHECKING:
    from penstock._make.workers import Executor, Pool

LIMITS = Limits()
_PLAN = "plan"
_RANGES = 8  # of one job of looking
_SECONDS = 5.0  # after which `progress` is called though no cell is done


@dataclass
class Imported:
    """What an import made.

    Attributes:
        path: the dataset's folder, or its address in a bucket.
        cells: documents of the dataset.
        genes: features of the dataset.
        records: (gene, count) of all cells.
        shards: of the dataset.
        kept_shards: those among them that an earlier run had made.
        fields: of a record, with their types; empty where all matrices are columns.
        columns: names of the columns.
        left_out: what the inputs have and the dataset has not.
        altered: what has another type when it comes back from an export, and of which.
        odd: how many values are "NaN", "infinite", "negative", how many cells have a "repeated name", how many inputs
            are a "repeated input"; those that are.
        notes: the same in words, with the place of the first.
        seconds: that it took.
    """

    path: str
    cells: int = 0
    genes: int = 0
    records: int = 0
    shards: int = 0
    kept_shards: int = 0
    fields: dict[str, str] = field(default_factory=dict)
    columns: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    altered: list[str] = field(default_factory=list)
    odd: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    seconds: float = 0.0


class Told:
    """Whom the run tells how far it is."""

    def __init__(
        self, progress: Callable[[int, int], None] | None, preparing: Callable[[str, int, int], None] | None
    ) -> None:
        """As import_anndata() takes them."""
        self._progress = progress
        self._preparing = preparing
        self._last = time.monotonic()

    def prepared(self, what: str, done: int, total: int, run: Imported, cells: int) -> None:
        """`done` of `total` of what must be done before cells are written."""
        if self._preparing is not None:
            self._preparing(what, cells * done // max(1, total), cells)
        if self._progress is not None and time.monotonic() - self._last >= _SECONDS:
            self.wrote(run, cells)

    def wrote(self, run: Imported, cells: int) -> None:
        """The run has more cells than before, or at least is alive."""
        self._last = time.monotonic()
        if self._progress is not None:
            self._progress(run.cells, cells)


class Run:
    """One import. One thread."""

    def __init__(self, inputs: list[Input], names: list[str], workers: int | Executor, told: Told) -> None:
        """Opens nothing yet; `names` of the matrices."""
        self._inputs = inputs
        self._names = names
        self._numbers = range(len(names))
        self._workers = workers
        self._told = told
        self._opened = Opened(inputs, names, LIMITS)
        self._pool: Pool | None = None
        self._call: Callable[[Any], Any] | None = None
        self._cells = 0

    def run(
        self,
        folder: Folder,
        options: dict[str, Any],
        resume: bool,
        overwrite: bool,
    ) -> Imported:
        """Imports into `folder`; `options` decide the bytes of shards, and all are as import_anndata() has them."""
        stamps = Stamps(self._inputs)
        try:
            self._cells = sum(check_shapes(self._opened, self._names))
            if not self._cells:
                raise InvalidArgumentError(f"{', '.join(each.path for each in self._inputs)}: there are no cells")
            shards = ShardFolder(folder, resume=resume, overwrite=overwrite)
            with shards.told_at_the_end():
                try:
                    return self._write(shards, options, stamps)
                except BaseException:
                    self._end_workers(shards)
                    if not shards.any_finished():
                        stamps.remove(shards.folder)
                    raise
                finally:
                    self._end_workers(shards)
                    shards.close()  # which removes the folder if it made it and nothing is in it
        finally:
            self._opened.close()

    def _end_workers(self, shards: ShardFolder) -> None:
        if self._pool is not None:
            shards.end_workers(self._pool)
            self._pool = None

    def _write(self, shards: ShardFolder, options: dict[str, Any], stamps: Stamps) -> Imported:
        there = shards.made_with(options)
        may_keep = shards.stays or (there > 0 and stamps.check(shards.folder, there))
        planner = Planner(self._opened, self._names, options)
        work = Working(
            self._inputs,
            self._names,
            LIMITS,
            shards.folder,
            shards.run,
            shards.replaces,
        )
        done = Imported(shards.path, left_out=planner.left_out)
        ranges = self._look(work, done)
        plan = planner.plan(ranges)
        tasks = cut(plan, self._opened, ranges, LIMITS)
        done.genes, done.shards, done.fields = len(plan.genes.names), len(tasks), plan.record or {}
        done.columns = list(plan.specs())
        done.altered = planner.altered(plan)
        with self._planned(shards, plan) as scratch:
            told = Findings(self._opened, plan, tasks, scratch)
            waiting = self._keep(shards, work, plan, tasks, done, scratch, told) if may_keep else tasks
        for task in waiting:
            shards.make_room(task.number)  # which may remove all that is in the folder
        with self._planned(shards, plan) as scratch:
            if waiting:
                with telling_of(Path(shards.path)):
                    stamps.write(shards.folder)
                self._make(shards, work, waiting, done, scratch, told)
                stamps.check_unchanged()
            with telling_of(scratch):
                done.odd, done.notes = told.told(scratch)
        shards.publish(len(tasks), planner.features)
        stamps.remove(shards.folder)
        return done

    def _look(self, work: Working, done: Imported) -> list[list[Range]]:
        """What values each matrix of each input has."""
        found: list[list[Range]] = [[Range() for _ in self._inputs] for _ in self._names]
        jobs = []
        for source in range(len(self._inputs)):
            for number in self._numbers:
                ranges = self._opened.matrix(source, number).ranges()
                jobs += [Scan(source, number, ranges[at : at + _RANGES]) for at in range(0, len(ranges), _RANGES)]
        for at, (job, seen) in enumerate(zip(jobs, self._answers(work, jobs, len(jobs)), strict=True), 1):
            found[job.matrix][job.source].merge(seen)
            self._told.prepared("looking at counts", at, len(jobs), done, self._cells)
        return found

    def _keep(
        self,
        shards: ShardFolder,
        work: Working,
        plan: Plan,
        tasks: list[Task],
        done: Imported,
        scratch: Path,
        told: Findings,
    ) -> list[Task]:
        """Tasks whose shard is not there.

        Raises:
            InvalidArgumentError: a shard is there that was made of the same cells of another input.
        """
        identity = plan.identity()
        there = [task for task in tasks if shards.may_keep(task.number, identity)]
        waiting = [task for task in tasks if task not in there]
        jobs = [Compare(task, str(scratch / _PLAN)) for task in there]
        digests = []
        for task, seen in zip(there, self._answers(work, jobs, len(jobs)), strict=True):
            odd = odd_of(plan, task, shards.task_of(task.number))
            told.add(task, seen._replace(odd=odd))
            digests.append((seen.digest, odd))
            self._told.prepared("comparing with finished shards", len(digests), len(jobs), done, self._cells)
        for task, (found, odd) in zip(there, digests, strict=True):
            description = plan.description(task, found) | noted(odd, task.begin)
            if not shards.keep(task.number, description):
                raise InvalidArgumentError(
                    f"{self._inputs[task.source].path}: shard {task.number} of {done.path} was made of other input or "
                    "options: go on with those, or start anew with --overwrite and without --resume"
                )
            done.kept_shards += 1
            done.records += shards.kept_tokens(task.number)
            done.cells += task.end - task.begin
        return waiting

    @contextmanager
    def _planned(self, shards: ShardFolder, plan: Plan) -> Iterator[Path]:
        """A folder of this machine with the plan in it: in the dataset's, for a bucket in the scratch folder."""
        with shards.folder.aside(shards.run, "import") as folder:
            with telling_of(folder):
                (folder / _PLAN).write_bytes(pickle.dumps(plan))
            yield folder

    def _transpose(self, tasks: list[Task], done: Imported, scratch: Path) -> dict[tuple[int, int], Buckets]:
        """Of the inputs of these tasks what is of compressed columns."""
        buckets = {}
        found = [(source, number) for source in sorted({task.source for task in tasks}) for number in self._numbers]
        stored = {key: self._opened.matrix(*key).stored for key in found if self._opened.matrix(*key).kind == "csc"}
        before = 0
        for (source, number), count in stored.items():

            def tell(scattered: int, before: int = before) -> None:
                self._told.prepared("transposing", before + scattered, sum(stored.values()), done, self._cells)

            matrix, folder = self._opened.matrix(source, number), scratch / f"{source}-{number}"
            with telling_of(folder):
                buckets[source, number] = transpose(matrix, folder, LIMITS.values // 2, tell)
            before += count
        return buckets

    def _make(
        self,
        shards: ShardFolder,
        work: Working,
        tasks: list[Task],
        done: Imported,
        scratch: Path,
        told: Findings,
    ) -> None:
        buckets = self._transpose(tasks, done, scratch)
        jobs = (
            Make(
                task,
                str(scratch / _PLAN),
                {
                    number: buckets[task.source, number].part(task.begin, task.end)
                    for number in self._numbers
                    if (task.source, number) in buckets
                },
            )
            for task in tasks
        )
        for task, (description, records, seen) in zip(tasks, self._answers(work, jobs, len(tasks)), strict=True):
            shards.made(task.number, description)
            told.add(task, seen)
            done.records += records
            done.cells += task.end - task.begin
            self._told.wrote(done, self._cells)

    def _answers(self, work: Working, jobs: Iterable[Any], count: int) -> Iterator[Any]:
        """What the work says to each of `count` jobs, in order."""
        if self._workers == 1 or (isinstance(self._workers, int) and self._pool is None and count <= 1):
            self._call = self._call or work.begin(self._opened)
            yield from map(self._call, jobs)
            return
        from penstock._make.workers import executor_of, results_of  # which import multiprocessing

        self._pool = self._pool or executor_of(self._workers).pool(work)
        yield from results_of(self._pool, jobs)
