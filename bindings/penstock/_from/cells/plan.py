"""The plan of an import, decided by its inputs alone: fields, columns, genes, and tasks, each of one shard."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from penstock._base.errors import InvalidArgumentError
from penstock._base.words import excerpt
from penstock._data.anndata.categories import CategoryRoom
from penstock._data.anndata.columns import Planned, plan_obs, plan_obsm
from penstock._data.anndata.counts import checked, member
from penstock._data.anndata.genes import Genes, join_genes
from penstock._data.anndata.limits import Limits
from penstock._data.anndata.members import LAYERS, NAME, RAW, X
from penstock._data.anndata.opened import Opened
from penstock._data.anndata.stores import Store
from penstock._data.column_values import check_columns
from penstock._data.dtype import record_dtype
from penstock._from.cells.raw import matrix_of, plan_raw
from penstock._from.cells.value_range import Range
from penstock._from.cells.var import plan_features

_MOST_CELLS = 1 << 20  # of a task
_OWN_FIELDS = ("gene", "count", "metadata_id")


@dataclass(frozen=True)
class Task:
    """Cells [begin, end) of one input, which become shard `number`."""

    number: int
    source: int
    begin: int
    end: int


@dataclass
class Plan:
    """All that decides the bytes of shards, but for the inputs.

    Attributes:
        matrices: their names, x first.
        fields: of each matrix the field that holds it; None where it is a column.
        types: of each matrix.
        genes: of the dataset.
        columns: of obs and obsm.
        options: what the caller chose.
        raw: what `plan_raw` says of raw, which entries keep; None: they do not.
    """

    matrices: list[str]
    fields: list[str | None]
    types: list[str]
    genes: Genes
    columns: list[Planned]
    options: dict[str, Any]
    raw: dict[str, Any] | None = None

    @property
    def record(self) -> dict[str, str] | None:
        """The records' fields; None where all matrices are columns."""
        named = [(name, dtype) for name, dtype in zip(self.fields, self.types, strict=True) if name is not None]
        return {"gene": "<u2" if len(self.genes.names) <= 1 << 16 else "<u4", **dict(named)} if named else None

    def column_name(self, number: int) -> str:
        """The name of a matrix that is a column: "X" of the counts, "layers/NAME" of the others."""
        return self.matrices[number] if number else X

    def specs(self) -> dict[str, Any]:
        """The writer's `columns=`.

        Raises:
            InvalidArgumentError: two columns have one name.
        """
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
        """The part of shard.json that tells it: two runs of other options, genes or types differ in it."""
        told = json.dumps(
            [self.genes.names, self.record, [(name, spec) for name, spec in self.specs().items()], self.texts()]
        )
        return {**self.options, "fields": self.record, "plan": hashlib.sha256(told.encode()).hexdigest()}

    def description(self, task: Task, digest: str) -> dict[str, Any]:
        """The description of a task that `shard.json` keeps."""
        return {
            "version": 2,
            "number": task.number,
            "cells": task.end - task.begin,
            "sha256": digest,
            "options": self.identity(),
        }


def matrix_names(x: str, layers: Sequence[str]) -> list[str]:
    """Names of the matrices, x first.

    Raises:
        InvalidArgumentError: no such place, a layer that is there twice, or one that could not be told from the counts.
    """
    checked(x)
    names = [str(each) for each in layers]
    for name in names:
        if name in _OWN_FIELDS or names.count(name) > 1:
            raise InvalidArgumentError(f"layers={names!r:.80}: {excerpt(name)} is the name of another field")
        if name == X:
            raise InvalidArgumentError(
                f"layers={names!r:.80}: the counts come back as X, and so would the layer X: rename it, or take it as "
                "x='layers/X'"
            )
        if not name or "/" in name:
            raise InvalidArgumentError(f"layers={names!r:.80}: {excerpt(name)!r} is the name of no layer")
    if names and x == "raw":
        raise InvalidArgumentError("layers go with X, whose genes are not those of raw")
    return [member(x), *(f"{LAYERS}{name}" for name in names)]


