"""Span corruption: a loader's `columns=` that makes encoder's inputs and decoder's labels of rows, checked."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from penstock._base.arguments import index, shown
from penstock._base.errors import InvalidArgumentError
from penstock._data.arrays import Corruption
from penstock._data.column_kinds import FillInTheMiddle, PerRow, SpanCorruption
from penstock._data.fields import leaves, row_field
from penstock._native import ColumnMaker, make_span_corruption

_MOST_SENTINELS = 1 << 20


def corruption_of(columns: Iterable[Any], view: Any, seed: int, sliced: bool) -> Corruption | None:
    """The maker of inputs and labels of this view's rows; None: the view alone makes them.

    Args:
        columns: the loader's, checked to be columns.
        view: whose rows they are.
        seed: the loader's, or in a mixture the source's own.
        sliced: whether rows are a context-parallel rank's part.

    Raises:
        InvalidArgumentError: an argument that cannot be; rows of which there is no such thing; columns of records
            beside it.
    """
    given = list(columns)
    found = next((each for each in given if isinstance(each, SpanCorruption)), None)
    if found is None:
        return None
    others = [shown(each) for each in given if not isinstance(each, SpanCorruption | FillInTheMiddle | PerRow)]
    if others:
        raise InvalidArgumentError(
            f"columns=: {', '.join(others)}: of the rows' records, of which SpanCorruption makes other rows: leave "
            f"{'it' if len(others) == 1 else 'them'} out"
        )
    _check_view(view, sliced)
    field, why = row_field(tuple(leaves(view.dtype)))
    if field is None:
        raise InvalidArgumentError(f"SpanCorruption: which field has the tokens? {why}")
    density = _number("density", found.density, lambda value: 0 < value < 1, "above 0 and below 1")
    mean_length = _number("mean_length", found.mean_length, lambda value: value >= 1, "at least 1")
    return Corruption(field, functools.partial(_make, found, field, density, mean_length, seed))


def _check_view(view: Any, sliced: bool) -> None:
    if view.cells is not None:
        raise InvalidArgumentError("SpanCorruption: cells have no tokens in a row")
    if view.dtype is None or not view.dtype.names:
        raise InvalidArgumentError("SpanCorruption: opaque documents have no records")
    if view.kind == "packed" or view._rectangles is not None:
        what = "packed" if view.kind == "packed" else "padded"
        raise InvalidArgumentError(
            f"SpanCorruption: {view!r}: rows are {what}: use dataset.windows(…), or dataset.documents(), whose batches "
            "it pads"
        )
    if view.lookahead:
        raise InvalidArgumentError(
            f"SpanCorruption: {view!r}: labels are tokens of the row itself: leave lookahead= out"
        )
    if sliced:
        raise InvalidArgumentError("context_parallel: SpanCorruption makes rows of other lengths, of which none is cut")


def _number(name: str, given: Any, is_right: Any, wanted: str) -> float:
    try:
        number = math.nan if isinstance(given, (bool, str)) else float(given)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not (math.isfinite(number) and is_right(number)):
        raise InvalidArgumentError(f"SpanCorruption({name}={shown(given)}): must be a number, {wanted}")
    return number


def _make(
    given: SpanCorruption, field: str, density: float, mean_length: float, seed: int, dtype: np.dtype[Any]
) -> ColumnMaker:
    most = int(np.iinfo(dtype).max)
    sentinels = _sentinels(given.sentinels, most)
    end = None if given.end is None else index("SpanCorruption: end", given.end, 0, most)
    pad = index("SpanCorruption: pad", given.pad, 0, most)
    for name, token in (("end", end), ("pad", pad)):
        if token in sentinels:
            raise InvalidArgumentError(f"SpanCorruption({name}={token}): it is a sentinel, too: give another token")
    return make_span_corruption(
        field=field,
        type=dtype.str,
        density=density,
        mean_length=mean_length,
        sentinels=sentinels,
        end=end,
        pad=pad,
        seed=seed,
    )


def _sentinels(given: Any, most: int) -> list[int]:
    if isinstance(given, (str, bytes)) or not (isinstance(given, Sequence) or hasattr(given, "tolist")):
        raise InvalidArgumentError(
            f"SpanCorruption(sentinels={shown(given)}): must be tokens, as range(32099, 31999, -1)"
        )
    if not 0 < len(given) <= _MOST_SENTINELS:
        raise InvalidArgumentError(f"SpanCorruption: {len(given):,} sentinels: must be from 1 to {_MOST_SENTINELS:,}")
    found = [index(f"SpanCorruption: sentinels[{at}]", each, 0, most) for at, each in enumerate(given)]
    numbers, counts = np.unique(found, return_counts=True)
    if len(numbers) < len(found):
        twice = numbers[counts > 1][0]
        raise InvalidArgumentError(f"SpanCorruption: the sentinel {twice} is there twice: each span has its own")
    return found
