"""What worker processes do with batches of documents: parse, tokenize, encode metadata."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

from penstock._workers import WorkerPool

from .chats import ChatTokenizer
from .documents import Columns, RawDocument
from .errors import InputError
from .extract import extract_ids, extract_messages, extract_texts
from .tokenizing import DocumentTokenizer, Encoded, TokenizerOptions

__all__ = ["Result", "Work", "WorkerPool", "encode_metadata", "make_tokenizer", "process_batch"]


class Work(NamedTuple):
    """Tokenizes: all that a worker needs to know."""

    tokenizer: TokenizerOptions
    columns: Columns
    codec: str = "json"

    def begin(self) -> Callable[[list[RawDocument]], Result]:
        """Loads the tokenizer."""
        tokenizer = make_tokenizer(self.tokenizer)
        return lambda documents: process_batch(tokenizer, self, documents)

    def place(self, documents: list[RawDocument]) -> str:
        """Of the first document."""
        return documents[0].place()


def make_tokenizer(options: TokenizerOptions) -> DocumentTokenizer:
    """That of texts, ids or conversations.

    Raises:
        UsageError: As the tokenizers do.
    """
    return ChatTokenizer(options) if options.messages else DocumentTokenizer(options)


class Result(NamedTuple):
    """A batch's tokens and entries of metadata, and the seconds that its tokenizer and the whole of it took."""

    encoded: Encoded
    entries: list[bytes] | None
    tokenizing_seconds: float
    seconds: float


def process_batch(tokenizer: DocumentTokenizer, work: Work, documents: list[RawDocument]) -> Result:
    """Parses and tokenizes one batch, and encodes its metadata.

    Raises:
        InputError: A document that cannot be used.
    """
    begin = time.perf_counter()
    if isinstance(tokenizer, ChatTokenizer):
        conversations, metadata = extract_messages(documents, work.columns)
        middle = time.perf_counter()
        encoded = tokenizer.encode_messages(conversations, documents)
    elif work.columns.ids is not None:
        arrays, metadata = extract_ids(documents, work.columns)
        middle = time.perf_counter()
        encoded = tokenizer.encode_ids(arrays, documents)
    else:
        texts, metadata = extract_texts(documents, work.columns)
        middle = time.perf_counter()
        encoded = tokenizer.encode_texts(texts, documents)
    tokenized = time.perf_counter()
    entries = None if metadata is None else encode_metadata(metadata, documents, work.codec)
    return Result(encoded, entries, tokenized - middle, time.perf_counter() - begin)


def encode_metadata(metadata: list[dict[str, Any]], documents: list[RawDocument], codec: str) -> list[bytes]:
    """The documents' entries.

    Raises:
        InputError: One that the codec cannot store.
    """
    from penstock import codecs

    found = codecs.get(codec)
    assert found is not None
    entries: list[bytes] = []
    for known, document in zip(metadata, documents, strict=True):
        try:
            value = next(iter(known.values())) if codec == "raw" else known
            entries.append(found.encode(value.encode() if isinstance(value, str) else value))
        except (TypeError, ValueError, OverflowError) as error:
            what = f"{document.place()}: its metadata cannot be stored as {codec}: {error}"
            raise InputError(f"{what}: choose other columns with --metadata") from None
    return entries
