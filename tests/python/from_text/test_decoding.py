"""The text that ids spell: whatever tokenizers make of a text, its ids are no error."""

from __future__ import annotations

import random
from typing import Any

import pytest
from penstock._from.text.decoding import IdDecoder
from text_corpus import END
from tokenizers import AddedToken, Tokenizer, normalizers, pre_tokenizers

NORMALIZERS = {
    "none": None,
    "nfc": normalizers.NFC(),
    "nfkd": normalizers.NFKD(),
    "lower": normalizers.Lowercase(),
    "fold": normalizers.Sequence([normalizers.NFKC(), normalizers.Lowercase()]),
    "accents": normalizers.Sequence([normalizers.NFD(), normalizers.StripAccents()]),
    "prefix": normalizers.Prepend("▁"),
}
ADDED: dict[str, list[Any]] = {
    "none": [],
    "plain": ["<x>", "éé", "§"],
    "greedy": [AddedToken("St", rstrip=True, single_word=True), AddedToken("stands", lstrip=True)],
    "bytes": [AddedToken("é"), AddedToken("Å", normalized=False), AddedToken("  ", normalized=False)],
}
PARTS = [
    END,
    "<|begin|>",
    "＜|begin|＞",
    "<x>",
    "＜x＞",
    "é",
    "e\u0301",
    "\u0301",
    "éé",
    "Ａ",
    "ﬁ",
    "İ",
    "ẞ",
    "ς",
    "ΑΣ",
    "§",
]
PARTS += ["stands", "St", "각", "\u1100\u1161", "\u0345\u0313", "🚰", "Å", " ", "  ", "\n"]


@pytest.mark.parametrize("added", ADDED)
@pytest.mark.parametrize("normalizer", NORMALIZERS)
def test_right_ids_are_never_a_difference(tokenizer_file: str, normalizer: str, added: str) -> None:
    draw = random.Random(f"{normalizer} {added}")
    agreed = 0
    for level in (pre_tokenizers.ByteLevel(add_prefix_space=False), pre_tokenizers.ByteLevel(add_prefix_space=True)):
        tokenizer = Tokenizer.from_file(tokenizer_file)
        tokenizer.pre_tokenizer = level
        if NORMALIZERS[normalizer] is not None:
            tokenizer.normalizer = NORMALIZERS[normalizer]
        tokenizer.add_tokens(ADDED[added])
        decoder = IdDecoder(tokenizer, tokenizer.to_str().encode())
        for number in range(300):
            tokenizer.encode_special_tokens = number % 2 == 0
            text = "".join(draw.choice([*PARTS, chr(draw.randrange(0xD800))]) for _ in range(8))
            ids = tokenizer.encode(text).ids
            found = decoder.decode(ids)
            again = None if found.text is None else tokenizer.encode(found.text).ids
            assert again == ids or found.unsure or decoder.unsure_of(ids, again or []), (text, found.text)
            agreed += again == ids
    assert agreed > 0 or normalizer == "prefix"
