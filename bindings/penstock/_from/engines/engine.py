"""The seam between documents and what computes their ids: Hugging Face's tokenizers, or an engine that is faster."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from penstock._make.errors import InputError

if TYPE_CHECKING:
    import numpy.typing as npt

    from penstock._from.engines.pieces import Pieces

ENGINES = ("auto", "gigatoken", "tokenizers")
REFERENCE = "tokenizers"
"""The engine whose ids are right by definition: tokenizer.json is its format."""


class Ids(NamedTuple):
    """Ids of texts, end to end: those of text i are `ids[offsets[i]:offsets[i + 1]]`.

    Attributes:
        ids: u4, or i8 where they may be anything.
        offsets: i8 [texts + 1].
    """

    ids: npt.NDArray[np.uint32] | npt.NDArray[np.int64]
    offsets: npt.NDArray[np.int64]

    @classmethod
    def of(cls, payload: Pieces) -> Ids:
        """Those whose i8 are pieces of bytes."""
        offsets = np.zeros(len(payload.ends) + 1, np.int64)
        offsets[1:] = payload.ends // np.uint64(8)
        return cls(np.frombuffer(payload.data, np.int64, int(offsets[-1])), offsets)

    @classmethod
    def listed(cls, lists: Sequence[Sequence[int]]) -> Ids:
        """Those of lists."""
        offsets = np.zeros(len(lists) + 1, np.int64)
        np.cumsum([len(each) for each in lists], out=offsets[1:])
        return cls(np.fromiter(chain.from_iterable(lists), np.uint32, int(offsets[-1])), offsets)


class EngineError(InputError):
    """An engine that does not give the ids of tokenizers; the message has the text of which it gives others.

    Attributes:
        index: Of the text, if it is known.
    """

    index: int | None = None


class OtherIdsError(EngineError):
    """The proof found other ids."""


class Engine(Protocol):
    """Computes ids. One thread at a time.

    Attributes:
        name: With its version; empty of the reference.
        around: Ids that it leaves out and the post-processor puts before and behind each text.
    """

    name: str
    around: tuple[list[int], list[int]]

    def encode(self, texts: Pieces) -> Ids:
        """Ids of texts, which are UTF-8.

        Raises:
            EngineError: They are not those of the reference.
        """

    def for_thread(self) -> Engine:
        """One of the same for another thread."""
