"""Oddities that an import takes and tells: counts that no cell has, names of cells and whole inputs that come twice."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from penstock._base.words import counted

_KINDS: dict[str, Callable[[Any], Any]] = {"NaN": np.isnan, "infinite": np.isinf, "negative": lambda values: values < 0}
_BLOCK = 1 << 20  # hashes that are looked at at once


class OddPlace(NamedTuple):
    """Where a count is: the number of the input, of the cell in it, and of the gene in the dataset."""

    source: int
    cell: int
    gene: int


@dataclass
class Odd:
    """Counts of one matrix that no cell has.

    Attributes:
        counts: how many of each kind: "NaN", "infinite", "negative".
        first: where the first of each kind is.
    """

    counts: dict[str, int] = field(default_factory=dict)
    first: dict[str, OddPlace] = field(default_factory=dict)

    def add(self, values: npt.NDArray[Any], place: Callable[[int], OddPlace]) -> None:
        """Looks at more values; `place` says where the i-th of them is."""
        if not values.size or values.dtype.kind in "ub" or (values.min() >= 0 and values.max() < np.inf):
            return
        flat = values.reshape(-1)
        for kind, is_odd in _KINDS.items():
            if kind != "negative" and flat.dtype.kind == "i":
                continue
            found = np.flatnonzero(is_odd(flat))
            if len(found):
                self._count(kind, len(found), place(int(found[0])))

    def merge(self, other: Odd) -> None:
        """Takes those of cells that follow."""
        for kind, count in other.counts.items():
            self._count(kind, count, other.first[kind])

    def note(self, begin: int) -> dict[str, list[int]]:
        """The same as JSON, for the shard that begins with cell `begin`: of each kind the count, the cell, the gene."""
        return {
            kind: [count, self.first[kind].cell - begin, self.first[kind].gene] for kind, count in self.counts.items()
        }

    def _count(self, kind: str, count: int, place: OddPlace) -> None:
        self.counts[kind] = self.counts.get(kind, 0) + count
        self.first.setdefault(kind, place)


class Seen(NamedTuple):
    """The digest of a task, and its cells' names.

    Attributes:
        digest: of what it is made of.
        names: uint64, a hash of each cell's name.
    """

    digest: str
    names: npt.NDArray[np.uint64]


def noted(odd: Sequence[Odd], begin: int) -> dict[str, Any]:
    """The entry of odd counts in a shard's description; nothing where there are none."""
    return {"odd": [each.note(begin) for each in odd]} if any(each.counts for each in odd) else {}


def from_note(description: dict[str, Any], source: int, begin: int, matrices: int) -> list[Odd]:
    """The odd counts that a shard's description has noted, of each matrix; none where no import wrote this note."""
    notes = description.get("odd")
    found = [Odd() for _ in range(matrices)]
    if not isinstance(notes, list) or len(notes) != matrices:
        return found
    for each, note in zip(found, notes, strict=True):
        for kind in _KINDS:
            if isinstance(note, dict) and kind in note:
                count, cell, gene = (int(number) for number in note[kind])
                each.merge(Odd({kind: count}, {kind: OddPlace(source, begin + cell, gene)}))
    return found


def hash_names(names: Sequence[str]) -> npt.NDArray[np.uint64]:
    """64 bits of each, the same in all processes: of 100 million names two that differ are equal once in 4,000 runs."""
    blake = hashlib.blake2b
    digests = [blake(name.encode("utf-8", "surrogatepass"), digest_size=8).digest() for name in names]
    return np.frombuffer(b"".join(digests), np.uint64)


class Names:
    """Hashes of the names of all cells, in a file: memory is a byte a cell, where one comes twice."""

    def __init__(self, folder: Path, cells: int) -> None:
        """In a file without a name in `folder`, which may go before it."""
        self._all = _numbers(folder, cells)

    def put(self, begin: int, hashes: npt.NDArray[np.uint64]) -> None:
        """Those of cells from `begin` on."""
        self._all[begin : begin + len(hashes)] = hashes

    def twice(self, folder: Path) -> tuple[int, int, int]:
        """(how many names are there already, the first cell with such a one, the cell that has it before)."""
        ordered = _numbers(folder, len(self._all))
        ordered[:] = self._all
        ordered.sort()
        count = sum(
            int(
                np.count_nonzero(
                    ordered[at + 1 : at + _BLOCK + 1] == ordered[at : at + _BLOCK][: len(ordered) - at - 1]
                )
            )
            for at in range(0, len(ordered) - 1, _BLOCK)
        )
        return (count, *self._first(ordered)) if count else (0, 0, 0)

    def _first(self, ordered: npt.NDArray[np.uint64]) -> tuple[int, int]:
        met = np.zeros(len(ordered), bool)
        for at in range(0, len(ordered), _BLOCK):
            block = self._all[at : at + _BLOCK]
            places = np.searchsorted(ordered, block)
            next_ones = np.minimum(places + 1, len(ordered) - 1)
            rows = np.flatnonzero((ordered[next_ones] == block) & (next_ones > places))
            codes, firsts = np.unique(places[rows], return_index=True)
            again = np.ones(len(rows), bool)
            again[firsts] = met[codes]
            if again.any():
                second = at + int(rows[again][0])
                return second, self._before(self._all[second])
            met[codes] = True
        raise AssertionError("a name that comes twice was counted, and not found")

    def _before(self, name: np.uint64) -> int:
        for at in range(0, len(self._all), _BLOCK):
            found = np.flatnonzero(self._all[at : at + _BLOCK] == name)
            if len(found):
                return at + int(found[0])
        raise AssertionError("a name is gone")


def _numbers(folder: Path, count: int) -> npt.NDArray[np.uint64]:
    with tempfile.TemporaryFile(dir=folder) as file:
        return np.memmap(file, np.uint64, "w+", shape=(count,))


def notes_of_values(names: Sequence[str], odd: Sequence[Odd], words: Callable[[int, OddPlace], str]) -> list[str]:
    """In words, of each matrix; `words` says where a place of the i-th of them is."""
    return [
        f"{name}: {count:,} {'value is' if count == 1 else 'values are'} {kind}, the first in "
        f"{words(number, each.first[kind])}"
        for number, (name, each) in enumerate(zip(names, odd, strict=True))
        for kind, count in each.counts.items()
    ]


def repeated_inputs(paths: Sequence[str], digests: Sequence[tuple[str, ...]]) -> tuple[int, str]:
    """How many inputs have the cells of one before, and in words; `digests` of the tasks of each."""
    first: dict[tuple[str, ...], int] = {}
    again = [(at, first[each]) for at, each in enumerate(digests) if each and first.setdefault(each, at) != at]
    if not again:
        return 0, ""
    words = f"{counted(len(again), 'input')} {'has' if len(again) == 1 else 'have'} the same cells as one before"
    return len(again), f"{words}: the first is {paths[again[0][0]]}, as {paths[again[0][1]]}"
