"""Whom an import of cells tells how far it is."""

from __future__ import annotations

import time
from collections.abc import Callable

_SECONDS = 5.0  # after which `progress` is called though no cell is done


class Told:
    """The two callbacks of import_anndata()."""

    def __init__(
        self, progress: Callable[[int, int], None] | None, preparing: Callable[[str, int, int], None] | None
    ) -> None:
        """As import_anndata() takes them."""
        self._progress = progress
        self._preparing = preparing
        self._last = time.monotonic()
        self._done = 0

    def prepared(self, what: str, done: int, total: int, cells: int) -> None:
        """`done` of `total` of what must be done before cells are written."""
        if self._preparing is not None:
            self._preparing(what, cells * done // max(1, total), cells)
        if time.monotonic() - self._last >= _SECONDS:
            self.wrote(self._done, cells)

    def wrote(self, done: int, cells: int) -> None:
        """So many cells are done, or at least the run is alive."""
        self._last, self._done = time.monotonic(), done
        if self._progress is not None:
            self._progress(done, cells)
