"""What an import makes of its inputs, decided by them alone: fields, columns, genes, and tasks, each of one shard."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from penstock._errors import InvalidArgumentError
from penstock._words import excerpt

from .columns import Planned, plan_obs, plan_obsm
from .genes import Genes, Range, gene_columns, join_genes
from .matrices import Matrix
from .stores import Frame, Store
from .transpose import Buckets

TASK_VALUES = 1 << 24
"""Records of a task, on average."""
_MOST_CELLS = 1 << 20  # of a task
_OWN_FIELDS = ("gene", "count", "metadata_id")
NAME = "name"
"""The key of a cell's name in its entry."""


@dataclass(frozen=True)
class Input:
    """A file or folder, and how it is read."""

    path: str
    format: str


@dataclass(frozen=True)
class Task:
    """Cells [begin, end) of one input, which become shard `number`."""

    number: int
    source: int
    begin: int
    end: int


@dataclass
class Plan:
    """All that decides the bytes of shards.

    Attributes:
        inputs: in order.
        matrices: their names, x first.
        fields: of each matrix the field that holds it; None where it is a column.
        types: of each matrix.
        genes: of the dataset.
        columns: of obs and obsm.
        options: what the caller chose.
        buckets: of each input and matrix that is of compressed columns.
    """

    inputs: list[Input]
    matrices: list[str]
    fields: list[str | None]
    types: list[str]
    genes: Genes
    columns: list[Planned]
    options: dict[str, Any]
    buckets: dict[tuple[int, int], Buckets] = field(default_factory=dict)

    @property
    def record(self) -> dict[str, str] | None:
        """The records' fields; None where all matrices are columns."""
        named = [(name, dtype) for name, dtype in zip(self.fields, self.types, strict=True) if name is not None]
        return {"gene": "<u2" if len(self.genes.names) <= 1 << 16 else "<u4", **dict(named)} if named else None

    def column_name(self, number: int) -> str:
        """Of a matrix that is a column: "X", or the layer's name."""
        return self.matrices[number].rpartition("/")[2] if self.matrices[number] != "raw/X" else "X"

    def specs(self) -> dict[str, Any]:
        """The writer's `columns=`."""
        found: dict[str, Any] = {}
        for each in self.columns:
            if each.kind != "texts":
                if each.name in found:
                    raise InvalidArgumentError(f"obs and obsm both have {excerpt(each.name)}: leave one of them out")
                found[each.name] = each.spec()
        for number, name in enumerate(self.fields):
            if name is None:
                column = self.column_name(number)
                if column in found:
                    raise InvalidArgumentError(f"obs or obsm has {excerpt(column)}, as the matrix is called")
                found[column] = (self.types[number], (len(self.genes.names),))
        return found

    def texts(self) -> list[str]:
        """Names of what goes to the entries beside the cell's name."""
        return [each.name for each in self.columns if each.kind == "texts"]

    def identity(self) -> dict[str, Any]:
        """What shard.json says of it; two runs of other options or types differ in it."""
        told = json.dumps(
            [self.genes.names, self.record, [(name, spec) for name, spec in self.specs().items()], self.texts()]
        )
        return {**self.options, "fields": self.record, "plan": hashlib.sha256(told.encode()).hexdigest()}

    def description(self, task: Task, digest: str) -> dict[str, Any]:
        """What `shard.json` keeps of a task."""
        return {
            "version": 1,
            "number": task.number,
            "cells": task.end - task.begin,
            "sha256": digest,
            "options": self.identity(),
        }


class Opened:
    """The stores of a plan's inputs and their matrices, opened as they are needed. One thread at a time."""

    def __init__(self, inputs: list[Input], names: list[str]) -> None:
        """Opens nothing yet."""
        self._inputs = inputs
        self._names = names
        self._stores: dict[int, Store] = {}
        self._matrices: dict[tuple[int, int], Matrix] = {}

    def store(self, number: int) -> Store:
        """Input `number`."""
        if number not in self._stores:
            self._stores[number] = Store(self._inputs[number].path, self._inputs[number].format)
        return self._stores[number]

    def matrix(self, source: int, number: int) -> Matrix:
        """Matrix `number` of input `source`."""
        key = (source, number)
        if key not in self._matrices:
            self._matrices[key] = Matrix(self.store(source), self._names[number])
        return self._matrices[key]

    def close(self) -> None:
        """Closes all files."""
        for store in self._stores.values():
            store.close()
        self._stores.clear()
        self._matrices.clear()


def matrix_names(x: str, layers: Any) -> list[str]:
    """Where the matrices are, x first.

    Raises:
        InvalidArgumentError: no such place, a layer that is there twice or whose name is a field's already.
    """
    if x not in ("X", "raw") and not (x.startswith("layers/") and len(x) > len("layers/")):
        raise InvalidArgumentError(f"x={x!r:.80}: must be 'X', 'raw' or 'layers/NAME'")
    names = [str(each) for each in layers]
    for name in names:
        if name in _OWN_FIELDS or names.count(name) > 1:
            raise InvalidArgumentError(f"layers={names!r:.80}: {excerpt(name)} is the name of another field")
    if names and x == "raw":
        raise InvalidArgumentError("layers go with X, whose genes are not those of raw")
    return ["raw/X" if x == "raw" else x, *(f"layers/{name}" for name in names)]


