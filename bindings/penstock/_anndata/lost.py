"""Types of AnnData that no dataset keeps, so that an export gives back others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from penstock._features import NAMES
from penstock._words import excerpt

from .opened import Opened
from .stores import Frame

_KINDS = {
    "nullable": "nullable: comes back as floats where values are missing, else as plain numbers",
    "ordered": "ordered categories: they come back in their order, but not as ordered",
    "numbers": "categories that are numbers: they come back as strings",
}


def given_back(dtype: Any) -> str:
    """The float that a matrix of this type comes back as: of 4 bytes where that holds every value of the type."""
    base = np.dtype(dtype).base
    return "<f4" if base.str[1:] in ("u1", "u2", "i1", "i2", "f2", "f4", "b1") else "<f8"


def lost_types(opened: Opened, obs: Sequence[str], features: dict[str, Any]) -> list[str]:
    """In words, of these columns of obs and of all columns of var, by what is lost."""
    found: dict[str, dict[str, None]] = {kind: {} for kind in _KINDS}
    for source in range(len(opened)):
        _look(opened.store(source).obs, obs, found)
        _look(opened.var(source), [name for name in features if name != NAMES], found)
    return [f"{', '.join(names)} ({_KINDS[kind]})" for kind, names in found.items() if names]


def _look(frame: Frame, names: Sequence[str], found: dict[str, dict[str, None]]) -> None:
    for name in names:
        element = frame.element(name)
        member = f"{frame.where}/{excerpt(name)}"
        if element.kind == "nullable":
            found["nullable"][member] = None
        if element.is_ordered:
            found["ordered"][member] = None
        if element.has_numbers:
            found["numbers"][member] = None
