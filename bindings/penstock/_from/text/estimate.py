"""`penstock write --dry-run`: a few documents as they would be stored, and what all of them would cost.

Inputs that are small are read whole, and what is said of them is exact. Of others, tiles that lie evenly over all of
them are tokenized (sampling.py), for about two seconds after about two seconds of looking.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from penstock._base.words import counted
from penstock._from.text.batches import Result, Tokenizing, encode_metadata, process_batch
from penstock._from.text.documents import DocumentReader
from penstock._from.text.extract import extract_ids, extract_texts
from penstock._from.text.inputs import Input
from penstock._from.text.raw import RawDocument
from penstock._from.text.sample_packed import PackedFiles
from penstock._from.text.sample_parquet import ParquetFiles
from penstock._from.text.sample_plain import LineFiles, WholeFiles
from penstock._from.text.sampling import TILE_BYTES, Piece, Sampler, even_places
from penstock._from.text.tasks import Task, cut
from penstock._from.text.tokenizing import DocumentTokenizer
from penstock._make.errors import InputError

_SHOWN = 3
_SHOWN_BYTES = 1 << 20  # of a file that is a document
_WHOLE_BYTES = 4 << 20  # inputs of less text are read whole …
_PACKED_TIMES = 4  # … where a compressed byte counts as so many
_WHOLE_SECONDS = 3.0
_LOOK_SECONDS = 2.0
_SAMPLE_SECONDS = 2.0
_SAMPLE_BYTES = 16 << 20
_LEAST_PIECES = 4  # of each kind of input, however slow the tokenizer is
_LONGEST_TEXT = 64 << 10  # characters of one document that are tokenized


@dataclass(frozen=True)
class Target:
    """What the dataset is to be, as far as it decides its size.

    Attributes:
        item_bytes: Of a token.
        codec: Of its entries; None: tokens alone.
        layout: Of its spans.
        task_bytes: Of input text that a shard is made of.
        task_options: What each shard.json keeps of them.
        tokenizer_json: What the manifest says of the tokenizer, as text.
    """

    item_bytes: int
    codec: str | None
    layout: str
    task_bytes: int
    task_options: dict[str, Any] = field(default_factory=dict)
    tokenizer_json: str = "null"


@dataclass
class Amounts:
    """Of some documents: how many, their tokens, the bytes of their text as tasks count them and the sum of the squares
    of these, and the bytes of their entries."""

    documents: float = 0.0
    tokens: float = 0.0
    text_bytes: float = 0.0
    entry_bytes: float = 0.0
    square_bytes: float = 0.0
    lines: float = 0.0  # blank ones too, of a piece

    def add(self, other: Amounts, times: float = 1.0) -> None:
        self.documents += other.documents * times
        self.tokens += other.tokens * times
        self.text_bytes += other.text_bytes * times
        self.entry_bytes += other.entry_bytes * times
        self.square_bytes += other.square_bytes * times
        self.lines += other.lines * times


@dataclass
class _Tokenized:
    """What was tokenized, and the CPU time that it took."""

    documents: int = 0
    tokens: int = 0
    text_bytes: int = 0
    seconds: float = 0.0
    places: int = 0
    files: set[tuple[int, int]] = field(default_factory=set)  # group and number in it

    def as_json(self, inputs: int, whole: bool) -> dict[str, Any]:
        return {
            "documents": self.documents,
            "tokens": self.tokens,
            "text_bytes": self.text_bytes,
            "seconds": round(self.seconds, 3),
            "places": self.places,
            "inputs": inputs if whole else len(self.files),
            "inputs_in_all": inputs,
            "whole": whole,
        }


def estimate(
    reader: DocumentReader, work: Tokenizing, tokenizer: DocumentTokenizer, workers: int, target: Target
) -> dict[str, Any]:
    """Tokenizes all of a small input or places of a large one, in this process.

    Returns:
        `documents`: the first three (place, ids, text, metadata); `sample`: what was tokenized; `estimated`: documents,
        tokens, bytes on disk, shards and seconds of all, or None where that cannot be known; `rests_on`: in words, what
        the estimate rests on, or why there is none.

    Raises:
        InputError: A document that cannot be used.
    """
    inputs = reader.inputs
    size = sum(each.size_bytes * (_PACKED_TIMES if _is_packed(each) else 1) for each in inputs)
    small = not reader.rereadable or size <= _WHOLE_BYTES
    shown, done, tokenized, tasks, whole = _read_from_the_beginning(
        reader, work, tokenizer, target.task_bytes, only_shown=not small
    )
    words: list[str] = []
    if whole and not tokenized.documents:
        raise InputError("there are no documents in the input")
    if whole:
        words = ["all of it was read"]
    elif reader.rereadable:
        done, words = _sample(reader, work, tokenizer, tokenized := _Tokenized())
    else:
        names = ", ".join(each.name for each in inputs if not each.rereadable)
        words = [f"how much there is cannot be known of {names}, which is read once and has no size"]
    estimated = None
    if whole or reader.rereadable:
        rate = tokenized.seconds / max(1, tokenized.tokens)
        # A task ends with the document that brings it to its size: it is half of such a one larger, on average.
        more = done.square_bytes / max(1, done.text_bytes) / 2
        shards = tasks if whole else max(1, math.ceil(done.text_bytes / (target.task_bytes + more)))
        estimated = {
            "documents": round(done.documents),
            "tokens": round(done.tokens),
            "bytes": round(dataset_bytes(done, shards, target)),
            "shards": shards,
            "seconds": round(done.tokens * rate / workers, 1),
        }
    sample = tokenized.as_json(len(inputs), whole)
    return {"documents": shown, "sample": sample, "estimated": estimated, "rests_on": words}


def _is_packed(each: Input) -> bool:
    return bool(each.compression) or each.format == "parquet"


def _read_from_the_beginning(
    reader: DocumentReader, work: Tokenizing, tokenizer: DocumentTokenizer, task_bytes: int, only_shown: bool
) -> tuple[list[dict[str, Any]], Amounts, _Tokenized, int, bool]:
    """The first documents to be shown; and all, with the number of tasks, if not `only_shown`; whether it is all."""
    reader.most_of_a_file = _SHOWN_BYTES if only_shown else -1
    shown: list[dict[str, Any]] = []
    amounts, tokenized, tasks, whole = Amounts(), _Tokenized(places=1), 0, not only_shown
    begin = time.perf_counter()
    documents = reader.documents()
    if only_shown:
        documents = (document for document, _ in zip(documents, range(_SHOWN), strict=False))
    for batch in cut(documents, task_bytes):
        cpu = time.process_time()
        result = process_batch(tokenizer, work, batch.documents)
        tokenized.seconds += time.process_time() - cpu
        shown.extend(_shown(batch.documents, result, tokenizer, work.codec, _SHOWN - len(shown)))
        tokenized.documents += len(batch.documents)
        tokenized.tokens += len(result.encoded.ids)
        tokenized.text_bytes += batch.size_bytes
        tasks += batch.completed is not None
        entries = sum(map(len, result.entries or ()))
        amounts.add(Amounts(len(batch.documents), len(result.encoded.ids), batch.size_bytes, entries))
        if time.perf_counter() - begin > _WHOLE_SECONDS:
            whole = False  # the next batch may be there, and may be long in coming
            break
    reader.most_of_a_file = -1
    return shown, amounts, tokenized, tasks, whole


def _samplers(reader: DocumentReader) -> list[Sampler]:
    columns = reader.columns
    kinds: dict[str, list[Input]] = {"lines": [], "files": [], "packed lines": [], "packed files": [], "parquet": []}
    for each in reader.inputs:
        unit = "files" if each.format == "text" and columns.text_per == "file" else "lines"
        kind = "parquet" if each.format == "parquet" else f"packed {unit}" if each.compression else unit
        if each.size_bytes or kind == "files":
            kinds[kind].append(each)
    found: list[Sampler] = []
    if kinds["lines"]:
        found.append(LineFiles(kinds["lines"], columns))
    if kinds["files"]:
        found.append(WholeFiles(kinds["files"], columns))
    for kind in ("packed lines", "packed files"):
        if kinds[kind]:
            found.append(PackedFiles(kinds[kind], columns, kind == "packed files"))
    if kinds["parquet"]:
        found.append(ParquetFiles(kinds["parquet"], columns))
    return found


def _sample(
    reader: DocumentReader, work: Tokenizing, tokenizer: DocumentTokenizer, tokenized: _Tokenized
) -> tuple[Amounts, list[str]]:
    samplers = _samplers(reader)
    begin, disk_bytes = time.perf_counter(), max(1, sum(each.disk_bytes for each in samplers))
    looked = 0
    for each in samplers:
        looked += each.disk_bytes
        each.look(begin + _LOOK_SECONDS * looked / disk_bytes)
    groups = [_Group(sampler, number) for number, sampler in enumerate(samplers) if sampler.total > 0]
    begin = time.perf_counter()
    while active := [each for each in groups if each.places < each.most_places]:
        if time.perf_counter() - begin > _SAMPLE_SECONDS or tokenized.text_bytes >= _SAMPLE_BYTES:
            active = [each for each in active if each.places < _LEAST_PIECES]
        if not active:
            break
        min(active, key=lambda each: each.places / each.sampler.text_bytes).take(work, tokenizer, tokenized)
    amounts = Amounts()
    for sampler in samplers:
        known = next((group for group in groups if group.sampler is sampler), None)
        amounts.add(known.estimate(tokenizer.added) if known else _empty(sampler, tokenizer.added))
    what = f"{tokenized.text_bytes / 2**20:,.1f} MiB of {counted(tokenized.documents, 'document')}"
    where = (
        f"{counted(tokenized.places, 'place')} in {len(tokenized.files):,} of {counted(len(reader.inputs), 'input')}"
    )
    words = [f"this rests on {what}, tokenized at {where}"]
    return amounts, words + [said for sampler in samplers for said in sampler.rests_on()]


def _empty(sampler: Sampler, added: int) -> Amounts:
    """Of inputs without any text."""
    documents = sampler.documents or 0.0
    return Amounts(documents, documents * added)


class _Group:
    """The inputs of one sampler, and what its tiles gave."""

    def __init__(self, sampler: Sampler, number: int) -> None:
        self.sampler = sampler
        self.places = 0
        self.most_places = 4 * (math.ceil(sampler.total / TILE_BYTES) + sampler.inputs)
        self._number = number
        self._even = even_places()
        self._known: dict[tuple[int, int], Amounts] = {}  # of each tile, by byte of the axis
        self._sum = Amounts()

    def take(self, work: Tokenizing, tokenizer: DocumentTokenizer, tokenized: _Tokenized) -> None:
        """Tokenizes what touches the tile at the next place, unless it was met before."""
        tile = self.sampler.tile_at(next(self._even) * self.sampler.total)
        if tile not in self._known:
            piece = self.sampler.piece(tile)
            found = Amounts()
            found.add(_measure(piece, work, tokenizer, tokenized), 1 / piece.length)
            self._known[tile] = found
            tokenized.places += 1
            tokenized.files.add((self._number, tile[0]))
        self._sum.add(self._known[tile])
        self.places += 1

    def estimate(self, added: int) -> Amounts:
        """All of them, with `added` tokens for each document."""
        scale = self.sampler.total / self.places
        documents = self.sampler.documents
        if documents is None:
            documents = self._sum.documents * scale
        elif self.sampler.counts_lines:
            documents *= self._sum.documents / self._sum.lines
        entry = self._sum.entry_bytes / self._sum.documents if self._sum.documents else 0.0
        tokens = self._sum.tokens * scale + documents * added
        text_bytes, square_bytes = self._sum.text_bytes * scale, self._sum.square_bytes * scale
        return Amounts(documents, tokens, text_bytes, documents * entry, square_bytes)


def _measure(piece: Piece, work: Tokenizing, tokenizer: DocumentTokenizer, tokenized: _Tokenized) -> Amounts:
    """What lies in the piece's tile, without the tokens that are added to each document."""
    found = Amounts(sum(piece.fractions), lines=piece.lines)
    if not piece.documents:
        return found
    begin = time.process_time()
    shares = [fraction * stretch for fraction, stretch in zip(piece.fractions, piece.stretches, strict=True)]
    if work.columns.ids is not None:
        arrays, metadata = extract_ids(piece.documents, work.columns)
        lengths = tokenizer.encode_ids(arrays, piece.documents).lengths.tolist()
    else:
        texts, metadata = extract_texts(piece.documents, work.columns)
        shares = [share * max(1.0, len(text) / _LONGEST_TEXT) for share, text in zip(shares, texts, strict=True)]
        lengths = tokenizer.encode_texts([_middle(text) for text in texts], piece.documents).lengths.tolist()
    entries = [] if metadata is None else encode_metadata(metadata, piece.documents, work.codec)
    tokenized.seconds += time.process_time() - begin
    tokenized.documents += len(lengths)
    tokenized.tokens += sum(lengths)
    found.tokens = sum(share * (length - tokenizer.added) for share, length in zip(shares, lengths, strict=True))
    for document, fraction, stretch in zip(piece.documents, piece.fractions, piece.stretches, strict=True):
        size = document.size_bytes() * stretch
        found.text_bytes += size * fraction
        found.square_bytes += size * size * fraction
        tokenized.text_bytes += document.size_bytes()
    found.entry_bytes = sum(len(entry) * fraction for entry, fraction in zip(entries, piece.fractions, strict=False))
    return found


