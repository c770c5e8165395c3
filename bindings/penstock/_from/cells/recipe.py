"""Single cells as a recipe: look at genes and columns, look at counts, cut tasks, make shards."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from penstock._base.errors import InvalidArgumentError
from penstock._data.anndata.limits import Limits
from penstock._data.anndata.opened import Input, Opened
from penstock._data.anndata.transpose import Buckets, transpose
from penstock._data.features import Noted
from penstock._from.cells.cell_writer import CellWriter
from penstock._from.cells.findings import Findings
from penstock._from.cells.identity import digest
from penstock._from.cells.noted import note_of, note_of_fractions
from penstock._from.cells.odd import Odd, Seen, from_note, hash_names, noted
from penstock._from.cells.plan import Plan, Planner, Task, check_shapes, cut
from penstock._from.cells.told import Told
from penstock._from.cells.value_range import Range
from penstock._make.base_recipe import BaseRecipe, Workshop
from penstock._make.place import Made, Numbered
from penstock._make.writer import Writer
from penstock._places.scratch import telling_of

LIMITS = Limits()
_PLAN = "plan"
_RANGES = 8  # of one job of looking
_NAMES = 1 << 16  # that are read at once


@dataclass
class Imported:
    """Counts of an import.

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


class Scan(NamedTuple):
    """Stored values of a matrix, by ranges, at which workers look before there is a plan. The answer is a Range."""

    source: int
    matrix: int
    ranges: list[tuple[int, int]]


@dataclass(frozen=True)
class CellTask:
    """A task as workers get it: it has what it needs and no more; the plan, which has all genes, is in a file.

    Attributes:
        task: which cells.
        plan: the file of the plan; None: in this process, which has it.
        buckets: of matrices of compressed columns, by number.
    """

    task: Task
    plan: str | None = None
    buckets: dict[int, Buckets] = field(default_factory=dict)


