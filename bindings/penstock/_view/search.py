"""Search by text, by ids and in metadata: hits and progress as they come, until enough is found or nobody listens."""

from __future__ import annotations

import codecs
import json
import re
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Generator, Iterator
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from penstock._base.errors import InvalidArgumentError
from penstock._data.reading import Piece, document_pieces, entries, stream_pieces
from penstock._view.exhibit import Exhibit
from penstock._view.rows import Wanted, numbers

MOST_HITS = 100
"""Documents with a hit after which a search stops; the next one goes on there."""
_LONGEST = 1000  # characters of what is searched
_SECONDS = 0.2  # between two reports of progress
_MOST_BYTES = 4  # of a character, in any of its cases
_AROUND = 60  # bytes, or a fifth as many tokens, that are shown before and after a hit

Find = Callable[[Piece], Generator[dict[str, Any]]]


def search(
    exhibit: Exhibit, look: str, text: str, *, any_case: bool, wanted: Wanted, start: int
) -> Generator[dict[str, Any]]:
    """First hits of documents, {"hit": {document, record, records, before, text, after}}, and {"progress": …} between.

    Args:
        exhibit: where.
        look: "text", "ids" or "metadata".
        text: what is looked for; of ids, numbers; in the "text" of cells the name of a gene.
        any_case: whether letters that differ in case alone are the same, in any script, and "ß" is "ss"; not of ids.
        wanted: among which documents; they come in the dataset's order.
        start: how many documents (of a stream without them: records) are passed over.

    Raises:
        InvalidArgumentError: nothing to look for, or nothing to look in.
    """
    if not text.strip():
        raise InvalidArgumentError("type what to look for")
    if len(text) > _LONGEST:
        raise InvalidArgumentError(f"{len(text):,} characters: at most {_LONGEST:,} can be looked for")
    if look == "metadata":
        chosen = numbers(exhibit, wanted.chosen)
        return _reported(_in_metadata(exhibit, text, any_case, chosen, start), start, len(chosen), "documents")
    field = exhibit.decoder.field
    if look == "text" and exhibit.facts["cells"]:
        field = "gene"
        find, overlap = _gene_finder(exhibit, text, any_case)
    elif look == "text":
        find, overlap = _text_finder(exhibit, text, any_case)
    elif look == "ids":
        find, overlap = _ids_finder(exhibit, text)
    else:
        raise InvalidArgumentError(f'look={look!r:.80}: must be "text", "ids" or "metadata"')
    if field is None or exhibit.dataset.mode == "opaque":
        raise InvalidArgumentError("its records have no field of ids: look in metadata")
    if exhibit.facts["no_documents"]:
        pieces = stream_pieces(exhibit.dataset, field, start, overlap)
        of, noun = exhibit.dataset.records, "records"
    else:
        chosen = numbers(exhibit, wanted.chosen)
        pieces = document_pieces(exhibit.dataset, field, chosen, start, overlap, exhibit.first_record)
        of, noun = len(chosen), "documents"
    return _reported(_in_pieces(pieces, find), start, of, noun)


def _reported(found: Iterator[dict[str, Any]], start: int, of: int, noun: str) -> Generator[dict[str, Any]]:
    """Stops after enough hits, and adds the time to what is told of progress, which is told now and then."""
    begun = last = time.monotonic()
    hits, tokens = 0, 0
    told: dict[str, Any] = {"done": start, "of": of, "noun": noun}
    for each in found:
        now = time.monotonic()
        if "hit" in each:
            hits += 1
            told = {**told, "done": each.pop("next")}
            yield each
            if hits == MOST_HITS:
                break
        else:
            tokens += each.pop("tokens", 0)
            told |= each
            if now - last >= _SECONDS:
                last = now
                yield {"progress": {**told, "tokens": tokens, "seconds": now - begun}}
    end = {"hits": hits, "tokens": tokens, "seconds": time.monotonic() - begun}
    yield {"end": {**told, **end, "all": told["done"] >= told["of"]}}


def _in_pieces(pieces: Iterator[Piece], find: Find) -> Generator[dict[str, Any]]:
    for piece in pieces:
        yield from find(piece)
        yield {"done": piece.done, "tokens": len(piece.tokens) - piece.known}


def _text_finder(exhibit: Exhibit, text: str, any_case: bool) -> tuple[Find, int]:
    spelling = exhibit.decoder.spelling
    if spelling is None:
        raise InvalidArgumentError("text is found with a tokenizer: penstock view … --tokenizer tokenizer.json")
    after = _after(text, any_case)
    longest = _MOST_BYTES * len(text.casefold() if any_case else text)

    def find(piece: Piece) -> Generator[dict[str, Any]]:
        data, ends = spelling.spell(piece.tokens)
        borders = np.concatenate([[0], ends])[piece.offsets]
        known = int(ends[piece.known - 1]) if piece.known else 0
        found = _first_of_each(lambda at: after(data, at), borders, piece.documents is None, known, longest)
        for at, end, row in found:
            record, last = np.searchsorted(ends, [at, end - 1], "right").tolist()
            parts = _excerpt(data, at, end, int(borders[row]), int(borders[row + 1]))
            yield _hit(piece, row, (record, last + 1), parts)

    return find, longest + 64