def check_shapes(opened: Opened, names: list[str]) -> list[int]:
    """Cells of each input.

    Raises:
        InvalidArgumentError: a matrix has not a row for each cell and a column for each gene.
    """
    cells = []
    for source in range(len(opened)):
        matrices = [opened.matrix(source, number) for number in range(len(names))]
        wanted = (len(opened.store(source).obs), len(opened.var(source)))
        for matrix in matrices:
            if matrix.shape != wanted:
                raise InvalidArgumentError(
                    f"{matrix}: shape {list(matrix.shape)}, but there are {wanted[0]:,} cells and {wanted[1]:,} genes"
                )
        cells.append(wanted[0])
    return cells


class Planner:
    """Makes the plan: what can be refused is, before counts are looked at; then what they decide."""

    def __init__(self, opened: Opened, names: list[str], options: dict[str, Any]) -> None:
        """Looks at genes, obs, obsm and var of all inputs.

        Raises:
            InvalidArgumentError: genes, columns or features that cannot be.
        """
        self._opened = opened
        self._names = names
        self._options = options
        record_dtype(dict.fromkeys(("gene", "count", *(name.removeprefix(LAYERS) for name in names[1:])), "u1"))
        left_out: list[str] = []
        genes = join_genes(opened, options["join"])
        columns = [
            *plan_obs(opened, options["obs"], CategoryRoom(), left_out),
            *plan_obsm(opened, options["obsm"], left_out),
        ]
        if NAME in [each.name for each in columns if each.kind == "texts"]:
            raise InvalidArgumentError(f'obs/{NAME}: an entry\'s "{NAME}" is the name of the cell: rename it')
        raw = plan_raw(opened, Limits()) if options.get("raw") else None
        if raw and RAW in [each.name for each in columns if each.kind == "texts"]:
            raise InvalidArgumentError(f'obs/{RAW}: an entry\'s "{RAW}" is raw: rename it')
        self._plan = Plan(names, [], [], genes, columns, options, raw)
        check_columns(self._plan.specs())
        self.features = plan_features(opened, genes, left_out)
        for source in range(len(opened)):
            left = _left_of(opened.store(source), opened.names(source))
            left_out += [each for each in left if raw is None or each != "raw"]
        self.left_out = list(dict.fromkeys(left_out))

    def plan(self, ranges: list[list[Range]]) -> Plan:
        """With fields and types; `ranges` of each matrix and input."""
        fields: list[str | None] = []
        types = []
        for number, name in enumerate(self._names):
            whole = Range()
            for each in ranges[number]:
                whole.merge(each)
            dense = all(self._opened.matrix(source, number).kind == "dense" for source in range(len(self._opened)))
            is_column = dense and 2 * whole.zeros < whole.count
            fields.append(None if is_column else "count" if number == 0 else name.removeprefix(LAYERS))
            types.append(whole.smallest())
        plan = replace(self._plan, fields=fields, types=types)
        check_columns(plan.specs())
        return plan


def _left_of(store: Store, names: list[str]) -> list[str]:
    """Members of an input beside obs, obsm and var that no dataset gets."""
    varm = "varm" if names[0] == "raw/X" else "raw/varm"  # the other one is the features'
    left = [f"{group}/{excerpt(each)}" for group in ("obsp", varm, "varp") for each in store.names_in(group)]
    left += [f"layers/{excerpt(each)}" for each in store.names_in("layers") if f"layers/{each}" not in names]
    left += [group for group, name in ((X, X), ("raw", "raw/X")) if name in store.root and name not in names]
    return left


def cut(plan: Plan, opened: Opened, ranges: list[list[Range]], limits: Limits) -> list[Task]:
    """Runs of cells of about as many values, none across inputs."""
    cells, stored = [], 0
    for source in range(len(opened)):
        cells.append(len(opened.store(source).obs))
        for number, name in enumerate(plan.fields):
            matrix, seen = opened.matrix(source, number), ranges[number][source]
            stored += seen.count - seen.zeros if matrix.kind == "dense" and name is not None else matrix.stored
    if plan.raw is not None:
        stored += sum(matrix_of(opened.store(source), limits).stored for source in range(len(opened)))
    weight = stored + sum(cells) * sum(each.bytes() for each in plan.columns) // 4
    each = max(1, min(_MOST_CELLS, limits.task_values * sum(cells) // max(1, weight)))
    tasks: list[Task] = []
    for source, count in enumerate(cells):
        parts = -(-count // each)
        ends = [count * part // parts for part in range(parts + 1)] if parts else []
        for begin, end in pairwise(ends):
            tasks.append(Task(len(tasks), source, begin, end))
    return tasks
