"""Genes of several inputs as one list."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from penstock._base.errors import InvalidArgumentError
from penstock._base.words import excerpt
from penstock._data.anndata.opened import Opened
from penstock._data.anndata.stores import Frame

JOINS = ("exact", "inner", "outer")


class Genes:
    """The genes of the dataset; of an input what numbers its genes have, found when it is asked for.

    Attributes:
        names: by their numbers.
        join: how inputs were joined.
    """

    def __init__(self, names: list[str], join: str) -> None:
        """Takes names that differ from each other."""
        self.names = names
        self.join = join

    def __reduce__(self) -> Any:
        """Without what can be found again."""
        return Genes, (self.names, self.join)

    @cached_property
    def _number_of(self) -> dict[str, int]:
        return {name: number for number, name in enumerate(self.names)}

    def numbers(self, frame: Frame) -> npt.NDArray[np.int64] | None:
        """The dataset's number of each gene of an input, -1 of one that is left out; None where they are the same."""
        if self.join == "exact":
            return None
        names = frame.names()
        if names == self.names:
            return None
        return np.array([self._number_of.get(name, -1) for name in names], np.int64)


def join_genes(opened: Opened, join: str) -> Genes:
    """One list of the inputs' genes. Memory is that of two lists, however many inputs there are.

    Raises:
        InvalidArgumentError: names that are there twice, lists that differ under "exact", none in common or at all.
    """
    if join not in JOINS:
        raise InvalidArgumentError(f"join={join!r}: must be one of {', '.join(map(repr, JOINS))}")
    first = opened.var(0)
    order = _names(first)  # of the outer join
    known = dict.fromkeys(order)
    wanted = list(known) if join == "exact" else []
    for source in range(1, len(opened)):
        frame = opened.var(source)
        names = _names(frame)
        if join == "exact":
            if names != wanted:
                raise InvalidArgumentError(_difference(first, wanted, frame, names))
        elif join == "inner":
            there = set(names)
            known = dict.fromkeys(name for name in known if name in there)
        else:
            order = union(order, names)
            known = dict.fromkeys(order)
    if not known:
        paths = ", ".join(opened.path(source) for source in range(len(opened)))
        raise InvalidArgumentError(
            f"no gene is in all inputs: {paths:.300}" if join == "inner" else f"{paths:.300}: there are no genes"
        )
    return Genes(list(known), join)


def union(names: list[str], others: list[str]) -> list[str]:
    """Names of both in the order of anndata.concat(join="outer"), which is that of pandas: sorted, unless equal."""
    if names == others or not others:
        return names
    return sorted({*names, *others}) if names else others


def _names(frame: Frame) -> list[str]:
    names = frame.names()
    refuse_twice(frame, names)
    return names


def refuse_twice(frame: Frame, names: list[str]) -> None:
    """Refuses names that two genes have.

    Raises:
        InvalidArgumentError: two do.
    """
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
