"""Ids by Hugging Face's tokenizers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock._from.engines.engine import Ids

if TYPE_CHECKING:
    from penstock._from.engines.pieces import Pieces


class Reference:
    """An engine: the library itself, in its own words (docs of `tokenizers.Tokenizer`)."""

    name = ""
    around: tuple[list[int], list[int]] = ([], [])

    def __init__(self, tokenizer: Any, post_processor: bool) -> None:
        """`tokenizer` is as the library made it, with the post-processor's ids or without."""
        self._tokenizer = tokenizer
        self._post_processor = post_processor

    def encode(self, texts: Pieces) -> Ids:
        """Ids of texts, which are UTF-8."""
        found = self._tokenizer.encode_batch_fast(texts.strings(), add_special_tokens=self._post_processor)
        return Ids.listed([each.ids for each in found])

    def for_thread(self) -> Reference:
        """The same one: the library lets threads share it."""
        return self

    def place_of(self, text: str, number: int) -> int:
        """The character at which token `number` of a text begins; the text's length behind its last."""
        offsets = self._tokenizer.encode(text, add_special_tokens=self._post_processor).offsets
        return int(offsets[number][0]) if number < len(offsets) else len(text)
