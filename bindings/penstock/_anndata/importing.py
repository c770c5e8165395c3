"""`penstock.import_anndata`: what it takes, and the run: look at counts, plan, make shards, publish."""

from __future__ import annotations

import os
import pickle
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock._errors import InvalidArgumentError, IoError
from penstock._paths import PathLike, local_path
from penstock._text.errors import UsageError, WorkerError
from penstock._text.sink import ShardFolder

from .genes import Range
from .matrices import AT_ONCE
from .plan import Input, Opened, Plan, Task, check_shapes, cut, digest, make_plan, matrix_names
from .stores import format_of
from .transpose import transpose
from .work import Make, Scan, Working

if TYPE_CHECKING:
    from penstock._workers import WorkerPool

_RANGES = 8  # of one job of looking


@dataclass
class Imported:
    """What an import made.

    Attributes:
        path: the dataset's folder.
        cells: documents of the dataset.
        genes: features of the dataset.
        records: (gene, count) of all cells.
        shards: of the dataset.
        kept_shards: those among them that an earlier run had made.
        fields: of a record, with their types; empty where all matrices are columns.
        columns: names of the columns.
        left_out: what the inputs have and the dataset has not.
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
    seconds: float = 0.0


def import_anndata(
    inputs: PathLike | Iterable[PathLike],
    out: PathLike,
    x: str = "X",
    layers: Sequence[str] = (),
    obs: Sequence[str] | None = None,
    obsm: Sequence[str] = (),
    join: str = "exact",
    workers: int = 1,
    resume: bool = False,
    progress: Callable[[int, int], None] | None = None,
    *,
    format: str | None = None,
    overwrite: bool = False,
) -> Imported:
    """Makes a dataset of AnnData's .h5ad files or zarr stores: a document a cell, with a record for each gene it has.

    Memory is bounded whatever the inputs' size, and the bytes written are the same for any `workers`. Needs the extra
    penstock[cells].

    Args:
        inputs: a file or folder, or several: their cells end to end.
        out: the dataset's folder.
        x: where the counts are: "X", "raw" or "layers/NAME".
        layers: names of layers that become fields beside `count`.
        obs: columns of obs; None: all. Strings of more than 65,535 values go to the cells' entries.
        obsm: names of dense obsm, which become columns.
        join: "exact" (inputs have the same genes in the same order), "inner" (genes of all) or "outer" (of any).
        workers: processes; 1: this one alone.
        resume: keep the finished shards of a run that did not end and that were made of the same.
        progress: called with (cells done, cells in all) now and then; may raise to stop.
        format: "h5ad" or "zarr"; None: as the extension says.
        overwrite: replace a dataset that is there, once the new one is whole.

    Returns:
        Counts, and what was left out.

    Raises:
        InvalidArgumentError: an input that cannot be, with file, cell and gene; something is at `out`.
        NotFoundError: an input is not there.
        IoError: the dataset cannot be written; finished shards are kept.
        RuntimeError: a worker process was killed; finished shards are kept.

    Example:
        >>> import anndata, numpy, os, penstock, scipy.sparse, tempfile  # doctest: +SKIP
        >>> folder = tempfile.mkdtemp()  # doctest: +SKIP
        >>> anndata.AnnData(scipy.sparse.eye(3, format="csr")).write_h5ad(f"{folder}/eye.h5ad")  # doctest: +SKIP
        >>> penstock.import_anndata(f"{folder}/eye.h5ad", f"{folder}/eye").records  # doctest: +SKIP
        3
    """
    begin = time.perf_counter()
    given = [inputs] if isinstance(inputs, (str, os.PathLike)) else list(inputs)
    if not given:
        raise InvalidArgumentError("inputs: there are none")
    for name, value in (("layers", layers), ("obs", obs), ("obsm", obsm)):
        if isinstance(value, str):
            raise InvalidArgumentError(f"{name}={value!r:.80}: a list of names is wanted")
    if workers < 1:
        raise InvalidArgumentError(f"workers={workers}: must be at least 1")
    paths = [local_path(each) for each in given]
    run = _Import([Input(path, format_of(path, format)) for path in paths], matrix_names(x, layers), workers, progress)
    options = {
        "x": x,
        "layers": list(layers),
        "obs": obs if obs is None else list(obs),
        "obsm": list(obsm),
        "join": join,
    }
    try:
        done = run.run(local_path(out), options, resume, overwrite)
    except UsageError as error:
        raise InvalidArgumentError(str(error)) from None
    done.seconds = time.perf_counter() - begin
    return done


class _Import:
    def __init__(
        self, inputs: list[Input], names: list[str], workers: int, progress: Callable[[int, int], None] | None
    ) -> None:
        self._inputs = inputs
        self._names = names
        self._workers = workers
        self._progress = progress
        self._opened = Opened(inputs, names)
        self._pool: WorkerPool | None = None
        self._call: Callable[[Any], Any] | None = None

    def run(self, out: str, options: dict[str, Any], resume: bool, overwrite: bool) -> Imported:
        try:
            check_shapes(self._opened, self._inputs, self._names)
            is_new = not Path(out).exists()
            shards = ShardFolder(out, resume=resume, overwrite=overwrite)
            try:
                return self._write(shards, out, options)
            except KeyboardInterrupt:
                raise KeyboardInterrupt(f"interrupted: {shards.left_behind()}") from None
            except WorkerError as error:
                raise WorkerError(f"{error}: {shards.left_behind()}") from error
            except IoError as error:  # of the output: inputs have other errors
                raise IoError(error.errno, f"{error}: {shards.left_behind()}", error.filename) from error
            finally:
                if self._pool is not None:
                    self._pool.close()
                shards.close()
                if is_new:
                    with suppress(OSError):
                        Path(out).rmdir()  # of what was refused: nothing is in it
        finally:
            self._opened.close()

    def _write(self, shards: ShardFolder, out: str, options: dict[str, Any]) -> Imported:
        work = Working(self._inputs, self._names, out, shards.run, shards.replaces)
        ranges = self._look(work)
        plan, features, left_out = make_plan(self._opened, self._inputs, self._names, ranges, options)
        tasks = cut(plan, self._opened, ranges)
        if not tasks:
            raise InvalidArgumentError(f"{', '.join(each.path for each in self._inputs)}: there are no cells")
        done = Imported(
            out, genes=len(plan.genes.names), shards=len(tasks), fields=plan.record or {}, left_out=left_out
        )
        done.columns = list(plan.specs())
        waiting = self._keep(shards, plan, tasks, done)
        scratch = Path(out) / f".partial-transposed@{_boot()}@{shards.run}@{os.getpid()}"
        try:
            if waiting:
                for task in waiting:
                    shards.make_room(task.number)
                self._transpose(plan, scratch)
                self._make(shards, work, plan, waiting, done, sum(task.end - task.begin for task in tasks))
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
        shards.publish(len(tasks), features)
        return done

    def _look(self, work: Working) -> list[list[Range]]:
        """What values each matrix of each input has."""
        found: list[list[Range]] = [[Range() for _ in self._inputs] for _ in self._names]
        jobs = []
        for number in range(len(self._names)):
            for source in range(len(self._inputs)):
                ranges = self._opened.matrix(source, number).ranges()
                jobs += [Scan(source, number, ranges[at : at + _RANGES]) for at in range(0, len(ranges), _RANGES)]
        answers = self._answers(work, jobs)
        for job, seen in zip(jobs, answers, strict=True):
            found[job.matrix][job.source].merge(seen)
        return found

    def _keep(self, shards: ShardFolder, plan: Plan, tasks: list[Task], done: Imported) -> list[Task]:
        """Tasks whose shard is not there."""
        identity, waiting = plan.identity(), []
        for task in tasks:
            if shards.may_keep(task.number, identity):
                description = plan.description(task, digest(plan, self._opened, task))
                if shards.keep(task.number, description):
                    done.kept_shards += 1
                    done.records += shards.kept_tokens(task.number)
                    done.cells += task.end - task.begin
                    continue
            waiting.append(task)
        return waiting

    def _transpose(self, plan: Plan, scratch: Path) -> None:
        for source in range(len(self._inputs)):
            for number in range(len(self._names)):
                matrix = self._opened.matrix(source, number)
                if matrix.kind == "csc":
                    folder = scratch / f"{source}-{number}"
                    plan.buckets[source, number] = transpose(matrix, folder, AT_ONCE // 2)

    def _make(
        self, shards: ShardFolder, work: Working, plan: Plan, tasks: list[Task], done: Imported, cells: int
    ) -> None:
        pickled = pickle.dumps(plan)
        jobs = [Make(task, pickled) for task in tasks]
        for task, (description, records) in zip(tasks, self._answers(work, jobs), strict=True):
            shards.made(task.number, description)
            done.records += records
            done.cells += task.end - task.begin
            if self._progress is not None:
                self._progress(done.cells, cells)

    def _answers(self, work: Working, jobs: Sequence[Any]) -> Iterator[Any]:
        """What the work says to each job, in order."""
        if self._workers == 1 or (self._pool is None and len(jobs) <= 1):
            self._call = self._call or work.begin()
            yield from map(self._call, jobs)
            return
        from penstock._workers import WorkerPool  # which imports multiprocessing

        pool = self._pool = self._pool or WorkerPool(self._workers, work)
        for job in jobs:
            while not pool.has_room():
                yield from pool.next_results()
            pool.submit(job)
        while pool.pending():
            yield from pool.next_results()


def _boot() -> str:
    """As a writer's unfinished folders have it, so that the next run removes what a killed one left."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text()[:8]
    except OSError:
        return "unknown"
