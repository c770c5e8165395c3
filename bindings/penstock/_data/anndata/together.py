"""Datasets of cells that become one: what an import noted must hold for all of them, or the difference is said."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from penstock._base.errors import CorruptionError, InvalidArgumentError
from penstock._base.words import excerpt, warn_caller
from penstock._data.anndata.forms import Note
from penstock._data.anndata.members import LAYERS, X
from penstock._data.anndata.trees import unpack

_SHOWN = 5  # names of a warning


def check_notes(task: str, datasets: Sequence[Any]) -> None:
    """Compares the notes of datasets that are to be one, which has that of the first.

    Cells' raw is bytes in their entries, of the type and genes that one note says. All else is no matter of the bytes.

    Args:
        task: "combine" or "append".
        datasets: in their order.

    Raises:
        InvalidArgumentError: they have raw of other types or genes, or some have none.

    Warns:
        UserWarning: uns or forms of columns and matrices differ.
    """
    notes = [Note() if each.features is None else Note.of(each.features._note) for each in datasets]
    for dataset, note in zip(datasets, notes, strict=True):
        if note.raw != notes[0].raw:
            raise InvalidArgumentError(
                f"cannot {task} {excerpt(datasets[0].path)} and {excerpt(dataset.path)}: their raw has other types or "
                "genes, or one has none: import them without raw, or from all files at once"
            )
    differing: dict[str, None] = {}
    others = []
    for dataset, note in zip(datasets[1:], notes[1:], strict=True):
        found = _differing(notes[0], note)
        others += [dataset.path] if found else []
        differing |= dict.fromkeys(found)
    if differing:
        names = list(differing)
        more = f" and {len(names) - _SHOWN:,} more" * (len(names) > _SHOWN)
        warn_caller(
            f"{task}: {', '.join(excerpt(name) for name in names[:_SHOWN])}{more} of {excerpt(others[0])} and "
            f"{excerpt(datasets[0].path)} differ: to_anndata and export give the latter's for all cells; an import of "
            "all files at once keeps what they have alike"
        )


def _differing(one: Note, other: Note) -> list[str]:
    """Members that two notes say otherwise."""
    found = [] if one.uns == other.uns else _differing_uns(one, other)
    pairs: list[tuple[str, Any, Any]] = [("obs/", one.obs, other.obs), ("var/", one.var, other.var)]
    pairs.append((LAYERS, one.matrices, other.matrices))
    for where, mine, theirs in pairs:
        names = [name for name in {**mine, **theirs} if mine.get(name) != theirs.get(name)]
        found += [X if where == LAYERS and name == X else f"{where}{name}" for name in names]
    return found


def _differing_uns(one: Note, other: Note) -> list[str]:
    try:
        mine, theirs = unpack(one.uns, ""), unpack(other.uns, "")
    except CorruptionError:
        return ["uns"]
    return [f"uns/{name}" for name in {**mine, **theirs} if mine.get(name) != theirs.get(name)]
