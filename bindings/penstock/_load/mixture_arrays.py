"""How the batches of a view, or of a mixture of views, become arrays."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from penstock._base.errors import InvalidArgumentError
from penstock._data.arrays import BatchLayout, Wanted, plan_layout
from penstock._data.column_kinds import Column
from penstock._data.column_specs import resolve as resolve_columns
from penstock._data.corruption import corruption_of
from penstock._data.fields import DtypeChoice, leaves, stored_dtype
from penstock._data.loadable import Loadable
from penstock._data.middle import check_sources, check_types, middle_of
from penstock._data.names import named_codes
from penstock._data.span_functions import SpanFunctions
from penstock._data.spans import parts_of
from penstock._data.view import View
from penstock._load.parallel import check_sliced
from penstock._load.row_functions import RowFunctions, row_functions
from penstock._native import MixtureOrder


class Planned(NamedTuple):
    """What a loader's batches are.

    Attributes:
        layouts: for each native source; they differ in what only a source can tell.
        spans: what `next` calls for its columns.
        rows: what threads of Python call for each row that is read ahead.
    """

    layouts: list[BatchLayout]
    spans: SpanFunctions | None
    rows: RowFunctions | None


def plan_layouts(
    view: Loadable,
    torch: Any,
    dtype: DtypeChoice,
    columns: Iterable[str | Column],
    max_documents: int | None,
    seed: int,
    sliced: bool = False,
) -> Planned:
    """The layout of a loader's batches for each native source, and the functions that its columns have.

    Raises:
        InvalidArgumentError: as `plan_layout` and `columns.resolve`; sources that make no one array; columns that
            need records of the whole row.
    """
    views = list(view._views().values())
    stored = [
        None if each.dtype is None else stored_dtype(each.dtype, each._source.stored_record_bytes) for each in views
    ]
    differ = any(each != stored[0] for each in stored)
    common = _common_types(views, dtype, torch is None) if differ else {}
    names = list(columns) if isinstance(columns, Iterable) and not isinstance(columns, str) else columns
    resolved = [resolve_columns(names, max_documents, each) for each in views]
    check_sources(names, list(view._views()))
    rows = row_functions(names)
    if rows is not None and sliced:
        raise InvalidArgumentError(
            "context_parallel: PerRow has functions of whole rows, of which this rank reads a part: leave one out"
        )
    given = () if rows is None else rows.arrays
    layouts = []
    for (name, each), (computed, _) in zip(view._views().items(), resolved, strict=True):
        own = MixtureOrder.source_seed(seed, name) if name else seed
        computed = computed._replace(middle=middle_of(names, each, name, own))
        corruption = corruption_of(names, each, own, sliced)
        layouts.append(
            plan_layout(
                each,
                Wanted(
                    torch,
                    dtype,
                    True,
                    computed,
                    seed,
                    differ,
                    common,
                    sliced,
                    corruption,
                    given,
                    named_codes(names, each),
                ),
            )
        )
    for each in layouts:
        if each.computed.middle is not None:
            check_types(names, {each.types[each.computed.middle.field], each.label_type})
    decoders = tuple(decoder for each in layouts for decoder in each.decoders)
    layouts[0] = replace(layouts[0], decoders=decoders)
    functions = resolved[0][1]
    if functions is not None:
        functions = functions._replace(paths=tuple(str(each.dataset.path) for each in views))
    for each in layouts if sliced else ():
        check_sliced(each.computed)
    return Planned(layouts * len(view._windows()), functions, rows)


def native_columns(layouts: list[BatchLayout], view: Loadable) -> dict[str, Any]:
    """The arguments of a native loader that say which columns its threads make, and what they read for them."""
    return {
        "fields": list(layouts[0].fields),
        "computed": [each.computed.specs for each in layouts],
        "made": [list(each.makers) for each in layouts],
        "middles": [each.computed.middle for each in layouts],
        "values": list(layouts[0].values),
        "parts": parts_of(view._first),
    }


def _common_types(views: list[View], chosen: DtypeChoice, with_integers: bool) -> dict[str, np.dtype[Any]]:
    """For each field whose type was not chosen, the one that holds all sources' values.

    Raises:
        InvalidArgumentError: there is none.
    """
    by_name: dict[str, list[np.dtype[Any]]] = {}
    for view in views:
        for leaf in leaves(view.dtype) if view.dtype is not None else ():
            by_name.setdefault(leaf.name, []).append(leaf.base)
    common: dict[str, np.dtype[Any]] = {}
    for name, types in by_name.items():
        is_integer = types[0].kind in "iu"
        is_chosen = name in chosen if isinstance(chosen, Mapping) else chosen is not None and is_integer
        if types[0].kind in "SV" or is_chosen or (is_integer and not with_integers):
            continue
        common[name] = np.result_type(*types)
        if common[name].kind == "f" and is_integer:
            raise InvalidArgumentError(
                f"the field {name!r} is {' and '.join(sorted({str(each) for each in types}))}: no integer type holds "
                f"both; say which by dtype={{{name!r}: …}}"
            )
    return common
