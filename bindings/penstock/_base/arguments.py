"""Checks of arguments, in words."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from typing import Any

from penstock._base.errors import InvalidArgumentError

MOST = (1 << 64) - 1


def shown(value: Any) -> str:
    """An argument in a message: at most 80 characters of its repr."""
    if isinstance(value, int) and value.bit_length() > 256:  # of which Python prints no more than some thousand digits
        return f"{'-' if value < 0 else ''}2^{value.bit_length() - 1:,} or more"
    try:
        text = repr(value)
    except Exception:  # an argument's own, which may raise anything
        return type(value).__name__
    return text if len(text) <= 80 else f"{text[:79]}…"


def one_of(name: str, value: Any, allowed: Sequence[str]) -> None:
    """Refuses a value that is not among those allowed.

    Raises:
        InvalidArgumentError: it is not.
    """
    if value not in allowed:
        raise InvalidArgumentError(f"{name}={shown(value)}: must be one of {', '.join(map(repr, allowed))}")


def index(name: str, value: Any, least: int = 0, most: int = MOST) -> int:
    """An integer from `least` to `most`.

    Raises:
        InvalidArgumentError: no integer, or outside.
    """
    try:
        if isinstance(value, bool):
            raise TypeError
        number = operator.index(value)
    except TypeError:
        raise InvalidArgumentError(f"{name}={shown(value)}: must be an integer") from None
    if not least <= number <= most:
        limit = "2^64 - 1" if most == MOST else f"{most:,}"
        raise InvalidArgumentError(f"{name}={shown(number)}: must be from {least} to {limit}")
    return number


def is_fraction(value: Any) -> bool:
    """True for a number from 0 to 1."""
    try:
        return not isinstance(value, (bool, str)) and 0 <= float(value) <= 1
    except (TypeError, ValueError, OverflowError):
        return False


def ranges(skip: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Ranges [begin, end) of positions.

    Raises:
        InvalidArgumentError: no pairs of integers.
    """
    try:
        pairs = [(begin, end) for begin, end in skip]
    except (TypeError, ValueError):
        raise InvalidArgumentError(f"skip={shown(skip)}: must be ranges [(begin, end), …] of positions") from None
    return [(index("skip", begin), index("skip", end)) for begin, end in pairs]
