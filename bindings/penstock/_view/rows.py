"""Rows of the table of documents: chosen by conditions, sorted by a column, a page at a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from penstock import _native
from penstock._base.errors import InvalidArgumentError
from penstock._view.records import cell_text, ids_text, is_cells, pairs_of
from penstock._view.sorting import order_of

if TYPE_CHECKING:
    from penstock._view.exhibit import Exhibit

MOST_ROWS = 200  # of one page
MOST_SORTED = 1 << 26
"""Documents that are sorted or chosen by their length: their numbers and lengths are held in memory."""
_SHOWN = 48  # records of a document whose text stands in its row
_LONGEST = 200  # characters of a value in a row
_GENES = 12


@dataclass(frozen=True)
class Wanted:
    """Which documents, in which order.

    Attributes:
        where: a condition on columns; empty: all documents.
        shortest: records that a document has at least.
        longest: records that it has at most; None: any number.
        sort: "document", "length" or "column."; after the dot the name of a column.
        descending: the largest first.
    """

    where: str = ""
    shortest: int = 0
    longest: int | None = None
    sort: str = "document"
    descending: bool = False

    @property
    def chosen(self) -> Wanted:
        """The same documents in their own order."""
        return Wanted(self.where, self.shortest, self.longest)


def numbers(exhibit: Exhibit, wanted: Wanted) -> npt.NDArray[np.int64] | range:
    """The documents that are wanted, in the order that is wanted; kept for the next page.

    Raises:
        InvalidArgumentError: no condition on this dataset, no such column, too many documents to sort.
    """
    return exhibit.kept(("numbers", wanted), lambda: _numbers(exhibit, wanted))


def _numbers(exhibit: Exhibit, wanted: Wanted) -> npt.NDArray[np.int64] | range:
    if wanted.sort != "document" or wanted.descending:
        return _sorted(exhibit, wanted)
    exhibit.dataset.documents(metadata=False)  # says why there are none
    count = exhibit.dataset.spans
    chosen: npt.NDArray[np.int64] | range = range(count)
    if wanted.where.strip():
        chosen = exhibit.dataset.where(wanted.where).numbers
    if wanted.shortest or wanted.longest is not None:
        lengths = _at(exhibit.lengths, chosen)
        most = np.iinfo(np.int64).max if wanted.longest is None else wanted.longest
        fits = np.flatnonzero((lengths >= wanted.shortest) & (lengths <= most))
        chosen = fits if isinstance(chosen, range) else chosen[fits]
    return chosen


def _sorted(exhibit: Exhibit, wanted: Wanted) -> npt.NDArray[np.int64] | range:
    chosen = numbers(exhibit, wanted.chosen)
    what, _, name = wanted.sort.partition(".")
    if what == "document":
        return chosen[::-1]
    if len(chosen) > MOST_SORTED:
        raise InvalidArgumentError(
            f"{len(chosen):,} documents: at most {MOST_SORTED:,} are sorted: choose some by a condition first"
        )
    if what == "length":
        values = _at(exhibit.lengths, chosen)
    elif what == "column" and name in exhibit.dataset.columns:
        column = exhibit.dataset.columns[name]
        if len(column.shape) > 1:
            raise InvalidArgumentError(f"column {name:.80}: its values are arrays, which have no order")
        values = column[:] if isinstance(chosen, range) else column[chosen]
        if column._categories is not None:
            values = _ranks(values, column._categories, wanted.descending)
    else:
        raise InvalidArgumentError(f'sort={wanted.sort!r:.80}: must be "document", "length" or "column.NAME"')
    order = order_of(values, wanted.descending)
    return order if isinstance(chosen, range) else chosen[order]


def _ranks(codes: npt.NDArray[Any], categories: tuple[str, ...], descending: bool) -> npt.NDArray[np.int32]:
    """Places of categories among their names in order; documents without one come last."""
    ranks = np.empty(len(categories) + 1, np.int32)
    ranks[np.array(sorted(range(len(categories)), key=categories.__getitem__), np.int64)] = np.arange(len(categories))
    ranks[-1] = -1 if descending else len(categories)
    found: npt.NDArray[np.int32] = ranks[codes]
    return found


def _at(values: npt.NDArray[Any], which: npt.NDArray[np.int64] | range) -> npt.NDArray[Any]:
    return values if isinstance(which, range) and len(which) == len(values) else values[np.asarray(which)]


def page(exhibit: Exhibit, wanted: Wanted, first: int, count: int) -> dict[str, Any]:
    """Some rows of the table.

    Returns:
        {"count": documents that are wanted, "documents": of the dataset, "first", "rows": [{document, length, columns,
        metadata, text}]}.
    """
    if not 1 <= count <= MOST_ROWS:
        raise InvalidArgumentError(f"count={count:,}: a page has 1 to {MOST_ROWS} rows")
    found = numbers(exhibit, wanted)
    some = np.asarray(found[first : first + count], np.int64)
    rows = _rows(exhibit, some) if len(some) else []
    return {"count": len(found), "documents": exhibit.dataset.spans, "first": first, "rows": rows}


def neighbours(exhibit: Exhibit, wanted: Wanted, document: int) -> dict[str, int | None]:
    """The documents beside one in the order of the table.

    Returns:
        {"count": documents that are wanted, "place": of this one among them, "before", "after"}; None where there is
        none.
    """
    found = numbers(exhibit, wanted)
    place = _place_of(found, document, wanted)
    before = after = None
    if place is not None:
        before = int(found[place - 1]) if place else None
        after = int(found[place + 1]) if place + 1 < len(found) else None
    return {"count": len(found), "place": place, "before": before, "after": after}


def _place_of(found: npt.NDArray[np.int64] | range, document: int, wanted: Wanted) -> int | None:
    if isinstance(found, range):
        return found.index(document) if document in found else None
    if document > np.iinfo(np.int64).max:
        return None
    if wanted == wanted.chosen:  # ascending
        place = int(np.searchsorted(found, document))
        return place if place < len(found) and found[place] == document else None
    places = np.flatnonzero(found == document)
    return int(places[0]) if len(places) else None


def _rows(exhibit: Exhibit, which: npt.NDArray[np.int64]) -> list[dict[str, Any]]:
    dataset = exhibit.dataset
    names = list(dataset.columns)
    view = dataset.documents(columns=names)
    is_opaque = dataset.mode == "opaque"
    is_ragged = is_opaque or view._source.fields_apart
    batch = (view if is_ragged else view.padded(to=_SHOWN)).read(which)
    lengths = None if is_opaque else lengths_of(dataset, which)
    held = () if dataset.dtype is None else dataset.dtype.names or ()
    fields = {} if is_opaque else {name: batch[name] for name in held if name in batch}
    columns = batch.columns if names else {}
    offsets = batch.offsets if is_ragged and not is_opaque else None
    rows = []
    for at, number in enumerate(which.tolist()):
        length = None if lengths is None else int(lengths[at])
        mine = {
            name: values[offsets[at] : offsets[at + 1]]
            if offsets is not None
            else values[at][: min(length or 0, _SHOWN)]
            for name, values in fields.items()
        }
        rows.append(
            {
                "document": number,
                "length": length,
                "columns": [cell_text(dataset.columns[name], values[at], _LONGEST) for name, values in columns.items()],
                "metadata": pairs_of(
                    batch.spans.of_row(at)[0], {name: each[at] for name, each in columns.items()}, dataset, _LONGEST
                ),
                "text": _beginning(exhibit, mine, length or 0),
            }
        )
    return rows


def lengths_of(dataset: Any, which: npt.NDArray[np.int64]) -> npt.NDArray[np.uint64]:
    """Records of some documents, uint64; those that follow each other are looked up together."""
    cuts = np.flatnonzero(np.diff(which) != 1) + 1
    runs = [run for run in np.split(which, cuts) if len(run)]
    found = [_native.document_lengths(dataset._native, int(run[0]), len(run)) for run in runs]
    return np.concatenate(found) if found else np.zeros(0, np.uint64)


def begun(text: str, is_all: bool) -> str:
    """A text that begins a longer one, unless `is_all`: without half a character at its end, and with … there."""
    return text if is_all else text.rstrip("\ufffd") + "…"


def _beginning(exhibit: Exhibit, fields: dict[str, Any], length: int) -> str:
    """The text of the first records of a document of `length`, where they are in `fields`."""
    if not fields:
        return ""
    if is_cells(exhibit.dataset):
        names = exhibit.names
        genes = fields["gene"][:_GENES].tolist()
        return begun(", ".join(names[e] if e < len(names) else str(e) for e in genes), len(genes) == length)
    field = exhibit.decoder.field
    if field is None:
        return ""
    text = exhibit.decoder.text(fields) if exhibit.decoder.decodes else ids_text(fields[field])
    return begun(text[:_LONGEST], len(fields[field]) == length and len(text) <= _LONGEST)
