"""What worker processes do: look at counts, and make the shard of a task."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from penstock._errors import InvalidArgumentError
from penstock._words import excerpt
from penstock._writer import Writer

from .columns import read_values
from .genes import Range
from .matrices import AT_ONCE, Matrix, Part
from .plan import NAME, Input, Opened, Plan, Task, digest
from .stores import needed

_CELLS_AT_ONCE = 1 << 14


class Scan(NamedTuple):
    """A job: look at stored values of these ranges of a matrix."""

    source: int
    matrix: int
    ranges: list[tuple[int, int]]


class Make(NamedTuple):
    """A job: make the shard of a task; of the pickled plan."""

    task: Task
    plan: bytes


@dataclass
class Working:
    """Work of a pool: answers a Scan with a Range, and a Make with what shard.json says of it and its records."""

    inputs: list[Input]
    names: list[str]
    out: str
    run: str
    overwrite: bool

    def begin(self) -> Callable[[Scan | Make], Any]:
        """What is called for each job."""
        opened = Opened(self.inputs, self.names)
        plans: dict[bytes, Plan] = {}  # of one import there is one

        def work(job: Scan | Make) -> Any:
            if isinstance(job, Scan):
                return _scan(opened.matrix(job.source, job.matrix), job)
            if job.plan not in plans:
                plans[job.plan] = pickle.loads(job.plan)
            return self._make(plans[job.plan], opened, job.task)

        return work

    def _make(self, plan: Plan, opened: Opened, task: Task) -> tuple[dict[str, Any], int]:
        description = plan.description(task, digest(plan, opened, task))
        writer = Writer(
            self.out,
            plan.record,
            "msgpack",
            columns=plan.specs(),
            shard=task.number,
            run=self.run,
            overwrite=self.overwrite,
            task=description,
        )
        with writer:
            records = TaskWriter(plan, opened, task, writer).write()
        return description, records

    def place(self, job: Scan | Make) -> str:
        """What the job is about."""
        if isinstance(job, Scan):
            return f"{self.inputs[job.source].path}: {self.names[job.matrix]}"
        return f"{self.inputs[job.task.source].path}: cell {job.task.begin:,}"


def _scan(matrix: Matrix, job: Scan) -> Range:
    found = Range()
    for begin, end in job.ranges:
        try:
            found.add(matrix.values(begin, end), matrix.kind == "dense")
        except InvalidArgumentError as error:
            raise InvalidArgumentError(f"{matrix}: {error}") from None
        if matrix.kind != "dense" and found.settled(matrix.dtype):
            break
    return found


class TaskWriter:
    """Reads the cells of one task and appends them, few at a time."""

    def __init__(self, plan: Plan, opened: Opened, task: Task, writer: Writer) -> None:
        """Of an opened writer of the task's shard."""
        self._plan = plan
        self._task = task
        self._store = opened.store(task.source)
        self._writer = writer
        self._pack = needed("msgpack", "import").packb
        self._numbers = plan.genes.numbers[task.source]
        self._matrices = []
        for number in range(len(plan.matrices)):
            matrix = opened.matrix(task.source, number)
            matrix.buckets = plan.buckets.get((task.source, number))
            self._matrices.append(matrix)

    def write(self) -> int:
        """Writes all; the number of records."""
        records = 0
        for begin in range(self._task.begin, self._task.end, _CELLS_AT_ONCE):
            end = min(begin + _CELLS_AT_ONCE, self._task.end)
            weights = np.full(end - begin, sum(each.bytes() for each in self._plan.columns) // 4 + 1, np.int64)
            for matrix in self._matrices:
                weights += matrix.weights(begin, end)
            bounds = np.cumsum(weights)
            first = begin
            while first < end:
                done = int(bounds[first - begin - 1]) if first > begin else 0
                last = begin + max(int(np.searchsorted(bounds, done + AT_ONCE, "right")), first - begin + 1)
                records += self._append(first, min(last, end))
                first = last
        return records

    def _append(self, begin: int, end: int) -> int:
        plan, columns = self._plan, dict[str, Any]()
        fields: list[tuple[str, str, Part, Matrix]] = []
        for name, dtype, number, matrix in zip(
            plan.fields, plan.types, range(len(self._matrices)), self._matrices, strict=True
        ):
            if name is None:
                columns[plan.column_name(number)] = self._dense(matrix.dense(begin, end), dtype)
            else:
                fields.append((name, dtype, self._in_order(matrix, begin, end), matrix))
        texts: dict[str, list[str | None]] = {}
        for each in plan.columns:
            values = read_values(self._store, each, begin, end)
            if each.kind == "texts":
                texts[each.name] = values
            else:
                columns[each.name] = values
        entries = self._entries(begin, end, texts)
        if not fields:
            self._writer.append_batch(encoded=entries, columns=columns)
            return 0
        counts, genes, values_of = self._union(fields)
        record = plan.record or {}
        self._writer.append_batch(
            counts, encoded=entries, columns=columns, gene=genes.astype(record["gene"], copy=False), **values_of
        )
        return len(genes)

    def _entries(self, begin: int, end: int, texts: dict[str, list[str | None]]) -> list[bytes]:
        names = self._store.obs.names(begin, end)
        pack = self._pack
        if not texts:
            return [pack({NAME: name}) for name in names]
        rows = zip(*texts.values(), strict=True)
        return [pack({NAME: name, **dict(zip(texts, row, strict=True))}) for name, row in zip(names, rows, strict=True)]

    def _dense(self, values: npt.NDArray[Any], dtype: str) -> npt.NDArray[Any]:
        if self._numbers is None:
            return values.astype(dtype, copy=False)
        out = np.zeros((len(values), len(self._plan.genes.names)), dtype)
        kept = self._numbers >= 0
        out[:, self._numbers[kept]] = values[:, kept]
        return out

    def _in_order(self, matrix: Matrix, begin: int, end: int) -> Part:
        """Cells [begin, end) with the dataset's numbers of genes, which ascend in each cell.

        Raises:
            InvalidArgumentError: a gene is there twice in a cell.
        """
        counts, genes, values = matrix.read(begin, end)
        if self._numbers is not None:
            genes = self._numbers[genes]
            kept = genes >= 0
            if not kept.all():
                ends = np.concatenate([[0], np.cumsum(kept)])[np.concatenate([[0], np.cumsum(counts)])]
                counts, genes, values = np.diff(ends), genes[kept], values[kept]
        if _ascends(counts, genes):
            return Part(counts, genes, values)
        keys = _keys(counts, genes, len(self._plan.genes.names))
        order = np.argsort(keys, kind="stable")
        keys = keys[order]
        twice = np.flatnonzero(keys[1:] == keys[:-1])
        if len(twice):
            row, gene = divmod(int(keys[twice[0]]), len(self._plan.genes.names))
            raise InvalidArgumentError(
                f"{matrix}: {matrix.cell(begin + row)} has the gene {excerpt(self._plan.genes.names[gene])} twice"
            )
        return Part(counts, genes[order], values[order])

    def _union(
        self, fields: list[tuple[str, str, Part, Matrix]]
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[Any], dict[str, npt.NDArray[Any]]]:
        """Positions that any matrix has; a matrix that lacks one has 0 there."""
        _, _, first, _ = fields[0]
        if all(_same_places(first, part) for _, _, part, _ in fields[1:]):
            return first.counts, first.genes, {name: _cast(part.values, dtype) for name, dtype, part, _ in fields}
        genes = len(self._plan.genes.names)
        keys = [_keys(part.counts, part.genes, genes) for _, _, part, _ in fields]
        union = np.unique(np.concatenate(keys))
        out: dict[str, npt.NDArray[Any]] = {}
        for (name, dtype, part, _), places in zip(fields, keys, strict=True):
            out[name] = np.zeros(len(union), dtype)
            out[name][np.searchsorted(union, places)] = _cast(part.values, dtype)
        return np.bincount(union // genes, minlength=len(first.counts)), union % genes, out


def _cast(values: npt.NDArray[Any], dtype: str) -> npt.NDArray[Any]:
    cast = values.astype(dtype, copy=False)
    if cast.dtype.kind == "u" and values.dtype.kind == "f" and not np.array_equal(cast, values):
        raise InvalidArgumentError("counts are others than they were when they were looked at: the input has changed")
    return cast


def _ascends(counts: npt.NDArray[np.int64], genes: npt.NDArray[Any]) -> bool:
    if len(genes) < 2:
        return True
    rises = genes[1:] > genes[:-1]
    starts = np.cumsum(counts)[:-1]
    rises[starts[(starts > 0) & (starts < len(genes))] - 1] = True
    return bool(rises.all())


def _keys(counts: npt.NDArray[np.int64], genes: npt.NDArray[Any], number: int) -> npt.NDArray[np.int64]:
    rows = np.repeat(np.arange(len(counts), dtype=np.int64), counts)
    rows *= number
    rows += genes.astype(np.int64, copy=False)
    return rows


def _same_places(a: Part, b: Part) -> bool:
    return np.array_equal(a.counts, b.counts) and np.array_equal(a.genes, b.genes)
