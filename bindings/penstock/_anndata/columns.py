"""Values of cells: which of an input's obs and obsm become columns, of what type, and reading them by ranges."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from penstock._errors import InvalidArgumentError
from penstock._words import excerpt

from .stores import Element, Frame, Store

MOST_STRINGS = 65_535
"""Distinct strings up to which they are categories."""


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
    """

    name: str
    where: str
    kind: str
    dtype: str = ""
    shape: tuple[int, ...] = ()
    categories: list[str] = field(default_factory=list)

    def spec(self) -> Any:
        """As a writer's `columns=` takes it."""
        if self.kind == "categories":
            return self.categories
        return (self.dtype, self.shape) if self.shape else self.dtype

    def bytes(self) -> int:
        """Of one value."""
        return 4 if self.kind != "numbers" else np.dtype(self.dtype).itemsize * int(np.prod(self.shape, dtype=int))


class Coded:
    """Codes and the names that occur: what a writer takes for a category, as it does pandas' Categorical."""

    def __init__(self, codes: npt.NDArray[Any], names: Sequence[str]) -> None:
        """`codes` of `names`, negative where one is missing; only the names that occur are kept."""
        used, places = np.unique(codes, return_inverse=True)
        missing = int(np.searchsorted(used, 0))  # codes below 0
        self.categories = [names[code] for code in used[missing:].tolist()]
        self.codes = np.maximum(places.astype(np.int64) - missing, -1)

    def __len__(self) -> int:
        """How many values."""
        return len(self.codes)


def plan_obs(stores: Sequence[Store], wanted: Sequence[str] | None, left_out: list[str]) -> list[Planned]:
    """What becomes of obs: `wanted` names, or all that all inputs have.

    Raises:
        InvalidArgumentError: a name that an input has not, kinds that do not go together, integers of which some are
            missing and that no float holds.
    """
    frames = [store.obs for store in stores]
    if wanted is None:
        names = [name for name in frames[0].columns if all(name in frame.columns for frame in frames)]
        others = dict.fromkeys(name for frame in frames for name in frame.columns if name not in names)
        left_out += [f"obs/{excerpt(name)} (not in all inputs)" for name in others]
    else:
        names = list(wanted)
        for frame in frames:
            _refuse_unknown(frame.path, "obs", names, frame.columns)
            left_out += [f"obs/{excerpt(name)}" for name in frame.columns if name not in names]
    planned = []
    for name in names:
        elements = [frame.element(name) for frame in frames]
        if any(element.kind == "other" or len(element.shape) != 1 for element in elements):
            if wanted is not None:
                raise InvalidArgumentError(f"{frames[0].path}: obs/{excerpt(name)} is of a kind that is not read")
            left_out.append(f"obs/{excerpt(name)} (of a kind that is not read)")
        else:
            planned.append(_plan(name, frames, elements))
    return planned


def plan_obsm(stores: Sequence[Store], wanted: Sequence[str], left_out: list[str]) -> list[Planned]:
    """The columns of dense obsm, of any number of axes.

    Raises:
        InvalidArgumentError: a name that an input has not, none that is dense, shapes that differ.
    """
    planned = []
    for store in stores:
        there = store.names_in("obsm")
        _refuse_unknown(store.path, "obsm", wanted, there)
        left_out += [f"obsm/{excerpt(name)} (name it with obsm)" for name in there if name not in wanted]
    for name in wanted:
        elements = [Element(store.root["obsm"], name) for store in stores]
        for store, element in zip(stores, elements, strict=True):
            if element.kind != "numbers" or len(element.shape) < 2 or element.length != len(store.obs):
                raise InvalidArgumentError(f"{store.path}: obsm/{excerpt(name)}: no dense array of a row for each cell")
            if element.shape[1:] != elements[0].shape[1:]:
                raise InvalidArgumentError(
                    f"{store.path}: obsm/{excerpt(name)}: {list(element.shape[1:])} for each cell, "
                    f"{stores[0].path} has {list(elements[0].shape[1:])}"
                )
        dtype = np.result_type(*(element.dtype for element in elements)).str
        planned.append(Planned(name, "obsm", "numbers", dtype, elements[0].shape[1:]))
    return planned


