"""Cells whose values look normalised already, where counts are wanted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from penstock._base.errors import Error
from penstock._base.words import excerpt, warn_caller
from penstock._data.cells import Binned, Ranked

LOOKED_AT = 8  # cells of a file that are looked at: one that was normalised has fractions
_MOST_SHARDS = 64  # of which cells are looked at


def warn_of_fractions(dataset: Any, cells: Any) -> None:
    """Warns where cells of AnnData in place are to be normalised, ranked or binned, and have fractions already.

    The first ones are read for that. An import says it of all (`notes`).
    """
    wants_counts = cells.normalize is not None or cells.log1p or isinstance(cells.form, (Ranked, Binned))
    if dataset.kind != "h5ad" or not wants_counts or not dataset.spans or dataset.dtype[cells.value].kind != "f":
        return
    values = dataset.documents().read(range(min(LOOKED_AT, dataset.spans)))[cells.value]
    if has_fractions(values):
        warn_caller(
            f"{dataset.path}: the values of the first cells have fractions, as of normalised or logarithmised ones, "
            'and this view takes counts: open the file with x="layers/NAME" or x="raw", or leave out what is done'
        )


def warn_of_mixed(dataset: Any) -> None:
    """Warns where some of several files in place have fractions, and others counts; first cells of each are read."""
    found = _by_shard(dataset, "count")
    normalised = [name for name, is_fractional in found if is_fractional]
    counts = [name for name, is_fractional in found if is_fractional is False]
    if normalised and counts:
        layers = ", ".join(_matrices_of(normalised[0], dataset._in_place.which)) or "none"
        warn_caller(mixed_words("X", normalised, counts[0], f"x= of penstock.open says it (there are: {layers})"))


def mixed_words(what: str, normalised: Sequence[str], counts: str, how: str) -> str:
    """The warning of files that do not go together."""
    more = f" and {len(normalised) - 1:,} more" * (len(normalised) > 1)
    return (
        f"{normalised[0]}{more}: {what} has fractions, as of normalised or logarithmised values, and in {counts} it "
        f"has none: one of them is not meant. Where counts are in a layer, {how}"
    )


def warn_of_no_counts(dataset: Any, value: str) -> None:
    """Warns where a model of counts gets cells with fractions, as scvi-tools' setup_anndata does."""
    found = _by_shard(dataset, value)
    normalised = [name for name, is_fractional in found if is_fractional]
    is_in_place = dataset.kind == "h5ad"
    if not normalised or (is_in_place and any(is_fractional is False for _, is_fractional in found)):
        return  # of files in place that are mixed penstock.open has warned
    if is_in_place:
        there = _matrices_of(normalised[0], dataset._in_place.which)
        how = f'penstock.open(…, x="{there[0] if there else "layers/NAME"}") takes another matrix'
        where = normalised[0]
    else:
        there = [name for name in dataset.dtype.names if name not in ("gene", value)]
        how, where = "value= takes another layer", f"{dataset.path}: shard {normalised[0]}"
    warn_caller(
        f"{where}: {'X' if is_in_place else value} has fractions, as of normalised or logarithmised values, and models "
        f"of scvi-tools take counts: {how} (there are: {', '.join(map(excerpt, there)) or 'none'})"
    )


def has_fractions(values: npt.NDArray[Any]) -> bool:
    """True where a finite value is no integer."""
    there = values[np.isfinite(values)].astype(np.float64)
    return bool((np.floor(there) != there).any())


def _by_shard(dataset: Any, value: str) -> list[tuple[str, bool | None]]:
    """(name, fractions among the first cells) of shards or files; None: no value there, or one that cannot be read."""
    if not dataset.spans or dataset.dtype is None or value not in (dataset.dtype.names or ()):
        return []
    if dataset.dtype[value].kind != "f":
        return []
    found: list[tuple[str, bool | None]] = []
    first, view = 0, dataset.documents()
    for shard in dataset.shards[:_MOST_SHARDS]:
        cells = range(first, first + min(LOOKED_AT, shard.spans))
        first += shard.spans
        try:
            values = view.read(cells)[value] if len(cells) else np.zeros(0)
        except Error:  # whoever reads these cells is told
            values = np.zeros(0)
        found.append((shard.name, has_fractions(values) if len(values) else None))
    return found


def _matrices_of(path: str, which: Any) -> list[str]:
    """Other matrices of a file: its layers, and raw."""
    from penstock._data.anndata.hdf5 import session
    from penstock._data.anndata.stores import Store

    try:
        with session() as helper:
            store = Store(path, "h5ad", helper, which.modality)
            try:
                names = [f"layers/{name}" for name in store.names_in("layers")] + ["raw"] * ("raw" in store.root)
            finally:
                store.close()
    except Error:
        return []
    return [excerpt(name) for name in names if name != which.x]
