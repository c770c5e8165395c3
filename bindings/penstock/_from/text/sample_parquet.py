"""Sampler of Parquet files: footers say how many rows there are and how large each row group is; some are read."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from penstock._from.text.inputs import Input
from penstock._from.text.parquet_rows import ParquetInput
from penstock._from.text.raw import Columns
from penstock._from.text.sampling import TILE_BYTES, Axis, Piece, even_places, evenly_ordered

_MOST_FILES = 256  # whose footers are read
_MOST_GROUPS = 64  # that are read
_TILES_KEPT = 512  # of all groups together
_LEAST_KEPT = 4  # of each


class _Group(NamedTuple):
    file: int  # its number
    number: int  # in it
    first_row: int
    rows: int
    bytes: int  # of its payload's column, as the footer says; at least 1


class ParquetFiles:
    """Parquet files. The axis is the bytes of their texts (or ids)."""

    counts_lines = False

    def __init__(self, inputs: Sequence[Input], columns: Columns) -> None:
        """None of `inputs` is empty."""
        self._inputs = inputs
        self._columns = columns
        self.inputs = len(inputs)
        self.disk_bytes = sum(each.size_bytes for each in inputs)
        self.total = self.text_bytes = 0.0
        self.documents: float | None = None
        self._groups: list[_Group] = []
        self._footers = 0
        self._groups_read = 0
        self._tiles: list[tuple[int, Piece]] = []  # the file's number, and what touches the tile
        self._axis = Axis([])

    def look(self, deadline: float) -> None:
        """Reads the footers of all files, or of those at places that lie evenly; then row groups in the same way."""
        size = self._read_footers(deadline)
        if not self._groups:
            return
        shares: list[float] = []
        seen = 0.0
        visits: dict[int, tuple[float, list[Piece]]] = {}
        for group, weight in self._order_of_groups():
            if group not in visits:
                if visits and time.perf_counter() > deadline:
                    break
                visits[group] = self._read_group(self._groups[group])
            text_bytes, pieces = visits[group]
            seen += weight
            shares += [text_bytes / self._groups[group].bytes * weight / len(pieces) for _ in pieces]
            self._tiles += [(self._groups[group].file, piece) for piece in pieces]
        self._groups_read = len(visits)
        self._axis = Axis([share * size / seen for share in shares])
        self.total = self.text_bytes = self._axis.total

    def _read_footers(self, deadline: float) -> float:
        """Sets `documents`; returns the bytes of the payload's column in all files."""
        rows = size = seen = 0.0
        known: dict[int, list[_Group]] = {}
        for index, weight in self._order_of_files():
            if index not in known:
                known[index] = self._groups_of(index)
                self._groups += known[index]
            rows += weight * sum(group.rows for group in known[index])
            size += weight * sum(group.bytes for group in known[index])
            seen += weight * self._inputs[index].size_bytes
            if time.perf_counter() > deadline:
                break
        self._footers = len(known)
        scale = self.disk_bytes / seen
        self.documents = rows * scale
        return size * scale

    def _order_of_files(self) -> Iterator[tuple[int, float]]:
        """Files, and how many each stands for."""
        if self.inputs <= _MOST_FILES:
            yield from ((index, 1.0) for index in evenly_ordered(self.inputs))
            return
        axis, places = Axis([each.size_bytes for each in self._inputs]), even_places()
        for _ in range(_MOST_FILES):
            index, _at = axis.find(next(places) * axis.total)
            yield index, 1 / self._inputs[index].size_bytes

    def _groups_of(self, index: int) -> list[_Group]:
        opened = ParquetInput(self._inputs[index], self._columns)
        try:
            groups, first = [], 0
            for number, (rows, size) in enumerate(opened.groups()):
                if rows:
                    groups.append(_Group(index, number, first, rows, max(1, size)))
                first += rows
            return groups
        finally:
            opened.close()

    def _order_of_groups(self) -> Iterator[tuple[int, float]]:
        """Groups, and the bytes that each stands for, among those whose footers were read."""
        sizes = [group.bytes for group in self._groups]
        if len(sizes) <= _MOST_GROUPS:
            yield from ((number, float(sizes[number])) for number in evenly_ordered(len(sizes)))
            return
        axis, places = Axis(sizes), even_places()
        for _ in range(_MOST_GROUPS):
            yield axis.find(next(places) * axis.total)[0], 1.0

    def _read_group(self, group: _Group) -> tuple[float, list[Piece]]:
        """The bytes of its texts, and some tiles of them."""
        opened = ParquetInput(self._inputs[group.file], self._columns)
        try:
            table, sizes = opened.read_group(group.number)
            ends = np.cumsum(sizes)
            text_bytes = int(ends[-1])
            tiles = max(1, -(-text_bytes // TILE_BYTES))
            most = max(_LEAST_KEPT, _TILES_KEPT // min(len(self._groups), _MOST_GROUPS))
            pieces = []
            for number in sorted({int((part + 0.5) / min(tiles, most) * tiles) for part in range(min(tiles, most))}):
                begin, end = number * TILE_BYTES, min((number + 1) * TILE_BYTES, text_bytes)
                # The rows that touch [begin, end): those that end behind its begin and begin before its end.
                first = int(np.searchsorted(ends, begin, "right"))
                stop = min(len(sizes), int(np.searchsorted(ends, end, "left")) + 1)
                rows = table.slice(first, stop - first).combine_chunks().to_batches()
                documents = [document for batch in rows for document in opened.rows(batch, -1, group.first_row + first)]
                covered = np.minimum(ends[first:stop], end) - np.maximum(ends[first:stop] - sizes[first:stop], begin)
                fractions = (covered / np.maximum(sizes[first:stop], 1)).tolist()
                pieces.append(Piece(documents, fractions, [1.0] * len(documents), 0.0, end - begin))
            return text_bytes * (group.rows / len(sizes)), pieces
        finally:
            opened.close()

    def tile_at(self, place: float) -> tuple[int, int]:
        """See Sampler."""
        number, _ = self._axis.find(place)
        return self._tiles[number][0], number

    def piece(self, tile: tuple[int, int]) -> Piece:
        """See Sampler."""
        return self._tiles[tile[1]][1]

    def rests_on(self) -> list[str]:
        """See Sampler."""
        footers = "all footers" if self._footers == self.inputs else f"{self._footers:,} of {self.inputs:,} footers"
        return [f"{footers} and {self._groups_read:,} of {len(self._groups):,} row groups of Parquet were read"]
