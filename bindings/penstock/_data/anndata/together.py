"""Datasets of cells that become one: what an import noted must hold for all of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from penstock._base.errors import InvalidArgumentError
from penstock._base.words import excerpt
from penstock._data.anndata.forms import Note


def refuse_other_raw(task: str, datasets: Sequence[Any]) -> None:
    """Cells' raw is bytes in their entries, of the type and genes that one note says.

    Raises:
        InvalidArgumentError: they have raw of other types or genes, or some have none.
    """
    notes = [Note() if each.features is None else Note.of(each.features._note) for each in datasets]
    for dataset, note in zip(datasets, notes, strict=True):
        if note.raw != notes[0].raw:
            raise InvalidArgumentError(
                f"cannot {task} {excerpt(datasets[0].path)} and {excerpt(dataset.path)}: their raw has other types or "
                "genes, or one has none: import them without raw, or from all files at once"
            )


def sources_of(dataset: Any) -> int:
    """Of how many datasets, opened as one, this is."""
    for each in dataset._reopen[1]:
        if isinstance(each, type(dataset)):
            return sources_of(each)
        if isinstance(each, (tuple, list)) and each and not isinstance(each[0], int):
            return len(each)
    return 1
