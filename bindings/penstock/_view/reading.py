"""Runs of records and of documents, read in pieces of bounded size."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from penstock._view.rows import lengths_of

_WINDOW = 4096
_RECORDS = 1 << 20  # of one piece
_DOCUMENTS = 1 << 16


class Piece(NamedTuple):
    """Some documents' tokens end to end, or some of a stream's.

    Attributes:
        tokens: of the piece.
        documents: int64 [n], the numbers; None of a stream without documents.
        offsets: int64 [n + 1], where each document begins among `tokens`.
        begin: the record of the document, or of the stream, that `tokens` begin with; above 0 where a long document
            comes in pieces.
        known: of `tokens`, those at the beginning that the piece before had too.
        first: place of the first document among those that are wanted; of a stream, 0.
        done: documents (of a stream: records) that are looked at after this piece.
    """

    tokens: npt.NDArray[Any]
    documents: npt.NDArray[np.int64] | None
    offsets: npt.NDArray[np.int64]
    begin: int
    known: int
    first: int
    done: int


def records(dataset: Any, field: str, begin: int, end: int) -> npt.NDArray[Any]:
    """A field of the records [begin, end) of the stream."""
    window = min(_WINDOW, dataset.records)
    whole = dataset.records // window * window
    first, last = begin // window, -(-min(end, whole) // window)
    parts = []
    if last > first:
        view = dataset.windows(window, metadata=False)
        parts.append(view.read(np.arange(first, last, dtype=np.uint64))[field].reshape(-1)[begin - first * window :])
    if end > whole:  # behind the last whole window
        some = np.arange(max(begin, whole), end, dtype=np.uint64)
        parts.append(dataset.windows(1, metadata=False).read(some)[field].reshape(-1))
    found: npt.NDArray[Any] = np.concatenate(parts)[: end - begin] if len(parts) > 1 else parts[0][: end - begin]
    return found


def stream_pieces(dataset: Any, field: str, start: int, overlap: int) -> Iterator[Piece]:
    """The stream from record `start` on; each piece begins with the last `overlap` records of the one before."""
    for begin in range(start, dataset.records, _RECORDS):
        first, end = max(begin - overlap, start), min(begin + _RECORDS, dataset.records)
        tokens = records(dataset, field, first, end)
        yield Piece(tokens, None, np.array([0, len(tokens)]), first, begin - first, 0, end)


def document_pieces(
    dataset: Any, field: str, which: npt.NDArray[np.int64] | range, start: int, overlap: int, first_record: Any
) -> Iterator[Piece]:
    """The documents `which`, from the one at place `start` on.

    Args:
        dataset: with documents of records.
        field: of the records.
        which: numbers of documents.
        start: place in `which`.
        overlap: records that the pieces of a long document have in common.
        first_record: a function that gives the first record of a document in the stream.
    """
    view = dataset.documents(metadata=False)
    at = start
    while at < len(which):
        some = np.asarray(which[at : at + _DOCUMENTS], np.int64)
        ends = np.cumsum(lengths_of(dataset, some).astype(np.int64))
        count = int(np.searchsorted(ends, _RECORDS, "right"))
        if count == 0 and (ends[0] <= 8 * _RECORDS or view._source.fields_apart):
            count = 1
        if count == 0:
            yield from _parts(dataset, field, int(some[0]), int(ends[0]), first_record(int(some[0])), overlap, at)
            at += 1
            continue
        batch = view.read(some[:count])
        yield Piece(batch[field], some[:count], np.asarray(batch.offsets, np.int64), 0, 0, at, at + count)
        at += count


def _parts(
    dataset: Any, field: str, document: int, length: int, first: int, overlap: int, place: int
) -> Iterator[Piece]:
    """A document that is longer than a piece."""
    for begin in range(0, length, _RECORDS):
        low, high = max(begin - overlap, 0), min(begin + _RECORDS, length)
        tokens = records(dataset, field, first + low, first + high)
        done = place + (high == length)
        yield Piece(tokens, np.array([document]), np.array([0, len(tokens)]), low, begin - low, place, done)
