"""The positions of a batch, and whose they are: docs/resume.md, loading.md ("How long it runs"), parallelism.md."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

NEVER = 1 << 62


@dataclass(frozen=True)
class GlobalBatch:
    """Of all ranks: its positions; the state before and after it; rows of all ranks together, with padding."""

    begin: int
    end: int
    positions: tuple[int, ...]
    size: int


@dataclass(frozen=True)
class Cursor:
    """The arithmetic from a state to the next global batch.

    Attributes:
        ends: that no batch crosses, ascending; the last one is the run's, or NEVER.
        sizes: [(position, global batch size), …], the first at 0.
        skip: ranges [begin, end) of positions that are left out.
        tail: what becomes of a last batch that is not full.
    """

    ends: tuple[int, ...]
    sizes: tuple[tuple[int, int], ...]
    skip: tuple[tuple[int, int], ...]
    tail: str

    def skips(self, position: int) -> int:
        """`position`, or the first one after it that no skip leaves out."""
        for begin, end in sorted(self.skip):
            if begin <= position < end:
                position = end
        return position

    def size_at(self, position: int) -> int:
        return [size for begin, size in self.sizes if begin <= position][-1]

    def batch(self, position: int) -> GlobalBatch | None:
        """The one that begins at a state, or None where the run is over."""
        for end in self.ends:
            if position >= end:
                continue
            size, drops = self.size_at(position), self.tail == "drop"
            found = self._taken(position, end, size)
            if found and (len(found) == size or not drops):
                after = found[-1] + 1
                left = self._taken(after, end, self.size_at(after))
                over = not left or (drops and len(left) < self.size_at(after))
                rows = len(found) if self.tail == "short" else size
                return GlobalBatch(position, end if over else after, tuple(found), rows)
            position = end
        return None

    def _taken(self, position: int, end: int, most: int) -> list[int]:
        found = []
        at = self.skips(position)
        while at < end and len(found) < most:
            found.append(at)
            at = self.skips(at + 1)
        return found

    def steps_before(self, position: int) -> int:
        steps, batch = 0, self.batch(0)
        while batch is not None and batch.begin < position:
            steps, batch = steps + 1, self.batch(batch.end)
        return steps

    def step_at(self, position: int) -> int | None:
        """Of the batch that begins there; None where none does, as after another size of batches."""
        steps, batch = 0, self.batch(0)
        while batch is not None and batch.begin < position:
            steps, batch = steps + 1, self.batch(batch.end)
        return steps if batch is not None and batch.begin == position else None

    def with_size(self, position: int, size: int) -> Cursor:
        others = [(at, each) for at, each in self.sizes if at != position]
        return replace(self, sizes=tuple(sorted([*others, (position, size)])))


def rows_of(size: int, ranks: int, micro_batches: int) -> int:
    """Of each rank's batch, with padding: as many as the rank with the most has, and whole micro-batches."""
    rows = len(range(0, size, ranks))
    while rows % micro_batches:
        rows += 1
    return rows


def by_turns(count: int, ranks: int) -> list[list[int]]:
    """Which of a batch's observations each rank gets: every `ranks`-th."""
    return [list(range(rank, count, ranks)) for rank in range(ranks)]


def by_cost(costs: Sequence[int], ranks: int, rows: int, micro_batches: int) -> list[list[int]]:
    """The heaviest first, each to the rank with the least so far that has room; so among a rank's micro-batches."""
    heaviest = sorted(range(len(costs)), key=lambda each: (-costs[each], each))
    rooms = [len(each) for each in by_turns(len(costs), ranks)]
    found = []
    for own in _shared(heaviest, costs, rooms):
        part = rows // micro_batches
        parts = [max(0, min(part, len(own) - number * part)) for number in range(micro_batches)]
        found.append([each for piece in _shared(own, costs, parts) for each in sorted(piece)])
    return found


def _shared(numbers: Sequence[int], costs: Sequence[int], rooms: Sequence[int]) -> list[list[int]]:
    found: list[list[int]] = [[] for _ in rooms]
    sums = [0] * len(rooms)
    for number in numbers:
        taker = min((sums[i], i) for i in range(len(rooms)) if len(found[i]) < rooms[i])[1]
        found[taker].append(number)
        sums[taker] += costs[number]
    return found
