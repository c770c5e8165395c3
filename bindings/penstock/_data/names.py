"""Strings of categories in batches: what `penstock.columns.Names` come to."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from penstock._base.errors import InvalidArgumentError
from penstock._base.words import excerpt, quoted
from penstock._data.arrays import NamedCodes
from penstock._data.column_kinds import Names
from penstock._data.dtype import RESERVED_NAMES
from penstock._data.fields import leaves


def named_codes(columns: Iterable[Any], view: Any) -> tuple[NamedCodes, ...]:
    """The strings that a loader's columns ask for, of a view.

    Raises:
        InvalidArgumentError: a column that the view does not have or that is no category, or a name that is taken.
    """
    return tuple(_named(each, view) for each in columns if isinstance(each, Names))


def _named(wanted: Names, view: Any) -> NamedCodes:
    column = wanted.column
    called = f"Names({column!r:.80})"
    if column not in view.columns:
        there = f"those of this view are {quoted(list(view.columns))}" if view.columns else "this view has none"
        raise InvalidArgumentError(
            f"{called}: no column of the view: {there}; dataset.{view.kind}(…, columns=[{column!r:.80}]) has it"
        )
    categories = view.dataset.columns[column].categories
    if categories is None:
        raise InvalidArgumentError(f"{called}: the column is no category, its values are numbers")
    name = column if wanted.name is None else wanted.name
    if not isinstance(name, str) or not name:
        raise InvalidArgumentError(f"{called}: name={wanted.name!r:.80}: must be a name")
    fields = () if view.dtype is None or not view.dtype.names else (leaf.name for leaf in leaves(view.dtype))
    if name != column and name in {*RESERVED_NAMES, *fields, *view.columns}:
        raise InvalidArgumentError(
            f"{called}: a batch has the name {excerpt(name)!r} already, for a field, a column or another part of it"
        )
    strings = np.empty(len(categories) + 1, object)
    strings[:-1] = categories
    return NamedCodes(name, column, strings)
