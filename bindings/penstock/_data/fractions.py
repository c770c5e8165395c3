"""Cells in place whose values look normalised already, where counts are wanted."""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock._base.words import warn_caller
from penstock._data.cells import Binned, Ranked

_CELLS = 8  # that are looked at: one that was normalised has fractions


def warn_of_fractions(dataset: Any, cells: Any) -> None:
    """Warns where cells of AnnData in place are to be normalised, ranked or binned, and have fractions already.

    The first ones are read for that. An import says it of all (`notes`).
    """
    wants_counts = cells.normalize is not None or cells.log1p or isinstance(cells.form, (Ranked, Binned))
    if dataset.kind != "h5ad" or not wants_counts or not dataset.spans or dataset.dtype[cells.value].kind != "f":
        return
    values = dataset.documents().read(range(min(_CELLS, dataset.spans)))[cells.value]
    there = values[np.isfinite(values)].astype(np.float64)
    if (np.floor(there) != there).any():
        warn_caller(
            f"{dataset.path}: the values of the first cells have fractions, as of normalised or logarithmised ones, "
            'and this view takes counts: open the file with x="layers/NAME" or x="raw", or leave out what is done'
        )
