"""Genes of several inputs as one list, and what a scan of their counts says of the types that hold them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from penstock._errors import InvalidArgumentError
from penstock._words import excerpt

from .columns import MOST_STRINGS
from .stores import Frame

JOINS = ("exact", "inner", "outer")


@dataclass
class Genes:
    """The genes of the dataset.

    Attributes:
        names: by their numbers.
        numbers: of each input, the dataset's number of each of its genes, int64, -1 of one that is left out; None where
            they are the same.
    """

    names: list[str]
    numbers: list[npt.NDArray[np.int64] | None]


def join_genes(frames: Sequence[Frame], join: str) -> Genes:
    """One list of the inputs' genes.

    Raises:
        InvalidArgumentError: names that are there twice, lists that differ under "exact", none in common.
    """
    if join not in JOINS:
        raise InvalidArgumentError(f"join={join!r}: must be one of {', '.join(map(repr, JOINS))}")
    lists = [frame.names() for frame in frames]
    for frame, names in zip(frames, lists, strict=True):
        _refuse_twice(frame, names)
    first = lists[0]
    if join == "exact":
        for frame, names in zip(frames, lists, strict=True):
            if names != first:
                raise InvalidArgumentError(_difference(frames[0], first, frame, names))
        return Genes(first, [None] * len(lists))
    known = [set(names) for names in lists]
    if join == "inner":
        names = [name for name in first if all(name in each for each in known)]
        if not names:
            raise InvalidArgumentError(f"no gene is in all inputs: {', '.join(frame.path for frame in frames)}")
    else:
        names = list(dict.fromkeys(name for each in lists for name in each))
    number = {name: at for at, name in enumerate(names)}
    return Genes(
        names,
        [None if each == names else np.array([number.get(name, -1) for name in each], np.int64) for each in lists],
    )


def _refuse_twice(frame: Frame, names: list[str]) -> None:
    if len(set(names)) == len(names):
        return
    seen: dict[str, int] = {}
    for at, name in enumerate(names):
        if name in seen:
            raise InvalidArgumentError(
                f"{frame.path}: {frame.where}: genes {seen[name]:,} and {at:,} are both named {excerpt(name)}: give "
                "them names of their own (var_names_make_unique)"
            )
        seen[name] = at


def _difference(first: Frame, wanted: list[str], frame: Frame, names: list[str]) -> str:
    at = next((i for i, (a, b) in enumerate(zip(wanted, names, strict=False)) if a != b), None)
    where = (
        f"{len(wanted):,} and {len(names):,} of them"
        if at is None
        else f"gene {at:,} is {excerpt(wanted[at])} and {excerpt(names[at])}"
    )
    return f"{first.path} and {frame.path} have other genes: {where}: choose join='inner' or 'outer'"


def gene_columns(frames: Sequence[Frame], genes: Genes, left_out: list[str]) -> dict[str, Any]:
    """Columns of var that all inputs have and agree on where they have the same gene; the others are named."""
    columns: dict[str, Any] = {}
    names = dict.fromkeys(name for frame in frames for name in frame.columns)
    for name in names:
        shown = f"{frames[0].where}/{excerpt(name)}"
        if any(name not in frame.columns for frame in frames):
            left_out.append(f"{shown} (not in all inputs)")
            continue
        parts = [_gene_values(frame, name) for frame in frames]
        if any(part is None for part in parts):
            left_out.append(f"{shown} (of a kind that is not read)")
            continue
        merged = _merge(parts, genes)
        if merged is None:
            left_out.append(f"{shown} (inputs differ, or a gene has no value)")
        else:
            columns[name] = merged
    return columns


class _Categories:
    """Codes and all names, in AnnData's order."""

    def __init__(self, codes: Any, categories: list[str]) -> None:
        self.codes, self.categories = codes, categories

    def __len__(self) -> int:
        return len(self.codes)


def _gene_values(frame: Frame, name: str) -> Any:
    element = frame.element(name)
    count = len(frame)
    if element.kind == "other" or len(element.shape) != 1:
        return None
    if element.kind == "categories":
        return _Categories(element.numbers(0, count), element.categories)
    if element.kind == "strings":
        found = element.strings(0, count)
        return found if len({text for text in found if text is not None}) <= MOST_STRINGS else None
    missing = element.missing(0, count)
    values = element.numbers(0, count)
    if missing is None or not missing.any():
        return values
    as_floats = values.astype(np.float64)
    if values.dtype.kind in "iu" and int(np.abs(values[~missing]).max(initial=0)) > 1 << 53:
        return None
    as_floats[missing] = np.nan
    return as_floats


