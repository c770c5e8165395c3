"""`penstock write --dry-run`: a few documents as they would be stored, and what all of them would cost."""

from __future__ import annotations

import time
from typing import Any

from .documents import DocumentReader
from .pool import Work, process_batch
from .tasks import cut
from .tokenizing import DocumentTokenizer

_SHOWN = 3
_SAMPLE_SECONDS = 2.0
_SAMPLE_BYTES = 16 << 20
_INDEX_BYTES = 16  # what the compact layout spends on finding a document


def estimate(reader: DocumentReader, work: Work, tokenizer: DocumentTokenizer, workers: int) -> dict[str, Any]:
    """Tokenizes the beginning of the input, in this process.

    Returns:
        `documents`: the first three (place, ids, text, metadata); `sample`: what was measured; `estimated`: documents,
        tokens, bytes on disk and seconds of all; None where the input's size is unknown.

    Raises:
        InputError: A document that cannot be used.
    """
    shown: list[dict[str, Any]] = []
    documents, text_bytes, tokens, metadata_bytes, seconds = 0, 0, 0, 0, 0.0
    whole, consumed = True, 0
    begin = time.perf_counter()
    for batch in cut(reader.documents(), 1 << 62):
        result = process_batch(tokenizer, work, batch.documents)
        at = 0
        for index, length in enumerate(result.encoded.lengths[: _SHOWN - len(shown)].tolist()):
            ids = result.encoded.ids[at : at + length].tolist()
            known = _decode(result.entries[index], work.codec) if result.entries is not None else None
            place = batch.documents[index].place()
            shown.append({"place": place, "ids": ids, "text": tokenizer.decode(ids), "metadata": known})
            at += length
        documents += len(batch.documents)
        text_bytes += batch.size_bytes
        tokens += len(result.encoded.ids)
        metadata_bytes += sum(len(entry) + _INDEX_BYTES for entry in result.entries or ())
        seconds += result.seconds
        whole, consumed = batch.completed is not None, reader.consumed_bytes()
        if time.perf_counter() - begin > _SAMPLE_SECONDS or text_bytes >= _SAMPLE_BYTES:
            break
    sample = {"documents": documents, "tokens": tokens, "text_bytes": text_bytes, "seconds": round(seconds, 3)}
    total = reader.total_bytes
    if not whole and not (consumed and total):
        return {"documents": shown, "sample": sample, "estimated": None}
    scale = 1.0 if whole else max(1.0, total / consumed)
    item_bytes = int(tokenizer.dtype[1:])
    estimated = {
        "documents": round(documents * scale),
        "tokens": round(tokens * scale),
        "bytes": round((tokens * item_bytes + metadata_bytes) * scale * (1 + 4 / 4096)),
        "seconds": round(seconds * scale / workers, 1),
    }
    return {"documents": shown, "sample": sample, "estimated": estimated}


def _decode(entry: bytes, codec: str) -> Any:
    from penstock import codecs

    found = codecs.get(codec)
    assert found is not None
    value = found.decode(memoryview(entry))
    return value.decode() if isinstance(value, bytes) else value
