"""Texts of inputs by the number that their documents have in a dataset."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock._from.text.block import Listed
from penstock._from.text.documents import DocumentReader
from penstock._from.text.inputs import expand_inputs
from penstock._from.text.raw import Columns, RawDocument
from penstock._from.text.reading import Extractor
from penstock._make.errors import UsageError

if TYPE_CHECKING:
    from penstock._places.storage import Storage

_TOGETHER = 32  # texts that are taken at once


Text = tuple[int, "RawDocument | None", bytes]
"""A document: its number, where its text is, if that is known, and the text."""


@dataclass(frozen=True)
class InputOptions:
    """The options said of the inputs; None: as the dataset's shards say."""

    text: Sequence[str] = ()
    format: str | None = None
    text_column: str | None = None
    text_per: str | None = None


class NamedText:
    """Reads inputs once. One thread at a time.

    Attributes:
        count: documents that were read and not left out.
    """

    def __init__(
        self,
        wanted: InputOptions,
        noted: dict[str, Any],
        listed: bytes | None,
        storage: Storage | None,
    ) -> None:
        """Looks at the inputs.

        Args:
            wanted: what is said of them.
            noted: what penstock.write noted of its options; empty: nothing.
            listed: the list of documents that it left out; None: there is none.
            storage: how addresses are reached.

        Raises:
            UsageError: Inputs or options that cannot be; a dataset that was made of other things.
        """
        if noted.get("ids"):
            raise UsageError("--text: the dataset was made of token ids (--ids-column), not of text")
        kept = noted.get("metadata", [])  # of Parquet they say where a damaged file ends
        self._columns = Columns(
            wanted.text_column or noted.get("text") or "text",
            None,
            None if kept == "all" else tuple(kept),
            wanted.text_per or noted.get("text_per") or "file",
        )
        skips = listed is not None
        inputs = expand_inputs(list(wanted.text), wanted.format, storage, skips=skips)
        self._reader = DocumentReader(inputs, self._columns, skips=skips)
        self._left_out = np.array(sorted(_numbers(listed or b"")), np.int64)
        self.count = 0

    def texts(self, numbers: Sequence[int]) -> Iterator[Text]:
        """The documents of these numbers, ascending, as far as the inputs have them; all inputs are read.

        Raises:
            InputError: An input that cannot be read, a document that cannot be used.
        """
        extractor = Extractor(self._columns._replace(metadata=()), "json")
        waiting: list[tuple[int, RawDocument]] = []
        read = at = 0
        for documents in self._reader.read():
            first, last = np.searchsorted(self._left_out, [read, read + len(documents)]).tolist()
            kept = np.delete(np.arange(len(documents)), self._left_out[first:last] - read)
            while at < len(numbers) and numbers[at] < self.count + len(kept):
                number = numbers[at]
                waiting.append((number, documents[int(kept[number - self.count])]))
                at += 1
                if len(waiting) == _TOGETHER:
                    yield from _taken(extractor, waiting)
                    waiting = []
            read += len(documents)
            self.count += len(kept)
        yield from _taken(extractor, waiting)


def _taken(extractor: Extractor, some: list[tuple[int, RawDocument]]) -> Iterator[Text]:
    found = extractor.extract(Listed([document for _, document in some]))
    if found.errors:
        raise found.errors[min(found.errors)]
    for (number, document), text in zip(some, found.payload.pieces(), strict=True):
        yield number, document, text


def _numbers(data: bytes) -> Iterator[int]:
    """From 0, over all inputs, those of the documents that a list names."""
    for line in data.splitlines():
        yield json.loads(line)["document"] - 1
