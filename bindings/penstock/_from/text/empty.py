"""Documents without a token of their own, as an empty text gives one: they are kept, and said at the end."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from penstock._base.words import counted

if TYPE_CHECKING:
    from penstock._from.text.batches import Result
    from penstock._from.text.block import Documents
    from penstock._from.text.raw import RawDocument


class Empty(NamedTuple):
    """How many there are, where the first one is, and its number in the input; -1: not known."""

    documents: int = 0
    first: str = ""
    number: int = -1

    def of_batch(self, documents: Documents, result: Result, added: int) -> Empty:
        """With those of a batch that were not left out; `added`: tokens of each document beside its own."""
        found = np.flatnonzero(result.encoded.lengths <= added)
        if not len(found):
            return self
        if self.documents:
            return self.joined(Empty(len(found)))
        first = _kept(documents, result, int(found[0]))
        return Empty(len(found), first.file_place(), first.number)

    def joined(self, other: Empty) -> Empty:
        """With those of another part of the input, which comes later."""
        first = self if self.documents else other
        return Empty(self.documents + other.documents, first.first, first.number)

    def notes(self, added: int, skipped: int) -> list[str]:
        """A line, where there are some; without the number in the dataset, where documents of the input are `skipped`.

        The number is that of `show` and `--without`, from 0 on; lines of the input are counted from 1.
        """
        if not self.documents:
            return []
        is_one = self.documents == 1
        have = f"{'has' if is_one else 'have'} no token{' but those that are added' if added else ''}"
        stored = f"{'it is' if is_one else 'they are'} stored like others"
        place = self.first if skipped or self.number < 0 else f"document {self.number:,} ({self.first})"
        return [f"{counted(self.documents, 'document')} {have}; {stored}: {'' if is_one else 'the first is '}{place}"]


def _kept(documents: Documents, result: Result, at: int) -> RawDocument:
    skipped = {index for index, _ in result.skipped}
    kept = [index for index in range(len(documents)) if index not in skipped]
    return documents[kept[at]]
