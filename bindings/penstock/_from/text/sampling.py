"""Looking at places of large inputs that stand for all of them, for `penstock write --dry-run`.

Inputs become *stretches* of text: a plain file, the unpacked beginning of a compressed one, a row group. At a place of
a stretch lies a piece: the document that has this byte, and whole ones after it. Places lie evenly over all bytes, so
the mean of the pieces' tokens for a byte is that of the whole, in whichever order documents lie.
"""

from __future__ import annotations

import codecs
import io
import time
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from functools import partial
from itertools import accumulate
from typing import NamedTuple, TypeVar

import numpy as np

from penstock._base.errors import Error
from penstock._from.text.compression import ByteInput
from penstock._from.text.documents import built_in_columns
from penstock._from.text.inputs import Input
from penstock._from.text.parquet_rows import ParquetInput
from penstock._from.text.raw import Columns, RawDocument
from penstock._make.errors import InputError

PIECE_BYTES = 32 << 10
MOST_PIECES = 512  # that are tokenized, and kept of all row groups together
_BLOCK_BYTES = 256 << 10  # read and unpacked at once
_MOST_COUNTED = 2048  # blocks of plain files whose lines are counted
_MOST_VISITED = 128  # compressed files, footers of Parquet, row groups that are read
_UNPACKED_BYTES = 64 << 20  # of all compressed files together

Piece = tuple[list[RawDocument], int]  # documents, or the part of one that is a file, and their bytes of text
_Group = tuple[Input, int, int, int]  # a row group: its number, rows, and bytes of its payload's column, at least 1
T = TypeVar("T")


class Stretch(NamedTuple):
    """Text that can be looked at, the bytes of all text that it stands for, and its piece at a place in [0, 1).

    `is_document` is true of a file that is one document.
    """

    source: Input
    stands_for: float
    piece: Callable[[float], Piece]
    is_document: bool = False


class Looked(NamedTuple):
    """What is known without tokenizing: stretches, how many documents there are, and in words what both rest on."""

    stretches: list[Stretch]
    documents: float
    words: list[str]


class Axis:
    """Lengths end to end."""

    def __init__(self, lengths: Sequence[float]) -> None:
        """`lengths` are at least 0."""
        self._ends = list(accumulate(lengths))
        self.total = self._ends[-1] if self._ends else 0

    def find(self, place: float) -> tuple[int, float]:
        """Which one has `place`, and how far in it that is."""
        index = min(bisect_right(self._ends, place), len(self._ends) - 1)
        return index, place - (self._ends[index - 1] if index else 0)


def evenly(count: int, most: int) -> Iterator[int]:
    """Up to `most` of 0 to count - 1 that lie evenly, in an order of which any first part does: van der Corput's."""
    most = min(count, most)
    bits = max(1, (most - 1).bit_length())
    for number in range(1, (1 << bits) + 1):
        place = int(f"{number % (1 << bits):0{bits}b}"[::-1], 2)
        if place < most:
            yield (2 * place + 1) * count // (2 * most)


def look(inputs: Sequence[Input], columns: Columns, seconds: float) -> Looked:
    """Looks at `inputs` for about so long.

    Raises:
        InputError: One cannot be read, is damaged or lacks the columns asked for.
    """
    parquet = [each for each in inputs if each.format == "parquet"]
    packed = [each for each in inputs if each.compression]
    plain = [each for each in inputs if not each.compression and each.format != "parquet"]
    found = Looked([], 0.0, [])
    begin, seen, size = time.perf_counter(), 0, max(1, sum(each.size_bytes for each in inputs))
    for look_at, known in ((_look_plain, plain), (_look_packed, packed), (_look_parquet, parquet)):
        seen += sum(each.size_bytes for each in known)
        part = look_at(known, columns, begin + seconds * seen / size)
        found = Looked(found.stretches + part.stretches, found.documents + part.documents, found.words + part.words)
    return found


def _is_of_lines(source: Input, columns: Columns) -> bool:
    return source.format == "jsonl" or columns.text_per == "line"


def _look_plain(inputs: list[Input], columns: Columns, deadline: float) -> Looked:
    of_lines = [each for each in inputs if _is_of_lines(each, columns)]
    documents, words = _count_lines(of_lines, deadline)
    stretches = [
        Stretch(each, each.size_bytes, partial(_piece, each, columns, None, 1.0), not _is_of_lines(each, columns))
        for each in inputs
    ]
    return Looked(stretches, documents + len(inputs) - len(of_lines), words)


