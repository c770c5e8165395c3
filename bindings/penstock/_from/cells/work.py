"""What worker processes do: look at counts, digest what a task is made of, and make its shard."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from penstock._base.errors import InvalidArgumentError
from penstock._base.words import excerpt
from penstock._data.anndata.columns import read_values
from penstock._data.anndata.exact import first_inexact
from penstock._data.anndata.limits import Limits
from penstock._data.anndata.matrices import Matrix, Part
from penstock._data.anndata.members import NAME
from penstock._data.anndata.opened import Input, Opened
from penstock._data.anndata.stores import needed
from penstock._data.anndata.transpose import Buckets
from penstock._from.cells.identity import digest
from penstock._from.cells.odd import Odd, Place, Seen, from_note, hash_names, noted
from penstock._from.cells.plan import Plan, Task
from penstock._from.cells.value_range import Range
from penstock._make.folder import Folder
from penstock._make.writer import Writer


class Scan(NamedTuple):
    """A job: look at stored values of these ranges of a matrix. The answer is a Range."""

    source: int
    matrix: int
    ranges: list[tuple[int, int]]


class Compare(NamedTuple):
    """A job: digest what a task is made of; `plan` is the file of the plan. The answer is what was seen of it."""

    task: Task
    plan: str


class Make(NamedTuple):
    """A job: make the shard of a task; `buckets` by number of matrix. The answer is what shard.json says of it, its
    records, and what was seen."""

    task: Task
    plan: str
    buckets: dict[int, Buckets]


Job = Scan | Compare | Make

_NAMES = 1 << 16  # that are read at once


@dataclass
class Working:
    """Work of a pool. A job has what it needs and no more: the plan, which has all genes, is in a file."""

    inputs: list[Input]
    names: list[str]
    limits: Limits
    folder: Folder
    run: str
    overwrite: bool

    def begin(self, opened: Opened | None = None) -> Callable[[Job], Any]:
        """What is called for each job; `opened` are the inputs, where they are open in this process."""
        opened = opened or Opened(self.inputs, self.names, self.limits)
        plans: dict[str, Plan] = {}  # of one import there is one

        def work(job: Job) -> Any:
            if isinstance(job, Scan):
                return _scan(opened.matrix(job.source, job.matrix), job)
            if job.plan not in plans:
                plans[job.plan] = pickle.loads(Path(job.plan).read_bytes())
            plan = plans[job.plan]
            found = digest(plan, opened, job.task)
            if isinstance(job, Make):
                return self._make(plan, opened, job, found)
            return Seen(found, _names_of(opened, job.task), [])  # of odd counts the finished shard tells

        return work

    def _make(self, plan: Plan, opened: Opened, job: Make, found: str) -> tuple[dict[str, Any], int, Seen]:
        description = plan.description(job.task, found)
        try:
            records, names, odd = self._write(plan, opened, job, description)
            return description | noted(odd, job.task.begin), records, Seen(found, names, odd)
        except InvalidArgumentError:
            # An earlier attempt at this task may have finished it and been killed before it could say so.
            there = self.folder.finished(self.overwrite, now=True)
            for each in there:
                odd = odd_of(plan, job.task, each.task)
                told = description | noted(odd, job.task.begin)
                if (each.number, each.task) == (job.task.number, told):
                    return told, each.records, Seen(found, _names_of(opened, job.task), odd)
            raise

    def _write(
        self, plan: Plan, opened: Opened, job: Make, description: dict[str, Any]
    ) -> tuple[int, npt.NDArray[np.uint64], list[Odd]]:
        writer = Writer(
            self.folder,
            plan.record,
            "msgpack",
            columns=plan.specs(),
            shard=job.task.number,
            run=self.run,
            overwrite=self.overwrite,
            task=description,
        )
        with writer:
            task = TaskWriter(plan, opened, job, writer, self.limits)
            records = task.write()
            writer.set_task(description | noted(task.odd, job.task.begin))
            return records, np.concatenate([np.empty(0, np.uint64), *task.names]), task.odd

    def place(self, job: Job) -> str:
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


def odd_of(plan: Plan, task: Task, description: Any) -> list[Odd]:
    """The odd counts that the description of a task's finished shard has noted."""
    known = description if isinstance(description, dict) else {}
    return from_note(known, task.source, task.begin, len(plan.matrices))


