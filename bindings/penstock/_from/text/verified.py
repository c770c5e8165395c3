"""The answer of `penstock.verify_ids`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

_SHOWN = 4  # ids of a difference
_FIRST = 8  # tokens; a document that differs in them is likely to be another


@dataclass(frozen=True)
class Difference:
    """A document whose ids are others than those of its text.

    Attributes:
        document: its number, as in `dataset.documents()`.
        shard: name of its shard.
        place: where its text is, as `document 3 (a.jsonl line 3)`; empty where the ids were decoded.
        at: number of the first token that differs, in the document.
        stored: ids from there on, the first few; empty: the document ends there.
        expected: those of tokenizers.
        around: text there.
    """

    document: int
    shard: str
    place: str
    at: int
    stored: tuple[int, ...]
    expected: tuple[int, ...]
    around: str

    def __str__(self) -> str:
        """One line."""
        where = f"document {self.document:,} from 0 on (shard {self.shard})"
        where += f", made of {self.place}" if self.place else ""
        return (
            f"{where}: token {self.at:,}, at {self.around!r}: ids {_ids(self.stored)}, tokenizers gives"
            f" {_ids(self.expected)}"
        )


@dataclass(frozen=True)
class Unjudged:
    """Documents of which the ids that their text has now say nothing.

    Attributes:
        reason: why.
        documents: how many.
        first: number of the first of them.
    """

    reason: str
    documents: int
    first: int


@dataclass
class VerifiedIds:
    """How the ids of a dataset compare with those that its text has by tokenizers. True if nothing is wrong.

    Attributes:
        path: of the dataset.
        engine: what made the ids, as the manifest says: "tokenizers", or another one with its version.
        documents: of the dataset.
        looked_at: how many of them were encoded again.
        agreed: of those, that have the same ids.
        differing: that have others.
        first: the first of these; None: there is none.
        unjudged: those that could not be judged, by reason.
        text_documents: documents of the inputs, without those that the dataset lists as left out; None: ids were
            decoded.
        notices: what is to be known beside that.
    """

    path: str
    engine: str = "tokenizers"
    documents: int = 0
    looked_at: int = 0
    agreed: int = 0
    differing: int = 0
    first: Difference | None = None
    unjudged: list[Unjudged] = field(default_factory=list)
    text_documents: int | None = None
    notices: list[str] = field(default_factory=list)
    _unlike: int = 0  # of `differing`, those that may be other documents

    def __bool__(self) -> bool:
        """True if no ids differ, there are as many documents as texts, and one could be judged if there are any."""
        return not self.problems

    @property
    def problems(self) -> list[str]:
        """The differences, a line for each."""
        found = []
        if self.text_documents not in (None, self.documents):
            found.append(
                f"the inputs have {self.text_documents:,} documents, the dataset {self.documents:,}: they are not"
                " what it was made of, or options differ"
            )
        if self.first is not None:
            found.append(str(self.first))
        if self.text_documents == self.documents and 2 * self._unlike > self.looked_at:
            found.append(
                "most documents differ from their first tokens on, and there are as many texts as documents: are the"
                " inputs named in the order in which the dataset was written?"
            )
        if self.looked_at and not self.agreed and self.first is None:
            found.append("no document could be judged by its ids alone: name the text that they were made of")
        return found

    def differs(self, difference: Difference) -> None:
        """One more."""
        self.differing += 1
        self._unlike += difference.at < _FIRST
        self.first = self.first or difference

    def cannot_judge(self, document: int, reason: str) -> None:
        """One more."""
        for at, each in enumerate(self.unjudged):
            if each.reason == reason:
                self.unjudged[at] = Unjudged(reason, each.documents + 1, each.first)
                return
        self.unjudged.append(Unjudged(reason, 1, document))

    def as_json(self) -> dict[str, Any]:
        """All of it."""
        first = None if self.first is None else {**vars(self.first)}
        return {
            **{name: value for name, value in vars(self).items() if not name.startswith("_")},
            "ok": bool(self),
            "first": first,
            "unjudged": [vars(each) for each in self.unjudged],
            "problems": self.problems,
        }


def compared(
    number: int, shard: str, place: str, stored: Sequence[int], expected: Sequence[int], excerpt: Any
) -> Difference:
    """Where two lists of ids of a document begin to differ; `excerpt` is the text of some."""
    pairs = zip(stored, expected, strict=False)
    ends = min(len(stored), len(expected))
    at = next((index for index, (one, other) in enumerate(pairs) if one != other), ends)
    around = excerpt(expected[max(0, at - _SHOWN) : at + _SHOWN])
    shown, right = tuple(stored[at : at + _SHOWN]), tuple(expected[at : at + _SHOWN])
    return Difference(number, shard, place, at, shown, right, around)


def _ids(ids: Sequence[int]) -> str:
    return " ".join(map(str, ids)) or "none"