class CellRecipe(BaseRecipe):
    """Inputs of AnnData. One thread.

    Attributes:
        imported: what is said of the dataset, as far as it is known.
    """

    compares = True
    files_decide = True  # descriptions tell samples of the content

    def __init__(self, inputs: list[Input], names: list[str], options: dict[str, Any], told: Told, out: str) -> None:
        """Opens the inputs until `close`.

        Args:
            inputs: files and folders.
            names: of the matrices.
            options: decide the bytes of shards, as import_anndata() has them.
            told: who is told how far it is.
            out: of the dataset.

        Raises:
            InvalidArgumentError: a matrix has not a row for each cell and a column for each gene; there are no cells.
        """
        self._inputs = inputs
        self._names = names
        self._numbers = range(len(names))
        self._options = options
        self._limits = LIMITS
        self._told: Told | None = told
        self._plans: dict[str | None, Plan] = {}
        self._opened: Opened | None = Opened(inputs, names, self._limits)
        self.imported = Imported(out)
        try:
            self._cells = sum(check_shapes(self._opened, names))
            if not self._cells:
                raise InvalidArgumentError(f"{', '.join(each.path for each in inputs)}: there are no cells")
        except BaseException:
            self.close()
            raise

    def __getstate__(self) -> dict[str, Any]:
        """For the workers: inputs are opened there, plans are read from files."""
        kept = ("_inputs", "_names", "_numbers", "_limits")
        return {**{name: self.__dict__[name] for name in kept}, "_opened": None, "_plans": {}, "_told": None}

    def close(self) -> None:
        """Closes the inputs."""
        if self._opened is not None:
            self._opened.close()

    def begin(self) -> None:
        self._opened = self._opened or Opened(self._inputs, self._names, self._limits)

    @property
    def _open(self) -> Opened:
        assert self._opened is not None
        return self._opened

    def identity(self) -> dict[str, Any]:
        return self._plans[None].identity() if None in self._plans else self._options

    def files(self) -> Sequence[str]:
        return [each.path for each in self._inputs]

    # ---- the plan

    def prepare(self, run: Workshop) -> None:
        self._run = run
        planner = Planner(self._open, self._names, self._options)
        ranges = self._look(run)
        plan = self._plans[None] = planner.plan(ranges)
        self._tasks = cut(plan, self._open, ranges, self._limits)
        self._features = planner.features
        self._compared = self._there = 0
        said = self.imported
        self._note = note_of(self._open, plan, planner.features, planner.left_out)
        said.left_out, said.altered = self._note.left_out, self._note.altered
        said.notes = note_of_fractions(self._open, ranges[0])
        said.genes, said.fields, said.columns = len(plan.genes.names), plan.record or {}, list(plan.specs())
        with run.aside("import") as scratch, telling_of(scratch):
            self._findings = Findings(self._open, plan, self._tasks, scratch)

    def _look(self, run: Workshop) -> list[list[Range]]:
        """Looks at the values of each matrix of each input."""
        found: list[list[Range]] = [[Range() for _ in self._inputs] for _ in self._names]
        scans = []
        for source in range(len(self._inputs)):
            for number in self._numbers:
                ranges = self._open.matrix(source, number).ranges()
                scans += [Scan(source, number, ranges[at : at + _RANGES]) for at in range(0, len(ranges), _RANGES)]
        for at, (scan, seen) in enumerate(zip(scans, run.map(scans, len(scans)), strict=True), 1):
            found[scan.matrix][scan.source].merge(seen)
            self._tell("looking at counts", at, len(scans))
        return found

    def look(self, item: Scan) -> Range:
        matrix = self._open.matrix(item.source, item.matrix)
        found = Range()
        for begin, end in item.ranges:
            try:
                found.add(matrix.values(begin, end), matrix.kind == "dense")
            except InvalidArgumentError as error:
                raise InvalidArgumentError(f"{matrix}: {error}") from None
            if matrix.kind != "dense" and found.settled(matrix.dtype):
                break
        return found

    def place_of(self, item: Scan) -> str:
        return f"{self._inputs[item.source].path}: {self._open.names(item.source)[item.matrix]}"

    def plan(self) -> list[CellTask]:
        return [CellTask(task) for task in self._tasks]

    def size(self, task: CellTask) -> int:
        return task.task.end - task.task.begin

    def place(self, task: CellTask) -> str:
        return f"{self._inputs[task.task.source].path}: cell {task.task.begin:,}"

    def _plan_of(self, task: CellTask) -> Plan:
        if task.plan not in self._plans:
            assert task.plan is not None
            self._plans[task.plan] = pickle.loads(Path(task.plan).read_bytes())
        return self._plans[task.plan]

    @contextmanager
    def _planned(self, run: Workshop) -> Iterator[Path]:
        """A folder of this machine with the plan in it: in the dataset's, for a bucket in the scratch folder."""
        with run.aside("import") as folder:
            with telling_of(folder):
                (folder / _PLAN).write_bytes(pickle.dumps(self._plans[None]))
            yield folder

    # ---- finished shards

    @contextmanager
    def comparing(self, run: Workshop, there: Sequence[Numbered]) -> Iterator[Iterable[Numbered]]:
        self._there = len(there)
        with self._planned(run) as folder:
            plan = str(folder / _PLAN)
            yield (each._replace(task=replace(each.task, plan=plan)) for each in there)
        self._there = 0

    def see(self, each: Numbered) -> Seen:
        task = each.task.task
        obs = self._open.store(task.source).obs
        names = [hash_names(obs.names(at, min(at + _NAMES, task.end))) for at in range(task.begin, task.end, _NAMES)]
        return Seen(digest(self._plan_of(each.task), self._open, task), _end_to_end(names))

    def is_made_of(self, each: Numbered, seen: Seen, found: Any) -> bool:
        if self._told is not None and self._there:
            self._compared += 1
            self._tell("comparing with finished shards", self._compared, self._there)
        plan, task = self._plan_of(each.task), each.task.task
        described = plan.description(task, seen.digest) | noted(_odd_of(plan, task, found), task.begin)
        return bool(found == described)

    def refusal(self, each: Numbered, path: str) -> InvalidArgumentError:
        return InvalidArgumentError(
            f"{self._inputs[each.task.task.source].path}: shard {each.number} of {path} was made of other input or "
            "options: go on with those, or start anew with --overwrite and without --resume"
        )

    # ---- shards

    @contextmanager
    def making(self, run: Workshop, waiting: Sequence[Numbered]) -> Iterator[Iterable[Sequence[Numbered]]]:
        with self._planned(run) as folder:
            buckets = self._transpose([each.task.task for each in waiting], folder)
            yield ([each._replace(task=self._with(each.task.task, folder, buckets))] for each in waiting)

    def _with(self, task: Task, folder: Path, buckets: dict[tuple[int, int], Buckets]) -> CellTask:
        found = {number: buckets.get((task.source, number)) for number in self._numbers}
        parts = {number: each.part(task.begin, task.end) for number, each in found.items() if each is not None}
        return CellTask(task, str(folder / _PLAN), parts)

    def _transpose(self, tasks: list[Task], scratch: Path) -> dict[tuple[int, int], Buckets]:
        """Transposes matrices of compressed columns in the inputs of these tasks."""
        buckets = {}
        found = [(source, number) for source in sorted({task.source for task in tasks}) for number in self._numbers]
        stored = {key: self._open.matrix(*key).stored for key in found if self._open.matrix(*key).kind == "csc"}
        before = 0
        for (source, number), count in stored.items():

            def tell(scattered: int, before: int = before) -> None:
                self._tell("transposing", before + scattered, sum(stored.values()))

            matrix, folder = self._open.matrix(source, number), scratch / f"{source}-{number}"
            with telling_of(folder):
                buckets[source, number] = transpose(matrix, folder, self._limits.values // 2, tell)
            before += count
        return buckets

    def describe(self, number: int, task: CellTask) -> None:
        """Nothing: `make` has read what it is made of."""

    def writer_options(self, task: CellTask) -> dict[str, Any]:
        plan = self._plan_of(task)
        return {"fields": plan.record, "metadata": "msgpack", "columns": plan.specs()}

    def make(self, task: CellTask, writer: Writer) -> Seen:
        plan = self._plan_of(task)
        found = digest(plan, self._open, task.task)
        cells = CellWriter(plan, self._open, task.task, task.buckets, writer, self._limits)
        cells.write()
        writer.set_task(plan.description(task.task, found) | noted(cells.odd, task.task.begin))
        return Seen(found, _end_to_end(cells.names))

    def took(self, made: Made) -> None:
        task = self._tasks[made.number]
        self._findings.add(task, made.value, _odd_of(self._plans[None], task, made.task))

    def finish(self, results: Sequence[Made]) -> Mapping[str, Any]:
        with self._run.aside("import") as scratch, telling_of(scratch):
            self.imported.odd, notes = self._findings.told(scratch)
            self.imported.notes += notes
        return {"features": Noted(self._features, self._note.as_json())}

    def _tell(self, what: str, done: int, total: int) -> None:
        assert self._told is not None
        self._told.prepared(what, done, total, self._cells)


def _odd_of(plan: Plan, task: Task, description: Any) -> list[Odd]:
    """The odd counts that the description of a task's finished shard has noted."""
    known = description if isinstance(description, dict) else {}
    return from_note(known, task.source, task.begin, len(plan.matrices))


def _end_to_end(names: list[npt.NDArray[np.uint64]]) -> npt.NDArray[np.uint64]:
    return np.concatenate([np.empty(0, np.uint64), *names])