def _names_of(opened: Opened, task: Task) -> npt.NDArray[np.uint64]:
    obs = opened.store(task.source).obs
    names = [hash_names(obs.names(at, min(at + _NAMES, task.end))) for at in range(task.begin, task.end, _NAMES)]
    return np.concatenate([np.empty(0, np.uint64), *names])


class TaskWriter:
    """Reads the cells of one task and appends them, few at a time.

    Attributes:
        names: hashes of the names of the cells so far.
        odd: of each matrix.
    """

    def __init__(self, plan: Plan, opened: Opened, job: Make, writer: Writer, limits: Limits) -> None:
        """Of an opened writer of the task's shard."""
        self._plan = plan
        self._task = job.task
        self._limits = limits
        self._store = opened.store(job.task.source)
        self._writer = writer
        self._pack = needed("msgpack", "import").packb
        self._numbers = plan.genes.numbers(opened.var(job.task.source))
        self._matrices = []
        for number in range(len(plan.matrices)):
            matrix = opened.matrix(job.task.source, number)
            matrix.buckets = job.buckets.get(number)
            self._matrices.append(matrix)
        dense = plan.fields.count(None) * len(plan.genes.names)  # which may be more than this input's genes
        self.names: list[npt.NDArray[np.uint64]] = []
        self.odd = [Odd() for _ in self._matrices]
        self._beside = sum(each.bytes() for each in plan.columns) // 4 + dense + 1

    def write(self) -> int:
        """Writes all; the number of records."""
        records = 0
        for begin in range(self._task.begin, self._task.end, self._limits.cells):
            end = min(begin + self._limits.cells, self._task.end)
            weights = np.full(end - begin, self._beside, np.int64)
            for matrix in self._matrices:
                weights += matrix.weights(begin, end)
            bounds = np.cumsum(weights)
            first = begin
            while first < end:
                done = int(bounds[first - begin - 1]) if first > begin else 0
                last = begin + max(int(np.searchsorted(bounds, done + self._limits.values, "right")), first - begin + 1)
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
                block = self._dense(_cast(matrix.dense(begin, end), dtype), dtype)
                self._note(number, begin, block, None, None)
                columns[plan.column_name(number)] = block
            else:
                part = self._in_order(matrix, begin, end)
                self._note(number, begin, part.values, part.counts, part.genes)
                fields.append((name, dtype, part, matrix))
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

    def _note(self, number: int, begin: int, values: Any, counts: Any, genes: Any) -> None:
        """Looks for odd values of cells from `begin` on; dense ones where there are no counts."""

        def place(at: int) -> Place:
            row, gene = divmod(at, len(self._plan.genes.names))
            if counts is not None:
                row, gene = int(np.searchsorted(np.cumsum(counts), at, "right")), int(genes[at])
            return Place(self._task.source, begin + row, gene)

        self.odd[number].add(values, place)

    def _entries(self, begin: int, end: int, texts: dict[str, list[str | None]]) -> list[bytes]:
        names = self._store.obs.names(begin, end)
        self.names.append(hash_names(names))
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
    if cast.dtype.kind == "u" and values.dtype.kind in "if":
        changed = not np.array_equal(cast, values)
    elif cast.dtype.kind == "u":
        changed = values.size > 0 and int(values.max()) > np.iinfo(cast.dtype).max
    else:
        changed = first_inexact(values, cast.dtype) is not None
    if changed:
        raise InvalidArgumentError("counts differ from those of the first pass: the input has changed")
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