def _merge(parts: list[Any], genes: Genes) -> Any:
    if len(parts) == 1:
        return parts[0]
    values: list[Any] = [None] * len(genes.names)
    known = np.zeros(len(genes.names), bool)
    for part, numbers in zip(parts, genes.numbers, strict=True):
        plain = _plain(part)
        for at, value in enumerate(plain):
            number = at if numbers is None else int(numbers[at])
            if number < 0:
                continue
            if known[number] and values[number] != value and not (value != value and values[number] != values[number]):
                return None
            values[number], known[number] = value, True
    kinds = {isinstance(value, str) for value in values if value is not None}
    if not known.all() or len(kinds) > 1 or (kinds == {False} and None in values):
        return None
    if isinstance(parts[0], _Categories) and all(
        isinstance(part, _Categories) and part.categories == parts[0].categories for part in parts
    ):
        code_of = {name: at for at, name in enumerate(parts[0].categories)}
        return _Categories(np.array([-1 if v is None else code_of[v] for v in values], np.int64), parts[0].categories)
    return values if kinds != {False} else np.array(values)


def _plain(part: Any) -> list[Any]:
    if isinstance(part, _Categories):
        return [None if code < 0 else part.categories[code] for code in np.asarray(part.codes).tolist()]
    return part.tolist() if isinstance(part, np.ndarray) else list(part)


@dataclass
class Range:
    """What values there are: enough to say the smallest type that holds them.

    Attributes:
        whole: all are integers from 0 on.
        most: the greatest of them, while `whole`.
        exact4: a float of 4 bytes holds each of them.
        zeros: how many are zero.
        count: how many there are.
    """

    whole: bool = True
    most: int = 0
    exact4: bool = True
    zeros: int = 0
    count: int = 0

    def add(self, values: npt.NDArray[Any], count_zeros: bool) -> None:
        """Looks at more values."""
        self.count += values.size
        if not values.size:
            return
        if count_zeros:
            self.zeros += values.size - int(np.count_nonzero(values))
        if values.dtype.kind == "b":
            self.most = max(self.most, int(values.max()))
        elif values.dtype.kind in "iu":
            low, high = int(values.min()), int(values.max())
            self.whole &= low >= 0
            self.most = max(self.most, high)
            if max(-low, high) > 1 << 24:
                self.exact4 &= bool(np.array_equal(values.astype(np.float32).astype(np.float64), values))
            if max(-low, high) > 1 << 53 and not bool((values.astype(np.float64).astype(values.dtype) == values).all()):
                raise InvalidArgumentError(f"the count {high if high > -low else low:,} is exact in no float")
        else:
            if self.whole:
                with np.errstate(invalid="ignore"):
                    self.whole = bool((values >= 0).all()) and bool((np.floor(values) == values).all())
                if self.whole and bool(np.isfinite(values).all()):
                    self.most = max(self.most, int(values.max()))
                else:
                    self.whole = False
            if self.exact4 and values.dtype.itemsize == 8:
                with np.errstate(over="ignore", invalid="ignore"):
                    self.exact4 = bool(np.array_equal(values.astype(np.float32), values, equal_nan=True))

    def settled(self, dtype: np.dtype[Any]) -> bool:
        """Whether more values of this type can change nothing that is asked of sparse ones."""
        return not self.whole and (not self.exact4 or dtype.kind == "b" or dtype.str[1:] in ("f2", "f4"))

    def merge(self, other: Range) -> None:
        """Takes what another saw of the rest."""
        self.whole &= other.whole
        self.most = max(self.most, other.most)
        self.exact4 &= other.exact4
        self.zeros += other.zeros
        self.count += other.count

    def smallest(self) -> str:
        """The smallest of u1, u2, u4 that holds all, else f4, or f8 where f4 loses."""
        if self.whole:
            for dtype, limit in (("<u1", 1 << 8), ("<u2", 1 << 16), ("<u4", 1 << 32)):
                if self.most < limit:
                    return dtype
        return "<f4" if self.exact4 else "<f8"
