"""Ids by gigatoken, which is some thirty times faster than tokenizers and is proven by it while it works."""

from __future__ import annotations

import json
import re
import time
from importlib import metadata
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock._base.words import one_line
from penstock._from.engines.caches import Caches
from penstock._from.engines.engine import EngineError, Ids
from penstock._from.engines.proof import Proof

if TYPE_CHECKING:
    from penstock._from.engines.pieces import Pieces
    from penstock._from.engines.reference import Reference

NAME = "gigatoken"

# The begin of an object or what is behind one of its members, and the next one's name.
_MEMBER = re.compile(r'\s*[{,]\s*"(\w+)"\s*:\s*')
_CHANGED = {"added_tokens", "normalizer", "padding", "post_processor", "pre_tokenizer", "truncation"}  # and looked at


class Gigatoken:
    """An engine: one tokenizer of gigatoken, its caches and its proof."""

    def __init__(
        self,
        data: bytes,
        tokens: list[bytes],
        around: tuple[list[int], list[int]],
        reference: Reference,
        caches: Caches,
    ) -> None:
        """Loads the tokenizer.

        Args:
            data: a tokenizer.json, as `for_gigatoken` gives it.
            tokens: all added tokens, as they stand in text.
            around: as of `Engine`.
            reference: what is right.
            caches: those of all engines of this process.

        Raises:
            Exception: The library cannot read it; as it likes.
        """
        self.name = f"{NAME} {metadata.version(NAME)}"
        self.around = around
        self._data, self._tokens, self._reference, self._caches = data, tokens, reference, caches
        self._tokenizer = self._load()
        self._generation = caches.join()
        self._proof = self._new_proof()

    def _new_proof(self) -> Proof:
        return Proof(self._plain, self._reference, self.around, self._tokens, self.name)

    def _load(self) -> Any:
        import gigatoken

        return gigatoken.Tokenizer.from_json(self._data).backend

    @property
    def vocabulary(self) -> dict[int, bytes]:
        """The bytes of each id, added tokens included."""
        return dict(self._tokenizer.vocab)

    def encode(self, texts: Pieces) -> Ids:
        """Ids of texts, which are UTF-8.

        Raises:
            EngineError: They are not those of the reference, or there are none.
        """
        if self._caches.are_full(self._generation):
            self._tokenizer = None
            self._tokenizer = self._load()
            self._generation = self._caches.dropped()
        begin = time.perf_counter()
        ids = self._plain(texts)
        self._proof.check(texts, ids, time.perf_counter() - begin)
        return ids

    def try_on(self, texts: Pieces) -> None:
        """Proves the ids of texts that are not the user's, of which the proof of those knows nothing.

        Raises:
            EngineError: They are not those of the reference.
        """
        self._new_proof().check(texts, self._plain(texts), float("inf"))

    def _plain(self, texts: Pieces) -> Ids:
        """As `encode`, not proven."""
        import awkward as ak

        count = len(texts.ends)
        offsets = np.zeros(count + 1, np.int64)
        offsets[1:] = texts.ends
        characters = ak.contents.NumpyArray(np.frombuffer(texts.data, np.uint8), parameters={"__array__": "byte"})
        strings = ak.contents.ListOffsetArray(
            ak.index.Index64(offsets), characters, parameters={"__array__": "bytestring"}
        )
        try:
            found = self._tokenizer.encode_batch(ak.Array(strings), parallel=False).layout
        except (KeyboardInterrupt, MemoryError):
            raise
        except BaseException as error:  # a panic of Rust is none that Exception covers
            raise EngineError(f"{self.name} cannot encode: {one_line(error)}") from None
        ends = np.asarray(found.offsets.data)
        if len(ends) != count + 1:
            raise EngineError(f"{self.name} gave the ids of {len(ends) - 1:,} texts, not {count:,}")
        return Ids(np.asarray(found.content.data), ends)

    def for_thread(self) -> Gigatoken:
        """Another, with caches and a proof of its own."""
        return Gigatoken(self._data, self._tokens, self.around, self._reference, self._caches)


def for_gigatoken(data: bytes, special_tokens_in_text: bool) -> tuple[bytes, list[bytes]]:
    """A tokenizer.json for gigatoken, and all added tokens of it as they stand in text.

    gigatoken reads every added token in a text as that token: those that are to be text are left out, as is what
    penstock does itself or never does.

    Raises:
        EngineError: 0.10.0 is known to give other ids for it, of texts that the proof need not come across.
    """
    content, model = _without_model(data.decode())
    added = content.get("added_tokens") or []
    _refuse_known(content, added)
    content.update(truncation=None, padding=None, post_processor=None)
    if not special_tokens_in_text:
        content["added_tokens"] = [each for each in added if not each.get("special")]
    head = json.dumps(content, ensure_ascii=False)
    text = f'{head[:-1]}, "model"{model}' if model else head
    return text.encode(), [str(each["content"]).encode() for each in added]


def _without_model(text: str) -> tuple[dict[str, Any], str]:
    """A tokenizer.json's members before its model, and what stands behind that word; or all members, and "".

    The model is nearly all of the file and the library writes it last, so it need not be taken apart and put together.
    """
    head, decoder, at = dict[str, Any](), json.JSONDecoder(), 0
    while found := _MEMBER.match(text, at):
        if found[1] == "model":
            return (head, text[found.end(1) + 1 :]) if head.keys() >= _CHANGED else (json.loads(text), "")
        head[found[1]], at = decoder.raw_decode(text, found.end())
    return json.loads(text), ""


def _refuse_known(content: dict[str, Any], added: list[dict[str, Any]]) -> None:
    if any(each.get("single_word") for each in added):
        raise EngineError(f"{NAME} finds added tokens with single_word within words")
    if content.get("normalizer") and any(each.get("normalized") or not each["content"].isascii() for each in added):
        raise EngineError(f"{NAME} does not find added tokens in what the normalizer makes of a text")
    pre_tokenizer = content.get("pre_tokenizer") or {}
    parts = pre_tokenizer.get("pretokenizers") or [pre_tokenizer]
    if len(parts) == 1 and parts[0].get("type") == "ByteLevel" and parts[0].get("use_regex") is False:
        raise EngineError(f"{NAME} splits texts that the tokenizer does not split")
