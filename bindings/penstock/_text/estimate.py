"""`penstock write --dry-run`: a few documents as they would be stored, and what all of them would cost."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from .documents import DocumentReader
from .pool import Result, Work, process_batch
from .tasks import Batch, cut
from .tokenizing import DocumentTokenizer

_SHOWN = 3
_SAMPLE_SECONDS = 2.0
_SAMPLE_BYTES = 16 << 20
_INDEX_BYTES = 16  # what the compact layout spends on finding a document


@dataclass
class _Sample:
    """What was measured of the beginning of the input."""

    documents: int = 0
    tokens: int = 0
    text_bytes: int = 0
    metadata_bytes: int = 0
    seconds: float = 0.0

    def add(self, batch: Batch, result: Result) -> None:
        self.documents += len(batch.documents)
        self.tokens += len(result.encoded.ids)
        self.text_bytes += batch.size_bytes
        self.metadata_bytes += sum(len(entry) + _INDEX_BYTES for entry in result.entries or ())
        self.seconds += result.seconds

    def as_json(self) -> dict[str, Any]:
        names = ("documents", "tokens", "text_bytes")
        return {**{name: getattr(self, name) for name in names}, "seconds": round(self.seconds, 3)}

    def scaled(self, scale: float, item_bytes: int, workers: int) -> dict[str, Any]:
        """What all of the input would cost, if it is `scale` times this."""
        return {
            "documents": round(self.documents * scale),
            "tokens": round(self.tokens * scale),
            "bytes": round((self.tokens * item_bytes + self.metadata_bytes) * scale * (1 + 4 / 4096)),
            "seconds": round(self.seconds * scale / workers, 1),
        }


def estimate(reader: DocumentReader, work: Work, tokenizer: DocumentTokenizer, workers: int) -> dict[str, Any]:
    """Tokenizes the beginning of the input, in this process.

    Returns:
        `documents`: the first three (place, ids, text, metadata); `sample`: what was measured; `estimated`: documents,
        tokens, bytes on disk and seconds of all; None where the input's size is unknown.

    Raises:
        InputError: A document that cannot be used.
    """
    shown: list[dict[str, Any]] = []
    sample = _Sample()
    whole, consumed = True, 0
    begin = time.perf_counter()
    for batch in cut(reader.documents(), 1 << 62):
        result = process_batch(tokenizer, work, batch.documents)
        shown.extend(_shown(batch, result, tokenizer, work.codec, _SHOWN - len(shown)))
        sample.add(batch, result)
        whole, consumed = batch.completed is not None, reader.consumed_bytes()
        if time.perf_counter() - begin > _SAMPLE_SECONDS or sample.text_bytes >= _SAMPLE_BYTES:
            break
    total = reader.total_bytes
    estimated = None
    if whole or (consumed and total):
        scale = 1.0 if whole else max(1.0, total / consumed)
        estimated = sample.scaled(scale, int(tokenizer.dtype[1:]), workers)
    return {"documents": shown, "sample": sample.as_json(), "estimated": estimated}


def _shown(
    batch: Batch, result: Result, tokenizer: DocumentTokenizer, codec: str, most: int
) -> Iterator[dict[str, Any]]:
    at = 0
    for index, length in enumerate(result.encoded.lengths[:most].tolist()):
        ids = result.encoded.ids[at : at + length].tolist()
        at += length
        known = _decode(result.entries[index], codec) if result.entries is not None else None
        place = batch.documents[index].place()
        yield {"place": place, "ids": ids, "text": tokenizer.decode(ids), "metadata": known}


def _decode(entry: bytes, codec: str) -> Any:
    from penstock import codecs

    found = codecs.get(codec)
    assert found is not None
    value = found.decode(memoryview(entry))
    return value.decode() if isinstance(value, bytes) else value
