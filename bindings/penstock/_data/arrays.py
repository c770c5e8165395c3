"""How a batch's memory becomes arrays: decided once for a loader or a view, used for every batch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from penstock import _native
from penstock._base.arguments import index
from penstock._base.errors import InvalidArgumentError
from penstock._base.words import excerpt, quoted
from penstock._data.cell_views import Cells
from penstock._data.dtype import PADDED_NAMES, RESERVED_NAMES, numpy_type
from penstock._data.packed import Packed
from penstock._data.padded import Padded
from penstock._data.spans import Decode, Metadata
from penstock._data.stored_columns import types_of

DtypeChoice = Mapping[str, Any] | str | np.dtype[Any] | type | None


class Leaf(NamedTuple):
    """One scalar field, as core/rows/schema.h flattens records: its dotted name, scalar type and trailing axes."""

    name: str
    base: np.dtype[Any]
    dims: tuple[int, ...]


class FieldSpec(NamedTuple):
    """A field's array; see FieldSpec in core/columns/column_spec.h."""

    name: str
    field: str
    type: str
    skip: int = 0
    shorten: int = 0
    labels: bool = False


class Bounds(NamedTuple):
    """Where the documents of a row begin; see DocumentBounds in core/columns/column_spec.h."""

    by: str = "spans"  # or "end_of_document" or "begin_of_document": the `value` of `field`
    field: str = ""
    value: int = 0


class SequenceSpec(NamedTuple):
    """An array of the sequences in a batch; see SequenceSpec in core/columns/column_spec.h."""

    name: str
    shorten: int
    bounds: Bounds
    max_documents: int | None


class Padding(NamedTuple):
    """Documents as rectangles; see Padding in core/columns/record_array.h."""

    length: int  # 0: that of the longest one of the batch
    multiple_of: int
    left: bool


class TargetSpec(NamedTuple):
    """Which targets count; see TargetSpec in core/columns/column_spec.h."""

    labels: FieldSpec | None
    mask: bool
    shorten: int
    fields: tuple[str, ...]
    cross_document: bool
    bounds: Bounds
    padding: Padding | None = None


class PerSpanSpec(NamedTuple):
    """A value of each span; see PerSpanSpec in core/columns/column_spec.h."""

    name: str
    type: str
    fill: int
    shorten: int
    padding: Padding | None = None


class ComputedSpecs(NamedTuple):
    """What a loader's `columns=` come to for one view."""

    sequences: tuple[SequenceSpec, ...] = ()
    targets: TargetSpec | None = None  # its labels are those of the layout
    per_span: tuple[PerSpanSpec, ...] = ()
    wants_labels: bool = False  # a column says something of labels, and of nothing else

    @property
    def names(self) -> list[str]:
        """Of the arrays in `batch.columns`."""
        names = [each.name for each in self.sequences if each.name != "max_seqlen"]
        if self.targets is not None and self.targets.mask:
            names.append("loss_mask")
        return names + [each.name for each in self.per_span]

    @property
    def specs(self) -> list[SequenceSpec | TargetSpec | PerSpanSpec]:
        """All of them, as the native side numbers them."""
        return [*self.sequences, *([] if self.targets is None else [self.targets]), *self.per_span]


_NOTHING_COMPUTED = ComputedSpecs()


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


class ColumnPlace(NamedTuple):
    """Which array of which native column it is, and its type: made once, since np.dtype(text) is not free."""

    number: int
    part: int
    type: np.dtype[Any]


