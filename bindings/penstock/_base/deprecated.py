"""Names and arguments that will go: they work for two minor versions more, and say what to use instead."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

MINOR_VERSIONS = 2
"""A name that 0.3 deprecates works in 0.3 and 0.4 and is gone in 0.5."""

_PACKAGE = f"{Path(__file__).parents[1]}/"


def deprecated(name: str, instead: str, *, since: str) -> None:
    """Warns of a use of something that will go, at the line outside of penstock that uses it.

    A test fails in the version that `gone_in` names while a call for it still stands, so that it is removed then.

    Args:
        name: as users write it, such as "Loader(threads=)".
        instead: what to write in its place.
        since: the first version that warns, a literal "major.minor".

    Warns:
        FutureWarning: Python shows it by default, also where a library uses the name.
    """
    gone = gone_in(since)
    text = f"{name} is deprecated since penstock {since} and will be gone in {gone}: use {instead}"
    warnings.warn(text, FutureWarning, stacklevel=_levels_to_the_caller())


def gone_in(since: str) -> str:
    """The version without a name that `since` deprecated.

    >>> gone_in("0.3"), gone_in("1.9")
    ('0.5', '1.11')
    """
    major, minor = since.split(".")
    return f"{major}.{int(minor) + MINOR_VERSIONS}"


def _levels_to_the_caller() -> int:
    """The stacklevel, seen from `deprecated`, of the first frame outside of this package."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and _is_ours(frame.f_code.co_filename):
        level, frame = level + 1, frame.f_back
    return level


def _is_ours(file: str) -> bool:
    return file.startswith(_PACKAGE)
