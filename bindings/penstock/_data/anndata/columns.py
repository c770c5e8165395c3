"""Values of cells: which of the inputs' obs and obsm become columns, of what type, and reading them by ranges."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from penstock._base.errors import InvalidArgumentError
from penstock._base.words import excerpt
from penstock._data.anndata import categories
from penstock._data.anndata.categories import CategoryRoom, Coded
from penstock._data.anndata.exact import common_type, first_inexact, may_round
from penstock._data.anndata.opened import Opened
from penstock._data.anndata.stores import Element, Store


@dataclass
class Planned:
    """One column, or one text of the entries.

    Attributes:
        name: of the column.
        where: "obs" or "obsm".
        kind: "numbers", "categories" or "texts" (of the entries).
        dtype: of numbers.
        shape: trailing axes.
        categories: the names, in the order of their codes.
        longest: bytes of the longest text that was looked at.
    """

    name: str
    where: str
    kind: str
    dtype: str = ""
    shape: tuple[int, ...] = ()
    categories: list[str] = field(default_factory=list)
    longest: int = 0

    def spec(self) -> Any:
        """As a writer's `columns=` takes it."""
        if self.kind == "categories":
            return self.categories
        return (self.dtype, self.shape) if self.shape else self.dtype

    def bytes(self) -> int:
        """Bytes of one value in memory; of a text about."""
        if self.kind == "texts":
            return max(4, self.longest)
        return 4 if self.kind == "categories" else np.dtype(self.dtype).itemsize * math.prod(self.shape)


def plan_obs(opened: Opened, wanted: Sequence[str] | None, room: CategoryRoom, left_out: list[str]) -> list[Planned]:
    """Columns that obs becomes: `wanted` names, or all that all inputs have.

    Raises:
        InvalidArgumentError: a name that an input has not, kinds that do not go together, integers that no float holds
            though the column is one.
    """
    seen = _seen_in_all(opened, wanted, left_out)
    planned = []
    for name, each in seen.items():
        if not each.is_other:
            planned.append(each.plan(opened, room))
        elif wanted is not None:
            raise InvalidArgumentError(f"{opened.path(0)}: obs/{excerpt(name)} is of a kind that is not read")
        else:
            left_out.append(f"obs/{excerpt(name)} (of a kind that is not read)")
    return planned


def _seen_in_all(opened: Opened, wanted: Sequence[str] | None, left_out: list[str]) -> dict[str, _Seen]:
    """The columns of obs that all inputs have, as they are in each."""
    seen: dict[str, _Seen] = {}
    for source in range(len(opened)):
        frame = opened.store(source).obs
        if wanted is not None:
            _refuse_unknown(frame.path, "obs", wanted, frame.columns)
            left_out += [f"obs/{excerpt(name)}" for name in frame.columns if name not in wanted]
        names = frame.columns if wanted is None else wanted
        if source == 0:
            seen = {name: _Seen(name) for name in names}
        others = [name for name in names if name not in seen] + [name for name in seen if name not in names]
        left_out += [f"obs/{excerpt(name)} (not in all inputs)" for name in others]
        for name in others:
            seen.pop(name, None)
        for name, each in seen.items():
            each.add(source, frame.element(name))
    return seen


def plan_obsm(opened: Opened, wanted: Sequence[str], left_out: list[str]) -> list[Planned]:
    """The columns of dense obsm, of any number of axes.

    Raises:
        InvalidArgumentError: a name that an input has not, none that is dense, shapes that differ, integers that no
            float holds though the column is one.
    """
    seen = {name: _SeenArray(name) for name in wanted}
    for source in range(len(opened)):
        store = opened.store(source)
        there = store.names_in("obsm")
        _refuse_unknown(store.path, "obsm", wanted, there)
        left_out += [f"obsm/{excerpt(name)} (name it with obsm)" for name in there if name not in wanted]
        for each in seen.values():
            each.add(store)
    return [each.plan(opened) for each in seen.values()]


def _refuse_unknown(path: str, where: str, names: Sequence[str], there: Sequence[str]) -> None:
    for name in names:
        if name not in there:
            known = f"there are {', '.join(map(excerpt, there))}" if there else "there are none"
            raise InvalidArgumentError(f"{path}: {where} has no {excerpt(name)}: {known}")
    if len(set(names)) != len(names):
        raise InvalidArgumentError(f"{where}={list(names)!r:.80}: a name is there twice")


