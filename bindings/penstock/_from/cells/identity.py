"""The content that a task of cells is made of: samples, which tell one input from another.

docs/decisions.md, "Times tell a changed input, samples tell what a shard was made of".
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import numpy.typing as npt

from penstock._data.anndata.columns import Planned, read_values
from penstock._data.anndata.limits import Limits
from penstock._data.anndata.matrices import Matrix
from penstock._data.anndata.opened import Opened
from penstock._from.cells.plan import Plan, Task
from penstock._from.cells.raw import matrix_of

_BLOCKS = 16  # that are sampled of a task's values: the first, the last, and between them
_VALUES = 1 << 12  # of such a block
_ROW_BYTES = 1 << 12  # of a column's value up to which all are digested


def digest(plan: Plan, opened: Opened, task: Task) -> str:
    """SHA-256 of what a task is made of: numbers of genes, names of cells, where each begins, obs and obsm, and of the
    matrices (and of values of obsm that are large) samples."""
    found = hashlib.sha256()
    numbers = plan.genes.numbers(opened.var(task.source))
    found.update(b"same" if numbers is None else _bytes(numbers))
    store = opened.store(task.source)
    for begin, end in _ranges(task.begin, task.end, 1 << 16):
        _add_texts(found, store.obs.names(begin, end))
    for column in plan.columns:
        found.update(f"{column.where}/{column.name}\n".encode())
        for begin, end in _column_ranges(column, task):
            _add_values(found, read_values(store, column, begin, end))
    for number in range(len(plan.matrices)):
        _add_matrix(found, opened.matrix(task.source, number), task)
    if plan.raw is not None:
        _add_matrix(found, matrix_of(store, Limits()), task)
    return found.hexdigest()


def _column_ranges(column: Planned, task: Task) -> list[tuple[int, int]]:
    each = column.bytes()
    if each > _ROW_BYTES and column.kind == "numbers":
        return _spread(task.begin, task.end, 1)
    return _ranges(task.begin, task.end, max(1, min(1 << 16, (1 << 23) // each)))


def _add_values(found: Any, values: Any) -> None:
    if hasattr(values, "categories"):
        _add_texts(found, values.categories)
        found.update(_bytes(values.codes))
    elif isinstance(values, list):
        _add_texts(found, values)
    else:
        found.update(_bytes(values))


def _add_texts(found: Any, texts: list[Any]) -> None:
    lengths = [-1 if each is None else len(each) for each in texts]
    found.update(_bytes(np.array(lengths, np.int64)))
    found.update("".join(each or "" for each in texts).encode())


def _add_matrix(found: Any, matrix: Matrix, task: Task) -> None:
    found.update(f"{matrix.name} {matrix.kind} {matrix.shape} {matrix.dtype.str} {matrix.stored}\n".encode())
    if matrix.kind == "dense":
        blocks = _spread(task.begin, task.end, 1)
    else:
        low, high = 0, matrix.stored
        # Of compressed columns, where genes begin: all of a task's cells are in each.
        lines = (task.begin, task.end) if matrix.kind == "csr" else (0, matrix.shape[1])
        for begin, end in _ranges(*lines, 1 << 16):
            starts = matrix.starts(begin, end)
            if matrix.kind == "csr":
                low, high = (int(starts[0]) if begin == lines[0] else low), int(starts[-1])
                starts = starts - low
            found.update(_bytes(starts))
        blocks = _spread(low, high, _VALUES)
    for begin, end in blocks:
        found.update(_bytes(matrix.values(begin, end)))
        if matrix.kind != "dense":
            found.update(_bytes(matrix.indices(begin, end).astype(np.int64)))


def _ranges(begin: int, end: int, step: int) -> list[tuple[int, int]]:
    return [(at, min(at + step, end)) for at in range(begin, end, step)]


def _spread(begin: int, end: int, size: int) -> list[tuple[int, int]]:
    """At most _BLOCKS ranges of `size` of [begin, end), the first and the last among them."""
    if end - begin <= _BLOCKS * size:
        return _ranges(begin, end, size)
    last = end - size
    return [(at, at + size) for at in (begin + (last - begin) * i // (_BLOCKS - 1) for i in range(_BLOCKS))]


def _bytes(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)
