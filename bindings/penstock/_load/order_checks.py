"""Checks of what orders are given."""

from __future__ import annotations

import operator
from typing import Any

import numpy.typing as npt

from penstock._base.errors import InvalidArgumentError


def at_least_one(owner: str, name: str, given: Any) -> int:
    """A number from 1 on that `owner` was given.

    Raises:
        InvalidArgumentError: it is none.
    """
    try:
        value = operator.index(given)
    except TypeError:
        raise InvalidArgumentError(f"orders.{owner}: {name} {given!r}: wanted an integer") from None
    if not 1 <= value < 1 << 64:
        raise InvalidArgumentError(f"orders.{owner}: {name} {value}: wanted at least 1, below 2**64")
    return value


def check_fetch(owner: str, fetch: int | None, block: int) -> None:
    """Refuses fetches that cut blocks.

    Raises:
        InvalidArgumentError: this one does.
    """
    if fetch is not None and fetch % block:
        raise InvalidArgumentError(f"orders.{owner}: a fetch of {fetch}: wanted a multiple of the block, {block}")


def check_length(owner: str, what: str, given: npt.NDArray[Any], n: int) -> None:
    """Refuses values of other observations.

    Raises:
        InvalidArgumentError: there are more or fewer than the view has.
    """
    if len(given) != n:
        raise InvalidArgumentError(f"orders.{owner}: {len(given):,} {what} for a view of {n:,} observations")
