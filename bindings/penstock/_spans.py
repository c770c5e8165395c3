"""Spans: the metadata entries of a batch, decoded when asked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, overload

from penstock import _native
from penstock._words import counted


class SpanId(NamedTuple):
    """Which entry it is: the number of its shard, and of the entry in it."""

    shard: int
    entry: int


class Span:
    """A run of records of one row to which one metadata entry is attached.

    Attributes:
        row: the row of the batch.
        start: first record of the row that it covers.
        stop: one past the last one; clipped to the row.
        begins: whether the document begins in this row.
        ends: whether the document ends in this row.
        offset: of the record at `start` within its document; None in the ids layout.
        id: the entry: (shard, entry).
    """

    __slots__ = ("_at", "_decode", "_list", "begins", "ends", "id", "offset", "row", "start", "stop")

    def __init__(self, spans: _native.SpanList, at: int, decode: Callable[[memoryview], Any] | None) -> None:
        """Span number `at` of a native list."""
        row, start, stop, begins, ends, offset, shard, entry = spans.get(at)
        self._list, self._at, self._decode = spans, at, decode
        self.row: int = row
        self.start: int = start
        self.stop: int = stop
        self.begins: bool = begins
        self.ends: bool = ends
        self.offset: int | None = offset
        self.id = SpanId(shard, entry)

    @property
    def raw(self) -> bytes:
        """The entry's bytes."""
        return self._list.raw(self._at)

    @property
    def metadata(self) -> Any:
        """The entry, decoded by the dataset's codec each time it is asked for; None where there is no codec."""
        return None if self._decode is None else self._decode(self._list.view(self._at).data)

    def __repr__(self) -> str:
        """All but the entry."""
        return (
            f"Span(row={self.row}, start={self.start}, stop={self.stop}, begins={self.begins}, ends={self.ends}, "
            f"offset={self.offset}, id=({self.id.shard}, {self.id.entry}))"
        )


class Spans(Sequence[Span]):
    """The spans of a batch, ordered by row and start."""

    def __init__(self, spans: _native.SpanList, decode: Callable[[memoryview], Any] | None) -> None:
        """Wraps a native list."""
        self._list, self._decode = spans, decode

    def __len__(self) -> int:
        """How many there are in all rows."""
        return len(self._list)

    @overload
    def __getitem__(self, at: int) -> Span: ...
    @overload
    def __getitem__(self, at: slice) -> list[Span]: ...
    def __getitem__(self, at: int | slice) -> Span | list[Span]:
        """One span, or a list of them."""
        count = len(self._list)
        if isinstance(at, slice):
            return [Span(self._list, i, self._decode) for i in range(*at.indices(count))]
        if not -count <= at < count:
            raise IndexError(f"span {at} of {count}")
        return Span(self._list, at % count, self._decode)

    def of_row(self, row: int) -> list[Span]:
        """The spans of one row."""
        return [span for span in self if span.row == row]

    def __repr__(self) -> str:
        """The first few."""
        shown = ", ".join(repr(span) for span in self[:3])
        return f"<{counted(len(self), 'span')}: {shown}{', …' if len(self) > 3 else ''}>"
