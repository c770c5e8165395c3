"""Cells of one task, read few at a time and appended to the writer of its shard."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from penstock._base.errors import InvalidArgumentError
from penstock._base.words import excerpt
from penstock._data.anndata.columns import read_values
from penstock._data.anndata.exact import first_inexact
from penstock._data.anndata.limits import Limits
from penstock._data.anndata.matrices import Matrix, Part
from penstock._data.anndata.members import NAME, RAW
from penstock._data.anndata.opened import Opened
from penstock._data.anndata.stores import needed
from penstock._data.anndata.transpose import Buckets
from penstock._from.cells.odd import Odd, OddPlace, hash_names
from penstock._from.cells.plan import Plan, Task
from penstock._from.cells.raw import RawEntries
from penstock._make.writer import Writer


class CellWriter:
    """Reads the cells of one task and appends them, few at a time.

    Attributes:
        names: hashes of the names of the cells so far.
        odd: of each matrix.
    """

    def __init__(
        self, plan: Plan, opened: Opened, task: Task, buckets: dict[int, Buckets], writer: Writer, limits: Limits
    ) -> None:
        """Takes an opened writer of the task's shard; `buckets` by number of matrix."""
        self._plan = plan
        self._task = task
        self._limits = limits
        self._store = opened.store(task.source)
        self._writer = writer
        self._pack = needed("msgpack", "import").packb
        self._numbers = plan.genes.numbers(opened.var(task.source))
        self._matrices = []
        for number in range(len(plan.matrices)):
            matrix = opened.matrix(task.source, number)
            matrix.buckets = buckets.get(number)
            self._matrices.append(matrix)
        self._raw = None if plan.raw is None else RawEntries(self._store, plan.raw, limits)
        dense = plan.fields.count(None) * len(plan.genes.names)  # which may be more than this input's genes
        self.names: list[npt.NDArray[np.uint64]] = []
        self.odd = [Odd() for _ in self._matrices]
        self._beside = sum(each.bytes() for each in plan.columns) // 4 + dense + 1

    def write(self) -> None:
        """Writes all."""
        for begin in range(self._task.begin, self._task.end, self._limits.cells):
            end = min(begin + self._limits.cells, self._task.end)
            weights = np.full(end - begin, self._beside, np.int64)
            for matrix in self._matrices:
                weights += matrix.weights(begin, end)
            if self._raw is not None:
                weights += self._raw.weights(begin, end)
            bounds = np.cumsum(weights)
            first = begin
            while first < end:
                done = int(bounds[first - begin - 1]) if first > begin else 0
                last = begin + max(int(np.searchsorted(bounds, done + self._limits.values, "right")), first - begin + 1)
                self._append(first, min(last, end))
                first = last

    def _append(self, begin: int, end: int) -> None:
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
            return
        counts, genes, values_of = self._union(fields)
        record = plan.record or {}
        self._writer.append_batch(
            counts, encoded=entries, columns=columns, gene=genes.astype(record["gene"], copy=False), **values_of
        )

    def _note(self, number: int, begin: int, values: Any, counts: Any, genes: Any) -> None:
        """Looks for odd values of cells from `begin` on; dense ones where there are no counts."""

        def place(at: int) -> OddPlace:
            row, gene = divmod(at, len(self._plan.genes.names))
            if counts is not None:
                row, gene = int(np.searchsorted(np.cumsum(counts), at, "right")), int(genes[at])
            return OddPlace(self._task.source, begin + row, gene)

        self.odd[number].add(values, place)

    def _entries(self, begin: int, end: int, texts: dict[str, list[str | None]]) -> list[bytes]:
        names = self._store.obs.names(begin, end)
        self.names.append(hash_names(names))
        pack = self._pack
        more: dict[str, list[Any]] = dict(texts)
        if self._raw is not None:
            more[RAW] = self._raw.read(begin, end)
        if not more:
            return [pack({NAME: name}) for name in names]
        rows = zip(*more.values(), strict=True)
        return [pack({NAME: name, **dict(zip(more, row, strict=True))}) for name, row in zip(names, rows, strict=True)]

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
