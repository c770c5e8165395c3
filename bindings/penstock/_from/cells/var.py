"""Columns of var as columns of features: what all inputs have and agree on."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from penstock._base.words import excerpt
from penstock._data.anndata.categories import CategoryRoom
from penstock._data.anndata.genes import Genes
from penstock._data.anndata.opened import Opened
from penstock._data.anndata.stores import Frame
from penstock._data.anndata.var_columns import Numbers, part_of
from penstock._data.features import NAMES, feature_table


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
        elif isinstance(column, Numbers):
            columns[name] = column.values
        elif not room.take(name, column.categories):
            left_out.append(f"var/{excerpt(name)} (its strings have no room in a column)")
        else:
            columns[name] = column
    feature_table(columns)
    return columns


def _columns(opened: Opened, genes: Genes, left_out: list[str]) -> dict[str, Any]:
    """By name, input after input: few are open at a time."""
    where = opened.var(0).where
    found: dict[str, Any] = {}
    gone: dict[str, str] = {}
    for source in range(len(opened)):
        frame = opened.var(source)
        numbers = genes.numbers(frame)
        for name in frame.columns if source == 0 else [each for each in frame.columns if each not in found]:
            if source:
                gone.setdefault(name, "not in all inputs")
            else:
                found[name] = None
        for name in [each for each in found if each not in gone]:
            if name not in frame.columns:
                gone[name] = "not in all inputs"
            else:
                found[name] = _added(found[name], frame, name, numbers, genes, gone)
    left_out += [f"{where}/{excerpt(name)} ({why})" for name, why in gone.items()]
    return {name: column for name, column in found.items() if name not in gone}


def _added(
    column: Any, frame: Frame, name: str, numbers: npt.NDArray[np.int64] | None, genes: Genes, gone: dict[str, str]
) -> Any:
    part = part_of(frame.element(name))
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
