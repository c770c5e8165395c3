"""The bytes that each id of a tokenizer stands for: for token boundaries, and to search text without decoding it."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from penstock._from.text.decoding import spelled

_TOGETHER = 8  # ids that may make a character
_BYTE = re.compile(r"<0x([0-9A-Fa-f]{2})>")


class Spelling:
    """What ids stand for; any thread.

    Attributes:
        special: ids that are no text: ends of documents, masks, roles.
    """

    def __init__(self, library: Any, data: bytes) -> None:
        """Of a tokenizer.json, `data`, and what the library tokenizers made of it."""
        content = json.loads(data)
        added = library.get_added_tokens_decoder()
        self.special = frozenset(number for number, each in added.items() if each.special)
        steps = json.dumps([content.get("pre_tokenizer"), content.get("decoder")])
        is_bytes = '"ByteLevel"' in steps
        decoder = content.get("decoder") or {}
        prefix = decoder.get("prefix", "##") if decoder.get("type") == "WordPiece" else None
        words: dict[int, bytes] = {}
        for token, number in library.get_vocab(with_added_tokens=False).items():
            words[number] = _bytes_of(token, is_bytes, prefix)
        words |= {number: each.content.encode() for number, each in added.items()}
        self._count = max(words, default=-1) + 1
        self._words = [words.get(number, b"") for number in range(self._count + 1)]  # the last one: of all ids beyond
        self._lengths = np.array(list(map(len, self._words)), np.int64)

    def word(self, number: int) -> bytes | None:
        """The bytes of an id; None: the tokenizer does not have it."""
        return self._words[number] if 0 <= number < self._count else None

    def spell(self, ids: npt.NDArray[Any]) -> tuple[bytes, npt.NDArray[np.int64]]:
        """The bytes of ids end to end, and where each one's end: int64 [ids]."""
        known = np.minimum(ids.astype(np.int64), self._count)
        return b"".join(map(self._words.__getitem__, known.tolist())), np.cumsum(self._lengths[known])

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """The text of each id; unknown ones stand as ‹#123›.

        Where only several ids make a character, the first has it and the others stand as ‥; bytes that are no text
        stand as ‹E6 97›.
        """
        found: list[str] = []
        while len(found) < len(ids):
            at = len(found)
            word = self.word(ids[at])
            if word is None:
                found.append(f"‹#{ids[at]}›")
                continue
            for end in range(at + 1, min(at + _TOGETHER, len(ids)) + 1):
                try:
                    text = b"".join(self.word(each) or b"" for each in ids[at:end]).decode()
                except UnicodeDecodeError as error:
                    if error.reason == "unexpected end of data":
                        continue
                    break
                found += [text, *["‥"] * (end - at - 1)]
                break
            if len(found) == at:
                found.append(f"‹{word.hex(' ').upper()}›")
        return found

    def piece(self, number: int) -> str:
        """The text of an id that stands alone."""
        return self.pieces([number])[0]


def _bytes_of(token: str, is_bytes: bool, prefix: str | None) -> bytes:
    if is_bytes:
        found = spelled(token)
        return token.encode() if found is None else found
    if byte := _BYTE.fullmatch(token):
        return bytes([int(byte[1], 16)])
    if prefix is not None:
        return (token.removeprefix(prefix) if token.startswith(prefix) else f" {token}").encode()
    return token.replace("▁", " ").encode()
