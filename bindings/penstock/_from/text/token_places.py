"""Where tokens lie in a text, by the bytes that each of them stands for."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock._from.text.chat_template import mask_of

if TYPE_CHECKING:
    import numpy.typing as npt


def trims_offsets(data: bytes) -> bool:
    """True if a tokenizer.json has tokens lie where they do without the spaces that they begin and end with."""
    post_processor = json.loads(data).get("post_processor") or {}
    parts = [post_processor, *post_processor.get("processors", ())]
    return any(each.get("trim_offsets") for each in parts)


class TokenPlaces:
    """The tokens of a vocabulary of bytes."""

    def __init__(self, vocabulary: Mapping[int, bytes], *, trims: bool) -> None:
        """`trims`: a token does not lie at the spaces that it begins or ends with (tokenizers' `trim_offsets`)."""
        self._bytes = dict(vocabulary)
        count = max(vocabulary, default=-1) + 1
        self._sizes, self._leading, self._trailing = (np.zeros(count, np.int64) for _ in range(3))
        for number, data in vocabulary.items():
            self._sizes[number] = len(data)
            if trims:
                self._leading[number] = len(data) - len(data.lstrip(b" "))
                self._trailing[number] = len(data) - len(data.rstrip(b" "))

    def mask(
        self, ids: npt.NDArray[Any], text: str, data: bytes, ranges: Sequence[tuple[int, int]]
    ) -> npt.NDArray[np.bool_] | None:
        """The tokens of which something lies in one of the ranges of characters.

        Args:
            ids: of the text.
            text: the text.
            data: its UTF-8.
            ranges: characters [begin, end).

        Returns:
            [ids]; None where the tokens' bytes are not those of the text, so that nothing is known.
        """
        if b"".join(map(self._bytes.get, ids.tolist(), [b""] * len(ids))) != data:
            return None
        ends = np.cumsum(self._sizes[ids])
        begins = np.minimum(ends - self._sizes[ids] + self._leading[ids], ends)
        ends = np.maximum(ends - self._trailing[ids], begins)
        if not text.isascii():
            ranges = [(len(text[:begin].encode()), len(text[:end].encode())) for begin, end in ranges]
        return mask_of(begins, ends, ranges)
