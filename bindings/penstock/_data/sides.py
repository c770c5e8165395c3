"""Looks on which side of its documents a token of a stream stands."""

from __future__ import annotations

import numpy as np

from penstock._base.words import warn_caller
from penstock._data.bounds import Bounds
from penstock._data.opened import Opened
from penstock._data.token_documents import doubt, refuse_other_side, shard_names
from penstock._data.window_view import WindowView

_MOST_SIDES = 64  # shards of which a record is read


def check_side(dataset: Opened, bounds: Bounds) -> None:
    """Looks at the stream's ends and at one record of each shard, or of some of very many.

    See `refuse_other_side` and `doubt`.
    """
    ends = np.cumsum([each.records for each in dataset.shards])
    begins = np.concatenate([[0], ends[:-1]])
    numbers = np.flatnonzero(ends > begins)
    if len(numbers) > _MOST_SIDES:  # each may be a request
        numbers = numbers[np.linspace(0, len(numbers) - 1, _MOST_SIDES).astype(np.int64)]
    sides = begins[numbers] if bounds.by == "end_of_document" else ends[numbers] - 1
    found = WindowView(dataset, False, (), (), 1).read([0, dataset.records - 1, *sides.tolist()])
    has = (found[bounds.field].reshape(2 + len(sides), -1) == bounds.value).all(axis=1).tolist()
    refuse_other_side(dataset.path, bounds.by, bounds.value, *has[:2])
    said = doubt(bounds.by, bounds.value, shard_names(dataset._native, numbers[has[2:]].tolist()))
    if said is not None:
        warn_caller(said)
