"""Columns of var as columns of features: what all inputs have and agree on."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from penstock._base.words import excerpt
from penstock._data.anndata.categories import MOST_STRINGS, CategoryRoom
from penstock._data.anndata.exact import common_type, first_inexact, may_round
from penstock._data.anndata.genes import Genes
from penstock._data.anndata.opened import Opened
from penstock._data.anndata.stores import Element, Frame
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
        elif isinstance(column, _Numbers):
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
    part = _part_of(frame.element(name))
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


class _Numbers:
    """Numbers of genes, which of them are known, and the types of the inputs that they are of."""

    def __init__(
        self, given: npt.NDArray[Any], types: tuple[np.dtype[Any], ...] = (), known: npt.NDArray[np.bool_] | None = None
    ) -> None:
        self._given = given
        self._types = types or (given.dtype,)
        self._known = np.ones(len(given), bool) if known is None else known

    @property
    def values(self) -> npt.NDArray[Any]:
        """Of the inputs' common type."""
        return self._given.astype(common_type(self._types))

    def spread(self, count: int, places: Any, kept: Any) -> _Numbers:
        """As of all genes."""
        values, known = np.zeros(count, self._given.dtype), np.zeros(count, bool)
        values[places], known[places] = self._given[kept], True
        return _Numbers(values, self._types, known)

    def joined(self, part: _Numbers | _Strings, places: Any, kept: Any) -> _Numbers | None:
        """With another input's; None where they differ, or their common type would round one."""
        if not isinstance(part, _Numbers):
            return None
        types = tuple(dict.fromkeys((*self._types, *part._types)))
        if may_round(types) and any(first_inexact(each._given) is not None for each in (self, part)):
            return None
        between = np.result_type(self._given, part._given)
        values, known = self._given.astype(between), self._known.copy()
        added, before = part._given.astype(between)[kept], values[places]
        if (known[places] & (before != added) & ~((before != before) & (added != added))).any():
            return None
        values[places], known[places] = added, True
        return _Numbers(values, types, known)


class _Strings:
    """Strings of genes as codes of names, in the order of the first input that has them, and which are known."""

    def __init__(
        self, codes: npt.NDArray[Any], categories: list[str], known: npt.NDArray[np.bool_] | None = None
    ) -> None:
        self.codes = codes.astype(np.int64)
        self.categories = categories
        self._known = np.ones(len(codes), bool) if known is None else known

    def __len__(self) -> int:
        return len(self.codes)

    def spread(self, count: int, places: Any, kept: Any) -> _Strings:
        """As of all genes."""
        codes, known = np.full(count, -1, np.int64), np.zeros(count, bool)
        codes[places], known[places] = self.codes[kept], True
        return _Strings(codes, self.categories, known)

    def joined(self, part: _Numbers | _Strings, places: Any, kept: Any) -> _Strings | None:
        """With another input's; None where they differ."""
        if not isinstance(part, _Strings):
            return None
        number_of = {name: number for number, name in enumerate(self.categories)}
        for name in part.categories:
            number_of.setdefault(name, len(number_of))
        code_of = np.array([*(number_of[name] for name in part.categories), -1], np.int64)
        codes, known, added = self.codes.copy(), self._known.copy(), code_of[part.codes][kept]
        if (known[places] & (codes[places] != added)).any():
            return None
        codes[places], known[places] = added, True
        return _Strings(codes, list(number_of), known)


def _part_of(element: Element) -> _Numbers | _Strings | None:
    count = element.length
    if element.kind == "other" or len(element.shape) != 1:
        return None
    if element.kind == "categories":
        return _Strings(element.numbers(0, count), element.categories)
    if element.kind == "strings":
        number_of: dict[str, int] = {}
        codes: list[int] = []
        for texts in element.blocks_of_strings():
            codes += [-1 if text is None else number_of.setdefault(text, len(number_of)) for text in texts]
            if len(number_of) > MOST_STRINGS:
                return None
        return _Strings(np.array(codes, np.int64), list(number_of))
    missing = element.missing(0, count)
    values = element.numbers(0, count)
    if missing is None or not missing.any():
        return _Numbers(values)
    if first_inexact(values[~missing]) is not None:
        return None
    as_floats = values.astype(np.float64)
    as_floats[missing] = np.nan
    return _Numbers(as_floats)
