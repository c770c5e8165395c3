"""The token that ends or begins documents, checked against the records that have it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from penstock._base.arguments import index
from penstock._base.errors import InvalidArgumentError
from penstock._data.fields import leaves, token_leaf


class Bounds(NamedTuple):
    """Where the documents of a row begin; see DocumentBounds in core/columns/column_spec.h."""

    by: str = "spans"  # or "end_of_document" or "begin_of_document": the `value` of `field`
    field: str = ""
    value: int = 0


def document_bounds(dtype: np.dtype[Any] | None, end: int | None, begin: int | None) -> Bounds | None:
    """The token that bounds documents of records of `dtype`; None where none is given.

    Raises:
        InvalidArgumentError: both ends, no field of tokens, a value that it cannot hold.
    """
    if end is None and begin is None:
        return None
    if end is not None and begin is not None:
        raise InvalidArgumentError(
            f"end_of_document={end!r:.80} and begin_of_document={begin!r:.80}: give one of them, each document has it"
        )
    name, given = ("end_of_document", end) if end is not None else ("begin_of_document", begin)
    if dtype is None:
        raise InvalidArgumentError(f"{name}={given!r:.80}: opaque documents have no records")
    field, why = token_leaf(dtype)
    if field is None:
        raise InvalidArgumentError(f"{name} of which field? {why}")
    base = next(leaf.base for leaf in leaves(dtype) if leaf.name == field)
    return Bounds(name, field, index(name, given, 0, min(int(np.iinfo(base).max), (1 << 63) - 1)))
