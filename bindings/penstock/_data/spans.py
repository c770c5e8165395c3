"""Spans: the metadata entries of a batch, decoded when asked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple, overload

import numpy as np
import numpy.typing as npt

from penstock import _native
from penstock._base.errors import InvalidArgumentError
from penstock._base.words import counted

Metadata = Literal["spans"] | bool

Decode = Callable[[memoryview, int, int], Any]
"""From an entry's bytes, its shard and its number there to the object."""

# What is read of a row, by the argument metadata= of its view: Parts of core/rows/source.h.
_RECORDS, SPANS, ENTRIES, VALUES = 1, 2, 4, 8


def check_metadata(metadata: Any) -> Metadata:
    """The argument `metadata` of a view.

    Raises:
        InvalidArgumentError: it is none of True, "spans" and False.
    """
    if isinstance(metadata, (bool, np.bool_)):
        return bool(metadata)
    if isinstance(metadata, str) and metadata == "spans":
        return "spans"
    raise InvalidArgumentError(f"metadata={metadata!r}: must be True, 'spans' or False")


def parts_of(view: Any) -> int:
    """What the native side reads of each row of a view."""
    parts = _RECORDS | (VALUES if view.columns else 0)
    if view.metadata == "spans":
        return parts | SPANS
    return parts | SPANS | ENTRIES if view.metadata else parts


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
        source: number of the loader's source that the row is from, as in `batch.sources`; 0 where there is one.
    """

    __slots__ = ("_at", "_spans", "begins", "ends", "id", "offset", "row", "source", "start", "stop")

    def __init__(self, spans: Spans, at: int) -> None:
        """Span number `at` of a batch's."""
        row, start, stop, begins, ends, offset, shard, entry, source = spans._list.get(at)
        self._spans, self._at = spans, at
        self.row: int = row
        self.start: int = start
        self.stop: int = stop
        self.begins: bool = begins
        self.ends: bool = ends
        self.offset: int | None = offset
        self.id = SpanId(shard, entry)
        self.source: int = source % len(spans._decoders)

    @property
    def raw(self) -> bytes:
        """The entry's bytes.

        Raises:
            InvalidArgumentError: entries were not read: the view was made with metadata="spans".
        """
        return self._spans._entries().raw(self._at)

    @property
    def metadata(self) -> Any:
        """The entry, decoded by the dataset's codec each time it is asked for; None where there is no codec.

        Raises:
            InvalidArgumentError: entries were not read: the view was made with metadata="spans".
            CorruptionError: the codec cannot decode the entry.
        """
        return self._spans._metadata(self)

    def __repr__(self) -> str:
        """All but the entry."""
        return (
            f"Span(row={self.row}, start={self.start}, stop={self.stop}, begins={self.begins}, ends={self.ends}, "
            f"offset={self.offset}, id=({self.id.shard}, {self.id.entry}))"
        )


class Spans(Sequence[Span]):
    """The spans of a batch, ordered by row and start: a sequence of `Span`, and the same as NumPy arrays.

    Attributes:
        rows: int64 [n], the row of each span.
        starts: int64 [n], the first record of the row that it covers.
        stops: int64 [n], one past the last one.
        begins: bool [n], whether the document begins in the row.
        ends: bool [n], whether the document ends in the row.
        offsets: int64 [n], of the record at `starts` within its document; -1 in the ids layout.
        ids: int64 [n, 2], shard and entry.
        source: int64 [n], number of the loader's source that the row is from; 0 where there is one.
    """

    __slots__ = ("_arrays", "_decoders", "_has_entries", "_list")

    def __init__(self, spans: _native.SpanList, decoders: Sequence[Decode | None], has_entries: bool = True) -> None:
        """Wraps a native list; `decoders` by source; `has_entries`: whether the entries were read."""
        self._list, self._decoders, self._has_entries = spans, decoders, has_entries
        self._arrays: tuple[npt.NDArray[Any], ...] | None = None

    @property
    def rows(self) -> npt.NDArray[np.int64]:
        """int64 [n]: the row of each span."""
        return self._array(0)

    @property
    def starts(self) -> npt.NDArray[np.int64]:
        """int64 [n]: the first record of the row that each covers."""
        return self._array(1)

    @property
    def stops(self) -> npt.NDArray[np.int64]:
        """int64 [n]: one past the last record of each; clipped to the row."""
        return self._array(2)

    @property
    def begins(self) -> npt.NDArray[np.bool_]:
        """bool [n]: whether the document begins in the row."""
        return self._array(3)

    @property
    def ends(self) -> npt.NDArray[np.bool_]:
        """bool [n]: whether the document ends in the row."""
        return self._array(4)

    @property
    def offsets(self) -> npt.NDArray[np.int64]:
        """int64 [n]: of the record at `starts` within its document; -1 in the ids layout, which does not know."""
        return self._array(5)

    @property
    def ids(self) -> npt.NDArray[np.int64]:
        """int64 [n, 2]: which entry each is: the number of its shard, and of the entry in it."""
        return self._array(6)

    @property
    def source(self) -> npt.NDArray[np.int64]:
        """int64 [n]: number of the loader's source that the row is from; 0 where there is one."""
        return self._array(7) % len(self._decoders)

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
            return [Span(self, i) for i in range(*at.indices(count))]
        if not -count <= at < count:
            raise IndexError(f"span {at} of {count}")
        return Span(self, at % count)

    def of_row(self, row: int) -> list[Span]:
        """The spans of one row; none of a row that is padded."""
        return [Span(self, i) for i in range(*self._list.of_row(row))]

    def _array(self, number: int) -> npt.NDArray[Any]:
        if self._arrays is None:
            self._arrays = self._list.arrays()
        return self._arrays[number]

    def _metadata(self, span: Span) -> Any:
        entries, decode = self._entries(), self._decoders[span.source]
        return None if decode is None else decode(entries.view(span._at).data, span.id.shard, span.id.entry)

    def _entries(self) -> _native.SpanList:
        if not self._has_entries:
            raise InvalidArgumentError(
                'the entries of these spans were not read: their view was made with metadata="spans"; '
                "metadata=True reads them"
            )
        return self._list

    def __repr__(self) -> str:
        """The first few."""
        shown = ", ".join(repr(span) for span in self[:3])
        return f"<{counted(len(self), 'span')}: {shown}{', …' if len(self) > 3 else ''}>"
