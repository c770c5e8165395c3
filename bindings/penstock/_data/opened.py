"""Opened: what a dataset's files say, before any view of them is made."""

from __future__ import annotations

import functools
import json
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from penstock import _native
from penstock._data import dtype as _dtype
from penstock._data.stored_columns import Columns

if TYPE_CHECKING:
    from penstock._data.h5ad_in_place import FilesInPlace


class Shard(NamedTuple):
    """One shard, or one file of a foreign dataset."""

    name: str
    records: int
    spans: int
    entries: int
    size_bytes: int


class Opened:
    """The files of a dataset, and what they say of themselves: what views stand on. See `Dataset`."""

    def __init__(self, native: _native.Dataset, in_place: FilesInPlace | None = None) -> None:
        """Wraps a native dataset; `in_place` is of others' files."""
        self._native = native
        self._in_place = in_place
        self._cache: _native.CachedStore | None = None
        self.path: str = native.path
        self.kind: str = native.kind
        self.mode: str = native.mode
        self.layout: str | None = native.layout
        self.fingerprint: str = native.fingerprint

    @property
    def dtype(self) -> np.dtype[Any] | None:
        """The records' structured dtype; None for opaque documents."""
        text = self._native.schema_json
        return _dtype.from_descr(json.loads(text)) if text else None

    @property
    def codec(self) -> str | None:
        """Name of the metadata's codec; None without metadata."""
        codec = json.loads(self._native.codec_json)
        return None if codec is None else cast(str, codec["name"])

    @property
    def tokenizer(self) -> dict[str, Any] | None:
        """The writer's note of the tokenizer: name, vocabulary_size, end_of_document, hash, engine."""
        return cast("dict[str, Any] | None", json.loads(self._native.tokenizer_json))

    @property
    def cache_counts(self) -> dict[str, int] | None:
        """Counts of the local cache since this dataset was opened with `cache=`; None without.

        "hits" and "misses" are pages of 4 KiB, of which "wrong" did not have their check value; "filled" are pages that
        were written, "failed" writes that could not be, and "stopped_by" is the errno after which none are tried, or 0.
        """
        return None if self._cache is None else self._cache.counts

    @functools.cached_property
    def columns(self) -> Columns:
        """Typed values of each document, by name; `columns["plate"][:]` reads one."""
        return Columns(self._native)

    @property
    def records(self) -> int:
        """Records of the stream."""
        return self._native.records

    @property
    def spans(self) -> int:
        """Spans (documents) of all shards."""
        return self._native.spans

    @property
    def shards(self) -> list[Shard]:
        """The shards, in the order of the stream."""
        return [Shard(*each) for each in self._native.shards()]

    def check_in_place(self) -> None:
        """Looks whether others' files are still those that were opened.

        Views and loaders do so when they are made, and `view.read` and `view[i]` each time.

        Raises:
            CorruptionError: one was changed, or is gone.
        """
        if self._in_place is not None:
            self._in_place.check()
