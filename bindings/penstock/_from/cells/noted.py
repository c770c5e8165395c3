"""Notes of an import beside values: types, orders of categories, uns; and what an export cannot give back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from penstock._base.errors import CorruptionError
from penstock._base.words import excerpt
from penstock._data.anndata.exact import common_type
from penstock._data.anndata.forms import ColumnForm, FormOf, Note
from penstock._data.anndata.members import LAYERS, VARM, X, given_back
from penstock._data.anndata.opened import Opened
from penstock._data.anndata.stores import Frame
from penstock._data.anndata.trees import NotKept, Tree, pack, read_tree
from penstock._data.anndata.var_columns import Strings
from penstock._data.features import NAMES
from penstock._from.cells.plan import Plan
from penstock._from.cells.value_range import Range

_KINDS = {
    "nullable": "nullable in one input and floats in another: comes back as floats",
    "ordered": "ordered categories, not the same in all inputs: they come back in their order, but not as ordered",
    "numbers": "categories that are numbers of several types: they come back as strings",
}


def note_of(opened: Opened, plan: Plan, features: dict[str, Any], left_out: list[str]) -> Note:
    """All of it; `features` as `plan_features` made them. What cannot be kept is added to `left_out`."""
    note = Note(raw=plan.raw)
    _note_matrices(opened, plan, note)
    lost: dict[str, list[str]] = {kind: [] for kind in _KINDS}
    for column in plan.columns:
        if column.where == "obs":
            names = column.categories if column.kind == "categories" else None
            seen = _seen((opened.store(at).obs for at in range(len(opened))), column.name)
            _note_form(seen, names, note.obs, column.name, "obs", lost)
    where = opened.var(0).where
    for name, values in features.items():
        if name != NAMES and not name.startswith(VARM):
            names = values.categories if isinstance(values, Strings) else None
            seen = _seen((opened.var(at) for at in range(len(opened))), name)
            _note_form(seen, names, note.var, name, where, lost)
    note.altered += [f"{', '.join(names)} ({_KINDS[kind]})" for kind, names in lost.items() if names]
    note.uns = _packed_uns(opened, left_out)
    note.left_out = list(dict.fromkeys(left_out))
    return note


def _note_matrices(opened: Opened, plan: Plan, note: Note) -> None:
    for number, (name, stored) in enumerate(zip(plan.matrices, plan.types, strict=True)):
        before = common_type([opened.matrix(source, number).dtype for source in range(len(opened))])
        after = np.dtype(given_back(stored))
        if before == after:
            continue
        if before.str[1:] == "f2":  # SciPy has no half floats
            note.altered.append(f"{name} ({before} comes back as {after})")
        else:
            note.matrices[name.removeprefix(LAYERS) if number else X] = before.str


def _seen(frames: Iterable[Frame], name: str) -> FormOf:
    """A column as all inputs have it."""
    seen = FormOf()
    for frame in frames:
        seen.add(frame.element(name))
    return seen


def _note_form(
    seen: FormOf,
    names: Sequence[str] | None,
    forms: dict[str, ColumnForm],
    name: str,
    where: str,
    lost: dict[str, list[str]],
) -> None:
    form, missed = seen.found(names)
    if form is not None:
        forms[name] = form
    for kind in missed:
        lost[kind].append(f"{where}/{excerpt(name)}")


def _packed_uns(opened: Opened, left_out: list[str]) -> list[str]:
    """Members of uns that all inputs have alike."""
    kept: dict[str, Tree] = {}
    gone: dict[str, str] = {}
    for source in range(len(opened)):
        store = opened.store(source)
        there = store.names_in("uns")
        for name in (*there, *(each for each in kept if each not in there)):
            if name in gone:
                continue
            if (name in kept) != (source > 0) or name not in there:
                gone[name] = "not in all inputs"
                continue
            try:
                tree = read_tree(store.path, store.root["uns"], name, "uns")
            except (NotKept, CorruptionError) as error:  # nothing of the cells hangs on it
                gone[name] = str(error)
                continue
            if kept.setdefault(name, tree) != tree:
                gone[name] = "inputs differ"
    packed, others = pack({name: tree for name, tree in kept.items() if name not in gone})
    gone |= dict.fromkeys(others, "no room: all of uns has 4 MiB, packed")
    left_out += [f"uns/{excerpt(name)} ({why})" for name, why in gone.items()]
    return packed


def note_of_fractions(opened: Opened, ranges: Sequence[Range]) -> list[str]:
    """In words, where the counts look as if they were normalised: fractions, and none below 0."""
    for source, each in enumerate(ranges):
        if each.fractional and not each.negative:
            store, x = opened.store(source), opened.names(source)[0]
            others = [f"{LAYERS}{name}" for name in store.names_in("layers")] + ["raw"] * ("raw" in store.root)
            there = ", ".join(excerpt(name) for name in others if name != x.removesuffix("/X")) or "none"
            return [
                f"{store.path}: {x} has fractions, as of normalised or logarithmised values: where counts are wanted, "
                f"choose another x (there are: {there})"
            ]
    return []
