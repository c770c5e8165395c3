"""Sampler of compressed files, which have no way into their middle: each is unpacked from its beginning on."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from penstock._from.text.compression import ByteInput
from penstock._from.text.inputs import Input
from penstock._from.text.raw import Columns
from penstock._from.text.sample_plain import piece_of_file, piece_of_lines
from penstock._from.text.sampling import TILE_BYTES, Axis, Piece, even_places, evenly_ordered

_BLOCK_BYTES = 1 << 20  # unpacked at once
_READ_BYTES = 4 << 10  # of the packed file at once: so much more than what was unpacked may count as read
_PACKED_RATE = 40e6  # bytes of packed files that are surely unpacked in a second
_LEAST_VISITED, _MOST_VISITED = 64, 4096
_TILES_KEPT = 512  # of all files together
_LEAST_KEPT = 8  # of each


@dataclass
class _Tile:
    """A stretch of a file's text: `data` is whole lines (or a part of a document) from byte `at` on; [begin, end) of
    it are the tile."""

    at: int
    data: bytes
    begin: int
    end: int


@dataclass
class _Visit:
    """What was seen of one file."""

    index: int
    weight: float = 0.0  # bytes on disk that it stands for
    packed_bytes: int = 0
    text_bytes: int = 0
    lines: int = 0
    whole: bool = False
    tiles: list[_Tile] = field(default_factory=list)


def _read_block(opened: ByteInput) -> bytes:
    """Some text, at least _BLOCK_BYTES; none at the end. What was unpacked for it is all that was unpacked."""
    parts: list[bytes] = []
    size = 0
    while size < _BLOCK_BYTES:
        part = opened.file.read1(_BLOCK_BYTES)
        if not part:
            break
        parts.append(part)
        size += len(part)
    return b"".join(parts)


class PackedFiles:
    """Files of gzip or Zstandard. The axis is their text, unpacked."""

    def __init__(self, inputs: Sequence[Input], columns: Columns, documents_are_files: bool) -> None:
        """None of `inputs` is empty."""
        self._inputs = inputs
        self._columns = columns
        self._are_files = documents_are_files
        self.counts_lines = not documents_are_files
        self.inputs = len(inputs)
        self.disk_bytes = sum(each.size_bytes for each in inputs)
        self.total = self.text_bytes = 0.0
        self.documents: float | None = len(inputs) if documents_are_files else None
        self._visits: list[_Visit] = []
        self._axis = Axis([])

    def look(self, deadline: float) -> None:
        """Unpacks as many files, and as much of each, as there is time for."""
        self._visit_all(deadline)
        text = lines = 0.0
        tiles: list[float] = []
        self._tiles: list[tuple[_Visit, _Tile]] = []
        for visit in self._visits:
            scale = visit.weight / max(1, visit.packed_bytes)
            text += visit.text_bytes * scale
            lines += visit.lines * scale
            self._tiles += [(visit, tile) for tile in visit.tiles]
            tiles += [visit.text_bytes * scale / len(visit.tiles)] * len(visit.tiles)
        self._axis = Axis(tiles)
        self.total = self.text_bytes = text
        if not self._are_files:
            self.documents = lines

    def _visit_all(self, deadline: float) -> None:
        count = len(self._inputs)
        # All, if there is time for them; else fewer, and more of each.
        room = max(0.0, deadline - time.perf_counter()) * _PACKED_RATE * count / self.disk_bytes
        most = round(min(max(room, _LEAST_VISITED), _MOST_VISITED))
        if count <= most:
            order = [(index, float(self._inputs[index].size_bytes)) for index in evenly_ordered(count)]
        else:
            axis, places = Axis([each.size_bytes for each in self._inputs]), even_places()
            order = [(axis.find(next(places) * axis.total)[0], self.disk_bytes / most) for _ in range(most)]
        visits: dict[int, _Visit] = {}
        kept = max(_LEAST_KEPT, _TILES_KEPT // len(order))
        for number, (index, weight) in enumerate(order):
            if index not in visits:
                now = time.perf_counter()
                if now > deadline and visits:
                    break
                until = now + max(0.0, deadline - now) / (len(order) - number)
                visits[index] = self._visit(index, until, kept)
            visits[index].weight += weight
        # Those that there was no time for are like those that were seen.
        scale = self.disk_bytes / sum(visit.weight for visit in visits.values())
        for visit in visits.values():
            visit.weight *= scale
        self._visits = [visit for visit in visits.values() if visit.tiles]

    def _visit(self, index: int, until: float, most_tiles: int) -> _Visit:
        source = self._inputs[index]
        visit = _Visit(index)
        opened = ByteInput(source.path, source.name, source.compression, read_bytes=_READ_BYTES)
        step = 1  # tiles from one that is kept to the next
        held: list[bytes] = []  # of a line whose end was not reached
        try:
            while True:
                block = _read_block(opened)
                visit.whole = not block
                end = len(block) if visit.whole or self._are_files else block.rfind(b"\n") + 1
                held.append(block[:end])
                if end or visit.whole:
                    step = self._keep(visit, b"".join(held), step, most_tiles)
                    held = []
                held.append(block[end:])
                if visit.whole or (time.perf_counter() > until and visit.tiles):
                    break
        finally:
            visit.packed_bytes = source.size_bytes if visit.whole else min(opened.consumed(), source.size_bytes)
            opened.close()
        left = sum(map(len, held))
        visit.packed_bytes = round(visit.packed_bytes * visit.text_bytes / max(1, visit.text_bytes + left))
        return visit

    def _keep(self, visit: _Visit, data: bytes, step: int, most: int) -> int:
        """Counts `data`, and keeps the tiles of it that are a multiple of `step`; returns the new step."""
        base = visit.text_bytes
        for number in range(-(-base // TILE_BYTES), -(-(base + len(data)) // TILE_BYTES)):
            if number % step:
                continue
            begin = number * TILE_BYTES - base
            end = min(begin + TILE_BYTES, len(data))
            if self._are_files:
                visit.tiles.append(_Tile(base + begin, data[begin:end], 0, end - begin))
            else:
                first = data.rfind(b"\n", 0, begin) + 1
                stop = data.find(b"\n", end - 1) + 1 or len(data)
                visit.tiles.append(_Tile(base + first, data[first:stop], begin - first, end - first))
            if len(visit.tiles) > most:
                visit.tiles = visit.tiles[::2]
                step *= 2
        visit.text_bytes += len(data)
        visit.lines += data.count(b"\n") + (visit.whole and bool(data) and not data.endswith(b"\n"))
        return step

    def tile_at(self, place: float) -> tuple[int, int]:
        """See Sampler."""
        number, _ = self._axis.find(place)
        return self._tiles[number][0].index, number

    def piece(self, tile: tuple[int, int]) -> Piece:
        """See Sampler."""
        visit, found = self._tiles[tile[1]]
        source = self._inputs[visit.index]
        if self._are_files:
            size = visit.text_bytes * source.size_bytes / max(1, visit.packed_bytes)
            return piece_of_file(source, self._columns, found.data, found.at, max(size, len(found.data)))
        return piece_of_lines(source, self._columns, found.data, found.at, found.begin, found.end)

    def rests_on(self) -> list[str]:
        """See Sampler."""
        words = []
        partly = [visit for visit in self._visits if not visit.whole]
        if partly:
            least = min(visit.packed_bytes / self._inputs[visit.index].size_bytes for visit in partly)
            name = self._inputs[partly[0].index].name
            which = name if len(partly) == 1 else f"{len(partly):,} compressed files"
            words.append(f"of {which} only the beginning was unpacked (the first {least:.1%}): what follows may differ")
        elif len(self._visits) == self.inputs:
            words.append("all compressed files were unpacked")
        if len(self._visits) < self.inputs:
            words.append(f"{len(self._visits):,} of {self.inputs:,} compressed files were unpacked")
        return words
