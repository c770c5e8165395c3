"""What a dataset of the generator holds, as plain arrays: records, spans, entries and columns, shard by shard."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Shard:
    """One shard, or one file: its records, and its spans in their order; entry i belongs to `ids[i]`."""

    records: np.ndarray
    starts: tuple[int, ...] = ()
    stops: tuple[int, ...] = ()
    ids: tuple[int, ...] = ()
    raws: tuple[bytes, ...] = ()
    metadata: tuple[Any, ...] = ()
    columns: dict[str, list[Any]] = field(default_factory=dict)


@dataclass(frozen=True)
class Place:
    """A span as it lies in the stream: records [start, stop) of all shards end to end."""

    shard: int
    entry: int
    start: int
    stop: int
    raw: bytes
    metadata: Any
    columns: dict[str, Any]


@dataclass(frozen=True)
class Content:
    """A dataset.

    Attributes:
        shards: in their order.
        mode: "stream", "tokens" or "opaque".
        ids: whether spans are those of the layout ids: they do not know their offset and are no documents.
        codec: None where spans have no metadata.
    """

    shards: tuple[Shard, ...]
    mode: str
    ids: bool = False
    codec: str | None = None

    def select(self, numbers: Sequence[int]) -> Content:
        return Content(tuple(self.shards[each] for each in numbers), self.mode, self.ids, self.codec)

    def told(self, token: int, ends: bool) -> Content:
        """A stream with documents: each ends, or begins, with a token; none crosses a shard."""
        shards = []
        for each in self.shards:
            cuts = (np.flatnonzero(each.records["token"] == token) + ends).tolist()
            bounds = sorted({0, *cuts, len(each.records)})
            count = len(bounds) - 1
            spans = tuple(bounds[:-1]), tuple(bounds[1:]), tuple(range(count))
            shards.append(Shard(each.records, *spans, (b"",) * count))
        return Content(tuple(shards), "stream")

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.shards[0].records.dtype

    @cached_property
    def records(self) -> np.ndarray:
        return np.concatenate([each.records for each in self.shards])

    @cached_property
    def bounds(self) -> list[int]:
        """Where each shard's records begin, and the end."""
        return [0, *np.cumsum([len(each.records) for each in self.shards]).tolist()]

    @cached_property
    def spans(self) -> list[Place]:
        found = []
        for number, (shard, at) in enumerate(zip(self.shards, self.bounds, strict=False)):
            for i, (start, stop, entry) in enumerate(zip(shard.starts, shard.stops, shard.ids, strict=True)):
                columns = {name: values[entry] for name, values in shard.columns.items()}
                metadata = shard.metadata[i] if shard.metadata else None
                found.append(Place(number, entry, at + start, at + stop, shard.raws[i], metadata, columns))
        return found

    @cached_property
    def span_starts(self) -> np.ndarray:
        return np.array([each.start for each in self.spans], np.int64)

    def spans_of(self, begin: int, end: int) -> list[Place]:
        """Those with a record in [begin, end)."""
        last = int(np.searchsorted(self.span_starts, end))
        first = int(np.searchsorted(self.span_starts, begin))
        while first > 0 and self.spans[first - 1].stop > begin:
            first -= 1
        return [each for each in self.spans[first:last] if each.stop > begin and each.start < each.stop]
