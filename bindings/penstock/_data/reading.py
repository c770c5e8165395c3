"""Runs of records and of documents, read in pieces of bounded size."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from penstock import _native

_WINDOW = 4096
_RECORDS = 1 << 20  # of one piece
_DOCUMENTS = 1 << 17
_COVERED = 1 << 18  # documents among which those of a piece are
_FEW_ENTRIES, _ENTRIES = 1 << 4, 1 << 14  # documents whose metadata is looked at between two reports
_ENTRY_BYTES = 1 << 24  # from which on it is that of fewer
_ROWS = 1 << 12
_LOCAL = 1000  # records that are read rather than one document more is read by itself
_FAR = 8  # of a server: records that are read for one that is wanted

FirstRecord = Callable[[int], int]


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
    dataset: Any, field: str, which: npt.NDArray[np.int64] | range, start: int, overlap: int, first_record: FirstRecord
) -> Iterator[Piece]:
    """The documents `which`, ascending, from the one at place `start` on.

    Documents that lie near each other are cut out of the stream: read one by one, small ones take many times as long.

    Args:
        dataset: with documents of records.
        field: of the records.
        which: numbers of documents.
        start: place in `which`.
        overlap: records that the pieces of a long document have in common.
        first_record: gives the first record of a document in the stream.
    """
    view = dataset.documents(metadata=False)
    at = start
    while at < len(which):
        some = _near(which, at)
        low = int(some[0])
        begins = _begins(dataset, low, int(some[-1]) + 1 - low)
        ends = begins[some - low + 1]
        count = int(np.searchsorted(ends, _RECORDS, "right"))
        if count == 0 and (ends[0] <= 8 * _RECORDS or view._source.fields_apart):
            count = 1
        if count == 0:
            yield from _parts(dataset, field, low, int(ends[0]), first_record(low), overlap, at)
            at += 1
            continue
        some = some[:count]
        first = _stream_begin(dataset, view, some, begins, first_record)
        if first is None:
            batch = view.read(some)
            tokens, offsets = batch[field], np.asarray(batch.offsets, np.int64)
        else:
            tokens, offsets = _cut_out(records(dataset, field, first, first + int(ends[count - 1])), some - low, begins)
        yield Piece(tokens, some, offsets, 0, 0, at, at + count)
        at += count


def entries(
    dataset: Any, which: npt.NDArray[np.int64] | range, start: int, first_record: FirstRecord
) -> Iterator[tuple[list[tuple[int, bytes]], int]]:
    """(number and metadata bytes of some of the documents `which`, place in `which` behind them), ascending."""
    view = dataset.documents()
    is_ragged = dataset.mode == "opaque" or view._source.fields_apart
    if not is_ragged:
        view = view.padded(to=1)  # entries are wanted, not records
    shards = np.cumsum([0, *(shard.spans for shard in dataset.shards)])
    at, most = start, _FEW_ENTRIES
    while at < len(which):
        some = _near(which, at)[:most]
        found: list[tuple[int, bytes]] = []
        if not is_ragged:
            low = int(some[0])
            begins = _begins(dataset, low, int(some[-1]) + 1 - low)
            some = some[: max(int(np.searchsorted(begins[some - low + 1], _RECORDS, "right")), 1)]
            first = _stream_begin(dataset, view, some, begins, first_record)
            if first is not None:
                found = _in_windows(dataset, first + begins[some - low], some, shards)
        known = {number for number, _ in found}
        rest = np.array([number for number in some.tolist() if number not in known], np.int64)
        for row in range(0, len(rest), _ROWS):
            batch = view.read(rest[row : row + _ROWS])
            found += [(int(rest[row + span.row]), bytes(span.raw)) for span in batch.spans]
        at += len(some)
        is_much = sum(len(raw) for _, raw in found) > _ENTRY_BYTES
        most = max(most // 4, 1) if is_much else min(most * 4, _ENTRIES)
        yield sorted(found), at


def _near(which: npt.NDArray[np.int64] | range, at: int) -> npt.NDArray[np.int64]:
    """Some documents from a place on that are numbered near each other."""
    some = np.asarray(which[at : at + _DOCUMENTS], np.int64)
    return some[: int(np.searchsorted(some, some[0] + _COVERED))]


def _begins(dataset: Any, first: int, count: int) -> npt.NDArray[np.int64]:
    """Where documents begin, counted from the first one's begin, and where the last one ends."""
    lengths = _native.document_lengths(dataset._native, first, count)
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths.astype(np.int64))])


def _stream_begin(
    dataset: Any, view: Any, some: npt.NDArray[np.int64], begins: npt.NDArray[np.int64], first_record: FirstRecord
) -> int | None:
    """The first record of the documents where they are to be cut out of the stream; None where they are not."""
    last = int(some[-1] - some[0])
    covered = int(begins[last + 1])
    wanted = int((begins[some - some[0] + 1] - begins[some - some[0]]).sum())
    most = _FAR * wanted if dataset._native.is_remote else _LOCAL * len(some)
    if view._source.fields_apart or not 0 < covered <= max(most, wanted):
        return None
    first = first_record(int(some[0]))
    # Every format of today has documents end to end; one that has not is read document by document.
    return first if first_record(int(some[-1])) == first + int(begins[last]) else None


def _cut_out(
    tokens: npt.NDArray[Any], places: npt.NDArray[np.int64], begins: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64]]:
    """Tokens and offsets of the documents at some places among those that follow each other."""
    lengths = np.diff(begins)
    last = int(places[-1]) + 1
    if len(places) == last:
        return tokens, begins[: last + 1]
    is_wanted = np.zeros(last, bool)
    is_wanted[places] = True
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths[places])])
    return tokens[np.repeat(is_wanted, lengths[:last])], offsets


def _in_windows(
    dataset: Any, begins: npt.NDArray[np.int64], some: npt.NDArray[np.int64], shards: npt.NDArray[np.int64]
) -> list[tuple[int, bytes]]:
    """Entries of those documents that begin in a whole window, by the records with which they begin."""
    window = min(_WINDOW, dataset.records)
    # Not the windows between: each that a long document covers has its entry once more.
    rows = np.unique(begins // window)
    rows = rows[rows < dataset.records // window].astype(np.uint64)
    if len(rows) == 0:
        return []
    spans = dataset.windows(window).read(rows).spans
    ids = spans.ids
    numbers = shards[ids[:, 0]] + ids[:, 1]
    chosen = np.flatnonzero(spans.begins & np.isin(numbers, some))
    raw = spans._entries().raw  # a Span each would take most of the time
    return [(number, bytes(raw(at))) for number, at in zip(numbers[chosen].tolist(), chosen.tolist(), strict=True)]


def _parts(
    dataset: Any, field: str, document: int, length: int, first: int, overlap: int, place: int
) -> Iterator[Piece]:
    """A document that is longer than a piece."""
    for begin in range(0, length, _RECORDS):
        low, high = max(begin - overlap, 0), min(begin + _RECORDS, length)
        tokens = records(dataset, field, first + low, first + high)
        done = place + (high == length)
        yield Piece(tokens, np.array([document]), np.array([0, len(tokens)]), low, begin - low, place, done)
