"""Samplers of plain files: of lines, and of files that are a document each. They read any place directly."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from typing import Any

from penstock._from.text.documents import built_in_columns
from penstock._from.text.inputs import Input
from penstock._from.text.raw import Columns, RawDocument
from penstock._from.text.sampling import (
    TILE_BYTES,
    Axis,
    Piece,
    even_places,
    evenly_ordered,
    tile_bounds,
    touching_lines,
    whole_characters,
)
from penstock._make.errors import InputError

_COUNT_BYTES = 256 << 10  # lines are counted in tiles of this size …
_MOST_COUNTED = 2048  # … of which so many are read
_STEP_BYTES = 64 << 10  # read at once while the end of a line is looked for


class _Files:
    """Inputs that are read at any place; the last one stays open."""

    def __init__(self, inputs: Sequence[Input]) -> None:
        self.inputs = inputs
        self._open: tuple[int, int] | None = None  # number, descriptor

    def read(self, number: int, begin: int, end: int) -> bytes:
        source = self.inputs[number]
        try:
            if self._open is None or self._open[0] != number:
                self.close()
                self._open = (number, os.open(str(source.path), os.O_RDONLY))
            data = b""
            while len(data) < end - begin:
                more = os.pread(self._open[1], end - begin - len(data), begin + len(data))
                if not more:
                    raise InputError(f"{source.name}: it became shorter while it was read")
                data += more
            return data
        except OSError as error:
            raise InputError(f"{source.name}: {error.strerror}") from error

    def close(self) -> None:
        if self._open is not None:
            os.close(self._open[1])
            self._open = None

    def __del__(self) -> None:
        self.close()


class _PlainFiles:
    """What both kinds have in common. The axis is their bytes."""

    def __init__(self, inputs: Sequence[Input], columns: Columns) -> None:
        self._files = _Files(inputs)
        self._columns = columns
        self._axis = Axis([each.size_bytes for each in inputs])
        self.total = self.text_bytes = float(self._axis.total)
        self.inputs, self.disk_bytes = len(inputs), int(self._axis.total)

    def tile_at(self, place: float) -> tuple[int, int]:
        """See Sampler."""
        index, at = self._axis.find(place)
        return index, int(at // TILE_BYTES)


class LineFiles(_PlainFiles):
    """Plain files with a document in each line. The axis is their bytes."""

    counts_lines = True

    def __init__(self, inputs: Sequence[Input], columns: Columns) -> None:
        """None of `inputs` is empty."""
        super().__init__(inputs, columns)
        self.documents: float | None = None
        self._counted_bytes = 0

    def look(self, deadline: float) -> None:
        """Counts lines: all, or those at places that lie evenly."""
        sizes = [each.size_bytes for each in self._files.inputs]
        tiles = [-(-size // _COUNT_BYTES) for size in sizes]
        lines, ratios, looked = 0, 0.0, 0
        everywhere = sum(tiles) <= _MOST_COUNTED
        if everywhere:
            axis = Axis(tiles)
            found = (axis.find(number) for number in evenly_ordered(sum(tiles)))
        else:
            places = even_places()
            found = (self._axis.find(next(places) * self.total) for _ in range(_MOST_COUNTED))
            found = ((index, at // _COUNT_BYTES) for index, at in found)
        for index, number in found:
            begin, end = tile_bounds(int(number), sizes[index], _COUNT_BYTES)
            data = self._files.read(index, begin, end)
            count = data.count(b"\n") + (end == sizes[index] and not data.endswith(b"\n"))
            lines, ratios, looked = lines + count, ratios + count / len(data), looked + 1
            self._counted_bytes += len(data)
            if time.perf_counter() > deadline:
                break
        # Tiles of one file are equal but for its last; places meet files by their size.
        per_byte = lines / self._counted_bytes if everywhere else ratios / looked
        self.documents = lines if self._counted_bytes == self.disk_bytes else per_byte * self.total

    def piece(self, tile: tuple[int, int]) -> Piece:
        """See Sampler."""
        index, number = tile
        source = self._files.inputs[index]
        begin, end = tile_bounds(number, source.size_bytes)
        first, data = self._whole_lines(index, begin, end)
        return piece_of_lines(source, self._columns, data, first, begin - first, end - first)

    def _whole_lines(self, index: int, begin: int, end: int) -> tuple[int, bytes]:
        """The lines that touch bytes [begin, end), and where the first of them begins."""
        size = self._files.inputs[index].size_bytes
        parts = [self._files.read(index, begin, end)]
        step = _STEP_BYTES
        while not parts[-1].endswith(b"\n") and end < size:
            more = self._files.read(index, end, min(size, end + step))
            parts.append(more[: more.find(b"\n") + 1] or more)
            end, step = end + len(parts[-1]), 2 * step
        step = _STEP_BYTES
        while begin > 0:
            before = self._files.read(index, max(0, begin - step), begin)
            cut = before.rfind(b"\n") + 1
            parts.insert(0, before[cut:])
            begin, step = begin - len(parts[0]), 2 * step
            if cut:
                break
        return begin, b"".join(parts)

    def rests_on(self) -> list[str]:
        """See Sampler."""
        if self._counted_bytes == self.disk_bytes:
            return ["all lines were counted"]
        return [f"lines were counted in {self._counted_bytes / self.disk_bytes:.0%} of the plain files"]


def piece_of_lines(source: Input, columns: Columns, data: bytes, at: int, begin: int, end: int) -> Piece:
    """The piece of the lines of `data`, which lies at byte `at` of a file, that touch its bytes [begin, end)."""
    documents: list[RawDocument] = []
    fractions: list[float] = []
    lines = 0.0
    for start, line, fraction in touching_lines(data, begin, end):
        lines += fraction
        payload = line.rstrip() if source.format == "jsonl" else line.rstrip(b"\r\n")
        if at + start == 0 and source.format == "jsonl" and payload.startswith(b"\xef\xbb\xbf"):
            payload = payload[3:]
        if not payload or payload.isspace():
            continue
        known: dict[str, Any] | None = None
        form = "jsonl"
        if source.format != "jsonl":
            form, known = "text", built_in_columns(source, len(payload), columns.metadata, source.name)
        documents.append(RawDocument(-1, source.name, 0, form, payload, known, at + start))
        fractions.append(fraction)
    return Piece(documents, fractions, [1.0] * len(documents), lines, end - begin)


class WholeFiles(_PlainFiles):
    """Plain files that are a document each, empty ones too. The axis is their bytes."""

    counts_lines = False

    def __init__(self, inputs: Sequence[Input], columns: Columns) -> None:
        """Reads nothing yet."""
        super().__init__(inputs, columns)
        self.documents: float | None = len(inputs)

    def look(self, deadline: float) -> None:
        """There is nothing to learn."""

    def piece(self, tile: tuple[int, int]) -> Piece:
        """See Sampler: a part of the file that has the tile."""
        index, number = tile
        source = self._files.inputs[index]
        begin, end = tile_bounds(number, source.size_bytes)
        data = self._files.read(index, begin, end)
        return piece_of_file(source, self._columns, data, begin, source.size_bytes)

    def rests_on(self) -> list[str]:
        """See Sampler."""
        return []


def piece_of_file(source: Input, columns: Columns, data: bytes, at: int, size_bytes: float) -> Piece:
    """The piece of `data`, a part at byte `at` of a document of `size_bytes` that is a file."""
    known = built_in_columns(source, round(size_bytes), columns.metadata, source.name)
    document = RawDocument(-1, source.name, 0, "text", whole_characters(data), known, at)
    share = len(data) / size_bytes
    return Piece([document], [share], [1 / share], 0.0, len(data))