@dataclass(frozen=True)
class BatchLayout:
    """What a batch offers and where it lies."""

    record_dtype: np.dtype[Any] | None  # None: opaque documents
    leaf_of: dict[str, Leaf]  # field -> its leaf
    types: dict[str, np.dtype[Any]]  # of each field, as it is given out
    fields: tuple[FieldSpec, ...]  # columns that the native threads make: these …
    computed: ComputedSpecs  # … then these …
    makers: tuple[_native.ColumnMaker, ...]  # … then what these make …
    values: tuple[str, ...]  # … then these columns of documents
    value_types: dict[str, np.dtype[Any]]  # columns of documents that a batch has, with the shape of a value
    value_of: dict[str, ColumnPlace]  # by the name of a column of documents
    column_of: dict[str, ColumnPlace]  # by the name of an array
    per_span_of: dict[str, ColumnPlace]  # by the name of a value of spans
    flat: frozenset[str]  # fields that are [records, …], not [rows, …]
    cells: Cells | None  # what cells become; None: rows are windows or documents
    packed: bool  # rows are packed: they have labels without lookahead
    label_field: str | None  # that inputs and labels are of
    label_type: np.dtype[Any]  # theirs: always signed, since labels are -100 where a row is padded
    why_no_labels: str
    lookahead: int
    ragged: bool
    torch: Any  # the module, or None for NumPy
    decoders: tuple[Decode | None, ...]  # of the entries, by source
    records_differ: bool  # the sources' records are of different types
    sliced: bool  # rows are the part of a context-parallel rank
    metadata: Metadata  # what was read of it

    @property
    def has_tokens(self) -> bool:
        """Whether rows are of tokens, whether they have labels or not."""
        return self.cells is None and _token_field(tuple(self.leaf_of.values()))[0] is not None

    def label_column(self, name: str) -> FieldSpec:
        """What "inputs" or "labels" would be as a column.

        Raises:
            InvalidArgumentError: there is no lookahead, or no single integer field to take.
        """
        if self.packed and self.label_field is not None:
            return FieldSpec(name, self.label_field, self.label_type.str, labels=name == "labels")
        if self.lookahead == 0 or self.label_field is None:
            raise InvalidArgumentError(f"this batch has no {name}: {self.why_no_labels}")
        skip = 0 if name == "inputs" else 1
        return FieldSpec(name, self.label_field, self.label_type.str, skip, self.lookahead, name == "labels")


def plan_layout(
    view: Any,
    torch: Any,
    dtype: DtypeChoice,
    eager: bool,
    computed: ComputedSpecs = _NOTHING_COMPUTED,
    seed: int = 0,
    *,
    records_differ: bool = False,
    common: Mapping[str, np.dtype[Any]] | None = None,
    sliced: bool = False,
) -> BatchLayout:
    """Decides the arrays of a view's batches.

    Args:
        view: a view of a dataset.
        torch: the module torch, for tensors; None for NumPy.
        dtype: types of integer fields: a mapping from names, or one for all of them.
        eager: whether the native threads make the columns; else they are made when asked for.
        computed: columns that the native threads compute of documents.
        seed: of the loader, for what is drawn.
        records_differ: whether batches have rows of other views, too, whose records are of other types.
        common: of fields that are not in `dtype`, the type that holds the values of all these views.
        sliced: whether rows are the part of a context-parallel rank.

    Raises:
        InvalidArgumentError: an unknown field in `dtype`, a field with a reserved name, a type that does not fit.
    """
    source = view._source
    types_there = {name: dtype for name, dtype, _ in types_of(view.dataset._native)}
    for name in computed.names:
        if name in view.columns:
            raise InvalidArgumentError(
                f"columns=: {name} is a column of the dataset, too, that this view was made with: ask for one of them"
            )
    record_dtype = view.dtype if view.dtype is not None and view.dtype.names else None
    found = tuple(leaves(record_dtype)) if record_dtype is not None else ()
    if view.cells is not None and dtype is not None:
        raise InvalidArgumentError(
            f"dtype={dtype!r:.80}: the types of cells are those of their form: {view.cells.form}"
        )
    for leaf in found:
        if leaf.name in RESERVED_NAMES:
            raise InvalidArgumentError(
                f"field {excerpt(leaf.name)!r} is called like an attribute of a batch: rename it"
            )
    rows = getattr(view, "rows", None)
    packed = isinstance(rows, Packed)
    label_field, why = _label_field(found, view.lookahead, source.ragged) if rows is None else _row_field(found)
    chosen = _chosen_types(found, dtype)
    given = {**(common or {}), **chosen}
    types = {leaf.name: given.get(leaf.name) or _default_type(leaf, torch) for leaf in found}
    layout = BatchLayout(
        record_dtype=None if record_dtype is None else stored_dtype(record_dtype, source.stored_record_bytes),
        leaf_of={leaf.name: leaf for leaf in found},
        types=types,
        fields=(),
        computed=computed,
        makers=(),
        values=(),
        value_types={name: types_there[name] for name in view.columns},
        value_of={},
        column_of={},
        per_span_of={},
        flat=frozenset(types) if source.ragged else frozenset(),
        cells=view.cells,
        packed=packed,
        label_field=label_field,
        label_type=_label_type(label_field, chosen),
        why_no_labels=why,
        lookahead=view.lookahead,
        ragged=source.ragged,
        torch=torch,
        decoders=(view._decode,),
        records_differ=records_differ,
        sliced=sliced,
        metadata=view.metadata,
    )
    if view.cells is not None:
        of_cells = _of_cells(_with_computed(layout), view.cells, seed)
        return _with_values(of_cells) if eager else of_cells
    if computed.wants_labels and label_field is None:
        raise InvalidArgumentError(f"columns=: there are no labels: {why}")
    if isinstance(rows, Padded):
        padded = _of_padded(layout, rows, chosen)
        return _with_values(padded) if eager else padded
    if packed or computed.targets is not None:
        layout = _with_labels(layout, None)
    if not eager:
        return _with_computed(layout)
    return _with_columns(layout, chosen, source.fields_apart or records_differ)


