"""Cutting inputs into tasks by the sizes of their documents, before these are read by whoever does a task."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt


class Piece(NamedTuple):
    """The documents of one task, and where they begin.

    Attributes:
        number: Of the task.
        input: Number of the input that the first document is in.
        input_begins: Number of that input's first document, over all inputs.
        first_document: Its number, over all inputs.
        documents: How many there are.
        size_bytes: What they count, together.
    """

    number: int
    input: int
    input_begins: int
    first_document: int
    documents: int
    size_bytes: int


class Cutter:
    """Cuts the inputs' documents into pieces by their sizes, exactly as `tasks.cut` does."""

    def __init__(self, task_bytes: int) -> None:
        """Of no input yet."""
        self._task_bytes = task_bytes
        self._number = 0
        self._inputs = 0
        self._documents = 0
        self._begin: tuple[int, int, int] | None = None  # input, its first document, document: where a piece began
        self._size = 0

    def add(self, sizes: npt.NDArray[Any]) -> Iterable[Piece]:
        """The pieces that end in the next input, whose documents count `sizes`."""
        ends = np.cumsum(sizes, dtype=np.uint64)
        first, at, before = self._documents, 0, 0
        while at < len(sizes):
            if self._begin is None:
                self._begin = (self._inputs, first, first + at)
            # The document that brings the piece to task_bytes is its last.
            last = int(np.searchsorted(ends, before + self._task_bytes - self._size))
            if last >= len(sizes):
                self._size += int(ends[-1]) - before
                break
            self._size += int(ends[last]) - before
            before, at = int(ends[last]), last + 1
            yield self._end(first + at)
        self._documents += len(sizes)
        self._inputs += 1

    def end(self) -> Iterable[Piece]:
        """The last piece, if there is something in it."""
        if self._begin is not None:
            yield self._end(self._documents)

    def _end(self, end: int) -> Piece:
        assert self._begin is not None
        index, begins, first = self._begin
        piece = Piece(self._number, index, begins, first, end - first, self._size)
        self._number += 1
        self._begin, self._size = None, 0
        return piece
