"""Documents that repeat another one: found by a hash of each, and compared in full."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from penstock import _native
from penstock._base.errors import InvalidArgumentError
from penstock._base.resources import memory_bytes
from penstock._data.reading import document_pieces

if TYPE_CHECKING:
    from penstock._data.dataset import Dataset

_COMPARED = 1 << 22  # records that are compared at a time
_ODD = np.uint64(0x9E3779B97F4A7C15)
_MULTIPLIER = np.uint64(0xD6E8FEB86659FD93)


def duplicates(
    dataset: Dataset,
    *,
    where: str | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> npt.NDArray[np.int64]:
    """The documents that repeat an earlier one: equal ids in the same order, whatever their metadata and columns say.

    All records are read once, and documents with the same hash are compared in full. 16 bytes of each document are held
    in memory. Documents without records are no duplicates. `penstock query --duplicates` is this function.

    Args:
        dataset: an opened dataset with documents.
        where: a condition on columns; documents that it does not choose are neither looked at nor given.
        progress: called with (documents done, in all); may raise to stop.

    Returns:
        Numbers of documents, int64 [duplicates], ascending: of equal documents all but the first, for
        `penstock.convert(…, without=…)`.

    Raises:
        InvalidArgumentError: there are no documents, or their records have no field of ids; cells.

    Examples:
        >>> import os, penstock, tempfile
        >>> folder = tempfile.mkdtemp()
        >>> with penstock.Writer(os.path.join(folder, "corpus"), {"token": "u2"}) as writer:
        ...     for ids in [5, 6, 7], [8, 9], [5, 6, 7], [], [8, 9], [9, 8]:
        ...         writer.append(token=ids)
        >>> again = penstock.duplicates(penstock.open(os.path.join(folder, "corpus")))
        >>> again.tolist()
        [2, 4]
        >>> _ = penstock.convert(os.path.join(folder, "corpus"), os.path.join(folder, "unique"), without=again)
        >>> len(penstock.open(os.path.join(folder, "unique")).documents())
        4
    """
    view = dataset.documents(metadata=False)
    field = _field_of(dataset)
    chosen: Any = range(len(view)) if where is None else dataset.where(where).numbers
    hashes, lengths = np.zeros(len(chosen), np.uint64), np.zeros(len(chosen), np.int64)
    for piece in document_pieces(dataset, field, chosen, 0, 0, lambda number: _first_record(view, number)):
        assert piece.documents is not None
        rows = slice(piece.first, piece.first + len(piece.documents))
        hashes[rows] += sums(piece.tokens, piece.offsets, piece.begin)
        lengths[rows] += np.diff(piece.offsets)
        if progress is not None:
            progress(piece.done, len(chosen))
    order, begins, ends = groups(hashes, lengths)
    documents = order if where is None else chosen[order]
    found = [np.zeros(0, np.int64)]
    for first, last in _together((ends - begins) * lengths[order[begins]]):
        members = [documents[begin:end] for begin, end in zip(begins[first:last], ends[first:last], strict=True)]
        found += _repeats(view, field, members, lengths[order[begins[first:last]]])
    return np.sort(np.concatenate(found))


def sums(tokens: npt.NDArray[Any], offsets: npt.NDArray[np.int64], begin: int) -> npt.NDArray[np.uint64]:
    """A hash of each document, uint64: a sum over its tokens and their places, so that parts of one add up."""
    starts = offsets[:-1]
    places = np.arange(begin, begin + len(tokens), dtype=np.int64) - np.repeat(starts, np.diff(offsets))
    mixed = (tokens.astype(np.uint64) + np.uint64(1)) * _MULTIPLIER + places.astype(np.uint64) * _ODD
    mixed ^= mixed >> np.uint64(29)
    mixed *= _MULTIPLIER
    mixed ^= mixed >> np.uint64(32)
    totals = np.concatenate([np.zeros(1, np.uint64), np.cumsum(mixed)])  # wraps, and so do differences
    found: npt.NDArray[np.uint64] = totals[offsets[1:]] - totals[starts]
    return found


def groups(
    hashes: npt.NDArray[np.uint64], lengths: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Rows with the same hash and length, above 0: (their order, begins, ends), group g being order[begins[g]:ends[g]].

    Rows of a group ascend.
    """
    filled = np.flatnonzero(lengths)
    order = filled[np.lexsort((lengths[filled], hashes[filled]))]  # stable: the first of a group is its least number
    same = (hashes[order[1:]] == hashes[order[:-1]]) & (lengths[order[1:]] == lengths[order[:-1]])
    edges = np.flatnonzero(np.diff(np.concatenate([[False], same, [False]]).astype(np.int8)))
    return order, edges[::2], edges[1::2] + 1


def _together(records: npt.NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """Groups [first, last) whose records are read at once."""
    totals = np.cumsum(records)
    first = 0
    while first < len(records):
        before = int(totals[first] - records[first])
        last = max(int(np.searchsorted(totals, before + _COMPARED, "right")), first + 1)
        yield first, last
        first = last


def _repeats(
    view: Any, field: str, members: list[npt.NDArray[np.int64]], lengths: npt.NDArray[np.int64]
) -> list[npt.NDArray[np.int64]]:
    """Of each group, the documents beside the first whose records are those of an earlier one."""
    if len(members) == 1 and len(members[0]) * int(lengths[0]) > _COMPARED:
        return _one_by_one(view, field, members[0], int(lengths[0]))
    sizes = np.array([len(each) for each in members])
    of_row = np.repeat(lengths, sizes)
    tokens = view.read(np.concatenate(members))[field]
    begins = np.cumsum(of_row) - of_row
    rows = np.cumsum(sizes) - sizes
    back = begins - np.repeat(begins[rows], sizes)  # from a document to the first one of its group
    same = tokens == tokens[np.arange(len(tokens)) - np.repeat(back, of_row)]
    equal = np.logical_and.reduceat(same, begins)
    found = []
    for group, row, length in zip(members, rows.tolist(), lengths.tolist(), strict=True):
        is_one = bool(equal[row : row + len(group)].all())
        found += [group[1:]] if is_one else _one_by_one(view, field, group, length)
    return found


def _one_by_one(view: Any, field: str, group: npt.NDArray[np.int64], length: int) -> list[npt.NDArray[np.int64]]:
    """As `_repeats`, of a group that is large, or that a hash took together and that is not one."""
    step = max(_COMPARED // length, 1)
    found = []
    left = group
    while len(left) > 1:
        first = view.read(left[:1])[field]
        others = []
        for at in range(1, len(left), step):
            some = left[at : at + step]
            same = (view.read(some)[field].reshape(len(some), length) == first).all(axis=1)
            found.append(some[same])
            others.append(some[~same])
        left = np.concatenate(others)
    return found


def _field_of(dataset: Dataset) -> str:
    if dataset._has_cells:
        raise InvalidArgumentError(
            f"{dataset.path}: cells are not compared: equal genes may have other counts; documents of ids are"
        )
    dtype = dataset.dtype
    names = dtype.names or () if dtype is not None else ()
    ids = [name for name in names if dtype is not None and dtype[name].kind in "iu" and dtype[name].shape == ()]
    if not ids:
        raise InvalidArgumentError(f"{dataset.path}: its records have no field of ids to compare")
    return "token" if "token" in ids else ids[0]


def _first_record(view: Any, document: int) -> int:
    at, zero = np.array([document]), np.zeros(1, np.int64)
    found = _native.locate_rows([view._source], zero, at, zero, 0, memory_bytes())
    return int(found.first_records()[0])
