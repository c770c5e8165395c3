"""`penstock write --dry-run`: a few documents as they would be stored, and what all of them would cost.

Small inputs are read whole, and what is said of them is exact. Of others, pieces at even places are tokenized
(sampling.py), for about two seconds after about two seconds of looking.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from penstock._base.words import counted
from penstock._from.engines.engine import Ids
from penstock._from.engines.pieces import Pieces
from penstock._from.text.batches import Processor, Result
from penstock._from.text.block import Documents, Listed
from penstock._from.text.inputs import Input
from penstock._from.text.raw import RawDocument
from penstock._from.text.reading import Extractor
from penstock._from.text.sampling import MOST_PIECES, PIECE_BYTES, Axis, Stretch, evenly, look
from penstock._from.text.tasks import cut
from penstock._from.text.writing import Source
from penstock._make.errors import InputError

_SHOWN = 3
_SHOWN_BYTES = 1 << 20  # of a file that is a document
_WHOLE_BYTES = 4 << 20  # inputs of less text are read whole …
_FAST_TIMES = 4  # … of so much more by a fast engine: it would tokenize pieces of as much
_PACKED_TIMES = 4  # … where a compressed byte counts as so many
_WHOLE_SECONDS = 3.0
_LOOK_SECONDS = 2.0
_SAMPLE_SECONDS = 2.0
_LEAST_PLACES = 8  # however slow the tokenizer is
_LONGEST_TEXT = 64 << 10  # characters of one document that are tokenized
_SHARD_BYTES = 880  # of JSON that a shard adds, beside its options
_DATASET_BYTES = 280  # of JSON beside the tokenizer's


@dataclass
class _Amounts:
    """Of documents: how many, their tokens, the bytes of their text as tasks count them and those of their entries; of
    what was tokenized, also the CPU time that it took, and from how many places and inputs it is. Of the longest
    document the bytes, which no two workers share."""

    documents: float = 0
    tokens: float = 0
    text_bytes: float = 0
    entry_bytes: float = 0
    seconds: float = 0.0
    places: int = 0
    inputs: int = 0
    longest: float = 0


def estimate(source: Source, workers: int) -> dict[str, Any]:
    """Tokenizes all of a small input or places of a large one, in this process.

    Returns:
        `documents`: the first three (place, ids, text, metadata); `sample`: what was tokenized; `estimated`: documents,
        tokens, bytes on disk, shards and seconds of all, or None where that cannot be known; `rests_on`: in words, what
        the estimate rests on, or why there is none.

    Raises:
        InputError: A document that cannot be used.
    """
    reader, inputs = source.reader, source.reader.inputs
    size = sum(each.size_bytes * (_PACKED_TIMES if _is_packed(each) else 1) for each in inputs)
    most = _WHOLE_BYTES * (_FAST_TIMES if source.tokenizer.shares_threads else 1)
    shown, tokenized, shards, whole = _read(source, reads_all=not reader.rereadable or size <= most)
    if whole and not tokenized.documents:
        raise InputError("there are no documents in the input")
    found, words = tokenized, ["all of it was read"]
    if not whole and reader.rereadable:
        found, tokenized, words = _sample(source)
        shards = max(1, math.ceil(found.text_bytes / source.request.shard_size))
    elif not whole:
        names = ", ".join(each.name for each in inputs if not each.rereadable)
        words = [f"how much there is cannot be known of {names}, which is read once and has no size"]
    sample = {**vars(tokenized), "seconds": round(tokenized.seconds, 3), "inputs_in_all": len(inputs), "whole": whole}
    del sample["entry_bytes"], sample["longest"]
    seconds = found.tokens * tokenized.seconds / max(1, tokenized.tokens)
    alone = found.longest / max(1, found.text_bytes)
    estimated = {
        "documents": round(found.documents),
        "tokens": round(found.tokens),
        "bytes": round(_dataset_bytes(found, shards, source)),
        "shards": shards,
        "seconds": round(seconds * max(1 / workers, alone), 1),
    }
    known = whole or reader.rereadable
    return {"documents": shown, "sample": sample, "estimated": estimated if known else None, "rests_on": words}


def _is_packed(each: Input) -> bool:
    return bool(each.compression) or each.format == "parquet"


def _read(source: Source, reads_all: bool) -> tuple[list[dict[str, Any]], _Amounts, int, bool]:
    """Reads from the beginning: the documents to be shown, what was tokenized, its tasks, and whether it is all."""
    source.reader.most_of_a_file = -1 if reads_all else _SHOWN_BYTES
    shown: list[dict[str, Any]] = []
    found, tasks, begin = _Amounts(places=1, inputs=len(source.reader.inputs)), 0, time.perf_counter()
    processor = Processor(source.work, source.tokenizer)
    some: Iterator[Documents] = source.reader.read()
    if not reads_all:
        some = iter([Listed(list(islice(source.reader.documents(), _SHOWN)))])
    for batch in cut(some, source.request.shard_size):
        cpu = time.process_time()
        result = processor.process(batch.documents)
        found.seconds += time.process_time() - cpu
        shown += _shown(batch.documents[: _SHOWN - len(shown)], result, source)
        found.documents += len(batch.documents)
        found.tokens += len(result.encoded.ids)
        found.text_bytes += batch.size_bytes
        found.entry_bytes += result.entries.size_bytes if result.entries is not None else 0
        found.longest = max(found.longest, int(batch.documents.sizes().max(initial=0)))
        tasks += batch.completed is not None
        if time.perf_counter() - begin > _WHOLE_SECONDS:
            reads_all = False  # the next batch may be there, and may be long in coming
            break
    return shown, found, tasks, reads_all


def _sample(source: Source) -> tuple[_Amounts, _Amounts, list[str]]:
    """What there is in all, what was tokenized, and in words what that rests on."""
    inputs, found = source.reader.inputs, _Amounts()
    looked = look(inputs, source.work.columns, _LOOK_SECONDS)
    axis = Axis([each.stands_for for each in looked.stretches])
    begin, rates, names = time.perf_counter(), 0.0, set()
    seen: dict[tuple[int, int | None, int], float] = {}  # a long document lies at many places
    for number in evenly(1 << 32, min(MOST_PIECES, math.ceil(axis.total / PIECE_BYTES))):
        is_enough = time.perf_counter() - begin > _SAMPLE_SECONDS or found.text_bytes >= axis.total
        if found.places >= _LEAST_PLACES and is_enough:
            break
        index, at = axis.find(number / (1 << 32) * axis.total)
        stretch = looked.stretches[index]
        documents, text_bytes = stretch.piece(min(at / stretch.stands_for, 1 - 1e-9))
        known = (index, documents[0].at_byte if documents else None, text_bytes)
        if known not in seen or known[1] is None:
            seen[known] = _tokenize(documents, source, found) / text_bytes
            found.text_bytes += text_bytes
        rates += seen[known]
        found.longest = max(found.longest, _longest(documents, stretch))
        found.places += 1
        names.add(stretch.source.name)
    found.inputs = len(names)
    tokens = rates / max(1, found.places) * axis.total + looked.documents * source.tokenizer.added
    entry_bytes = found.entry_bytes / max(1, found.documents) * looked.documents
    words = (
        f"this rests on {found.text_bytes / 2**20:,.1f} MiB of {counted(int(found.documents), 'document')}, tokenized"
        f" at {counted(found.places, 'place')} in {found.inputs:,} of {counted(len(inputs), 'input')}"
    )
    amounts = _Amounts(looked.documents, tokens, axis.total, entry_bytes, longest=found.longest)
    return amounts, found, [words, *looked.words]


def _longest(documents: list[RawDocument], stretch: Stretch) -> float:
    """Bytes of the longest document that a piece has something of."""
    longest = max((each.size_bytes() for each in documents), default=0)
    return max(longest, stretch.source.size_bytes) if stretch.is_document else longest


def _tokenize(documents: list[RawDocument], source: Source, found: _Amounts) -> float:
    """Adds documents to what was found; their tokens without those that are added to each of them."""
    work, tokenizer, cpu = source.work, source.tokenizer, time.process_time()
    times = np.ones(len(documents))
    taken = Extractor(work.columns, work.codec).extract(Listed(documents))
    if taken.errors:
        raise taken.errors[min(taken.errors)]
    if work.columns.ids is not None:
        lengths = tokenizer.encode_ids(Ids.of(taken.payload), documents).lengths
    else:
        texts = taken.payload.strings()
        times = np.array([max(1.0, len(text) / _LONGEST_TEXT) for text in texts])
        short = Pieces.of([text[:_LONGEST_TEXT].encode() for text in texts])
        lengths = tokenizer.encode(short, documents).lengths
    if taken.entries is not None:
        found.entry_bytes += taken.entries.size_bytes
    found.seconds += time.process_time() - cpu
    found.documents += len(documents)
    found.tokens += int(lengths.sum())
    return float(((lengths.astype(float) - tokenizer.added) * times).sum())


def _dataset_bytes(amounts: _Amounts, shards: int, source: Source) -> float:
    """All files of a dataset of these amounts, those of check values and about those of JSON too: docs/format.md."""
    tokenizer, codec, is_compact = source.tokenizer, source.request.codec_of_dataset, source.request.layout == "compact"
    files = [amounts.tokens * (int(tokenizer.dtype[1:]) + (0 if is_compact or not codec else 4))]
    if codec:
        files += [amounts.entry_bytes, (amounts.documents + shards) * (16 if is_compact else 8)]
        files += [amounts.tokens / 512 + shards * 12] if is_compact else []
    # Each block of 4 KiB has 4 bytes beside it; the last one of each shard is short.
    side = sum(size / 1024 + 2 * shards for size in files if size)
    in_shard = _SHARD_BYTES + len(json.dumps(source.request.identity(tokenizer), separators=(",", ":")))
    return sum(files) + side + shards * in_shard + _DATASET_BYTES + len(json.dumps(tokenizer.manifest_entry()))


def _shown(documents: Documents, result: Result, source: Source) -> Iterator[dict[str, Any]]:
    from penstock._data import codecs

    at, codec, known = 0, codecs.get(source.work.codec), None
    for index, (document, length) in enumerate(zip(documents, result.encoded.lengths.tolist(), strict=False)):
        ids = result.encoded.ids[at : at + length].tolist()
        at += length
        if result.entries is not None and codec is not None:
            known = codec.decode(memoryview(result.entries.piece(index)))
            known = known.decode() if isinstance(known, bytes) else known
        yield {"place": document.place(), "ids": ids, "text": source.tokenizer.decode(ids), "metadata": known}