def _middle(text: str) -> str:
    begin = max(0, len(text) - _LONGEST_TEXT) // 2
    return text[begin : begin + _LONGEST_TEXT]


def dataset_bytes(amounts: Amounts, shards: int, target: Target) -> float:
    """All files of a dataset of these amounts, those of check values and manifests too: docs/format.md."""
    records = amounts.tokens * (target.item_bytes + (4 if target.layout == "ids" and target.codec else 0))
    files = {"stream.bin": records}
    if target.codec:
        files["metadata.bin"] = amounts.entry_bytes
        files["metadata.index"] = (amounts.documents + shards) * (16 if target.layout == "compact" else 8)
        if target.layout == "compact":
            files["metadata.directory"] = amounts.tokens / 512 + shards * 12
    # Each block of 4 KiB has 4 bytes beside it; the last one of each shard is short.
    side = sum(size / 1024 + 2 * shards for size in files.values() if size)
    counts = {name: round(size / shards) for name, size in files.items()}
    digest = "0" * 32
    each: dict[str, Any] = {
        "records": round(amounts.tokens / shards),
        "spans": 0,
        "entries": round(amounts.documents / shards),
    }
    each |= {"files": counts, "digests": {"fields": {"token": digest}, "spans": digest}}
    text = json.dumps(each, separators=(",", ":"))
    header = 230 + len(target.codec or "")
    in_shard = header + len(text) + 40 + len(_task_text(amounts, shards, target)) + 30
    in_dataset = len(text) + len('{"name":"00000",    ') + 2
    manifest = header + len(target.tokenizer_json) + len(digest) + 90
    return sum(files.values()) + side + shards * (in_shard + in_dataset) + manifest


def _task_text(amounts: Amounts, shards: int, target: Target) -> str:
    task = Task(shards, 0, round(amounts.documents / shards), round(amounts.text_bytes / shards), "0" * 64)
    return json.dumps(task.description(target.task_options), separators=(",", ":"))


def _shown(
    documents: list[RawDocument], result: Result, tokenizer: DocumentTokenizer, codec: str, most: int
) -> Iterator[dict[str, Any]]:
    at = 0
    for index, length in enumerate(result.encoded.lengths[:most].tolist()):
        ids = result.encoded.ids[at : at + length].tolist()
        at += length
        known = _decode(result.entries[index], codec) if result.entries is not None else None
        yield {"place": documents[index].place(), "ids": ids, "text": tokenizer.decode(ids), "metadata": known}


def _decode(entry: bytes, codec: str) -> Any:
    from penstock._data import codecs

    found = codecs.get(codec)
    assert found is not None
    value = found.decode(memoryview(entry))
    return value.decode() if isinstance(value, bytes) else value
