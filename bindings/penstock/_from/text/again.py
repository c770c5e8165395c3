"""Texts of a dataset encoded again: with what stands around each document, as its shards say it or as it is told."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from penstock._from.engines.engine import REFERENCE
from penstock._from.engines.pieces import Pieces
from penstock._from.text.decoding import IdDecoder
from penstock._from.text.raw import RawDocument
from penstock._from.text.tokenizing import DocumentTokenizer, TokenizerOptions
from penstock._make.errors import DocumentError, InputError, UsageError


class Told(NamedTuple):
    """How ids were made, as the user says; None of what the shards say."""

    prepend: Sequence[str] | None
    append: Sequence[str] | None
    post_processor: bool | None
    special_tokens_in_text: bool | None


class Spelled(NamedTuple):
    """The text of a document.

    Attributes:
        text: UTF-8; None: it has none.
        unsure: why ids that differ are no proof; empty: they are.
        before: ids that stand before those of the text, where they are guessed.
        behind: those behind it.
        reads_special: whether special tokens are read in this text, where that is guessed.
    """

    text: bytes | None
    unsure: str = ""
    before: Sequence[int] = ()
    behind: Sequence[int] = ()
    reads_special: bool = False


Answer = list[int] | DocumentError | None
"""Ids of a text; why there are none; None: there is no text."""


class Again:
    """Rules by what shards say, each made once. One thread at a time.

    Attributes:
        decoder: of the tokenizer.
        sha256: of its file.
    """

    def __init__(self, file: str, told: Told, end_of_document: int | None, guesses: bool) -> None:
        """Loads the tokenizer; with `guesses` what nobody says of a document's ends is taken from its ids.

        Raises:
            UsageError: It cannot be read; its ids are drawn.
        """
        plain = DocumentTokenizer(TokenizerOptions(file=file, engine=REFERENCE, dtype="u4"))
        library, data = plain.loaded
        if getattr(library.model, "dropout", None):
            raise UsageError(f"--tokenizer {file}: its ids are drawn (dropout {library.model.dropout}): none is right")
        self._file, self._told, self._guesses = file, told, guesses
        self._library = library
        self.decoder = IdDecoder(library, data)
        self.sha256 = plain.sha256
        self._edges = self.decoder.special | ({end_of_document} if end_of_document is not None else set())
        self._rules: dict[TokenizerOptions | None, Rules] = {}

    def rules(self, options: dict[str, Any]) -> Rules:
        """Those of a shard whose `options` penstock.write noted; empty: it noted none.

        Raises:
            UsageError: Conversations; a token that the tokenizer does not have.
        """
        if options.get("messages"):
            raise UsageError("conversations: a chat template made the ids, which cannot be judged by their text")
        told = self._told
        if not options and self._guesses and all(each is None for each in told):
            return self._made(None)
        return self._made(
            self._options(
                self._names(options.get("prepend", [])) if told.prepend is None else tuple(told.prepend),
                self._names(options.get("append", [])) if told.append is None else tuple(told.append),
                bool(options.get("post_processor") if told.post_processor is None else told.post_processor),
                bool(
                    options.get("special_tokens_in_text")
                    if told.special_tokens_in_text is None
                    else told.special_tokens_in_text
                ),
            )
        )

    def _options(self, prepend: Any, append: Any, post_processor: bool, in_text: bool) -> TokenizerOptions:
        return TokenizerOptions(
            file=self._file,
            prepend=prepend,
            append=append,
            post_processor=post_processor,
            special_tokens_in_text=in_text,
            dtype="u4",
            engine=REFERENCE,
        )

    def _made(self, options: TokenizerOptions | None) -> Rules:
        if options not in self._rules:
            if options is None:
                either = [DocumentTokenizer(self._options((), (), False, in_text)) for in_text in (False, True)]
                self._rules[options] = Rules(self.decoder, either[0], either[1], self._edges)
            else:
                self._rules[options] = Rules(self.decoder, DocumentTokenizer(options), None, frozenset())
        return self._rules[options]

    def _names(self, ids: Sequence[int]) -> tuple[str, ...]:
        names = [self._library.id_to_token(each) for each in ids]
        if None in names:
            raise UsageError(
                f"--tokenizer {self._file} has no token {ids[names.index(None)]:,}, which stands around the dataset's"
                " documents: it is another tokenizer"
            )
        return tuple(names)


class Rules:
    """How documents of some shards became ids. One thread at a time."""

    def __init__(
        self,
        decoder: IdDecoder,
        tokenizer: DocumentTokenizer,
        reading_special: DocumentTokenizer | None,
        edges: frozenset[int],
    ) -> None:
        """Takes what is said, or guessed.

        Args:
            decoder: of the tokenizer.
            tokenizer: as it is said; without anything around documents where it is guessed.
            reading_special: the same that reads special tokens in texts; None: nothing is guessed.
            edges: ids that are guessed to be around documents.
        """
        self._decoder, self._tokenizer, self._reading_special, self._edges = decoder, tokenizer, reading_special, edges

    def spelled(self, ids: Sequence[int]) -> Spelled:
        """The text that a document's ids spell."""
        begin, end = self._inner(ids)
        found = self._decoder.decode(ids[begin:end])
        text = None if found.text is None else found.text.encode("utf-8", "replace")
        if self._reading_special is None:
            return Spelled(text, found.unsure)
        special = not self._decoder.special.isdisjoint(ids[begin:end])
        unsure = found.unsure or ("special tokens in it, and nothing says how they came there" if special else "")
        return Spelled(text, unsure, ids[:begin], ids[end:], special)

    def _inner(self, ids: Sequence[int]) -> tuple[int, int]:
        """Where the ids of the text begin and end."""
        begin, end = 0, len(ids)
        if self._reading_special is not None:
            while begin < end and ids[begin] in self._edges:
                begin += 1
            while begin < end and ids[end - 1] in self._edges:
                end -= 1
            return begin, end
        before, behind = self._tokenizer.around
        if list(ids[: len(before)]) == before:
            begin = len(before)
        if behind and list(ids[max(begin, end - len(behind)) :]) == behind:
            end -= len(behind)
        return begin, end

    def encode(self, texts: Sequence[Spelled], sources: Sequence[RawDocument]) -> list[Answer]:
        """The ids of texts, with what stands around them."""
        found: list[Answer] = [None] * len(texts)
        for special in (False, True):
            chosen = [at for at, each in enumerate(texts) if each.text is not None and each.reads_special == special]
            tokenizer = self._reading_special if special and self._reading_special is not None else self._tokenizer
            ids = _encoded(tokenizer, [texts[at].text or b"" for at in chosen], [sources[at] for at in chosen])
            for at, each in zip(chosen, ids, strict=True):
                if isinstance(each, DocumentError):
                    found[at] = each
                else:
                    found[at] = [*texts[at].before, *each, *texts[at].behind]
        return found


def _encoded(
    tokenizer: DocumentTokenizer, texts: Sequence[bytes], sources: Sequence[RawDocument]
) -> list[list[int] | DocumentError]:
    if not texts:
        return []
    try:
        made = tokenizer.encode(Pieces.of(texts), sources)
    except InputError as error:
        if len(texts) == 1:
            return [error if isinstance(error, DocumentError) else DocumentError(str(error), str(error))]
        return [_encoded(tokenizer, [text], [source])[0] for text, source in zip(texts, sources, strict=True)]
    ends = np.cumsum(made.lengths).astype(int)[:-1]
    return [part.tolist() for part in np.split(made.ids, ends)]
