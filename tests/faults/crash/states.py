"""The states that each moment of a record may leave, numbered: the same record gives the same states."""

from __future__ import annotations

import os
import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from crash.entries import Entry
from crash.model import File, Leaf, Model, State

KINDS = ("kept", "dropped", "empty", "zeroed", "torn", "torn", *["reordered"] * 4)
"""What becomes of what was not synced:

kept       all of it is there, as after a kill
dropped    none of it is there
empty      names are there, bytes are not
zeroed     names and sizes are there, bytes are zeros
torn       names are there, of bytes some sectors
reordered  some changes of names are there, and of each file all bytes, none or some sectors
"""


@dataclass(frozen=True)
class Moment:
    """A state.

    Attributes:
        number: that tells it from all others of the record.
        entries: how many of the record's were done.
        kind: one of KINDS.
        notes: what was promised by then.
        state: what lies where.
    """

    number: int
    entries: int
    kind: str
    notes: frozenset[str]
    state: State


def moments(model: Model, entries: Iterable[Entry]) -> Iterator[Moment]:
    """All of them, in order; those that are equal, and promise the same, once."""
    seen: set[tuple[int, frozenset[str]]] = set()
    notes: frozenset[str] = frozenset()
    boot = f"@{this_boot()}@"
    for count, entry in enumerate([None, *entries]):
        if entry is not None:
            model.apply(entry)
            if entry.kind == "B":
                notes |= {entry.name}
        for at, kind in enumerate(KINDS[:2] if model.is_synced else KINDS):
            number = count * len(KINDS) + at
            state = _left(model, kind, random.Random(number))
            if kind != "kept":  # names tell another boot than this one
                state = {path.replace(boot, "@00000000@"): leaf for path, leaf in state.items()}
            own = hash(tuple((path, _told(leaf)) for path, leaf in sorted(state.items())))
            if (own, notes) not in seen:
                seen.add((own, notes))
                yield Moment(number, count, kind, notes, state)


def _told(leaf: Leaf | None) -> tuple[object, ...] | None:
    return None if leaf is None else (leaf.number, leaf.data, leaf.target)


def _left(model: Model, kind: str, chosen: random.Random) -> State:
    if kind == "kept":
        return model.state(lambda: True, lambda file: file.seen)
    if kind == "dropped":
        return model.state(lambda: False, lambda file: file.lasting)
    if kind == "empty":
        return model.state(lambda: True, lambda file: file.lasting)
    if kind == "zeroed":
        return model.state(lambda: True, File.zeroed)
    if kind == "torn":
        return model.state(lambda: True, lambda file: file.torn(chosen))
    share = chosen.choice((0.3, 0.6, 0.9))

    def left(file: File) -> bytes:
        how = chosen.randrange(3)
        return file.seen if how == 0 else file.lasting if how == 1 else file.torn(chosen)

    return model.state(lambda: chosen.random() < share, left)


def this_boot() -> str:
    """As it stands in names of what is unfinished."""
    return Path("/proc/sys/kernel/random/boot_id").read_text()[:8]


def put(moment: Moment, folder: Path) -> None:
    """Makes the state in an empty folder."""
    made: dict[int, Path] = {}
    for path, leaf in sorted(moment.state.items()):
        to = folder / path
        if leaf is None:
            to.mkdir()
        elif leaf.number in made:
            os.link(made[leaf.number], to, follow_symlinks=False)
        elif leaf.target is not None:
            to.symlink_to(leaf.target)
        else:
            to.write_bytes(leaf.data)
            if leaf.mtime_ns is not None:  # by which a run knows its inputs
                os.utime(to, ns=(leaf.mtime_ns, leaf.mtime_ns))
            made[leaf.number] = to
