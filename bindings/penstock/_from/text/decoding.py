"""From ids back to the text that they are of, and where no other text can have had them.

A byte-level tokenizer gives each byte of a text to one token, so its ids spell the text. Others lose something (white
space, case, characters that they do not know): their ids may be right although the text that they spell has others.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

_REPEATABLE = {"NFC", "NFD", "NFKC", "NFKD", "Lowercase"}
"""Normalizers that leave alone what they gave."""
_DIVIDE = {"Split", "Digits", "Punctuation", "UnicodeScripts", "FixedLength"}
"""Pre-tokenizers that keep all characters, unless they remove what they split at."""


class Decoded(NamedTuple):
    """Text of some ids.

    Attributes:
        text: None where they have none.
        unsure: why other ids than these may be as right; empty: the text has these ids or they are wrong.
    """

    text: str | None
    unsure: str


class IdDecoder:
    """Spells ids. One thread at a time."""

    def __init__(self, library: Any, data: bytes) -> None:
        """Takes a tokenizer.json, `data`, and what the library tokenizers made of it."""
        self._library = library
        added = library.get_added_tokens_decoder()
        self._added = {number: each.content.encode() for number, each in added.items()}
        self._greedy = {number for number, each in added.items() if each.lstrip or each.rstrip}
        # One that is in the vocabulary too stands for its characters, and for the bytes that these stand for.
        self._twofold = {
            number
            for number, each in added.items()
            if spelled(each.content) not in (None, each.content.encode())
            and library.model.token_to_id(each.content) == number
        }
        self.special = frozenset(number for number, each in added.items() if each.special)
        content = json.loads(data)
        self._lossy = _lossy_because(content, library)
        self._normalizer = content.get("normalizer")
        self._bytes: dict[int, bytes | None] = {}

    def decode(self, ids: Sequence[int]) -> Decoded:
        """The text of ids, special tokens shown."""
        if self._lossy:
            text = str(self._library.decode(list(ids), skip_special_tokens=False))
            known = all(self._library.id_to_token(each) is not None for each in set(ids))
            return Decoded(text, self._lossy if known else "")
        if not self._twofold.isdisjoint(ids):
            return Decoded(None, "an added token in it is also a token of other bytes")
        spelled = b"".join(self._of(each) or b"" for each in ids)  # what is unknown has no text: the ids will differ
        try:
            text = spelled.decode()
        except UnicodeDecodeError:
            return Decoded(None, "the bytes of its ids are no UTF-8: a part of a text, perhaps")
        if not self._greedy.isdisjoint(ids):
            return Decoded(text, "an added token in it takes white space beside it away")
        return Decoded(text, self._changes(text))

    def excerpt(self, ids: Sequence[int]) -> str:
        """About what ids say, for messages."""
        return str(self._library.decode(list(ids), skip_special_tokens=False))

    def unsure_of(self, ids: Sequence[int], others: Sequence[int]) -> str:
        """Why ids may be right although the text that they spell has `others`; empty: they are wrong."""
        if self._normalizer is None:
            return ""
        mine, theirs = ([each for each in some if each in self._added] for some in (ids, others))
        # What the normalizer makes of a text may look like a token that is not there.
        return "" if mine == theirs else "an added token may stand there by the normalizer's work"

    def _of(self, number: int) -> bytes | None:
        if number not in self._bytes:
            token = self._library.id_to_token(number)
            self._bytes[number] = self._added.get(number, None if token is None else spelled(token))
        return self._bytes[number]

    def _changes(self, text: str) -> str:
        if self._normalizer is None or self._normalizer["type"] in _REPEATABLE:
            return ""
        if self._library.normalizer.normalize_str(text) == text:
            return ""
        return f"the tokenizer's normalizer ({self._normalizer['type']}) changes its text again"


def _byte_of_character() -> dict[str, int]:
    """GPT-2's alphabet: printable bytes of Latin-1 stand for themselves, the others for U+0100 and what follows it."""
    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [each for each in range(256) if each not in set(plain)]
    return {**{chr(each): each for each in plain}, **{chr(0x100 + at): each for at, each in enumerate(others)}}


_BYTES = _byte_of_character()


def spelled(token: str) -> bytes | None:
    """The bytes of a token of the vocabulary; None: it stands for none."""
    try:
        return bytes(map(_BYTES.__getitem__, token))
    except KeyError:
        return None


def _lossy_because(content: dict[str, Any], library: Any) -> str:
    """Why ids of this tokenizer do not spell the text; empty: they do."""
    model = content["model"]
    if model.get("type", "BPE") != "BPE" or model.get("continuing_subword_prefix") or model.get("end_of_word_suffix"):
        return "the tokenizer's ids do not spell all bytes of a text"
    before = content.get("pre_tokenizer") or {"type": "none"}
    steps = before["pretokenizers"] if before["type"] == "Sequence" else [before]
    levels = [at for at, each in enumerate(steps) if each["type"] == "ByteLevel"]
    if len(levels) != 1 or any(library.token_to_id(each) is None for each in _BYTES):
        return "the tokenizer's ids do not spell all bytes of a text"
    for at, each in enumerate(steps):
        removes = str(each.get("behavior", "")).lower() == "removed"
        if (each["type"] not in _DIVIDE and at != levels[0]) or removes:
            return f"the tokenizer's {each['type']} loses characters of a text"
    if steps[levels[0]].get("add_prefix_space") and levels[0]:
        return "the tokenizer adds spaces within a text"
    return ""
