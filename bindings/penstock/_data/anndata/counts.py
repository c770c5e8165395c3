"""Places of the counts in AnnData, as `x=` says them: one for all inputs, or one for each."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from penstock._base.errors import InvalidArgumentError
from penstock._base.words import counted, quoted
from penstock._data.anndata.members import LAYERS, X

Counts = str | Sequence[str] | Mapping[Any, str]
"""A place of the counts, one for each input in their order, or {input: place}, where others have "X"."""


def checked(x: Any) -> str:
    """A place of the counts: "X", "raw" or "layers/NAME".

    Raises:
        InvalidArgumentError: it is none.
    """
    if not isinstance(x, str) or not (x in (X, "raw") or (x.startswith(LAYERS) and len(x) > len(LAYERS))):
        raise InvalidArgumentError(f"x={x!r:.80}: must be 'X', 'raw' or 'layers/NAME'")
    return x


def member(x: str) -> str:
    """The matrix of a place: that of raw is raw/X."""
    return "raw/X" if x == "raw" else x


def of_each(x: Any, inputs: Sequence[Any]) -> list[str]:
    """The place of the counts in each input.

    Args:
        x: as a caller gave it, see `Counts`.
        inputs: as they were given, paths or globs, or AnnData in memory.

    Raises:
        InvalidArgumentError: a place that cannot be, another number of places than inputs, or one of no input.
    """
    if isinstance(x, Mapping):
        names = [os.fspath(each) if isinstance(each, str | os.PathLike) else None for each in inputs]
        places = {os.fspath(name): checked(place) for name, place in x.items()}
        for name in places:
            if name not in names:
                there = quoted([each for each in names if each is not None]) or "none with a path"
                raise InvalidArgumentError(f"x= has a place for {name!r:.80}, which is no input: there are {there}")
        return [X if name is None else places.get(name, X) for name in names]
    if isinstance(x, str) or not isinstance(x, Sequence):
        return [checked(x)] * len(inputs)
    if len(x) != len(inputs):
        raise InvalidArgumentError(
            f"x= has {counted(len(x), 'place')} for {counted(len(inputs), 'input')}: give one for each in their order, "
            "one for all, or {input: place}"
        )
    return [checked(each) for each in x]
