"""Types of AnnData that no dataset keeps, so that an export gives back others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from penstock._base.words import excerpt
from penstock._data.anndata.opened import Opened
from penstock._data.anndata.stores import Frame
from penstock._data.features import NAMES

_KINDS = {
    "nullable": "nullable: comes back as floats where values are missing, else as plain numbers",
    "ordered": "ordered categories: they come back in their order, but not as ordered",
    "numbers": "categories that are numbers: they come back as strings",
}


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
