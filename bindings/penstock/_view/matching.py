"""The document of another dataset that has the same value of a column."""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock._base.errors import InvalidArgumentError
from penstock._view.exhibit import Exhibit
from penstock._view.records import cell_text
from penstock._view.rows import MOST_SORTED

_LONGEST = 200  # characters of the value that is told


def match(exhibit: Exhibit, other: Exhibit, name: str, document: int) -> dict[str, Any]:
    """The first document of `other` whose column says what it says of a document of `exhibit`.

    Returns:
        {"value": text, "document": number or None, "count": documents that have the value}; a missing value is that of
        no other document.

    Raises:
        InvalidArgumentError: no such document, or no column of this name and of the same kind in both.
    """
    column, theirs = _column(exhibit, name), _column(other, name)
    is_category = column._categories is not None
    if is_category != (theirs._categories is not None):
        raise InvalidArgumentError(f"column {name:.80}: texts in one dataset, numbers in the other")
    if len(theirs) > MOST_SORTED:
        raise InvalidArgumentError(f"{len(theirs):,} documents: at most {MOST_SORTED:,} are matched")
    if document >= len(column):
        raise InvalidArgumentError(f"there is no document {document:,}: they are from 0 to {len(column) - 1:,}")
    value = column[document]
    wanted: Any = value
    if is_category:
        text = column._categories[int(value)] if value >= 0 else None
        wanted = theirs._categories.index(text) if text in theirs._categories else None
    places = np.zeros(0, np.int64)
    if wanted is not None:
        places = np.flatnonzero(other.kept(("column", name), lambda: theirs[:]) == wanted)
    first = int(places[0]) if len(places) else None
    return {"value": cell_text(column, value, _LONGEST), "document": first, "count": len(places)}


def _column(exhibit: Exhibit, name: str) -> Any:
    if name not in exhibit.dataset.columns:
        raise InvalidArgumentError(f"{exhibit.facts['path']}: there is no column {name:.80}")
    column = exhibit.dataset.columns[name]
    if len(column.shape) > 1 or exhibit.facts["no_documents"]:
        raise InvalidArgumentError(f"column {name:.80}: its values are arrays or no document's, which are not matched")
    return column
