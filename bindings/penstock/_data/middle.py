"""Fill-in-the-middle: which of a loader's `columns=` rearranges the rows of a view, checked against its records."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from penstock._base.arguments import index, shown
from penstock._base.errors import InvalidArgumentError
from penstock._base.words import quoted
from penstock._data.bounds import Bounds
from penstock._data.column_kinds import FillInTheMiddle, LossMask
from penstock._data.fields import leaves, row_field
from penstock._native import DocumentBounds, FillInTheMiddleSpec

_SENTINELS = ("prefix", "middle", "suffix")


def middle_of(columns: Iterable[Any], view: Any, name: str, seed: int) -> FillInTheMiddleSpec | None:
    """The arrangement of rows of this view, the source `name` of a mixture; None: rows stay as they are.

    Args:
        columns: the loader's, checked to be columns.
        view: whose rows they are.
        name: of the source; "" if the view is no mixture's.
        seed: the loader's, or the source's own.

    Raises:
        InvalidArgumentError: two that are of this view; a token or a field that cannot be; a mask by places in
            documents, which it moves.
    """
    given = list(columns)
    found = [each for each in given if isinstance(each, FillInTheMiddle) and _is_of(each, name)]
    if not found:
        return None
    if len(found) > 1:
        raise InvalidArgumentError(
            f"columns=: {len(found)} FillInTheMiddle(…) are of {f'the source {name!r}' if name else 'this view'}: one "
            "is wanted, or each with sources= of its own"
        )
    if any(isinstance(each, LossMask) and each.spans is not None for each in given):
        raise InvalidArgumentError(
            "columns=: LossMask(spans=…) says places in documents, which FillInTheMiddle moves: use LossMask(field=…), "
            "whose field moves along"
        )
    return _spec(found[0], view, seed)


def check_sources(columns: Iterable[Any], names: list[str]) -> None:
    """Refuses sources that are not there; `names` are a mixture's, or [""].

    Raises:
        InvalidArgumentError: sources of a view that is no mixture's, or that the mixture does not have.
    """
    for each in columns:
        if not isinstance(each, FillInTheMiddle) or each.sources is None:
            continue
        given = each.sources
        if names == [""]:
            raise InvalidArgumentError(
                f"FillInTheMiddle(sources={shown(given)}): sources are of a penstock.Mixture; this is one view: leave "
                "it out"
            )
        if isinstance(given, str) or not isinstance(given, Iterable):
            raise InvalidArgumentError(f"FillInTheMiddle(sources={shown(given)}): must be names, as {{{names[0]!r}}}")
        unknown = [name for name in given if name not in names]
        if unknown or not list(given):
            said = f"there is no source {shown(unknown[0])}" if unknown else "it names none"
            raise InvalidArgumentError(
                f"FillInTheMiddle(sources={shown(given)}): {said}; the mixture's are {quoted(names)}"
            )


def check_types(columns: Iterable[Any], types: Iterable[np.dtype[Any]]) -> None:
    """Refuses sentinels that the types in which a loader gives tokens do not hold.

    Raises:
        InvalidArgumentError: one does not fit.
    """
    found = [each for each in columns if isinstance(each, FillInTheMiddle)]
    for dtype in types:
        most = np.iinfo(dtype).max if dtype.kind in "iu" else math.inf
        for each in found:
            for name in _SENTINELS:
                if getattr(each, name) > most:
                    raise InvalidArgumentError(
                        f"FillInTheMiddle({name}={getattr(each, name)}): no value of {dtype}, in which this loader "
                        "gives tokens: choose another dtype="
                    )


def _is_of(column: FillInTheMiddle, name: str) -> bool:
    return column.sources is None or name in column.sources


def _spec(given: FillInTheMiddle, view: Any, seed: int) -> FillInTheMiddleSpec:
    if view.cells is not None:
        raise InvalidArgumentError("FillInTheMiddle: cells have no tokens in a row")
    if view.dtype is None or not view.dtype.names:
        raise InvalidArgumentError("FillInTheMiddle: opaque documents have no records")
    field, why = row_field(tuple(leaves(view.dtype)))
    if field is None:
        raise InvalidArgumentError(f"FillInTheMiddle: which field has the tokens? {why}")
    most = int(np.iinfo(next(leaf.base for leaf in leaves(view.dtype) if leaf.name == field)).max)

    def token(name: str) -> int:
        return index(f"FillInTheMiddle: {name}", getattr(given, name), 0, min(most, (1 << 63) - 1))

    sentinels = {name: token(name) for name in _SENTINELS}
    stays = {side: None if getattr(given, side) is None else token(side) for side in _SIDES}
    bounds = _bounds(stays, view, field)
    for told in (bounds, view.dataset._bounds):  # of windows their own, of documents and packed rows their dataset's
        if told is not None and told.by in stays and stays[told.by] is None:
            stays[told.by] = told.value
    end = (view.dataset.tokenizer or {}).get("end_of_document")
    if stays["end_of_document"] is None and end is not None:
        stays["end_of_document"] = index("end_of_document", end, 0, (1 << 63) - 1)
    for side, value in stays.items():
        for name, sentinel in sentinels.items():
            if value == sentinel:
                raise InvalidArgumentError(f"FillInTheMiddle({name}={sentinel}): it is {side}, too: give another token")
    return FillInTheMiddleSpec(
        field=field,
        **sentinels,
        rate=float(given.rate),
        spm_rate=float(given.spm_rate),
        bounds=DocumentBounds(by=bounds.by, field=bounds.field, value=bounds.value),
        first_stays=stays["begin_of_document"],
        last_stays=stays["end_of_document"],
        seed=seed,
    )


_SIDES = ("end_of_document", "begin_of_document")


def _bounds(stays: dict[str, int | None], view: Any, field: str) -> Bounds:
    """Where the documents of a row begin: as the view says, by spans, or by the token that stays at their end or begin.

    Raises:
        InvalidArgumentError: nothing says it.
    """
    said: Bounds | None = view._column_bounds([])
    if said is not None:
        return said
    if view.kind == "documents" or view.dataset.spans > 0:
        return Bounds()
    end = stays["end_of_document"]
    if end is None and stays["begin_of_document"] is None:
        end = (view.dataset.tokenizer or {}).get("end_of_document")
    if end is not None:
        return Bounds("end_of_document", field, index("end_of_document", end, 0, (1 << 63) - 1))
    begin = stays["begin_of_document"]
    if begin is not None:
        return Bounds("begin_of_document", field, begin)
    raise InvalidArgumentError(
        f"FillInTheMiddle: {view.dataset.path} has no spans, and no tokenizer that says which token ends a document: "
        "give end_of_document= or begin_of_document=, to it or to dataset.windows(…)"
    )