def _after(text: str, any_case: bool) -> Callable[[bytes, int], tuple[int, int] | None]:
    """A function of bytes and a place: [begin, end) of the next text from there on, or None."""
    wanted = _utf8(text)
    pattern = re.compile(_alternatives(text, any_case, lambda each: [_utf8(each)]))

    def exactly(data: bytes, at: int) -> tuple[int, int] | None:
        begin = data.find(wanted, at)  # several times as fast as a pattern
        return None if begin < 0 else (begin, begin + len(wanted))

    def in_any_case(data: bytes, at: int) -> tuple[int, int] | None:
        found = pattern.search(data, at)
        return None if found is None else found.span()

    return in_any_case if any_case else exactly


def _first_of_each(
    after: Callable[[int], tuple[int, int] | None],
    borders: npt.NDArray[np.int64],
    is_stream: bool,
    known: int,
    longest: int,
) -> Iterator[tuple[int, int, int]]:
    """(begin, end, row) of the first hit in each row of bytes that has one (of a stream all), but for those in `known`.

    `after` gives the next hit from a place on, which has at most `longest` bytes.
    """
    at = max(known - longest, 0)
    while (found := after(at)) is not None:
        begin, end = found
        row = int(np.searchsorted(borders, begin, "right")) - 1
        if end <= known or end > borders[row + 1]:
            at = begin + 1
            continue
        yield begin, end, row
        at = end if is_stream else int(borders[row + 1])


def _alternatives(text: str, any_case: bool, forms: Callable[[str], list[bytes]]) -> bytes:
    """A pattern of bytes that finds the text: each character in each of its forms; in any case, in each case.

    Bytes are searched as they are, so that places in them stay places of records.
    """
    if not any_case:
        return b"".join(_one_of(forms(each)) for each in text)
    folded, parts, at = text.casefold(), [], 0
    while at < len(folded):
        size = next((size for size in (3, 2) if folded[at : at + size] in _cased()), 1)
        some = folded[at : at + size]
        cased = [form for each in _cased().get(some, [some]) for form in forms(each)]
        parts.append(_one_of(cased, b"".join(_alternatives_of(each, forms) for each in some) if size > 1 else b""))
        at += size
    return b"".join(parts)


def _alternatives_of(each: str, forms: Callable[[str], list[bytes]]) -> bytes:
    return _one_of([form for cased in _cased().get(each, [each]) for form in forms(cased)])


def _one_of(forms: list[bytes], other: bytes = b"") -> bytes:
    """A pattern that finds any of the forms, or what the pattern `other` finds."""
    singles = sorted({re.escape(form) for form in forms if len(form) == 1})
    longer = sorted({re.escape(form) for form in forms if len(form) > 1}, key=len, reverse=True)
    parts = [*longer, *([other] if other else [])]
    if singles:
        parts.append(singles[0] if len(singles) == 1 else b"[" + b"".join(singles) + b"]")
    return parts[0] if len(parts) == 1 else b"(?:" + b"|".join(parts) + b")"


@cache
def _cased() -> dict[str, list[str]]:
    """By a folded text, as of str.casefold: the characters of all scripts that fold to it."""
    found: dict[str, list[str]] = defaultdict(list)
    for number in range(sys.maxunicode + 1):
        each = chr(number)
        folded = each.casefold()
        if folded != each:
            found[folded].append(each)
    for folded in list(found):
        if len(folded) == 1:
            found[folded].append(folded)
    return dict(found)


def _ids_finder(exhibit: Exhibit, text: str) -> tuple[Find, int]:
    words = text.replace(",", " ").split()
    if not all(each.isascii() and each.isdecimal() and len(each) <= 19 for each in words):
        raise InvalidArgumentError(f"{text:.80}: ids are whole numbers, as in 464 3290")
    wanted = np.array(list(map(int, words)), np.int64)
    size = len(wanted)

    def find(piece: Piece) -> Generator[dict[str, Any]]:
        tokens = piece.tokens
        places = np.flatnonzero(tokens[: max(len(tokens) - size + 1, 0)] == wanted[0])
        for at in range(1, size):
            places = places[tokens[places + at] == wanted[at]]
        places = places[places + size > piece.known]
        rows = np.searchsorted(piece.offsets, places, "right") - 1
        places, rows = (each[places + size <= piece.offsets[rows + 1]] for each in (places, rows))
        if piece.documents is not None and len(rows):
            first = np.concatenate([[True], rows[1:] != rows[:-1]])
            places, rows = places[first], rows[first]
        for at, row in zip(places[:MOST_HITS].tolist(), rows[:MOST_HITS].tolist(), strict=True):
            low, high, end = int(piece.offsets[row]), int(piece.offsets[row + 1]), at + size
            around = _AROUND // 5
            begin, last = max(at - around, low), min(end + around, high)
            parts = _words(exhibit, tokens[begin:last], at - begin, end - begin, (begin > low, last < high))
            yield _hit(piece, row, (at, end), parts)

    return find, size


