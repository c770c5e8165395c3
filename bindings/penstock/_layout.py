"""How a batch's memory becomes arrays: decided once for a loader or a view, used for every batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from penstock._dtype import RESERVED_NAMES, numpy_dtype
from penstock._errors import InvalidArgumentError
from penstock._spans import Metadata

DtypeChoice = Mapping[str, Any] | str | np.dtype[Any] | type | None


class Leaf(NamedTuple):
    """One scalar field, as core/batch/schema.h flattens records: its dotted name, scalar type and trailing axes."""

    name: str
    base: np.dtype[Any]
    dims: tuple[int, ...]


class ColumnSpec(NamedTuple):
    """One array that the native threads make; see core/batch/columns.h."""

    name: str
    leaf: int
    type: str
    skip: int
    shorten: int


def leaves(dtype: np.dtype[Any], prefix: str = "", dims: tuple[int, ...] = ()) -> Iterator[Leaf]:
    """The scalar fields of a structured dtype, depth first.

    >>> [leaf.name for leaf in leaves(np.dtype([("a", "<u2"), ("b", [("x", "<f4"), ("y", "u1", 3)])]))]
    ['a', 'b.x', 'b.y']
    """
    base, shape = dtype.subdtype if dtype.subdtype is not None else (dtype, ())
    dims = dims + shape
    if base.names is None:
        yield Leaf(prefix, base, dims)
        return
    for name in base.names:
        yield from leaves(base[name], f"{prefix}.{name}" if prefix else name, dims)


def stored_dtype(dtype: np.dtype[Any], stored_record_bytes: int) -> np.dtype[Any]:
    """`dtype` with records `stored_record_bytes` apart: what follows the visible fields (an id) is hidden."""
    if dtype.itemsize == stored_record_bytes:
        return dtype
    names = list(dtype.names or ())
    fields: Mapping[str, Any] = dtype.fields or {}
    return np.dtype(
        {
            "names": names,
            "formats": [fields[name][0] for name in names],
            "offsets": [fields[name][1] for name in names],
            "itemsize": stored_record_bytes,
        }
    )


@dataclass(frozen=True)
class BatchLayout:
    """What a batch offers and where it lies."""

    record_dtype: np.dtype[Any] | None  # None: opaque documents
    leaves: tuple[Leaf, ...]
    leaf_of: dict[str, int]  # field -> its leaf
    types: dict[str, np.dtype[Any]]  # of each field, as it is given out
    columns: tuple[ColumnSpec, ...]  # that the native threads make
    column_of: dict[str, int]  # field, "inputs" or "labels" -> its column
    column_types: tuple[np.dtype[Any], ...]  # of the columns; made once, since np.dtype(text) is not free
    label_leaf: int | None  # the field that inputs and labels are of
    label_type: np.dtype[Any]  # theirs: always signed, since labels are -100 where a row is padded
    why_no_labels: str
    length: int  # records of a fixed row
    lookahead: int
    ragged: bool
    torch: Any  # the module, or None for NumPy
    decode: Callable[[memoryview], Any] | None
    metadata: Metadata  # what was read of it

    def label_column(self, name: str) -> ColumnSpec:
        """What "inputs" or "labels" would be as a column.

        Raises:
            InvalidArgumentError: there is no lookahead, or no single integer field to take.
        """
        if self.lookahead == 0 or self.label_leaf is None:
            raise InvalidArgumentError(f"this batch has no {name}: {self.why_no_labels}")
        skip = 0 if name == "inputs" else 1
        return ColumnSpec(name, self.label_leaf, self.label_type.str, skip, self.lookahead)


def plan_layout(view: Any, torch: Any, dtype: DtypeChoice, eager: bool) -> BatchLayout:
    """Decides the arrays of a view's batches.

    Args:
        view: a view of a dataset.
        torch: the module torch, for tensors; None for NumPy.
        dtype: types of integer fields: a mapping from names, or one for all of them.
        eager: whether the native threads make the columns; else they are made when asked for.

    Raises:
        InvalidArgumentError: an unknown field in `dtype`, a field with a reserved name, a type that does not fit.
    """
    source = view._source
    record_dtype = view.dtype if view.dtype is not None and view.dtype.names else None
    found = tuple(leaves(record_dtype)) if record_dtype is not None else ()
    for leaf in found:
        if leaf.name in RESERVED_NAMES:
            raise InvalidArgumentError(f"field {leaf.name!r} is called like an attribute of a batch: rename it")
    label_leaf, why = _label_leaf(found, view.lookahead, source.ragged)
    chosen = _chosen_types(found, dtype)
    types = {leaf.name: chosen.get(leaf.name) or _default_type(leaf, torch) for leaf in found}
    layout = BatchLayout(
        record_dtype=None if record_dtype is None else stored_dtype(record_dtype, source.stored_record_bytes),
        leaves=found,
        leaf_of={leaf.name: at for at, leaf in enumerate(found)},
        types=types,
        columns=(),
        column_of={},
        column_types=(),
        label_leaf=label_leaf,
        label_type=_label_type(found, label_leaf, chosen),
        why_no_labels=why,
        length=source.row_length,
        lookahead=view.lookahead,
        ragged=source.ragged,
        torch=torch,
        decode=view._decode,
        metadata=view.metadata,
    )
    return _with_columns(layout, chosen) if eager else layout


def _with_columns(layout: BatchLayout, chosen: dict[str, np.dtype[Any]]) -> BatchLayout:
    columns: list[ColumnSpec] = []
    has_labels = layout.lookahead > 0 and layout.label_leaf is not None
    if has_labels:
        columns += [layout.label_column("inputs"), layout.label_column("labels")]
    for at, leaf in enumerate(layout.leaves):
        # inputs and labels are what is used of their field: the field itself is cast only if somebody asks.
        if has_labels and at == layout.label_leaf:
            continue
        if leaf.base.kind not in "SV" and (layout.torch is not None or leaf.name in chosen):
            columns.append(ColumnSpec(leaf.name, at, layout.types[leaf.name].str, 0, 0))
    column_of = {column.name: at for at, column in enumerate(columns)}
    column_types = tuple(np.dtype(column.type) for column in columns)
    made = {"columns": tuple(columns), "column_of": column_of, "column_types": column_types}
    return BatchLayout(**{**layout.__dict__, **made})


def _default_type(leaf: Leaf, torch: Any) -> np.dtype[Any]:
    return np.dtype(np.int64) if torch is not None and leaf.base.kind in "iu" else leaf.base


def _label_leaf(found: tuple[Leaf, ...], lookahead: int, ragged: bool) -> tuple[int | None, str]:
    if ragged:
        return None, "documents have fields and offsets; inputs and labels are of windows(window, lookahead=1)"
    if lookahead == 0:
        return None, "the view was made without lookahead; use windows(window, lookahead=1)"
    integers = [at for at, leaf in enumerate(found) if leaf.base.kind in "iu"]
    named = [at for at in integers if found[at].name == "token"]
    if named:
        return named[0], ""
    if len(integers) == 1:
        return integers[0], ""
    return None, f"the records have {len(integers)} integer fields and none is called token"


def _label_type(found: tuple[Leaf, ...], label_leaf: int | None, chosen: dict[str, np.dtype[Any]]) -> np.dtype[Any]:
    wanted = None if label_leaf is None else chosen.get(found[label_leaf].name)
    return wanted if wanted is not None and wanted.kind == "i" else np.dtype(np.int64)


def _chosen_types(found: tuple[Leaf, ...], dtype: DtypeChoice) -> dict[str, np.dtype[Any]]:
    if dtype is None:
        return {}
    if not isinstance(dtype, Mapping):
        return {leaf.name: _numpy_dtype(dtype) for leaf in found if leaf.base.kind in "iu"}
    names = [leaf.name for leaf in found]
    unknown = [name for name in dtype if name not in names]
    if unknown:
        raise InvalidArgumentError(f"dtype names the field {unknown[0]!r}; the fields are {', '.join(names)}")
    return {name: _numpy_dtype(value) for name, value in dtype.items()}


def _numpy_dtype(value: Any) -> np.dtype[Any]:
    text = str(value)
    if text.startswith("torch."):  # a torch.dtype
        value = text.removeprefix("torch.")
    return numpy_dtype(value)
