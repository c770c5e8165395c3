"""The work on batches of documents: parse, tokenize, encode metadata."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, NamedTuple

from penstock._from.engines.engine import EngineError, Ids
from penstock._from.engines.pieces import Pieces
from penstock._from.text.block import Documents
from penstock._from.text.chats import ChatTokenizer
from penstock._from.text.raw import Columns, RawDocument
from penstock._from.text.reading import Extracted, Extractor
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
    """The tokenizer of texts, ids or conversations.

    Raises:
        UsageError: As the tokenizers do.
    """
    return ChatTokenizer(options) if options.messages else DocumentTokenizer(options)


class Result(NamedTuple):
    """A batch's tokens and entries of metadata, and the seconds that its tokenizer and the whole of it took.

    `skipped` are documents that were left out: (number in the batch, reason), ascending.
    """

    encoded: Encoded
    entries: Pieces | None
    tokenizing_seconds: float
    seconds: float
    skipped: tuple[tuple[int, str], ...] = ()


class Processor:
    """Makes tokens and entries of batches. One thread at a time."""

    def __init__(self, work: Tokenizing, tokenizer: DocumentTokenizer | None = None) -> None:
        """`tokenizer` is the one that `work` says, where it is made already."""
        self._work = work
        self._tokenizer = tokenizer or make_tokenizer(work.tokenizer)
        self._extractor = Extractor(work.columns, work.codec)

    def for_thread(self) -> Processor:
        """The same for another thread."""
        return Processor(self._work, self._tokenizer.for_thread())

    def process(self, documents: Documents) -> Result:
        """Parses and tokenizes one batch, and encodes its metadata.

        Raises:
            InputError: A document that cannot be used, and is not to be left out.
            EngineError: The engine is wrong.
        """
        begin = time.perf_counter()
        found = self._extractor.extract(documents)
        errors = found.errors
        if errors and not self._work.skips:
            raise errors[min(errors)]
        kept: Sequence[RawDocument] = documents
        if errors:
            self._look_at_tokens(documents, errors)
            found = found.without_errors()
            kept = _Some(documents, sorted(set(range(len(documents))) - set(errors)))
        middle = time.perf_counter()
        try:
            encoded = self._encode(found, kept)
        except EngineError:
            raise
        except InputError:
            if not self._work.skips:
                raise
            found, encoded = self._encode_each(found, kept, errors)
        tokenizing = time.perf_counter() - middle
        if len(errors) == len(documents):
            _refuse_option(errors)
        skipped = tuple((index, errors[index].reason) for index in sorted(errors))
        return Result(encoded, found.entries, tokenizing, time.perf_counter() - begin, skipped)

    def _look_at_tokens(self, documents: Documents, errors: dict[int, DocumentError]) -> None:
        """Names the tokens of a document that can be used neither for its tokens nor for its metadata."""
        for index in list(errors):
            try:
                self._encode(self._extractor.without_entry(documents[index]), [documents[index]])
            except DocumentError as error:
                errors[index] = error

    def _encode(self, found: Extracted, documents: Sequence[RawDocument]) -> Encoded:
        if not documents:
            return Encoded.joined([], self._tokenizer.dtype, self._work.columns.messages)
        if isinstance(self._tokenizer, ChatTokenizer):
            return self._tokenizer.encode_messages(found.conversations, documents)
        if self._work.columns.ids is not None:
            return self._tokenizer.encode_ids(Ids.of(found.payload), documents)
        return self._tokenizer.encode(found.payload, documents)

    def _encode_each(
        self, found: Extracted, documents: Sequence[RawDocument], errors: dict[int, DocumentError]
    ) -> tuple[Extracted, Encoded]:
        """The batch without the documents whose tokens cannot be used, which are added to `errors`."""
        parts, wrong = [], {}
        numbers = documents.numbers if isinstance(documents, _Some) else range(len(documents))
        for index in range(len(documents)):
            try:
                parts.append(self._encode(found.only(index), [documents[index]]))
            except DocumentError as error:
                wrong[index] = error
        errors.update({numbers[index]: error for index, error in wrong.items()})
        encoded = Encoded.joined(parts, self._tokenizer.dtype, self._work.columns.messages)
        return found._replace(errors=wrong).without_errors(), encoded


class _Some(Sequence[Any]):
    """Documents of a batch that are left."""

    def __init__(self, documents: Documents, numbers: Sequence[int]) -> None:
        self._documents = documents
        self.numbers = numbers

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, index: Any) -> Any:
        return self._documents[self.numbers[index]]


def _refuse_option(errors: dict[int, DocumentError]) -> None:
    """All documents of a batch cannot be used: where the very first lacks a column, the option is wrong."""
    if isinstance(errors.get(0), FirstDocumentError) and len(errors) >= _ENOUGH:
        raise errors[0]
