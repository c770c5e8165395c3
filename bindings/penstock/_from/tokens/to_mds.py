"""A folder of MDS of a dataset: a sample for each document or window, uncompressed shards of 64 MiB."""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from penstock._base.errors import InvalidArgumentError
from penstock._from.tokens.feed import Feed
from penstock._from.tokens.new_files import new_folder

_SHARD_BYTES = 1 << 26
_MOST = (1 << 32) - 1
_TOKENS = "tokens"
_METADATA = "metadata"


def write_mds(feed: Feed, out: str, keep: list[str], codec: str | None) -> list[str]:
    """Writes the folder; its name.

    Args:
        feed: the sequences.
        out: the folder.
        keep: fields beside the tokens, each of which becomes a column.
        codec: of the metadata: "json" (of objects) or "bytes"; None: there is none.

    Raises:
        InvalidArgumentError: a document that no shard can hold; something is there.
        IoError: it cannot be written.
    """
    dtype = feed.dataset.dtype
    assert dtype is not None
    named = {_TOKENS: feed.token, **{name: name for name in keep}}
    if len(named) < len(keep) + 1 or _METADATA in keep:
        raise InvalidArgumentError(
            f"{feed.dataset.path}: a field is called {_TOKENS} or {_METADATA}, as another column"
        )
    masks = {column for column, name in named.items() if dtype[name].kind == "b"}  # which MDS has not
    types = {column: np.dtype("u1") if column in masks else dtype[name] for column, name in named.items()}
    encodings = {column: f"ndarray:{each.newbyteorder('=').name}" for column, each in types.items()}
    if codec is not None:
        encodings[_METADATA] = codec
    with new_folder(out) as folder:
        shards, first = _Shards(folder, encodings), 0
        for part in feed.parts(codec is not None):
            assert part.lengths is not None
            columns = {
                column: _arrays(part.fields[name].view("u1") if column in masks else part.fields[name], part.lengths)
                for column, name in named.items()
            }
            if codec is not None:
                entries: list[Any] = part.entries or []
                columns[_METADATA] = _encoded(feed.dataset.path, feed.dataset.codec != "msgpack", entries, first)
            shards.add(columns)
            first += len(part.lengths)
        shards.finish()
    return [out]


def _encoded(path: str, is_stored: bool, entries: list[Any], first: int) -> Iterator[bytes]:
    """Entries of documents, which are numbered from `first`; `is_stored`: they are bytes as the column has them.

    Raises:
        InvalidArgumentError: msgpack holds what JSON has not.
    """
    for number, entry in enumerate(entries, first):
        if is_stored:
            yield bytes(entry)
            continue
        try:
            _refuse_other_keys(entry)
            yield json.dumps(entry, allow_nan=False).encode()
        except (TypeError, ValueError, RecursionError) as error:
            raise InvalidArgumentError(
                f"{path}: metadata of document {number:,} is no JSON, which MDS has: {error}: --drop metadata leaves "
                "all of it out"
            ) from None


def _refuse_other_keys(value: Any) -> None:
    """Of numbers and others json.dumps would make text."""
    if isinstance(value, dict):
        for key, each in value.items():
            if not isinstance(key, str):
                raise TypeError(f"the key {key!r:.40} is no text")
            _refuse_other_keys(each)
    elif isinstance(value, (list, tuple)):
        for each in value:
            _refuse_other_keys(each)


def _arrays(values: npt.NDArray[Any], lengths: npt.NDArray[Any]) -> Iterator[bytes]:
    """Each sequence as an ndarray of one axis whose type the column's name says."""
    at = 0
    for length in lengths.tolist():
        code = 0 if length < 1 << 8 else 1 if length < 1 << 16 else 2 if length < 1 << 32 else 3
        head = struct.pack("<B" + "BHIQ"[code], 1 << 2 | code, length)
        yield head + values[at : at + length].tobytes()
        at += length


class _Shards:
    """Writes samples into shards. The columns' names are sorted, as the format has them."""

    def __init__(self, folder: Path, encodings: dict[str, str]) -> None:
        self._folder = folder
        self._names = sorted(encodings)
        self._said = {
            "column_encodings": [encodings[name] for name in self._names],
            "column_names": self._names,
            "column_sizes": [None] * len(self._names),
            "compression": None,
            "format": "mds",
            "hashes": [],
            "size_limit": _SHARD_BYTES,
            "version": 2,
        }
        self._config = json.dumps(self._said, sort_keys=True).encode()
        self._samples: list[bytes] = []
        self._bytes = 0
        self._done: list[dict[str, Any]] = []

    def add(self, columns: dict[str, Iterator[bytes]]) -> None:
        for values in zip(*(columns[name] for name in self._names), strict=True):
            sizes = [len(each) for each in values]
            if sum(sizes) + len(self._config) + 64 > _MOST:
                raise InvalidArgumentError(
                    f"document {sum(each['samples'] for each in self._done) + len(self._samples):,}: {sum(sizes):,} "
                    "bytes, and a shard of MDS has at most 4 GiB: cut it with --window"
                )
            sample = struct.pack(f"<{len(sizes)}I", *sizes) + b"".join(values)
            if self._samples and self._size(len(self._samples) + 1) + len(sample) > _SHARD_BYTES:
                self._write()
            self._samples.append(sample)
            self._bytes += len(sample)

    def finish(self) -> None:
        if self._samples or not self._done:
            self._write()
        index = {"shards": self._done, "version": 2}
        self._put("index.json", [json.dumps(index, sort_keys=True).encode()])

    def _size(self, samples: int) -> int:
        return 4 + 4 * (samples + 1) + len(self._config) + self._bytes

    def _write(self) -> None:
        count = len(self._samples)
        head = self._size(count) - self._bytes
        offsets = np.cumsum([head, *(len(each) for each in self._samples)]).astype("<u4")
        name = f"shard.{len(self._done):05}.mds"
        self._put(name, [struct.pack("<I", count), offsets.tobytes(), self._config, *self._samples])
        raw = {"basename": name, "bytes": int(offsets[-1]), "hashes": dict[str, str]()}
        self._done.append({**self._said, "raw_data": raw, "samples": count, "zip_data": None})
        self._samples, self._bytes = [], 0

    def _put(self, name: str, pieces: list[bytes]) -> None:
        with (self._folder / name).open("wb") as file:
            file.writelines(pieces)
            file.flush()
            os.fsync(file.fileno())
