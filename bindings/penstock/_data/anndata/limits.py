"""How much an import holds in memory at once, and how it is cut."""

from __future__ import annotations

from typing import NamedTuple


class Limits(NamedTuple):
    """Bounds of the memory of each process, whatever the inputs' size.

    Attributes:
        values: that are read at once: about 40 bytes of memory each.
        cells: of which names and columns are read at once.
        task_values: records of a task, on average: they decide where shards end.
        stores: inputs that are open at once.
    """

    values: int = 1 << 21
    cells: int = 1 << 14
    task_values: int = 1 << 24
    stores: int = 4
