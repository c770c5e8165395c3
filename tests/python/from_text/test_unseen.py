"""Places of characters and tokens that no text before had."""

from __future__ import annotations

import random

import numpy as np
from penstock import _native


def ends_of(documents: list[str]) -> np.ndarray:
    return np.cumsum([len(each.encode()) for each in documents], dtype=np.uint64)


def test_each_character_is_found_where_it_first_is() -> None:
    generator = random.Random(5)
    unseen = _native.Unseen([])
    seen: set[str] = set()
    for _ in range(50):
        documents = ["".join(map(chr, generator.choices(range(0xD800), k=300))) + "a" * 200, "😀" * 9 + "\x7f"]
        wanted, at = [], 0
        for character in "".join(documents):
            if character not in seen:
                wanted.append(at)
            seen.add(character)
            at += len(character.encode())
        assert unseen.scan("".join(documents).encode(), ends_of(documents)).tolist() == wanted


def test_a_token_lies_within_one_document() -> None:
    unseen = _native.Unseen([b"<|end|>"])
    assert unseen.scan(b"<|end|>", np.array([3, 7], np.uint64)).tolist() == [0, 1, 2, 3, 4, 6]
    assert unseen.scan(bytearray(b"<<|end|><|end|>"), np.array([15], np.uint64)).tolist() == [1]
