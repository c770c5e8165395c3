"""The rows of a view, from docs/loading.md and docs/post-training.md: which records and which spans each one has."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from contents import Content, Place


@dataclass(frozen=True)
class Span:
    """A span of a row: records [start, stop) of it."""

    start: int
    stop: int
    begins: bool
    ends: bool
    offset: int  # -1 where it is unknown
    place: Place


@dataclass
class Row:
    """One observation.

    Attributes:
        records: with the lookahead; of packed rows with padding.
        spans: in their order.
        first_record: where it begins in the stream; -1 of packed rows and opaque documents.
        arrays: what was made of it, kept here for the next time.
    """

    records: np.ndarray
    spans: list[Span]
    first_record: int
    arrays: dict[Any, Any] = field(default_factory=dict)


@dataclass
class Given:
    """A row of a batch: the observation, and the number of its source."""

    row: Row
    source: int


@dataclass(frozen=True)
class Packing:
    """How `dataset.packed` was asked for."""

    window: int
    multiple_of: int = 1
    fit: str = "best"
    group: int | None = None
    long: str = "split"
    max_document: int | None = None
    cut: str | None = None
    max_documents: int | None = None
    fill: str = "pad"
    buffer: int | None = None
    refill: int | None = None
    lookahead: int = 0

    @property
    def records(self) -> int:
        """Of a row, with the lookahead."""
        return self.window + self.lookahead


class Rows:
    """The rows of a whole view, made when they are asked for."""

    def __init__(self, size: int, make: Callable[[int, int], Row]) -> None:
        self.size = size
        self._make = make
        self._rows: dict[tuple[int, int], Row] = {}

    def __call__(self, index: int, phase: int = 0) -> Row:
        key = index, phase
        if key not in self._rows:
            self._rows[key] = self._make(index, phase)
        return self._rows[key]


def windows(content: Content, window: int, lookahead: int, *, phased: int = 0) -> Rows:
    """`phased`: the window whose phases are random; then there is one of these windows fewer."""

    def make(index: int, phase: int) -> Row:
        begin = phase + index * window
        end = begin + window + lookahead
        spans = [_clipped(each, begin, end, content.ids) for each in content.spans_of(begin, end)]
        return Row(content.records[begin:end], spans, begin)

    records = max(len(content.records) - lookahead, 0)
    return Rows((records // phased - 1) * (phased // window) if phased else records // window, make)


def _clipped(place: Place, begin: int, end: int, no_offset: bool) -> Span:
    start, stop = max(place.start, begin), min(place.stop, end)
    offset = -1 if no_offset else start - place.start
    return Span(start - begin, stop - begin, place.start >= begin, place.stop <= end, offset, place)


def documents(content: Content, most: int | None = None) -> Rows:
    """`most`: records of a document that are read."""

    def make(index: int, _: int) -> Row:
        place = content.spans[index]
        length = place.stop - place.start
        read = length if most is None else min(most, length)
        span = Span(0, read, True, read == length, 0, place)
        first = -1 if content.mode == "opaque" else place.start
        return Row(content.records[place.start : place.start + read], [span], first)

    return Rows(len(content.spans), make)


def packed(content: Content, packing: Packing, is_chosen: Callable[[Place], bool] = lambda _: True) -> Rows:
    """Rows of whole documents that are chosen; pieces lie at multiples of `multiple_of`."""
    rows = []
    for number in range(len(content.shards)):
        own = [each for each in content.spans if each.shard == number and is_chosen(each)]
        if packing.fill == "exact":
            rows += exact_rows([piece for place in own for piece in _pieces(place, packing)], packing)
            continue
        group = packing.group or 65_536
        for first in range(0, len(own), group):
            rows += _packed_group(own[first : first + group], packing)

    def make(index: int, _: int) -> Row:
        records = np.zeros(packing.records, content.dtype)
        spans, at = [], 0
        for place, offset, length in rows[index]:
            begin = place.start + offset
            records[at : at + length] = content.records[begin : begin + length]
            spans.append(Span(at, at + length, offset == 0, begin + length == place.stop, offset, place))
            at += -(-length // packing.multiple_of) * packing.multiple_of
        return Row(records, spans, -1)

    return Rows(len(rows), make)


def _pieces(place: Place, packing: Packing) -> list[tuple[Place, int, int]]:
    """(document, offset, records) of a document."""
    length = place.stop - place.start
    most = packing.max_document or (packing.records if packing.fill == "pad" else max(length, 1))
    if length > most and packing.long == "drop":
        return []
    if "truncate" in (packing.long, packing.cut):
        length = min(length, most)
    return [(place, at, min(most, length - at)) for at in range(0, length, most)]


def _packed_group(places: list[Place], packing: Packing) -> list[list[tuple[Place, int, int]]]:
    """Rows of pieces (document, offset, records): by decreasing length, each into a row that has room."""
    pieces = [piece for place in places for piece in _pieces(place, packing)]
    pieces.sort(key=lambda each: -each[2])
    rows: list[list[tuple[Place, int, int]]] = []
    rooms: list[int] = []
    for piece in pieces:
        taken = -(-piece[2] // packing.multiple_of) * packing.multiple_of
        most = packing.max_documents or len(pieces) + 1  # sequences of a row, with what is left of it
        fitting = [
            (room if packing.fit == "best" else 0, row)
            for row, room in enumerate(rooms)
            if room >= taken and len(rows[row]) + 1 + (room > taken) <= most
        ]
        if not fitting:
            rows.append([])
            rooms.append(packing.records)
        row = min(fitting)[1] if fitting else len(rows) - 1
        rows[row].append(piece)
        rooms[row] -= taken
    return rows


def exact_rows(pieces: list[tuple[Any, int, int]], packing: Packing) -> list[list[tuple[Any, int, int]]]:
    """Rows that are filled to the last record, of a shard's pieces (document, offset, records): the next piece, or the
    longest of a buffer that has room, else the shortest, which is cut; what fills no row is in none."""
    waiting: list[tuple[Any, int, int]] = []
    rows: list[list[tuple[Any, int, int]]] = []
    row: list[tuple[Any, int, int]] = []
    room, at = packing.records, 0
    while True:
        while packing.buffer and packing.refill and len(waiting) < packing.buffer and at < len(pieces):
            waiting += pieces[at : at + packing.refill]
            at += packing.refill
        if packing.fit == "next" and at < len(pieces):
            waiting = [pieces[at]]
            at += 1
        if not waiting:
            return rows
        fitting = [each for each in waiting if each[2] <= room]
        chosen = max(fitting, key=lambda each: each[2]) if fitting else min(waiting, key=lambda each: each[2])
        waiting.remove(chosen)
        row.append((chosen[0], chosen[1], min(chosen[2], room)))
        room -= row[-1][2]
        if room == 0:
            rows.append(row)
            row, room = [], packing.records
