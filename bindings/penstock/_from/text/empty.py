"""Documents without a token of their own, as an empty text gives one: they are kept, and said at the end."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from penstock._base.words import counted

if TYPE_CHECKING:
    from penstock._from.text.batches import Result
    from penstock._from.text.block import Documents


class Empty(NamedTuple):
    """How many there are, and where the first one is."""

    documents: int = 0
    first: str = ""

    def of_batch(self, documents: Documents, result: Result, added: int) -> Empty:
        """With those of a batch that were not left out; `added`: tokens of each document beside its own."""
        found = np.flatnonzero(result.encoded.lengths <= added)
        if not len(found):
            return self
        return self.joined(Empty(len(found), "" if self.documents else _place(documents, result, int(found[0]))))

    def joined(self, other: Empty) -> Empty:
        """With those of another part of the input, which comes later."""
        return Empty(self.documents + other.documents, self.first or other.first)

    def notes(self, added: int) -> list[str]:
        """A line, where there are some."""
        if not self.documents:
            return []
        is_one = self.documents == 1
        have = f"{'has' if is_one else 'have'} no token{' but those that are added' if added else ''}"
        stored = f"{'it is' if is_one else 'they are'} stored like others"
        return [
            f"{counted(self.documents, 'document')} {have}; {stored}: {'' if is_one else 'the first is '}{self.first}"
        ]


def _place(documents: Documents, result: Result, at: int) -> str:
    skipped = {index for index, _ in result.skipped}
    kept = [index for index in range(len(documents)) if index not in skipped]
    return documents[kept[at]].place()