def check_shapes(opened: Opened, plan_inputs: list[Input], names: list[str]) -> list[Frame]:
    """The frames of genes of all inputs.

    Raises:
        InvalidArgumentError: a matrix has not a row for each cell and a column for each gene.
    """
    where = "raw/var" if names[0] == "raw/X" else "var"
    frames = []
    for source in range(len(plan_inputs)):
        store = opened.store(source)
        found = [opened.matrix(source, number) for number in range(len(names))]
        frames.append(Frame(store.path, store.root, where))
        wanted = (len(store.obs), len(frames[-1]))
        for matrix in found:
            if matrix.shape != wanted:
                raise InvalidArgumentError(
                    f"{matrix}: shape {list(matrix.shape)}, but there are {wanted[0]:,} cells and {wanted[1]:,} genes"
                )
    return frames


def make_plan(
    opened: Opened, inputs: list[Input], names: list[str], ranges: list[list[Range]], given: dict[str, Any]
) -> tuple[Plan, dict[str, Any], list[str]]:
    """The plan, the features as a writer takes them, and what is left out; `ranges` of each matrix and input."""
    left_out: list[str] = []
    stores = [opened.store(source) for source in range(len(inputs))]
    frames = check_shapes(opened, inputs, names)
    genes = join_genes(frames, given["join"])
    columns = [*plan_obs(stores, given["obs"], left_out), *plan_obsm(stores, given["obsm"], left_out)]
    if NAME in [each.name for each in columns if each.kind == "texts"]:
        raise InvalidArgumentError(f'obs/{NAME}: an entry\'s "{NAME}" is the name of the cell: rename it')
    fields: list[str | None] = []
    types = []
    for number, name in enumerate(names):
        whole = Range()
        for each in ranges[number]:
            whole.merge(each)
        dense = all(opened.matrix(source, number).kind == "dense" for source in range(len(inputs)))
        is_column = dense and 2 * whole.zeros < whole.count
        fields.append(None if is_column else "count" if number == 0 else name.rpartition("/")[2])
        types.append(whole.smallest())
    features = {"names": genes.names, **_without_names(gene_columns(frames, genes, left_out), left_out)}
    _name_what_is_left(stores, names, left_out)
    plan = Plan(inputs, names, fields, types, genes, columns, {name: _plain(value) for name, value in given.items()})
    plan.specs()  # refuses names that clash
    return plan, features, list(dict.fromkeys(left_out))


def _without_names(columns: dict[str, Any], left_out: list[str]) -> dict[str, Any]:
    if columns.pop("names", None) is not None:
        left_out.append("var/names")
    return columns


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _name_what_is_left(stores: list[Store], names: list[str], left_out: list[str]) -> None:
    for store in stores:
        for group in ("uns", "obsp", "varm", "varp", "raw/varm"):
            left_out += [f"{group}/{excerpt(each)}" for each in store.names_in(group)]
        left_out += [f"layers/{excerpt(each)}" for each in store.names_in("layers") if f"layers/{each}" not in names]
        left_out += [
            group for group, name in (("X", "X"), ("raw", "raw/X")) if name in store.root and name not in names
        ]


def cut(plan: Plan, opened: Opened, ranges: list[list[Range]]) -> list[Task]:
    """Runs of cells of about as many values, none across inputs."""
    cells = [len(opened.store(source).obs) for source in range(len(plan.inputs))]
    stored = 0
    for number, name in enumerate(plan.fields):
        for source in range(len(plan.inputs)):
            matrix, seen = opened.matrix(source, number), ranges[number][source]
            stored += seen.count - seen.zeros if matrix.kind == "dense" and name is not None else matrix.stored
    weight = stored + sum(cells) * sum(each.bytes() for each in plan.columns) // 4
    each = max(1, min(_MOST_CELLS, TASK_VALUES * sum(cells) // max(1, weight)))
    tasks: list[Task] = []
    for source, count in enumerate(cells):
        parts = max(1, -(-count // each)) if count else 0
        ends = [count * part // parts for part in range(parts + 1)] if parts else []
        for begin, end in pairwise(ends):
            tasks.append(Task(len(tasks), source, begin, end))
    return tasks


def digest(plan: Plan, opened: Opened, task: Task) -> str:
    """SHA-256 of samples of what a task reads: of each matrix where its cells begin, and the values and indices at its
    ends; the names of the cells. Enough to tell another input, without reading all of this one."""
    few = 1 << 12
    found = hashlib.sha256()
    obs = opened.store(task.source).obs
    for begin in range(task.begin, task.end, 1 << 16):
        found.update("\n".join(obs.names(begin, min(begin + (1 << 16), task.end))).encode())
    for number in range(len(plan.matrices)):
        matrix = opened.matrix(task.source, number)
        found.update(f"{matrix.name} {matrix.kind} {matrix.shape} {matrix.dtype.str} {matrix.stored}\n".encode())
        if matrix.kind == "dense":
            ends = [(task.begin, task.begin + 1), (task.end - 1, task.end)]
        else:
            low, high = 0, matrix.stored
            if matrix.kind == "csr":
                starts = matrix.starts(task.begin, task.end)
                low, high = int(starts[0]), int(starts[-1])
                found.update(np.ascontiguousarray(starts - low))
            ends = [(low, min(low + few, high)), (max(low, high - few), high)]
        for begin, end in ends:
            found.update(_bytes(matrix.values(begin, end)))
            if matrix.kind != "dense":
                found.update(_bytes(matrix.indices(begin, end).astype(np.int64)))
    return found.hexdigest()


def _bytes(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)