def _read(source: Input, data: bytes | None, begin: int, end: int) -> bytes:
    """Bytes [begin, end) of `data`; None: of the file itself."""
    if data is not None:
        return data[begin:end]
    assert source.path is not None
    try:
        with source.path.open("rb") as file:
            file.seek(begin)
            data = file.read(end - begin) or b""
    except Error as error:  # which names the address
        raise InputError(str(error)) from error
    except OSError as error:
        raise InputError(f"{source.name}: {error.strerror}") from error
    if len(data) < end - begin:
        raise InputError(f"{source.name}: it became shorter while it was read")
    return data


def _count_lines(inputs: list[Input], deadline: float) -> tuple[float, list[str]]:
    """About how many lines are not blank, and what that rests on."""
    sizes = [each.size_bytes for each in inputs]
    blocks = Axis([-(-size // _BLOCK_BYTES) for size in sizes])
    lines = seen = 0
    for number in evenly(int(blocks.total), _MOST_COUNTED):
        index, block = blocks.find(number)
        begin, end = int(block) * _BLOCK_BYTES, min(sizes[index], int(block + 1) * _BLOCK_BYTES)
        lines += _lines_in(_read(inputs[index], None, begin, end), end == sizes[index])
        seen += end - begin
        if time.perf_counter() > deadline:
            break
    if seen == sum(sizes):
        return lines, ["all lines were counted"] if seen else []
    return lines * sum(sizes) / seen, [f"lines were counted in {seen / sum(sizes):.0%} of the plain files"]


def _lines_in(data: bytes, is_end: bool) -> int:
    """How many lines that are not blank end in `data`."""
    lines = data.split(b"\n")
    return sum(not line.isspace() for line in lines[: None if is_end else -1] if line)


def _piece(source: Input, columns: Columns, beginning: bytes | None, whole: float, place: float) -> Piece:
    """Of the beginning of a file's text, `whole` times as long as which it is; None: the file as it is."""
    length = source.size_bytes if beginning is None else len(beginning)
    at, margin = int(place * length), PIECE_BYTES
    if not _is_of_lines(source, columns):
        data = _read(source, beginning, at, min(length, at + margin))
        valid = data.decode(errors="ignore").encode()  # without parts of characters at both ends; bad text is refused
        payload = valid if len(data) - len(valid) <= 6 else data
        known = built_in_columns(source, round(length * whole), columns.metadata, source.name)
        return [RawDocument(-1, source.name, 0, "text", payload, known, at)], len(data)
    while True:
        first, stop = max(0, at - margin), min(length, at + margin)
        data = _read(source, beginning, first, stop)
        begin = data.rfind(b"\n", 0, at - first) + 1
        end = len(data) if stop == length else data.rfind(b"\n", at - first) + 1
        if end and (begin or not first):
            return list(_documents(source, columns, data[begin:end], first + begin)), end - begin
        margin *= 4


def _documents(source: Input, columns: Columns, data: bytes, at: int) -> Iterator[RawDocument]:
    is_json = source.format == "jsonl"
    for line in io.BytesIO(data):
        payload = line.rstrip() if is_json else line.rstrip(b"\r\n")
        if is_json and at == 0:
            payload = payload.removeprefix(codecs.BOM_UTF8)
        if payload and not payload.isspace():
            known = None if is_json else built_in_columns(source, len(payload), columns.metadata, source.name)
            yield RawDocument(-1, source.name, 0, source.format, payload, known, at)
        at += len(line)


# ---- compressed files and Parquet, of which evenly chosen ones are read


def _visit(sizes: Sequence[float], most: int, deadline: float, visit: Callable[[int], T]) -> list[tuple[T, float]]:
    """Visits at least one thing and up to `most`: what each visit gave, and how much of all `sizes` it stands for."""
    found: list[tuple[T, float]] = []
    for index in evenly(len(sizes), most):
        if found and time.perf_counter() > deadline:
            break
        found.append((visit(index), sizes[index]))
    scale = sum(sizes) / max(1, sum(size for _, size in found))
    return [(each, size * scale) for each, size in found]


def _look_packed(inputs: list[Input], columns: Columns, deadline: float) -> Looked:
    documents, stretches, partly, words = 0.0 + sum(not _is_of_lines(each, columns) for each in inputs), [], [], []
    inputs = [each for each in inputs if each.size_bytes]
    most = _UNPACKED_BYTES // max(1, min(len(inputs), _MOST_VISITED))
    sizes = [each.size_bytes for each in inputs]
    visits = _visit(sizes, _MOST_VISITED, deadline, lambda at: _unpack(inputs[at], columns, most))
    for (source, data, packed), stands_for in visits:
        whole, times = source.size_bytes / packed, stands_for / packed
        piece = partial(_piece, source, columns, data, whole)
        stretches.append(Stretch(source, len(data) * times, piece, not _is_of_lines(source, columns)))
        documents += _lines_in(data, is_end=True) * times if _is_of_lines(source, columns) else 0
        partly += [(1 / whole, source.name)] if whole > 1 else []
    if partly:
        least, which = min(partly)
        which = which if len(partly) == 1 else f"{len(partly):,} compressed files"
        words = [f"of {which} only the beginning was unpacked (the first {least:.1%}): what follows may differ"]
    elif inputs and len(visits) == len(inputs):
        words = ["all compressed files were unpacked"]
    if len(visits) < len(inputs):
        words.append(f"{len(visits):,} of {len(inputs):,} compressed files were unpacked")
    return Looked(stretches, documents, words)


def _unpack(source: Input, columns: Columns, most: int) -> tuple[Input, bytes, float]:
    """At least `most` bytes of text if there are so many, up to the end of a line; and the packed bytes of them."""
    data, kept = bytearray(), 0
    # It is careful to read little ahead: what it consumed goes with what it gave.
    with closing(ByteInput(source.path, source.name, source.compression, careful=True)) as opened:
        while kept < most:
            block = opened.file.read1(_BLOCK_BYTES)
            if not block:
                return source, bytes(data), source.size_bytes
            data += block
            end = block.rfind(b"\n") + 1 if _is_of_lines(source, columns) else len(block)
            kept = len(data) - len(block) + end if end else kept
        packed = min(source.size_bytes, opened.consumed())
    return source, bytes(data[:kept]), max(1, packed * kept / len(data))


def _look_parquet(inputs: list[Input], columns: Columns, deadline: float) -> Looked:
    inputs = [each for each in inputs if each.size_bytes]
    sizes: list[float] = [each.size_bytes for each in inputs]
    footers = _visit(sizes, _MOST_VISITED, deadline, lambda at: _groups_of(inputs[at], columns))
    groups = [(group, stands_for / group[0].size_bytes) for found, stands_for in footers for group in found]
    sizes = [size * times for (_, _, _, size), times in groups]
    most = MOST_PIECES // max(1, min(len(groups), _MOST_VISITED))
    visits = _visit(sizes, _MOST_VISITED, deadline, lambda at: _read_group(groups[at][0], columns, most))
    stretches = [Stretch(source, stands_for * times, pieces) for (source, times, pieces), stands_for in visits]
    said = "all footers" if len(footers) == len(inputs) else f"{len(footers):,} of {len(inputs):,} footers"
    words = [f"{said} and {len(visits):,} of {len(groups):,} row groups of Parquet were read"] if inputs else []
    return Looked(stretches, sum(rows * times for (_, _, rows, _), times in groups), words)


def _groups_of(source: Input, columns: Columns) -> list[_Group]:
    with closing(ParquetInput(source, columns)) as opened:
        return [(source, at, rows, max(1, size)) for at, (rows, size) in enumerate(opened.groups()) if rows]


def _read_group(group: _Group, columns: Columns, most: int) -> tuple[Input, float, Callable[[float], Piece]]:
    """Its source, the bytes of its texts over `size`, and up to `most` pieces that lie evenly in them."""
    source, number, rows, size = group
    with closing(ParquetInput(source, columns)) as opened:
        before = sum(rows for rows, _ in opened.groups()[:number])
        table, sizes = opened.read_group(number)
        ends = np.cumsum(sizes)
        length = int(ends[-1])
        count = min(most, -(-length // PIECE_BYTES))
        pieces = []
        for at in ((part + 0.5) / count * length for part in range(count)):
            first = int(np.searchsorted(ends, at, "right"))
            stop = max(first + 1, int(np.searchsorted(ends, at + PIECE_BYTES)))
            batches = table.slice(first, stop - first).combine_chunks().to_batches()
            documents = [document for batch in batches for document in opened.rows(batch, -1, before + first)]
            pieces.append((documents, int(sizes[first:stop].sum())))
    return source, length * rows / len(sizes) / size, lambda place: pieces[int(place * len(pieces))]