def _refuse_unknown(path: str, where: str, names: Sequence[str], there: Sequence[str]) -> None:
    for name in names:
        if name not in there:
            known = f"there are {', '.join(map(excerpt, there))}" if there else "there are none"
            raise InvalidArgumentError(f"{path}: {where} has no {excerpt(name)}: {known}")
    if len(set(names)) != len(names):
        raise InvalidArgumentError(f"{where}={list(names)!r:.80}: a name is there twice")


def _plan(name: str, frames: Sequence[Frame], elements: Sequence[Element]) -> Planned:
    kinds = {element.kind for element in elements}
    if kinds <= {"numbers", "nullable"}:
        return Planned(name, "obs", "numbers", _number_type(name, frames, elements))
    if not kinds <= {"strings", "categories"}:
        raise InvalidArgumentError(
            f"obs/{excerpt(name)} is numbers in one input and strings in another: {', '.join(f.path for f in frames)}"
        )
    found: dict[str, None] = {}
    for element in elements:
        if element.kind == "categories":
            found.update(dict.fromkeys(element.categories))
            continue
        for begin, end in element.blocks():
            found.update(dict.fromkeys(text for text in element.strings(begin, end) if text is not None))
            if len(found) > MOST_STRINGS:
                break
    if len(found) > MOST_STRINGS and "strings" in kinds:
        return Planned(name, "obs", "texts")
    return Planned(name, "obs", "categories", categories=list(found))


def _number_type(name: str, frames: Sequence[Frame], elements: Sequence[Element]) -> str:
    """The common type; a float's where integers or booleans are missing, NaN then stands for them."""
    types = [
        np.dtype(nullable_type(f"{frame.path}: obs/{excerpt(name)}", element))
        if element.kind == "nullable"
        else element.dtype
        for frame, element in zip(frames, elements, strict=True)
    ]
    return np.result_type(*types).newbyteorder("<").str


def nullable_type(what: str, element: Element) -> str:
    """The type of numbers of which some may be missing: their own, or if some are a float's that holds them.

    Raises:
        InvalidArgumentError: no float holds them; `what` says which they are.
    """
    some_are_missing, greatest = False, 0
    for begin, end in element.blocks():
        missing = element.missing(begin, end)
        assert missing is not None
        there = element.numbers(begin, end)[~missing]
        some_are_missing |= bool(missing.any())
        if there.size and there.dtype.kind in "iu":
            greatest = max(greatest, abs(int(there.min())), abs(int(there.max())))
    if not some_are_missing:
        return element.dtype.str
    if greatest > 1 << 53:
        raise InvalidArgumentError(
            f"{what}: values are missing, and {greatest:,} is exact in no float that could have NaN in their place"
        )
    return "<f4" if greatest <= 1 << 24 else "<f8"


def read_values(store: Store, planned: Planned, begin: int, end: int) -> Any:
    """Values of cells [begin, end), as a writer takes them; of texts a list."""
    element = store.obs.element(planned.name) if planned.where == "obs" else Element(store.root["obsm"], planned.name)
    if planned.kind == "texts":
        if element.kind == "categories":
            names = element.categories
            return [None if code < 0 else names[code] for code in element.numbers(begin, end).tolist()]
        return element.strings(begin, end)
    if planned.kind == "categories":
        if element.kind == "strings":
            return element.strings(begin, end)
        codes = element.numbers(begin, end)
        if codes.size and int(codes.max()) >= len(element.categories):
            raise InvalidArgumentError(
                f"{store.path}: obs/{excerpt(planned.name)}: code {int(codes.max())} of {len(element.categories)} "
                "categories"
            )
        return Coded(codes, element.categories)
    values, missing = element.numbers(begin, end), element.missing(begin, end)
    if missing is not None and np.dtype(planned.dtype).kind == "f":
        values = values.astype(planned.dtype)
        values[missing] = np.nan
    return values