class _Seen:
    """The values that the inputs have under one name of obs."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._kinds: dict[str, str] = {}  # with an input that has it
        self._types: list[np.dtype[Any]] = []
        self._wide: list[int] = []  # inputs whose integers a float may not hold
        self._names: dict[str, None] = {}
        self._bytes = self._longest = 0
        self._is_full = False
        self.is_other = False

    def add(self, source: int, element: Element) -> None:
        if element.kind == "other" or len(element.shape) != 1:
            self.is_other = True
            return
        self._kinds.setdefault(element.kind, str(element))
        if element.kind in ("numbers", "nullable"):
            self._types.append(type_of(element))
            if self._types[-1].kind in "iu" and self._types[-1].itemsize == 8:
                self._wide.append(source)
        else:
            self._add_names(element)

    def _add_names(self, element: Element) -> None:
        if self._is_full:
            return
        blocks: Any = [element.categories] if element.kind == "categories" else element.blocks_of_strings()
        for block in blocks:
            for text in block:
                if text is None or text in self._names:
                    continue
                self._names[text] = None
                self._bytes += categories.json_bytes(text)
                self._longest = max(self._longest, len(text.encode()))
            too_many = "strings" in self._kinds and len(self._names) > categories.MOST_STRINGS
            if too_many or self._bytes > categories.ROOM or self._longest > categories.MOST_BYTES:
                self._is_full = True
            if self._is_full:
                self._names.clear()
                return

    def plan(self, opened: Opened, room: CategoryRoom) -> Planned:
        if set(self._kinds) <= {"numbers", "nullable"}:
            if may_round(self._types):
                _refuse_rounding(opened.store(source).obs.element(self._name) for source in self._wide)
            return Planned(self._name, "obs", "numbers", common_type(self._types).str)
        if not set(self._kinds) <= {"strings", "categories"}:
            places = ", ".join(path.rpartition(": obs/")[0] for path in self._kinds.values())
            raise InvalidArgumentError(
                f"obs/{excerpt(self._name)} is numbers in one input and strings in another: {places}"
            )
        names = list(self._names)
        too_many = "strings" in self._kinds and len(names) > categories.MOST_STRINGS
        if self._is_full or too_many or not room.take(self._name, names):
            return Planned(self._name, "obs", "texts", longest=self._longest)
        return Planned(self._name, "obs", "categories", categories=names)


def type_of(element: Element) -> np.dtype[Any]:
    """The type of numbers: a float's where some are missing, NaN then stands for them.

    Raises:
        InvalidArgumentError: no float holds those that are there.
    """
    some_are_missing, exact4 = False, True
    inexact: int | None = None
    for begin, end in element.blocks() if element.kind == "nullable" else ():
        missing = element.missing(begin, end)
        assert missing is not None
        there = element.numbers(begin, end)[~missing]
        some_are_missing |= bool(missing.any())
        exact4 &= first_inexact(there, np.float32) is None
        inexact = first_inexact(there) if inexact is None else inexact
    if not some_are_missing:
        return element.dtype
    if inexact is not None:
        raise InvalidArgumentError(
            f"{element}: values are missing, and {inexact:,} is exact in no float that could have NaN in their place"
        )
    return np.dtype("<f4" if exact4 else "<f8")


def _refuse_rounding(elements: Iterator[Element]) -> None:
    for element in elements:
        for begin, end in element.blocks():
            values, missing = element.numbers(begin, end), element.missing(begin, end)
            inexact = first_inexact(values if missing is None else values[~missing])
            if inexact is not None:
                raise InvalidArgumentError(
                    f"{element}: {inexact:,} is exact in no float, which is the common type of the inputs"
                )


class _SeenArray:
    """The arrays that the inputs have under one name of obsm."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._shape: tuple[int, ...] = ()
        self._first = ""
        self._types: list[np.dtype[Any]] = []

    def add(self, store: Store) -> None:
        element = store.obsm(self._name)
        if element.kind != "numbers" or len(element.shape) < 2 or element.length != len(store.obs):
            raise InvalidArgumentError(f"{element}: no dense array of a row for each cell")
        if not self._first:
            self._first, self._shape = store.path, element.shape[1:]
        if element.shape[1:] != self._shape:
            raise InvalidArgumentError(
                f"{element}: {list(element.shape[1:])} for each cell, {self._first} has {list(self._shape)}"
            )
        self._types.append(element.dtype)

    def plan(self, opened: Opened) -> Planned:
        if may_round(self._types):
            _refuse_rounding(opened.store(source).obsm(self._name) for source in range(len(opened)))
        return Planned(self._name, "obsm", "numbers", common_type(self._types).str, self._shape)


def read_values(store: Store, planned: Planned, begin: int, end: int) -> Any:
    """Values of cells [begin, end), as a writer takes them; of texts a list."""
    element = store.obs.element(planned.name) if planned.where == "obs" else store.obsm(planned.name)
    if planned.kind == "texts" or (planned.kind == "categories" and element.kind == "strings"):
        return element.strings(begin, end)
    if planned.kind == "categories":
        return Coded(element.numbers(begin, end), element.categories)
    values, missing = element.numbers(begin, end), element.missing(begin, end)
    if missing is not None and np.dtype(planned.dtype).kind == "f":
        values = values.astype(planned.dtype)
        values[missing] = np.nan
    return values
