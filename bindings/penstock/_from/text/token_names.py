"""Words about tokens that a tokenizer has or lacks, and about files that are none: what would be right."""

from __future__ import annotations

import difflib
import re
from pathlib import Path
from typing import Any

from penstock._base.words import quoted

_HUB_NAME = re.compile(r"[\w.-]+(/[\w.-]+)?")
_MOST_DIGITS = 9  # of an id


def instead_of(token: str, tokenizer: Any) -> str:
    """What to name instead of a token that the tokenizer lacks."""
    by_id = token_of_id(token, tokenizer)
    hints = [f"tokens are named by their text, and id {token} is {by_id};"] if by_id else []
    # What ends or begins a document nearly always is a special token: those first.
    added = tokenizer.get_added_tokens_decoder()
    special = [each.content for _, each in sorted(added.items()) if each.special]
    close = difflib.get_close_matches(token, special, 1, 0.5)
    close = close or ([] if special else difflib.get_close_matches(token, tokenizer.get_vocab(), 1, 0.5))
    hints += [f'did you mean "{close[0]}"?'] if close else []
    hints += [f"its special tokens are {quoted(special)}"] if special else []
    return " ".join(hints) or "it has no special tokens; name one of its vocabulary"


def token_of_id(digits: str, tokenizer: Any) -> str:
    """The token, quoted, whose id somebody may mean by digits; empty where there is none."""
    if not (digits.isdecimal() and digits.isascii() and len(digits) <= _MOST_DIGITS):
        return ""
    token = tokenizer.id_to_token(int(digits))
    return "" if token is None else f'"{token}"'


def note_on_digits(option: str, token: str, found: int, tokenizer: Any) -> str:
    """The id that a token of digits has, for somebody who meant the id of these digits; empty where they are it."""
    if not token.isdecimal() or found == int(token):
        return ""
    meant = token_of_id(token, tokenizer)
    other = f", not id {token}, which is {meant}" if meant else ""
    return f'{option} {token} is the token whose text is "{token}", id {found:,}{other}'


def instead_of_file(file: str) -> str:
    """What to give instead of a folder, or of a name that is no file; empty where nothing is known."""
    path = Path(file).expanduser()
    if path.is_dir():
        inside = path / "tokenizer.json"
        return f": give {inside}" if inside.is_file() else ": there is no tokenizer.json in it"
    return hub_advice(file, "DIR/tokenizer.json")


def hub_advice(file: str, result: str) -> str:
    """How to get `result` of a tokenizer of the Hub; empty where the name is none of the Hub, or something is there."""
    path = Path(file).expanduser()
    if path.exists() or path.suffix == ".json" or not _HUB_NAME.fullmatch(file):
        return ""
    return (
        f": if it is a name of the Hub, save it first, in Python: transformers.AutoTokenizer.from_pretrained({file!r})"
        f".save_pretrained('DIR'), and give {result}"
    )
