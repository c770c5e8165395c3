"""The article's reader, step by step: what ablation.py times against penstock on the same files.

Files are those of the ids layout: records of (token, metadata_id), an index of u64 offsets and the entries' bytes. A
batch is its tokens, for each token the number of its entry in the window, and each window's entries.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from workloads import WINDOW

RECORD = np.dtype([("token", "<u4"), ("metadata_id", "<u4")])
OFFSET_BYTES = 8

Array = np.ndarray[Any, Any]
Read = Callable[[IO[bytes], int, int], bytes]
#: (records of each piece, its shard, ids of all) -> (shard and id of each entry, number of the entry of each record)
Find = Callable[[Array, Array, Array], tuple[Array, Array, Array]]


@dataclass(frozen=True)
class Shard:
    """Files of one shard, not buffered."""

    stream: IO[bytes]
    index: IO[bytes]
    data: IO[bytes]


class Files:
    """All shards of a dataset and where their records begin."""

    def __init__(self, path: Path) -> None:
        folders = sorted(folder for folder in path.iterdir() if folder.is_dir())
        names = ("stream.bin", "metadata.index", "metadata.bin")
        self.shards = [Shard(*((folder / name).open("rb", buffering=0) for name in names)) for folder in folders]
        sizes = [os.fstat(shard.stream.fileno()).st_size // RECORD.itemsize for shard in self.shards]
        self.starts = np.concatenate([[0], np.cumsum(sizes)])

    def pieces(self, begin: int, end: int) -> list[tuple[int, int, int]]:
        """Shard, first record and number of records of each part of [begin, end) of the stream."""
        found = []
        shard = int(np.searchsorted(self.starts, begin, side="right")) - 1
        while begin < end:
            stop = min(end, int(self.starts[shard + 1]))
            found.append((shard, begin - int(self.starts[shard]), stop - begin))
            begin, shard = stop, shard + 1
        return found


def seek_and_read(file: IO[bytes], offset: int, size: int) -> bytes:
    file.seek(offset)
    return file.read(size)


def pread(file: IO[bytes], offset: int, size: int) -> bytes:
    return os.pread(file.fileno(), size, offset)


# --- index calculations


def find_by_loop(lengths: Array, shards: Array, ids: Array) -> tuple[Array, Array, Array]:
    """The article's function: a loop over the tokens. Python runs it as it is, numba compiles it."""
    entry_shards = np.empty(len(ids), np.int64)
    entry_ids = np.empty(len(ids), np.int64)
    numbers = np.empty(len(ids), np.int32)
    current = -1
    at = 0
    for piece in range(len(lengths)):
        previous = -1
        for _ in range(lengths[piece]):
            entry = ids[at]
            if entry != previous:
                current += 1
                entry_shards[current] = shards[piece]
                entry_ids[current] = entry
            numbers[at] = current
            previous = entry
            at += 1
    return entry_shards[: current + 1], entry_ids[: current + 1], numbers


def find_by_numpy(lengths: Array, shards: Array, ids: Array) -> tuple[Array, Array, Array]:
    """The same without a loop."""
    begins = np.empty(len(ids), np.bool_)
    np.not_equal(ids[1:], ids[:-1], out=begins[1:])
    begins[np.concatenate([[0], np.cumsum(lengths[:-1])])] = True
    firsts = np.flatnonzero(begins)
    return np.repeat(shards, lengths)[firsts], ids[firsts].astype(np.int64), np.cumsum(begins, dtype=np.int32) - 1


def find_by_numba() -> Find | None:
    """find_by_loop, compiled and without the GIL; None where numba is not installed."""
    try:
        import numba
    except ImportError:
        return None
    compiled: Find = numba.njit("(int64[::1], int64[::1], uint32[::1])", nogil=True)(find_by_loop)
    return compiled


# --- reads of entries


def read_each(files: Files, shards: Array, ids: Array, read: Read) -> list[bytes]:
    """Two reads for each entry: where it is, and what it is."""
    entries = []
    for number, entry in zip(shards.tolist(), ids.tolist(), strict=True):
        shard = files.shards[number]
        begin, end = np.frombuffer(read(shard.index, entry * OFFSET_BYTES, 2 * OFFSET_BYTES), "<u8").tolist()
        entries.append(read(shard.data, begin, end - begin))
    return entries


def read_merged(files: Files, shards: Array, ids: Array, read: Read) -> list[memoryview]:
    """Two reads for each shard: all between the least and the greatest id, taken apart without a copy."""
    entries: list[memoryview] = []
    for number in dict.fromkeys(shards.tolist()):
        shard = files.shards[number]
        wanted = ids[shards == number]
        least, greatest = int(wanted.min()), int(wanted.max())
        offsets = np.frombuffer(read(shard.index, least * OFFSET_BYTES, (greatest - least + 2) * OFFSET_BYTES), "<u8")
        first = int(offsets[0])
        data = memoryview(read(shard.data, first, int(offsets[-1]) - first))
        begins = (offsets[wanted - least] - first).tolist()
        ends = (offsets[wanted - least + 1] - first).tolist()
        entries += [data[begin:end] for begin, end in zip(begins, ends, strict=True)]
    return entries


# --- batches


@dataclass(frozen=True)
class Step:
    """One combination; read_entries None: tokens alone."""

    files: Files
    read: Read
    find: Find | None
    read_entries: Callable[[Files, Array, Array, Read], list[Any]] | None

    def batch(self, indices: list[int]) -> tuple[Array, Array, list[list[Any]]]:
        """Tokens u32 [B, W], for each its entry's number in the row int32 [B, W], the rows' entries."""
        tokens = np.empty((len(indices), WINDOW), np.uint32)
        numbers = np.empty((len(indices), WINDOW), np.int32)
        entries: list[list[Any]] = []
        for row, index in enumerate(indices):
            pieces = self.files.pieces(index * WINDOW, (index + 1) * WINDOW)
            ids = np.empty(WINDOW, np.uint32)
            at = 0
            for shard, first, count in pieces:
                raw = self.read(self.files.shards[shard].stream, first * RECORD.itemsize, count * RECORD.itemsize)
                records = np.frombuffer(raw, RECORD)
                tokens[row, at : at + count] = records["token"]
                ids[at : at + count] = records["metadata_id"]
                at += count
            if self.find is None or self.read_entries is None:
                continue
            lengths = np.array([count for _, _, count in pieces])
            entry_shards, entry_ids, numbers[row] = self.find(lengths, np.array([piece[0] for piece in pieces]), ids)
            entries.append(self.read_entries(self.files, entry_shards, entry_ids, self.read))
        return tokens, numbers, entries
