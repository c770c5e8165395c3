"""Documents of a token stream, told by the token that ends or begins each of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock import _native
from penstock._errors import InvalidArgumentError

if TYPE_CHECKING:
    from penstock._layout import Bounds

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


def doubt(by: str, token: int, first_has: bool, last_has: bool) -> str | None:
    """What to say of a stream whose first or last document is the token alone; None: nothing."""
    if not (first_has and last_has):
        return None
    which = "first" if by == "end_of_document" else "last"
    return (
        f"the {which} document is token {token:,} alone: an empty one, or is the token the other side of each document "
        f"({other_side(by)})?"
    )


def find(dataset: _native.Dataset, bounds: Bounds) -> _native.Dataset:
    """The stream with its documents; reads every token once, and looks for Ctrl-C meanwhile.

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
    return found.dataset()
