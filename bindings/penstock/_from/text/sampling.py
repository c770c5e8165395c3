"""Looking at a part of the inputs that stands for all of it: what the samplers of each kind of input share.

A sampler cuts its inputs into *tiles* of some KiB, along an axis of bytes, and gives those that an even sequence of
places meets. Each tile comes as the documents that touch it, each with the fraction of it that lies in the tile. Summed
over all tiles these fractions are 1 for every document, however long it is; so the mean over some tiles, times the
axis' length, is an estimate of the sum over all documents that is right on average.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple, Protocol

from penstock._from.text.raw import RawDocument

TILE_BYTES = 32 << 10


class Piece(NamedTuple):
    """The documents that touch one tile.

    Attributes:
        documents: Where one is too long to be read whole, a part of its text.
        fractions: Of each document, the part that lies in the tile; 0 to 1.
        stretches: Of each document, all of its text over that which is given; 1 where it is whole.
        lines: Lines that touch the tile, blank ones too, each counted by its fraction.
        length: Of the tile, on the sampler's axis.
    """

    documents: list[RawDocument]
    fractions: list[float]
    stretches: list[float]
    lines: float
    length: float


class Sampler(Protocol):
    """Inputs of one kind. One thread at a time.

    Attributes:
        total: The axis' length; known after `look`.
        text_bytes: About how much text there is.
        documents: How many, as far as that is known without reading what is in them.
        counts_lines: `documents` counts lines, blank ones too.
        inputs: How many files there are.
        disk_bytes: Of all files.
    """

    total: float
    text_bytes: float
    documents: float | None
    counts_lines: bool
    inputs: int
    disk_bytes: int

    def look(self, deadline: float) -> None:
        """Learns what can be learned without tokenizing, until `deadline` of time.perf_counter, or somewhat longer."""

    def tile_at(self, place: float) -> tuple[int, int]:
        """The tile at `place` of the axis: the number of its file among the inputs, and its number there."""

    def piece(self, tile: tuple[int, int]) -> Piece:
        """What touches that tile."""

    def rests_on(self) -> list[str]:
        """In words, what a reader of the estimate should know of how it was looked at; may be empty."""


def even_places() -> Iterator[float]:
    """Places in [0, 1) of which any number of first ones lie evenly: van der Corput's sequence, 1/2, 1/4, 3/4, …"""
    number = 0
    while True:
        number += 1
        place, half, rest = 0.0, 0.5, number
        while rest:
            place += half * (rest & 1)
            half, rest = half / 2, rest >> 1
        yield place


def evenly_ordered(count: int) -> Iterator[int]:
    """0 to count - 1, in an order of which any first part lies evenly."""
    bits = max(1, (count - 1).bit_length())
    for number in range(1 << bits):
        place = int(f"{number:0{bits}b}"[::-1], 2)
        if place < count:
            yield place


class Axis:
    """Lengths end to end."""

    def __init__(self, lengths: Sequence[float]) -> None:
        """`lengths` are at least 0."""
        self.ends = list(accumulate(lengths))
        self.total = self.ends[-1] if self.ends else 0

    def find(self, place: float) -> tuple[int, float]:
        """Which one has `place`, and how far in it that is."""
        index = min(bisect_right(self.ends, place), len(self.ends) - 1)
        return index, place - (self.ends[index - 1] if index else 0)


def tile_bounds(number: int, length: int, tile_bytes: int = TILE_BYTES) -> tuple[int, int]:
    """The first byte and the end of tile `number` of a file of `length` bytes."""
    return number * tile_bytes, min(length, (number + 1) * tile_bytes)


def touching_lines(data: bytes, begin: int, end: int) -> Iterator[tuple[int, bytes, float]]:
    """The lines of `data` that touch its bytes [begin, end): where each begins, itself, and which fraction touches.

    `data` begins with a line, and its last one is whole.
    """
    at = data.rfind(b"\n", 0, begin) + 1
    while at < end:
        stop = data.find(b"\n", at) + 1 or len(data)
        yield at, data[at:stop], (min(stop, end) - max(at, begin)) / (stop - at)
        at = stop


def whole_characters(data: bytes) -> bytes:
    """`data` of UTF-8 without the parts of characters that a cut left at its ends."""
    begin = 0
    while begin < min(3, len(data)) and data[begin] & 0xC0 == 0x80:
        begin += 1
    end = len(data)
    for back in range(1, min(3, end - begin) + 1):
        lead = data[end - back]
        if lead & 0xC0 == 0xC0:
            length = 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4
            end -= back if length > back else 0
            break
    return data[begin:end]
