"""Conversations of which nothing is trained on, as those whose roles the template does not know."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from penstock._base.words import counted

if TYPE_CHECKING:
    from penstock._from.text.batches import Result
    from penstock._from.text.block import Documents


class Untrained:
    """Counts documents without a token whose loss is 1. One thread at a time."""

    def __init__(self) -> None:
        self._documents = 0
        self._untrained = 0
        self._first = ""

    def add(self, documents: Documents, result: Result) -> None:
        """Counts those of a batch that were not left out."""
        lengths, _, loss = result.encoded
        if loss is None:
            return
        ends = np.cumsum(lengths, dtype=np.int64)
        sums = np.concatenate([[0], np.cumsum(loss, dtype=np.int64)])
        found = np.flatnonzero(sums[ends] == sums[ends - lengths.astype(np.int64)])
        if len(found) and not self._untrained:
            skipped = {index for index, _ in result.skipped}
            kept = [index for index in range(len(documents)) if index not in skipped]
            self._first = documents[kept[int(found[0])]].place()
        self._documents += len(lengths)
        self._untrained += len(found)

    def notes(self) -> list[str]:
        """A line, where there are some."""
        if not self._untrained:
            return []
        if self._untrained == self._documents:
            what = "no conversation has a token that is trained on"
        else:
            what = f"{self._untrained:,} of {counted(self._documents, 'conversation')} have no token that is trained on"
        return [f"{what}: the template marks nothing in {self._first}"]
