"""Sources of a mixture: views whose batches are the same arrays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from penstock._base.arguments import shown
from penstock._base.errors import InvalidArgumentError
from penstock._base.words import quoted
from penstock._data.cell_forms import check_alike
from penstock._data.fields import Leaf, leaves
from penstock._data.view import View


def checked_sources(sources: Any) -> dict[str, View]:
    """The sources that a user gave.

    Raises:
        InvalidArgumentError: no views by names, or views that make no one array of each field.
    """
    if not isinstance(sources, Mapping) or not sources:
        raise InvalidArgumentError(
            f'sources: {{"web": view, …}} is wanted, at least one view by its name, not {shown(sources)}'
        )
    for name, view in sources.items():
        if not isinstance(name, str) or not name or not _is_text(name):
            raise InvalidArgumentError(f"sources: {name!r} is no name: a text is wanted, without lone surrogates")
        if not isinstance(view, View):
            raise InvalidArgumentError(
                f"sources[{name!r}]: a {type(view).__name__} is no view: give dataset.windows(…) or dataset.documents()"
            )
        if len(view) == 0:
            raise InvalidArgumentError(f"sources[{name!r}]: {view._emptiness()}")
    found = dict(sources)
    first_name, first = next(iter(found.items()))
    for name, view in found.items():
        for what in ("kind", "window", "lookahead", "metadata", "columns", "phase_window"):
            one, other = getattr(first, what), getattr(view, what)
            if one != other:
                raise InvalidArgumentError(
                    f"sources: {what} of {first_name!r} is {one!r}, of {name!r} {other!r}: they must be alike"
                )
        if first._rectangles != view._rectangles:
            raise InvalidArgumentError(
                f"sources: {first_name!r} and {name!r} are padded otherwise, or one of them is not: give both the same "
                "documents().padded(…)"
            )
        check_alike(first_name, first, name, view)
        _check_fields(first_name, first, name, view)
    return found


def _is_text(name: str) -> bool:
    """Whether UTF-8 holds it."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _check_fields(first_name: str, first: View, name: str, view: View) -> None:
    one, other = _leaf_by_name(first), _leaf_by_name(view)
    if one.keys() != other.keys():
        raise InvalidArgumentError(
            f"sources: {first_name!r} has the fields {quoted(list(one))}, {name!r} {quoted(list(other))}: they must "
            "have the same names"
        )
    for field, leaf in one.items():
        found = other[field]
        if not _make_one_array(leaf, found):
            raise InvalidArgumentError(
                f"sources: the field {field!r} is {leaf.base}{list(leaf.dims) or ''} in {first_name!r} and "
                f"{found.base}{list(found.dims) or ''} in {name!r}: they make no one array"
            )
    for column in first.columns:
        mine, theirs = first.dataset.columns[column], view.dataset.columns[column]
        if mine.dtype != theirs.dtype or mine._categories != theirs._categories:
            raise InvalidArgumentError(
                f"sources: the column {column!r} is of another type, or has other categories, in {first_name!r} than "
                f"in {name!r}"
            )


def _leaf_by_name(view: View) -> dict[str, Leaf]:
    return {} if view.dtype is None else {leaf.name: leaf for leaf in leaves(view.dtype)}


def _make_one_array(one: Leaf, other: Leaf) -> bool:
    """True if an array holds values of both fields: of one shape, both integers or of one kind, bytes of one length."""
    kinds = ["i" if each.base.kind in "iu" else each.base.kind for each in (one, other)]
    return kinds[0] == kinds[1] and one.dims == other.dims and (kinds[0] not in "SV" or one.base == other.base)