def _gene_finder(exhibit: Exhibit, name: str, any_case: bool) -> tuple[Find, int]:
    """Cells with a gene; the genes beside it are those before and after it by number."""
    names, wanted = exhibit.names, name.strip()
    fold = str.casefold if any_case else str
    genes = [number for number, each in enumerate(names) if fold(each) == fold(wanted)]
    if not genes:
        like = [each for each in names if wanted.casefold() in each.casefold()][:5]
        raise InvalidArgumentError(
            f"no gene is called {wanted:.80}{': is ' + ' or '.join(like) + ' meant?' if like else ''}"
        )

    def named(numbers: npt.NDArray[Any]) -> str:
        return " ".join(names[each] if each < len(names) else str(each) for each in numbers.tolist())

    def find(piece: Piece) -> Generator[dict[str, Any]]:
        places = np.flatnonzero(np.isin(piece.tokens, genes))
        places = places[places >= piece.known]
        rows = np.searchsorted(piece.offsets, places, "right") - 1
        first = np.concatenate([[True], rows[1:] != rows[:-1]]) if len(rows) else np.zeros(0, bool)
        for at, row in zip(places[first][:MOST_HITS].tolist(), rows[first][:MOST_HITS].tolist(), strict=True):
            low, high = int(piece.offsets[row]), int(piece.offsets[row + 1])
            before, after = piece.tokens[max(at - 3, low) : at], piece.tokens[at + 1 : min(at + 4, high)]
            parts = [f"{named(before)} ".lstrip(), named(piece.tokens[at : at + 1]), f" {named(after)}".rstrip()]
            yield _hit(piece, row, (at, at + 1), parts)

    return find, 0


def _hit(piece: Piece, row: int, places: tuple[int, int], texts: list[str]) -> dict[str, Any]:
    """A hit at the places [begin, end) of a piece, and where to go on; `texts` before it, its own and after it."""
    begin, end = places
    record = piece.begin + begin - int(piece.offsets[row])
    if piece.documents is None:
        document, following = None, record + 1
    else:
        document, following = int(piece.documents[row]), piece.first + row + 1
    said = dict(zip(("before", "text", "after"), texts, strict=True))
    return {"hit": {"document": document, "record": record, "records": end - begin, **said}, "next": following}


def _in_metadata(
    exhibit: Exhibit, text: str, any_case: bool, chosen: npt.NDArray[np.int64] | range, start: int
) -> Iterator[dict[str, Any]]:
    pattern = re.compile(_in_json(text, any_case))
    at = start
    for some, done in entries(exhibit.dataset, chosen, start, exhibit.first_record):
        for number, raw in some:
            at += 1
            if found := pattern.search(raw):
                parts = _excerpt(raw, *found.span(), 0, len(raw))
                said = dict(zip(("before", "text", "after"), parts, strict=True))
                yield {"hit": {"document": number, "record": None, "records": 0, **said}, "next": at}
        yield {"done": done}


def _in_json(text: str, any_case: bool) -> bytes:
    """A pattern that finds a text in JSON, with or without blanks behind `:` and `,` there and here."""
    parts = re.split(r"(?<=[:,])\s*", text)
    found = [_alternatives(each, any_case, lambda one: [_utf8(one), _json_text(one).encode()]) for each in parts]
    return b"[ \\t\\r\\n]*".join(found)


def _json_text(text: str) -> str:
    """A text as JSON writes it, without the quotes."""
    return json.dumps(text)[1:-1]


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", "replace")


def _excerpt(data: bytes, at: int, end: int, low: int, high: int) -> list[str]:
    """The text before data[at:end], its own and after it: some of that in data[low:high]."""
    begin, last = max(at - _AROUND, low), min(end + _AROUND, high)
    return [
        _text(data[begin:at], is_cut_before=begin > low),
        _text(data[at:end]),
        _text(data[end:last], is_cut_after=last < high),
    ]


def _text(data: bytes, *, is_cut_before: bool = False, is_cut_after: bool = False) -> str:
    """The whole characters of bytes that may be cut within one; bytes that are no text stand as \\xff."""
    if is_cut_before:
        data = data[:3].lstrip(bytes(range(0x80, 0xC0))) + data[3:]
    return codecs.getincrementaldecoder("utf-8")("backslashreplace").decode(data, final=not is_cut_after)


def _words(exhibit: Exhibit, ids: npt.NDArray[Any], at: int, end: int, is_cut: tuple[bool, bool]) -> list[str]:
    """The text of ids[:at], of ids[at:end] and of the rest; `is_cut`: more stands before them, and after."""
    parts = ids[:at], ids[at:end], ids[end:]
    spelling = exhibit.decoder.spelling
    if spelling is None:
        return [" ".join(map(str, each.tolist())) for each in parts]
    before, own, after = (spelling.spell(each)[0] for each in parts)
    return [_text(before, is_cut_before=is_cut[0]), _text(own), _text(after, is_cut_after=is_cut[1])]