def _with_computed(layout: BatchLayout) -> BatchLayout:
    """Says where the arrays of `computed` lie, behind those of `fields`."""
    sequences, targets, per_span, _ = layout.computed
    at = len(layout.fields)
    column_of = {each.name: ColumnPlace(at + i, 0, np.dtype(np.int32)) for i, each in enumerate(sequences)}
    at += len(sequences)
    if targets is not None:
        if targets.labels is not None:
            column_of["labels"] = ColumnPlace(at, 0, layout.label_type)
        if targets.mask:
            column_of["loss_mask"] = ColumnPlace(at, 0 if targets.labels is None else 1, np.dtype(np.bool_))
        at += 1
    per_span_of = {each.name: ColumnPlace(at + i, 0, np.dtype(each.type)) for i, each in enumerate(per_span)}
    return replace(layout, column_of={**layout.column_of, **column_of}, per_span_of=per_span_of)


def _of_cells(layout: BatchLayout, cells: Cells, seed: int) -> BatchLayout:
    """The arrays of the form in place of the records' fields."""
    number = len(layout.computed.specs)
    made = {each.name: ColumnPlace(number, part, each.type) for part, each in enumerate(cells.arrays)}
    return replace(
        layout,
        leaf_of={},
        types={name: place.type for name, place in made.items() if name != "offsets"},
        makers=(cells.maker(seed),),
        column_of={**layout.column_of, **made},
        flat=frozenset(each.name for each in cells.arrays if each.flat),
    )


def _of_padded(layout: BatchLayout, padded: Padded, chosen: Mapping[str, Any]) -> BatchLayout:
    """Rectangles in place of the records' fields, and what goes with them."""
    if layout.computed.sequences:
        names = ", ".join(each.name for each in layout.computed.sequences if each.name != "max_seqlen")
        raise InvalidArgumentError(
            f"columns=: {names}: sequences are of documents end to end: padded rows have attention_mask and lengths"
        )
    padding = Padding(padded.to or 0, padded.multiple_of, padded.side == "left")
    per_span = tuple(each._replace(padding=padding) for each in layout.computed.per_span)
    layout = _with_labels(replace(layout, computed=layout.computed._replace(per_span=per_span)), padding)
    types = padded.types({name: dtype for name, dtype in layout.types.items() if dtype.kind not in "SV"}, chosen)
    arrays = [(name, name, dtype) for name, dtype in types.items()]
    if layout.label_field is not None:
        arrays.append(("inputs", layout.label_field, layout.label_type))
    number = len(layout.computed.specs)
    made = {name: ColumnPlace(number, part, dtype) for part, (name, _, dtype) in enumerate(arrays)}
    for name in PADDED_NAMES:
        made[name] = ColumnPlace(number, len(made), np.dtype(np.int64))
    layout = _with_computed(layout)
    return replace(
        layout,
        leaf_of={},
        types=types,
        makers=(padded.maker([(field, dtype) for _, field, dtype in arrays]),),
        column_of={**layout.column_of, **made},
        flat=frozenset(),
    )


def _with_labels(layout: BatchLayout, padding: Padding | None) -> BatchLayout:
    """Labels, if there are any, as what the computed targets are; those of packed and padded rows cross no document."""
    targets = layout.computed.targets or TargetSpec(None, False, 0, (), True, Bounds())
    if padding is not None or layout.packed:
        targets = targets._replace(cross_document=not layout.packed, bounds=Bounds(), padding=padding)
    if layout.label_field is not None:
        labels = FieldSpec("labels", layout.label_field, layout.label_type.str, 0, layout.lookahead, True)
        targets = targets._replace(labels=labels)
    is_empty = targets.labels is None and not targets.mask
    return replace(layout, computed=layout.computed._replace(targets=None if is_empty else targets))


