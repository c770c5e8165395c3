"""Documents with the same ids in the same order, found by a hash of each and compared in full before they are told."""

from __future__ import annotations

import time
from collections.abc import Generator
from typing import Any

import numpy as np
import numpy.typing as npt

from penstock._base.errors import InvalidArgumentError
from penstock._data.duplicates import groups as grouped
from penstock._data.duplicates import sums
from penstock._data.reading import document_pieces
from penstock._view.exhibit import Exhibit
from penstock._view.rows import Wanted, numbers

MOST_DOCUMENTS = 20_000_000
"""Documents that are compared: 16 bytes of each are held in memory."""
_MOST_GROUPS = 100
_MOST_COMPARED = 1000  # documents of a group, against its first one
_MOST_LISTED = 20
_LONGEST = 1 << 22  # records of a document that is compared in full
_SECONDS = 0.2


def duplicates(exhibit: Exhibit, wanted: Wanted) -> Generator[dict[str, Any]]:
    """{"progress": …} and at the end {"groups": [{documents, count, length}], …}, the largest groups first.

    Raises:
        InvalidArgumentError: no documents of ids, or too many.
    """
    field = exhibit.decoder.field
    if field is None or exhibit.facts["no_twins"]:
        raise InvalidArgumentError(exhibit.facts["no_twins"])
    chosen = numbers(exhibit, wanted.chosen)
    if len(chosen) > MOST_DOCUMENTS:
        raise InvalidArgumentError(
            f"{len(chosen):,} documents: at most {MOST_DOCUMENTS:,} are compared: choose some by a condition"
        )
    return _found(exhibit, field, chosen)


def _found(exhibit: Exhibit, field: str, chosen: npt.NDArray[np.int64] | range) -> Generator[dict[str, Any]]:
    begun = last = time.monotonic()
    hashes = np.zeros(len(chosen), np.uint64)
    lengths = np.zeros(len(chosen), np.int64)
    tokens = 0
    for piece in document_pieces(exhibit.dataset, field, chosen, 0, 0, exhibit.first_record):
        assert piece.documents is not None
        rows = slice(piece.first, piece.first + len(piece.documents))
        hashes[rows] += sums(piece.tokens, piece.offsets, piece.begin)
        lengths[rows] += np.diff(piece.offsets)
        tokens += len(piece.tokens)
        now = time.monotonic()
        if now - last >= _SECONDS:
            last = now
            yield {"progress": {"done": piece.done, "of": len(chosen), "noun": "documents", "tokens": tokens,
                                "seconds": now - begun}}  # fmt: skip
    groups, told = _groups(exhibit, field, chosen, hashes, lengths)
    yield {"groups": groups, **told, "documents": len(chosen), "seconds": time.monotonic() - begun}


def _groups(
    exhibit: Exhibit,
    field: str,
    chosen: npt.NDArray[np.int64] | range,
    hashes: npt.NDArray[np.uint64],
    lengths: npt.NDArray[np.int64],
) -> tuple[list[dict[str, Any]], dict[str, int]]:
    """The largest groups of equal documents; how many there are, and documents beside the first of each."""
    empty = int((lengths == 0).sum())
    order, begins, ends = grouped(hashes, lengths)
    largest = np.argsort(begins - ends, kind="stable")
    groups = []
    for at in largest[:_MOST_GROUPS].tolist():
        members = order[begins[at] : ends[at]]
        first = members[:_MOST_COMPARED]
        length = int(lengths[first[0]])
        equal = _equal(exhibit, field, first if isinstance(chosen, range) else chosen[first], length)
        if len(equal) > 1:
            groups.append({"documents": equal[:_MOST_LISTED].tolist(), "count": len(members), "length": length})
    told = {"count": len(largest), "extra": int((ends - begins - 1).sum()), "empty": empty}
    return groups, told


def _equal(exhibit: Exhibit, field: str, documents: npt.NDArray[np.int64], length: int) -> npt.NDArray[np.int64]:
    """Those of the documents whose records are those of the first."""
    if length > _LONGEST:
        return documents
    step = max(_LONGEST // max(length, 1), 1)
    view = exhibit.dataset.documents(metadata=False)
    first = view.read(documents[:1])[field]
    found = []
    for at in range(0, len(documents), step):
        some = documents[at : at + step]
        rows = view.read(some)[field].reshape(len(some), length)
        found.append(some[(rows == first).all(axis=1)])
    return np.concatenate(found)
