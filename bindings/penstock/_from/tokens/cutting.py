"""Tasks: what becomes one shard, decided by the inputs alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from penstock._from.tokens.reader import Piece

_PIECES = 16  # of a task


@dataclass(frozen=True)
class Slice:
    """A piece of input `source`."""

    source: int
    piece: Piece


@dataclass(frozen=True)
class Task:
    """Slices of inputs that become shard `number`."""

    number: int
    slices: tuple[Slice, ...]

    @property
    def bytes(self) -> int:
        """Of all slices."""
        return sum(each.piece.bytes for each in self.slices)


class Cutter:
    """Gathers pieces of inputs, which come in order, into tasks of about as many bytes."""

    def __init__(self, task_bytes: int) -> None:
        """None yet."""
        self._most = task_bytes
        self._slices: list[Slice] = []
        self._bytes = 0
        self.tasks: list[Task] = []

    @property
    def piece_bytes(self) -> int:
        """What pieces should have at most."""
        return max(1, self._most // _PIECES)

    def add(self, source: int, pieces: Iterator[Piece]) -> None:
        """Those of one input."""
        for piece in pieces:
            if self._slices and self._bytes + piece.bytes > self._most:
                self.finish()
            last = self._slices[-1] if self._slices else None
            if last is not None and last.source == source and last.piece.end == piece.begin:
                whole = Piece(last.piece.begin, piece.end, last.piece.bytes + piece.bytes, last.piece.at)
                self._slices[-1] = Slice(source, whole)
            else:
                self._slices.append(Slice(source, piece))
            self._bytes += piece.bytes

    def finish(self) -> Sequence[Task]:
        """Ends the last task; all of them."""
        if self._slices:
            self.tasks.append(Task(len(self.tasks), tuple(self._slices)))
        self._slices, self._bytes = [], 0
        return self.tasks
