"""What an export reads: the sequences of a dataset, documents or windows, few at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from penstock import _native
from penstock._base.errors import InvalidArgumentError
from penstock._data.dataset import Dataset
from penstock._data.fields import token_leaf
from penstock._from.tokens.reader import Part
from penstock._from.tokens.records import Records, runs

_LOOK = 1 << 16  # sequences whose lengths are read at once

Lengths = npt.NDArray[np.int64]


class Feed:
    """Sequences of a dataset. One thread.

    Attributes:
        dataset: what they are of.
        token: the field of the tokens.
        window: of each sequence; None: they are documents.
        tail: records behind the last window, which are in no sequence.
    """

    def __init__(self, dataset: Dataset, window: int | None, keep: list[str], progress: Callable[..., None]) -> None:
        """Of the tokens and the fields of `keep`; `progress` is called with (bytes done, bytes in all).

        Raises:
            InvalidArgumentError: it has no tokens, or neither documents nor a window.
        """
        self.dataset = dataset
        self.window = window
        dtype = dataset.dtype
        if dtype is None or dataset.mode == "opaque":
            raise InvalidArgumentError(f"{dataset.path}: opaque documents have no tokens")
        token, why = token_leaf(dtype)
        if token is None or token not in (dtype.names or ()) or dtype[token].subdtype is not None:
            raise InvalidArgumentError(f"{dataset.path}: which field has the tokens? {why or 'it is no plain field'}")
        self.token = token
        if window is None and dataset.mode == "tokens":
            raise InvalidArgumentError(
                f"{dataset.path}: a token stream without documents: say with window how long sequences are"
            )
        if window is None:
            dataset.documents(metadata=False)  # which refuses the layout "ids"
        elif not 1 <= window <= dataset.records:
            raise InvalidArgumentError(f"window={window:,}: {dataset.path} has {dataset.records:,} records")
        self.count = dataset.spans if window is None else dataset.records // window
        self.tail = 0 if window is None else dataset.records - self.count * window
        self.records = dataset.records - self.tail
        self._records = Records(dataset, [token, *keep])
        self._progress = progress

    def lengths(self) -> Iterator[Lengths]:
        """Of all sequences, in pieces."""
        for first in range(0, self.count, _LOOK):
            count = min(_LOOK, self.count - first)
            if self.window is None:
                yield _native.document_lengths(self.dataset._native, first, count).astype(np.int64)
            else:
                yield np.full(count, self.window, np.int64)

    def parts(self, metadata: bool = False) -> Iterator[Part]:
        """All sequences, with the entries of documents where `metadata` asks for them: JSON as it is stored, of other
        codecs what they decoded."""
        at, first = 0, 0
        for lengths in self.lengths():
            for low, high in runs(lengths, self._records.most):
                count = int(lengths[low:high].sum())
                entries = self._entries(first + low, first + high) if metadata else None
                yield Part(lengths[low:high], self._records.read(at, at + count), entries)
                at += count
                self._progress(at * self._records.bytes, self.records * self._records.bytes)
            first += len(lengths)

    def _entries(self, begin: int, end: int) -> list[Any]:
        batch = self.dataset.documents().read(np.arange(begin, end, dtype=np.uint64))
        found: list[Any] = [None] * (end - begin)
        is_text = self.dataset.codec == "json"
        for span in batch.spans:
            found[span.row] = bytes(span.raw) if is_text else span.metadata
        return found
