"""Search by text, by ids and in metadata: hits and progress as they come, until enough is found or nobody listens."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Generator, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from penstock._base.errors import InvalidArgumentError
from penstock._view.exhibit import Exhibit
from penstock._view.reading import Piece, document_pieces, entries, stream_pieces
from penstock._view.rows import Wanted, numbers

MOST_HITS = 100
"""Documents with a hit after which a search stops; the next one goes on there."""
_LONGEST = 1000  # characters of what is searched
_SECONDS = 0.2  # between two reports of progress
_AROUND = 60  # bytes, or a fifth as many tokens, that are shown before and after a hit

Find = Callable[[Piece], Generator[dict[str, Any]]]


def search(
    exhibit: Exhibit, look: str, text: str, *, any_case: bool, wanted: Wanted, start: int
) -> Generator[dict[str, Any]]:
    """Each document's first hit, {"hit": {document, record, records, before, text, after}}, and {"progress": …} between.

    Args:
        exhibit: where.
        look: "text", "ids" or "metadata".
        text: what is looked for; of ids, numbers.
        any_case: whether A to Z are a to z; not of ids.
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
    if look == "text":
        find, overlap = _text_finder(exhibit, text, any_case)
    elif look == "ids":
        find, overlap = _ids_finder(exhibit, text)
    else:
        raise InvalidArgumentError(f'look={look!r:.80}: must be "text", "ids" or "metadata"')
    field = exhibit.decoder.field
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
    wanted = text.encode("utf-8", "replace")

    def find(piece: Piece) -> Generator[dict[str, Any]]:
        data, ends = spelling.spell(piece.tokens)
        borders = np.concatenate([[0], ends])[piece.offsets]
        known = int(ends[piece.known - 1]) if piece.known else 0
        for at, row in _first_of_each(data, wanted, any_case, borders, known, piece.documents is None):
            low, high, end = int(borders[row]), int(borders[row + 1]), at + len(wanted)
            record, last = np.searchsorted(ends, [at, end - 1], "right").tolist()
            parts = data[max(at - _AROUND, low) : at], data[at:end], data[end : min(end + _AROUND, high)]
            yield _hit(piece, row, (record, last + 1), list(map(_text, parts)))

    return find, len(wanted) + 64


def _first_of_each(
    data: bytes, wanted: bytes, any_case: bool, borders: npt.NDArray[np.int64], known: int, is_stream: bool
) -> Iterator[tuple[int, int]]:
    """(place, row) of the first hit in each row of bytes that has one (of a stream all), but for those in `known`."""
    if any_case:
        pattern = re.compile(re.escape(wanted), re.IGNORECASE)

        def after(at: int) -> int:
            found = pattern.search(data, at)
            return -1 if found is None else found.start()
    else:

        def after(at: int) -> int:
            return data.find(wanted, at)

    at = after(max(known - len(wanted) + 1, 0))
    while at >= 0:
        row = int(np.searchsorted(borders, at, "right")) - 1
        if at + len(wanted) <= borders[row + 1]:
            yield at, row
            at = after(at + len(wanted) if is_stream else int(borders[row + 1]))
        else:
            at = after(at + 1)


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
            parts = tokens[max(at - around, low) : at], tokens[at:end], tokens[end : min(end + around, high)]
            yield _hit(piece, row, (at, end), [_words(exhibit, each) for each in parts])

    return find, size


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
    either = {text.encode("utf-8", "replace"), _json_text(text).encode()}
    pattern = re.compile(b"|".join(map(re.escape, sorted(either))), re.IGNORECASE if any_case else 0)
    at = start
    for some, done in entries(exhibit.dataset, chosen, start, exhibit.first_record):
        for number, raw in some:
            at += 1
            if found := pattern.search(raw):
                low, high = found.span()
                parts = raw[max(low - _AROUND, 0) : low], raw[low:high], raw[high : high + _AROUND]
                said = dict(zip(("before", "text", "after"), map(_text, parts), strict=True))
                yield {"hit": {"document": number, "record": None, "records": 0, **said}, "next": at}
        yield {"done": done}


def _json_text(text: str) -> str:
    """A text as JSON writes it, without the quotes."""
    return json.dumps(text)[1:-1]


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _words(exhibit: Exhibit, ids: npt.NDArray[Any]) -> str:
    spelling = exhibit.decoder.spelling
    return " ".join(map(str, ids.tolist())) if spelling is None else _text(spelling.spell(ids)[0])
