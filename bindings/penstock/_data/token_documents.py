"""Documents of a token stream, told by the token that ends or begins each of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from penstock import _native
from penstock._base.errors import InvalidArgumentError
from penstock._base.words import counted
from penstock._places.remote import shown

if TYPE_CHECKING:
    from penstock._data.bounds import Bounds

SIDES = ("end_of_document", "begin_of_document")
_STEP_RECORDS = 1 << 26  # between two looks at Ctrl-C


def other_side(by: str) -> str:
    """The side of a document that `by` is not."""
    return SIDES[1 - SIDES.index(by)]


def refuse_other_side(name: str, by: str, token: int, first_has: bool, last_has: bool) -> None:
    """Refuses the wrong one of end_of_document and begin_of_document, which shifts every document by a token.

    A stream that begins with the token that is to end documents has an empty document first. Where it does not end with
    that token either, two things speak for the other side.

    Args:
        name: of the stream, for the message.
        by: which of the two was given.
        token: the token.
        first_has: whether it is the stream's first token.
        last_has: whether it is the last one.

    Raises:
        InvalidArgumentError: documents seem to lie on the other side of the token.
    """
    ends = by == "end_of_document"
    if (first_has, last_has) != (ends, not ends):
        return
    seen, wanted = ("begins", "begin") if ends else ("ends", "end")
    where = "first" if ends else "last"
    raise InvalidArgumentError(
        f"{name} {seen} with token {token:,} and does not {'end' if ends else 'begin'} with it, so its documents "
        f"{wanted} with it: give {other_side(by)}={token}, not {by}, which would shift each document by one token (a "
        f"corpus whose {where} document is truly empty: leave its {where} token out)"
    )


def doubt(by: str, token: int, files: Sequence[str]) -> str | None:
    """Words for files that begin with the token that is to end documents, or end with the one that is to begin them.

    Args:
        by: which of the two was given.
        token: the token.
        files: names of these files.

    Returns:
        A note; None: there are none.
    """
    if not files:
        return None
    seen, which, part = ("begins", "first", "end") if by == "end_of_document" else ("ends", "last", "beginning")
    more = "" if len(files) == 1 else f" (and {counted(len(files) - 1, 'other file')} so)"
    return (
        f"{files[0]} {seen} with token {token:,}{more}: the {which} document is token {token:,} alone: an empty one, "
        f"the {part} of one that was cut, or is the token the other side of each document ({other_side(by)})?"
    )


def untold(by: str, token: int) -> str:
    """Words for a dataset none of whose files begins or ends with the token."""
    said, other = ("end", "begin") if by == "end_of_document" else ("begin", "end")
    return (
        f"no input begins or ends with token {token:,}, so nothing tells its side: does it {said} documents, as {by} "
        f"says, or {other} them ({other_side(by)})?"
    )


def shard_names(dataset: _native.Dataset, numbers: Sequence[int]) -> list[str]:
    """Names of shards as messages have them: paths and addresses of others' files."""
    if not numbers:
        return []
    shards = dataset.shards()
    names = [str(shards[number][0]) for number in numbers]
    if dataset.kind == "penstock":
        return [f"{dataset.path}: shard {each}" for each in names]
    return [shown(each) for each in names]


def find(dataset: _native.Dataset, bounds: Bounds) -> tuple[_native.Dataset, str | None]:
    """The stream with its documents, and what to say of the token's side; reads every token once.

    Ctrl-C is looked for meanwhile.

    Raises:
        InvalidArgumentError: it has documents of its own; none of its tokens, or the other side of documents.
    """
    found = _native.TokenDocuments(dataset, bounds.by, bounds.field, bounds.value)
    while found.step(_STEP_RECORDS):
        pass
    if found.found == 0:
        raise InvalidArgumentError(
            f"{dataset.path}: token {bounds.value:,} occurs nowhere, so it tells no documents: is {bounds.by} another?"
        )
    refuse_other_side(dataset.path, bounds.by, bounds.value, found.first_has, found.last_has)
    return found.dataset(), doubt(bounds.by, bounds.value, shard_names(dataset, found.doubtful))
