"""Tasks: what becomes one shard, decided by the inputs alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from penstock._from.tokens.reader import Piece

_PIECES = 16  # of a task


@dataclass(frozen=True)
class Run:
    """A piece of input `source`."""

    source: int
    piece: Piece


@dataclass(frozen=True)
class Task:
    """Runs of inputs that become shard `number`."""

    number: int
    runs: tuple[Run, ...]

    @property
    def bytes(self) -> int:
        """Of all runs."""
        return sum(run.piece.bytes for run in self.runs)


class Cutter:
    """Gathers pieces of inputs, which come in order, into tasks of about as many bytes."""

    def __init__(self, task_bytes: int) -> None:
        """None yet."""
        self._most = task_bytes
        self._runs: list[Run] = []
        self._bytes = 0
        self.tasks: list[Task] = []

    @property
    def piece_bytes(self) -> int:
        """What pieces should have at most."""
        return max(1, self._most // _PIECES)

    def add(self, source: int, pieces: Iterator[Piece]) -> None:
        """Those of one input."""
        for piece in pieces:
            if self._runs and self._bytes + piece.bytes > self._most:
                self.finish()
            last = self._runs[-1] if self._runs else None
            if last is not None and last.source == source and last.piece.end == piece.begin:
                whole = Piece(last.piece.begin, piece.end, last.piece.bytes + piece.bytes, last.piece.at)
                self._runs[-1] = Run(source, whole)
            else:
                self._runs.append(Run(source, piece))
            self._bytes += piece.bytes

    def finish(self) -> Sequence[Task]:
        """Ends the last task; all of them."""
        if self._runs:
            self.tasks.append(Task(len(self.tasks), tuple(self._runs)))
        self._runs, self._bytes = [], 0
        return self.tasks
