"""What may stand behind each other in one dataset: as the native writer has it, for datasets wherever they lie."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from penstock import _native
from penstock._base.errors import InvalidArgumentError
from penstock._base.words import excerpt
from penstock._make.stored import Stored, StoredShard

_DIFFER = "shards 00000 and 00001 differ: "  # of what the native half says


def check_together(verb: str, inputs: Sequence[Stored]) -> None:
    """Refuses datasets whose shards cannot be those of one.

    Raises:
        InvalidArgumentError: Mode, layout, fields, codec, columns or features differ.
    """
    first = inputs[0]
    for other in inputs[1:]:
        difference = _difference(first, other)
        if difference:
            hint = (
                ": convert one of them first (`penstock convert --layout`)" if difference.startswith("layout") else ""
            )
            raise InvalidArgumentError(f"cannot {verb} {first.path} and {other.path}: {difference}{hint}")
        if (first.features is None) != (other.features is None):
            has = other if first.features is None else first
            raise InvalidArgumentError(
                f"cannot {verb} {first.path} and {other.path}: {has.path} has features, the other has none"
            )
        if first.features is not None and other.features is not None and first.features[1] != other.features[1]:
            raise InvalidArgumentError(
                f"cannot {verb} {first.path} and {other.path}: the names of their features differ"
            )


def _difference(a: Stored, b: Stored) -> str:
    if not a.shards or not b.shards:
        return ""
    pair = [("00000", a.shards[0].text), ("00001", b.shards[0].text)]
    try:
        _native.stored_manifest("", pair, "null", None, None)
    except InvalidArgumentError as error:
        return str(error.args[0]).partition(_DIFFER)[2] or str(error)
    return ""


def common_tokenizer(verb: str, inputs: Sequence[Stored]) -> Any:
    """The tokenizer that all say; None where one does not say.

    Raises:
        InvalidArgumentError: Two are said.
    """
    said = [(each, each.tokenizer) for each in inputs]
    given = [(each, tokenizer) for each, tokenizer in said if tokenizer is not None]
    for each, tokenizer in given:
        if tokenizer != given[0][1]:
            raise InvalidArgumentError(
                f"cannot {verb}: {each.path} has tokenizer {_text(tokenizer)}, others have {_text(given[0][1])}"
            )
    return given[0][1] if len(given) == len(said) else None


def check_tokenizers(inputs: Sequence[Stored]) -> None:
    """Refuses to append what does not say its tokenizer to what says one: jobs may rely on it.

    Raises:
        InvalidArgumentError: One does not.
    """
    first = inputs[0]
    if first.tokenizer is None:
        return
    for each in inputs[1:]:
        if each.tokenizer is None:
            raise InvalidArgumentError(
                f"cannot append {each.path} to {first.path}: {first.path} has tokenizer {_text(first.tokenizer)}, "
                f"{each.path} does not say its own: write it with tokenizer="
            )


def ends_with(dataset: Stored, added: Sequence[StoredShard]) -> bool:
    """Whether these are the last shards of the dataset, and not the first."""
    if len(added) >= len(dataset.shards):
        return False
    last = dataset.shards[-len(added) :]
    return _fingerprint(last) == _fingerprint(added)


def _fingerprint(shards: Sequence[StoredShard]) -> str:
    texts = [(f"{number:05}", each.text) for number, each in enumerate(shards)]
    return str(json.loads(_native.stored_manifest("", texts, "null", None, None))["fingerprint"])


def _text(tokenizer: Any) -> str:
    return excerpt(json.dumps(tokenizer, ensure_ascii=False, sort_keys=True, separators=(",", ":")))
