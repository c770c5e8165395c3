"""Megatron's .bin and .idx of a dataset: a sequence and a document for each of its documents, or windows."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import numpy.typing as npt

from penstock._base.errors import InvalidArgumentError
from penstock._from.tokens.feed import Feed
from penstock._from.tokens.new_files import NewFiles

_CODES = {"u1": 1, "i1": 2, "i2": 3, "i4": 4, "i8": 5, "u2": 8}
_WIDER = {"u4": "i4", "u8": "i8"}  # which Megatron has not
_MOST = (1 << 31) - 1  # tokens of a sequence


def write_megatron(feed: Feed, out: str) -> list[str]:
    """Writes both files; their names.

    Raises:
        InvalidArgumentError: a token or a sequence that they cannot hold; something is there.
        IoError: they cannot be written.
    """
    prefix = out.removesuffix(".bin").removesuffix(".idx")
    paths = [f"{prefix}.bin", f"{prefix}.idx"]
    assert feed.dataset.dtype is not None
    stored = feed.dataset.dtype[feed.token].str[1:]
    dtype = np.dtype("<" + _WIDER.get(stored, stored))
    _check_lengths(feed)
    with NewFiles(paths) as new:
        stream = new.open(paths[0])
        first = 0
        for part in feed.parts():
            assert part.lengths is not None
            stream.write(fitting(part.fields[feed.token], dtype, first, part.lengths, "Megatron").data)
            first += len(part.lengths)
        index = new.open(paths[1])
        index.write(b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, _CODES[dtype.str[1:]], feed.count, feed.count + 1))
        _write_index(feed, index, dtype.itemsize)
    return paths


def _write_index(feed: Feed, index: Any, item_bytes: int) -> None:
    for lengths in feed.lengths():
        index.write(lengths.astype("<i4").data)
    before = 0
    for lengths in feed.lengths():
        ends = np.cumsum(lengths) * item_bytes + before
        index.write((ends - lengths * item_bytes).astype("<i8").data)
        before = int(ends[-1])
    for begin in range(0, feed.count + 1, 1 << 20):
        index.write(np.arange(begin, min(begin + (1 << 20), feed.count + 1), dtype="<i8").data)


def _check_lengths(feed: Feed) -> None:
    first = 0
    for lengths in feed.lengths():
        if int(lengths.max()) > _MOST:
            at = int(np.argmax(lengths))
            raise InvalidArgumentError(
                f"document {first + at:,}: {lengths[at]:,} tokens, and a sequence of Megatron has at most {_MOST:,}: "
                "cut it with --window"
            )
        first += len(lengths)


def fitting(
    tokens: npt.NDArray[Any], dtype: np.dtype[Any], first: int, lengths: npt.NDArray[Any], what: str
) -> npt.NDArray[Any]:
    """Tokens as another type, C-contiguous.

    Raises:
        InvalidArgumentError: one does not fit; the message has the sequence, which is numbered from `first`.
    """
    if tokens.dtype != dtype and len(tokens):
        limits = np.iinfo(dtype)
        bad = (tokens > limits.max) | (tokens < limits.min)
        if bad.any():
            at = int(np.argmax(bad))
            sequence = first + int(np.searchsorted(np.cumsum(lengths), at, "right"))
            raise InvalidArgumentError(
                f"document {sequence:,}: token {int(tokens[at]):,}, and {what} holds {limits.min:,} to {limits.max:,}"
            )
    return np.ascontiguousarray(tokens.astype(dtype, copy=False))
