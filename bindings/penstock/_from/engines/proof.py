"""The proof of an engine while it works: some of the text is encoded by the reference too, and must have its ids.

That is each worker's first documents, then one in a thousand, and what is around each code point and each added token
when it comes for the first time. Longer documents are looked at in part: at their beginning, and anywhere. The
reference is some thirty times slower, so one in a thousand becomes fewer where they would take more than a fiftieth of
the time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock import _native
from penstock._from.engines.engine import EngineError, Ids, OtherIdsError
from penstock._from.engines.pieces import Pieces

if TYPE_CHECKING:
    from penstock._from.engines.reference import Reference

_FIRST = 64  # documents of each worker
_EVERY = 1000  # of those after them
_SHARE = 0.02  # of the time
_MOST_BYTES = 8 << 10  # of one document
_MOST_WHOLE_BYTES = 1 << 20  # of one whose beginning has other ids than the beginning alone
_MARGIN = 64  # ids before a cut
_AROUND = 32  # bytes on each side of what is new
_TOGETHER = 4 << 10  # bytes of such surroundings that are encoded as one text, line by line
_SHOWN = 24  # characters, on each side of the first difference


class Proof:
    """Compares what an engine gives with what the reference gives. One thread at a time."""

    def __init__(
        self,
        encode: Callable[[Pieces], Ids],
        reference: Reference,
        around: tuple[list[int], list[int]],
        tokens: Sequence[bytes],
        name: str,
    ) -> None:
        """Compares nothing yet.

        Args:
            encode: what the engine gives, not proven.
            reference: what is right.
            around: as of `Engine`.
            tokens: all added tokens, as they stand in text.
            name: of the engine, for messages.
        """
        self._encode = encode
        self._reference = reference
        self._around = around
        self._unseen = _native.Unseen([each for each in tokens if each])
        self._longest = max(map(len, tokens), default=0)
        self._name = name
        self._seen = 0
        self._next = 0
        self._spent = self._of = 0.0

    def check(self, texts: Pieces, ids: Ids, seconds: float) -> None:
        """Proves the ids of texts, which took the engine some `seconds`.

        Raises:
            EngineError: The reference has others.
        """
        self._check_new(texts)
        self._of += seconds
        while self._next < self._seen + len(texts.ends):
            is_sample = self._next >= _FIRST
            if is_sample and self._spent > _SHARE * self._of:
                break  # it stays due
            begin = time.perf_counter()
            self._check_document(texts, ids, self._next - self._seen)
            self._spent += (time.perf_counter() - begin) * is_sample
            self._next += 1 if self._next < _FIRST - 1 else _EVERY
        self._seen += len(texts.ends)
        self._next = max(self._next, self._seen)

    def _check_document(self, texts: Pieces, ids: Ids, index: int) -> None:
        begin, end = texts.bounds(index)
        own = ids.ids[int(ids.offsets[index]) : int(ids.offsets[index + 1])]
        if end - begin <= _MOST_BYTES:
            self._compare_with(Pieces.of([texts.piece(index)]), _of_one(own), [index])
            return
        half = _MOST_BYTES // 2
        at = begin + self._next * 2654435761 % (end - begin - half)  # anywhere
        self._compare(_excerpts(texts, [(at, at + half, index)]), [index])
        # Where a text is cut, its last ids may be others.
        first = _excerpts(texts, [(begin, begin + half, index)])
        right = self._reference.encode(first).ids
        right = right[len(self._around[0]) : max(0, len(right) - _MARGIN)]
        if np.array_equal(right, own[: len(right)]):
            return
        self._compare(first, [index])
        if end - begin <= _MOST_WHOLE_BYTES:
            self._compare_with(Pieces.of([texts.piece(index)]), _of_one(own), [index])

    def _check_new(self, texts: Pieces) -> None:
        places = self._unseen.scan(texts.data, texts.ends)
        if not len(places):
            return
        windows: list[tuple[int, int, int]] = []
        for at, index in zip(places.tolist(), np.searchsorted(texts.ends, places, "right").tolist(), strict=True):
            begin, end = texts.bounds(index)
            begin, end = max(begin, at - _AROUND), min(end, at + self._longest + _AROUND)
            last = windows[-1] if windows else (0, 0, -1)
            if last[2] == index and begin <= last[1] < last[0] + _MOST_BYTES:
                begin = windows.pop()[0]
            windows.append((begin, end, index))
        self._compare_lines(_excerpts(texts, windows), [index for _, _, index in windows])

    def _compare_lines(self, texts: Pieces, of: Sequence[int]) -> None:
        """Compares many short texts as lines of a few: each text for itself costs much more."""
        begin = at = 0
        joined = []
        pieces = texts.pieces()
        for number, each in enumerate(pieces, 1):
            at += len(each)
            if at >= _TOGETHER or number == len(pieces):
                joined.append((begin, number))
                begin, at = number, 0
        lines = Pieces.of([b"\n".join(pieces[first:last]) for first, last in joined])
        try:
            self._compare(lines, [of[first] for first, _ in joined])
        except EngineError:
            self._compare(texts, of)  # which of them it is
            raise

    def _compare(self, texts: Pieces, of: Sequence[int]) -> None:
        self._compare_with(texts, self._encode(texts), of)

    def _compare_with(self, texts: Pieces, found: Ids, of: Sequence[int]) -> None:
        right = self._reference.encode(texts)
        before, behind = self._around
        for number, index in enumerate(of):
            mine = [*before, *_ids_of(found, number), *behind]
            if mine != _ids_of(right, number):
                raise self._difference(texts.piece(number), mine, _ids_of(right, number), index)

    def _difference(self, text: bytes, mine: list[int], right: list[int], index: int) -> EngineError:
        """The error that says where ids begin to differ."""
        pairs = zip(mine, right, strict=False)
        at = next((number for number, (a, b) in enumerate(pairs) if a != b), min(len(mine), len(right)))
        shown, place = text.decode(), self._reference.place_of(text.decode(), at)
        around = shown[max(0, place - _SHOWN) : place + _SHOWN]
        error = OtherIdsError(
            f"{self._name} gives other ids than tokenizers of {around!r}: {_shown(mine, at)}, not {_shown(right, at)}"
        )
        error.index = index
        return error


def _of_one(ids: Any) -> Ids:
    """Ids of one text."""
    return Ids(ids, np.array([0, len(ids)], np.int64))


def _ids_of(ids: Ids, number: int) -> list[int]:
    found: list[int] = ids.ids[int(ids.offsets[number]) : int(ids.offsets[number + 1])].tolist()
    return found


def _shown(ids: list[int], at: int) -> str:
    return " ".join(["…"] * (at > 0) + [str(each) for each in ids[at : at + 4]] + ["…"] * (at + 4 < len(ids))) or "none"


def _excerpts(texts: Pieces, windows: Sequence[tuple[int, int, int]]) -> Pieces:
    """Parts of texts, from whole code points to whole code points."""
    view: Any = memoryview(texts.data)
    found = []
    for begin, end, index in windows:
        last = texts.bounds(index)[1]
        while begin < end and view[begin] & 0xC0 == 0x80:
            begin += 1
        while end < last and view[end] & 0xC0 == 0x80:
            end += 1
        found.append(bytes(view[begin:end]))
    return Pieces.of(found)
