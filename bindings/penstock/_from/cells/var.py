"""Columns of var as columns of features: what all inputs have and agree on."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from penstock._base.words import excerpt
from penstock._data.anndata.categories import CategoryRoom
from penstock._data.anndata.genes import Genes
from penstock._data.anndata.members import VARM
from penstock._data.anndata.opened import Opened
from penstock._data.anndata.stores import Element
from penstock._data.anndata.var_columns import Numbers, part_of
from penstock._data.features import NAMES, feature_table

_MOST_BYTES = 1 << 20  # of a gene's value in one column


def plan_features(opened: Opened, genes: Genes, left_out: list[str]) -> dict[str, Any]:
    """Features as a writer takes them: names, and the columns that all inputs have and agree on. Others are named.

    Raises:
        InvalidArgumentError: no writer could write them.
    """
    columns: dict[str, Any] = {NAMES: genes.names}
    room = CategoryRoom()
    for name, column in _columns(opened, genes, left_out).items():
        if name == NAMES:
            left_out.append(f"var/{name}")
        elif isinstance(column, Numbers) and column.value_bytes > _MOST_BYTES:
            left_out.append(f"{excerpt(name)} (more than 1 MiB for each gene)")
        elif isinstance(column, Numbers):
            columns[name] = column.values
        elif not room.take(name, column.categories):
            left_out.append(f"var/{excerpt(name)} (its strings have no room in a column)")
        else:
            columns[name] = column
    feature_table(columns)
    return columns


def _columns(opened: Opened, genes: Genes, left_out: list[str]) -> dict[str, Any]:
    """By name, input after input: few are open at a time. Arrays of varm are called varm/NAME."""
    where = opened.var(0).where
    found: dict[str, Any] = {}
    gone: dict[str, str] = {}
    for source in range(len(opened)):
        numbers = genes.numbers(opened.var(source))
        members = _members(opened, source)
        for name in members if source == 0 else [each for each in members if each not in found]:
            if source:
                gone.setdefault(name, "not in all inputs")
            else:
                found[name] = None
        for name in [each for each in found if each not in gone]:
            if name not in members:
                gone[name] = "not in all inputs"
            else:
                found[name] = _added(found[name], members[name](), name, numbers, genes, gone)
    for name, why in gone.items():
        left_out.append(f"{'' if name.startswith(VARM) else where + '/'}{excerpt(name)} ({why})")
    return {name: column for name, column in found.items() if name not in gone}


def _members(opened: Opened, source: int) -> dict[str, Callable[[], Element]]:
    """How each column of var, and each array of varm, of an input is looked at."""
    frame, store = opened.var(source), opened.store(source)
    found: dict[str, Callable[[], Element]] = {name: partial(frame.element, name) for name in frame.columns}
    varm = "raw/varm" if frame.where == "raw/var" else "varm"
    for name in store.names_in(varm):
        if f"{VARM}{name}" not in found and "/" not in name:
            found[f"{VARM}{name}"] = partial(Element, store.path, store.root[varm], name, varm)
    return found


def _added(
    column: Any, element: Element, name: str, numbers: npt.NDArray[np.int64] | None, genes: Genes, gone: dict[str, str]
) -> Any:
    part = part_of(element, axes=2 if name.startswith(VARM) else 1)
    if part is None:
        gone[name] = "of a kind that is not read"
        return None
    if numbers is None and column is None:
        return part
    kept: Any = slice(None) if numbers is None else numbers >= 0
    places: Any = slice(None) if numbers is None else numbers[kept]
    whole = part.spread(len(genes.names), places, kept) if column is None else column.joined(part, places, kept)
    if whole is None:
        gone[name] = "inputs differ"
    return whole
