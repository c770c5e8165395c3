"""What worker processes do with batches of documents: parse, tokenize, encode metadata."""

from __future__ import annotations

import time
from typing import Any, NamedTuple

from penstock._from.text.chats import ChatTokenizer
from penstock._from.text.extract import extract_ids, extract_messages, extract_texts
from penstock._from.text.raw import Columns, RawDocument
from penstock._from.text.tokenizing import DocumentTokenizer, Encoded, TokenizerOptions
from penstock._make.errors import DocumentError, FirstDocumentError, InputError

_ENOUGH = 16  # documents of which all lack a column that the first one lacks: then the option is wrong


class Tokenizing(NamedTuple):
    """How documents become tokens. With `skips` documents that cannot be used are left out."""

    tokenizer: TokenizerOptions
    columns: Columns
    codec: str = "json"
    skips: bool = False


def make_tokenizer(options: TokenizerOptions) -> DocumentTokenizer:
    """That of texts, ids or conversations.

    Raises:
        UsageError: As the tokenizers do.
    """
    return ChatTokenizer(options) if options.messages else DocumentTokenizer(options)


class Result(NamedTuple):
    """A batch's tokens and entries of metadata, and the seconds that its tokenizer and the whole of it took.

    `skipped` are documents that were left out: (number in the batch, reason), ascending.
    """

    encoded: Encoded
    entries: list[bytes] | None
    tokenizing_seconds: float
    seconds: float
    skipped: tuple[tuple[int, str], ...] = ()


def process_batch(tokenizer: DocumentTokenizer, work: Tokenizing, documents: list[RawDocument]) -> Result:
    """Parses and tokenizes one batch, and encodes its metadata.

    Raises:
        InputError: A document that cannot be used, and is not to be left out.
    """
    if not work.skips:
        return _process(tokenizer, work, documents)
    try:
        return _process(tokenizer, work, documents)
    except InputError:
        return _process_each(tokenizer, work, documents)


def _process_each(tokenizer: DocumentTokenizer, work: Tokenizing, documents: list[RawDocument]) -> Result:
    """As process_batch, without the documents that cannot be used."""
    found: list[Result] = []
    errors: dict[int, DocumentError] = {}
    for index, document in enumerate(documents):
        try:
            found.append(_process(tokenizer, work, [document]))
        except DocumentError as error:
            errors[index] = error
    if not found and isinstance(errors[0], FirstDocumentError) and len(documents) >= _ENOUGH:
        raise errors[0]
    skipped = tuple((index, error.reason) for index, error in errors.items())
    encoded = Encoded.joined([each.encoded for each in found], tokenizer.dtype, bool(work.columns.messages))
    entries = None if work.columns.metadata == () else [entry for each in found for entry in each.entries or ()]
    tokenizing, seconds = sum(each.tokenizing_seconds for each in found), sum(each.seconds for each in found)
    return Result(encoded, entries, tokenizing, seconds, skipped)


def _process(tokenizer: DocumentTokenizer, work: Tokenizing, documents: list[RawDocument]) -> Result:
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
    from penstock._data import codecs

    found = codecs.get(codec)
    assert found is not None
    entries: list[bytes] = []
    for known, document in zip(metadata, documents, strict=True):
        try:
            value = next(iter(known.values())) if codec == "raw" else known
            entries.append(found.encode(value.encode() if isinstance(value, str) else value))
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            what = f"its metadata cannot be stored as {codec}: {error}"
            raise document.error(f"{what}: choose other columns with --metadata") from None
    return entries
