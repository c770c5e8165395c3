"""One column of var as several inputs have it: what they agree on."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from penstock._data.anndata.categories import MOST_STRINGS
from penstock._data.anndata.exact import common_type, first_inexact, may_round
from penstock._data.anndata.stores import Element


class Numbers:
    """Numbers of genes [genes, …], which of them are known, and the types of the inputs that they are of."""

    def __init__(
        self, given: npt.NDArray[Any], types: tuple[np.dtype[Any], ...] = (), known: npt.NDArray[np.bool_] | None = None
    ) -> None:
        self._given = given
        self._types = types or (given.dtype,)
        self._known = np.ones(len(given), bool) if known is None else known

    @property
    def values(self) -> npt.NDArray[Any]:
        """The values as the inputs' common type."""
        return self._given.astype(common_type(self._types))

    @property
    def value_bytes(self) -> int:
        """Bytes of the value of one gene."""
        return self.values[:1].nbytes

    def spread(self, count: int, places: Any, kept: Any) -> Numbers:
        """As of all genes."""
        values, known = np.zeros((count, *self._given.shape[1:]), self._given.dtype), np.zeros(count, bool)
        values[places], known[places] = self._given[kept], True
        return Numbers(values, self._types, known)

    def joined(self, part: Numbers | Strings, places: Any, kept: Any) -> Numbers | None:
        """With another input's; None where they differ, or their common type would round one."""
        if not isinstance(part, Numbers) or part._given.shape[1:] != self._given.shape[1:]:
            return None
        types = tuple(dict.fromkeys((*self._types, *part._types)))
        if may_round(types) and any(first_inexact(each._given) is not None for each in (self, part)):
            return None
        between = np.result_type(self._given, part._given)
        values, known = self._given.astype(between), self._known.copy()
        added, before = part._given.astype(between)[kept], values[places]
        differ = (before != added) & ~((before != before) & (added != added))
        if (known[places] & differ.reshape(len(differ), -1).any(1)).any():
            return None
        values[places], known[places] = added, True
        return Numbers(values, types, known)


class Strings:
    """Strings of genes as codes of names, in the order of the first input that has them, and which are known."""

    def __init__(
        self, codes: npt.NDArray[Any], categories: list[str], known: npt.NDArray[np.bool_] | None = None
    ) -> None:
        self.codes = codes.astype(np.int64)
        self.categories = categories
        self._known = np.ones(len(codes), bool) if known is None else known

    def __len__(self) -> int:
        return len(self.codes)

    def spread(self, count: int, places: Any, kept: Any) -> Strings:
        """As of all genes."""
        codes, known = np.full(count, -1, np.int64), np.zeros(count, bool)
        codes[places], known[places] = self.codes[kept], True
        return Strings(codes, self.categories, known)

    def joined(self, part: Numbers | Strings, places: Any, kept: Any) -> Strings | None:
        """With another input's; None where they differ."""
        if not isinstance(part, Strings):
            return None
        number_of = {name: number for number, name in enumerate(self.categories)}
        for name in part.categories:
            number_of.setdefault(name, len(number_of))
        code_of = np.array([*(number_of[name] for name in part.categories), -1], np.int64)
        codes, known, added = self.codes.copy(), self._known.copy(), code_of[part.codes][kept]
        if (known[places] & (codes[places] != added)).any():
            return None
        codes[places], known[places] = added, True
        return Strings(codes, list(number_of), known)


def part_of(element: Element, axes: int = 1) -> Numbers | Strings | None:
    """The values of one input's column; None where they are of a kind that is not read.

    `axes`: 1, or 2 for numbers of two axes and more.
    """
    count = element.length
    if element.kind == "other" or (len(element.shape) != 1 if axes == 1 else len(element.shape) < axes):
        return None
    if axes > 1 and (element.kind != "numbers" or not np.prod(element.shape, dtype=object)):
        return None
    if element.kind == "categories":
        return Strings(element.numbers(0, count), element.categories)
    if element.kind == "strings":
        number_of: dict[str, int] = {}
        codes: list[int] = []
        for texts in element.blocks_of_strings():
            codes += [-1 if text is None else number_of.setdefault(text, len(number_of)) for text in texts]
            if len(number_of) > MOST_STRINGS:
                return None
        return Strings(np.array(codes, np.int64), list(number_of))
    missing = element.missing(0, count)
    values = element.numbers(0, count)
    if missing is None or not missing.any():
        return Numbers(values)
    if first_inexact(values[~missing]) is not None:
        return None
    as_floats = values.astype(np.float64)
    as_floats[missing] = np.nan
    return Numbers(as_floats)
