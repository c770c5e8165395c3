"""Texts and entries of metadata of many documents, end to end in one buffer: what Python hands on without looking."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt
    from typing_extensions import Self


class Pieces(NamedTuple):
    """Byte strings end to end.

    Attributes:
        data: their bytes; u1 or a bytes-like object.
        ends: where each ends in `data`; u64 [pieces].
    """

    data: Any
    ends: npt.NDArray[np.uint64]

    @classmethod
    def of(cls, pieces: Sequence[bytes]) -> Self:
        """Those of a list."""
        ends = np.cumsum(np.fromiter(map(len, pieces), np.uint64, len(pieces)), dtype=np.uint64)
        return cls(b"".join(pieces), ends)

    def __reduce__(self) -> tuple[Any, ...]:
        """For other processes: what the pieces are of, and no more."""
        return type(self), (bytes(memoryview(self.data)[: self.size_bytes]), self.ends)

    @property
    def size_bytes(self) -> int:
        """The bytes of all pieces together."""
        return int(self.ends[-1]) if len(self.ends) else 0

    def bounds(self, index: int) -> tuple[int, int]:
        """Where piece `index` begins and ends."""
        return int(self.ends[index - 1]) if index else 0, int(self.ends[index])

    def part(self, begin: int, end: int) -> Self:
        """Pieces [begin, end), which lie where they lie."""
        first = self.bounds(begin)[0] if begin < end else 0
        last = self.bounds(end - 1)[1] if begin < end else 0
        return type(self)(memoryview(self.data)[first:last], self.ends[begin:end] - np.uint64(first))

    def piece(self, index: int) -> bytes:
        """A copy of piece `index`."""
        begin, end = self.bounds(index)
        return bytes(memoryview(self.data)[begin:end])

    def pieces(self) -> list[bytes]:
        """Copies of all."""
        return [self.piece(index) for index in range(len(self.ends))]

    def strings(self) -> list[str]:
        """All of them as text, which they are known to be."""
        view, begin, found = memoryview(self.data), 0, []
        for end in self.ends.tolist():
            found.append(str(view[begin:end], "utf-8"))
            begin = end
        return found

    def put(self, put: Iterable[tuple[int, bytes]]) -> Self:
        """These with other bytes in the place of some pieces: (index, bytes), ascending."""
        view, lengths = memoryview(self.data), np.diff(self.ends, prepend=np.uint64(0))
        parts: list[Any] = []
        at = 0
        for index, data in put:
            begin, end = self.bounds(index)
            parts += [view[at:begin], data]
            at = end
            lengths[index] = len(data)
        parts.append(view[at : self.size_bytes])
        return type(self)(b"".join(parts), np.cumsum(lengths, dtype=np.uint64))

    def without(self, indices: Sequence[int]) -> Self:
        """These without some, whose bytes were taken out before: they are empty."""
        return type(self)(self.data, np.delete(self.ends, indices))