def _with_columns(layout: BatchLayout, chosen: dict[str, np.dtype[Any]], fields_apart: bool) -> BatchLayout:
    fields: list[FieldSpec] = []
    has_labels = (layout.packed or layout.lookahead > 0) and layout.label_field is not None
    if has_labels:
        fields.append(layout.label_column("inputs"))
        if layout.computed.targets is None:
            fields.append(layout.label_column("labels"))
    for leaf in layout.leaf_of.values():
        # inputs and labels are what is used of their field: the field itself is cast only if somebody asks.
        if has_labels and leaf.name == layout.label_field and not layout.sliced:
            continue
        is_cast = leaf.base.kind not in "SV" and (layout.torch is not None or leaf.name in chosen or layout.sliced)
        if is_cast or (fields_apart and not layout.sliced):
            shorten = layout.lookahead if layout.sliced else 0  # a part is of the window
            fields.append(FieldSpec(leaf.name, leaf.name, layout.types[leaf.name].str, 0, shorten))
    column_of = {each.name: ColumnPlace(at, 0, np.dtype(each.type)) for at, each in enumerate(fields)}
    return _with_values(_with_computed(replace(layout, fields=tuple(fields), column_of=column_of)))


def _with_values(layout: BatchLayout) -> BatchLayout:
    # Of windows there is a value for each span, and nobody knows how many there will be before all rows are read.
    values = tuple(layout.value_types) if layout.ragged else ()
    before = len(layout.fields) + len(layout.computed.specs) + len(layout.makers)
    places = {name: ColumnPlace(before + at, 0, layout.value_types[name].base) for at, name in enumerate(values)}
    return replace(layout, values=values, value_of=places)


def _default_type(leaf: Leaf, torch: Any) -> np.dtype[Any]:
    return np.dtype(np.int64) if torch is not None and leaf.base.kind in "iu" else leaf.base


def token_leaf(dtype: np.dtype[Any]) -> tuple[str | None, str]:
    """The field that holds the tokens: `token`, else the only integer field; or None, and why."""
    return _token_field(tuple(leaves(dtype)))


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


def _row_field(found: tuple[Leaf, ...]) -> tuple[str | None, str]:
    """The field whose values are inputs and labels of rows of documents; or None, and why."""
    name, why = _token_field(found)
    dims = next((leaf.dims for leaf in found if leaf.name == name), ())
    return (None, f"the field {name} has values of shape {list(dims)}") if dims else (name, why)


def _token_field(found: tuple[Leaf, ...]) -> tuple[str | None, str]:
    integers = [leaf.name for leaf in found if leaf.base.kind in "iu"]
    if "token" in integers:
        return "token", ""
    if len(integers) == 1:
        return integers[0], ""
    return None, f"the records have {len(integers)} integer fields and none is called token"


def _label_field(found: tuple[Leaf, ...], lookahead: int, ragged: bool) -> tuple[str | None, str]:
    if ragged:
        return None, "documents have fields and offsets; inputs and labels are of windows(window, lookahead=1)"
    if lookahead == 0:
        return None, "the view was made without lookahead; use windows(window, lookahead=1)"
    return _token_field(found)


def _label_type(label_field: str | None, chosen: dict[str, np.dtype[Any]]) -> np.dtype[Any]:
    wanted = None if label_field is None else chosen.get(label_field)
    return wanted if wanted is not None and wanted.kind == "i" else np.dtype(np.int64)


def _chosen_types(found: tuple[Leaf, ...], dtype: DtypeChoice) -> dict[str, np.dtype[Any]]:
    if dtype is None:
        return {}
    if not isinstance(dtype, Mapping):
        return {leaf.name: numpy_type(dtype) for leaf in found if leaf.base.kind in "iu"}
    names = [leaf.name for leaf in found]
    unknown = [name for name in dtype if name not in names]
    if unknown:
        raise InvalidArgumentError(f"dtype names the field {unknown[0]!r}; the fields are {quoted(names)}")
    return {name: numpy_type(value) for name, value in dtype.items()}
