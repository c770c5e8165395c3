"""Numbers of documents and windows, as commands print and take them: 2855, 2,855 and 00000/2,855."""

from __future__ import annotations

import re
from typing import Any

from penstock._make.errors import UsageError

_NUMBER = re.compile(r"\d+|\d{1,3}(?:,\d{3})+", re.ASCII)


def number_of(text: str) -> int | None:
    """The number that a text is, also with commas between thousands; None: it is none.

    >>> number_of("2855"), number_of("2,855"), number_of("28,55")
    (2855, 2855, None)
    """
    return int(text.replace(",", "")) if _NUMBER.fullmatch(text) else None


def split_name(text: str) -> tuple[str, int] | None:
    """Shard and entry of a document's name, as `penstock trace` and `penstock show` print it; None: it is none.

    >>> split_name("00000/2,855"), split_name("corpus/")
    (('00000', 2855), None)
    """
    shard, slash, last = text.rpartition("/")
    entry = number_of(last)
    return (shard, entry) if shard and slash and entry is not None else None


def document_number(text: str, dataset: Any, option: str = "") -> int | None:
    """The number among all documents that a number or a name SHARD/ENTRY is of.

    Args:
        text: as a user gave it.
        dataset: whose documents are meant.
        option: which had it, for messages.

    Returns:
        The number; None: the text is neither.

    Raises:
        UsageError: No such shard, or no such document in it.
    """
    number = number_of(text)
    if number is not None:
        return number
    name = split_name(text)
    if name is None:
        return None
    shard, entry = name
    before, said = 0, f"{option} {text}".lstrip()
    for place, each in enumerate(dataset.shards):
        if shard in (each.name, each.name.rsplit("/", 1)[-1], str(place)):
            if entry >= each.spans:
                raise UsageError(f"{said}: shard {each.name} has {each.spans:,} documents, numbered from 0")
            return int(before + entry)
        before += each.spans
    raise UsageError(f"{said}: there is no shard {shard}: give SHARD/ENTRY, as trace prints it, or a document's number")
