"""How a batch's memory becomes arrays: decided once for a loader or a view, used for every batch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from penstock import _native
from penstock._base.errors import InvalidArgumentError
from penstock._base.words import excerpt
from penstock._data.cell_forms import Cells
from penstock._data.computed import NOTHING_COMPUTED, ComputedSpecs
from penstock._data.dtype import RESERVED_NAMES
from penstock._data.entries import entry_decoder
from penstock._data.fields import DtypeChoice, Leaf, chosen_types, default_type, leaves, stored_dtype, token_field
from penstock._data.spans import Decode, Metadata
from penstock._data.stored_columns import types_of


class ColumnPlace(NamedTuple):
    """Which array of which native column it is, and its type: made once, since np.dtype(text) is not free."""

    number: int
    part: int
    type: np.dtype[Any]


class Corruption(NamedTuple):
    """What makes inputs, labels and attention_mask of rows' tokens, in place of those that follow one another."""

    field: str  # of the tokens
    make: Callable[[np.dtype[Any]], _native.ColumnMaker]  # of the type of inputs and labels


class NamedCodes(NamedTuple):
    """An array of a batch that has the strings of a category, and by its codes these strings: None is the last one."""

    name: str
    column: str
    strings: npt.NDArray[Any]


class GivenArray(NamedTuple):
    """An array [rows, …] that functions of rows fill: the type of a row's values, and their axes."""

    name: str
    base: np.dtype[Any]
    dims: tuple[int, ...]


@dataclass(frozen=True)
class Wanted:
    """What is asked of a view's batches: by a loader, or by `view.read`, whose are the defaults.

    Attributes:
        torch: the module torch, for tensors; None for NumPy.
        dtype: types of integer fields: a mapping from names, or one for all of them.
        eager: whether the native threads make the columns; else they are made when asked for.
        computed: columns that the native threads compute of documents.
        seed: of the loader, for what is drawn.
        records_differ: whether batches have rows of other views, too, whose records are of other types.
        common: of fields that are not in `dtype`, the type that holds the values of all these views.
        sliced: whether rows are the part of a context-parallel rank.
        corruption: what makes other rows of the view's; None: nothing does.
        given: arrays that functions of rows fill.
        names: strings in place of, or beside, the codes of categories.
    """

    torch: Any = None
    dtype: DtypeChoice = None
    eager: bool = False
    computed: ComputedSpecs = NOTHING_COMPUTED
    seed: int = 0
    records_differ: bool = False
    common: Mapping[str, np.dtype[Any]] | None = None
    sliced: bool = False
    corruption: Corruption | None = None
    given: tuple[GivenArray, ...] = ()
    names: tuple[NamedCodes, ...] = ()


@dataclass(frozen=True)
class BatchLayout:
    """What a batch offers and where it lies."""

    record_dtype: np.dtype[Any] | None  # None: opaque documents
    leaf_of: dict[str, Leaf]  # field -> its leaf
    types: dict[str, np.dtype[Any]]  # of each field, as it is given out
    chosen: dict[str, np.dtype[Any]]  # those of them that the user chose
    computed: ComputedSpecs  # columns that the native threads make: `fields`, then these …
    value_types: dict[str, np.dtype[Any]]  # columns of documents that a batch has, with the shape of a value
    flat: frozenset[str]  # fields that are [records, …], not [rows, …]
    label_field: str | None  # that inputs and labels are of
    label_type: np.dtype[Any]  # theirs: always signed, since labels are -100 where a row is padded
    why_no_labels: str
    lookahead: int
    ragged: bool
    fields_apart: bool  # no row has records of one type that lie end to end
    torch: Any  # the module, or None for NumPy
    decoders: tuple[Decode | None, ...]  # of the entries, by source
    records_differ: bool  # the sources' records are of different types
    sliced: bool  # rows are the part of a context-parallel rank
    metadata: Metadata  # what was read of it
    fields: tuple[_native.FieldSpec, ...] = ()
    makers: tuple[_native.ColumnMaker, ...] = ()  # … then what these make …
    values: tuple[str, ...] = ()  # … then these columns of documents
    value_of: dict[str, ColumnPlace] = field(default_factory=dict)  # by the name of a column of documents
    column_of: dict[str, ColumnPlace] = field(default_factory=dict)  # by the name of an array
    per_span_of: dict[str, ColumnPlace] = field(default_factory=dict)  # by the name of a value of spans
    given_of: dict[str, ColumnPlace] = field(default_factory=dict)  # by the name of what functions of rows fill
    names: tuple[NamedCodes, ...] = ()  # strings of categories, made when asked for
    cells: Cells | None = None  # what cells become; None: rows are windows or documents
    categories: dict[str, tuple[str, ...]] = field(default_factory=dict)  # names, of value_types that are codes

    @property
    def has_tokens(self) -> bool:
        """Whether rows are of tokens, whether they have labels or not."""
        return token_field(tuple(self.leaf_of.values()))[0] is not None

    def label_column(self, name: str) -> _native.FieldSpec:
        """What "inputs" or "labels" would be as a column.

        Raises:
            InvalidArgumentError: there is no lookahead, or no single integer field to take.
        """
        if self.label_field is None:
            raise InvalidArgumentError(f"this batch has no {name}: {self.why_no_labels}")
        # Packed rows have labels without lookahead: those within each piece.
        skip = 0 if name == "inputs" else min(self.lookahead, 1)
        return _native.FieldSpec(
            name=name,
            field=self.label_field,
            type=self.label_type.str,
            skip=skip,
            shorten=self.lookahead,
            labels=name == "labels",
        )


def plan_layout(view: Any, wanted: Wanted) -> BatchLayout:
    """Decides the arrays of a view's batches.

    Raises:
        InvalidArgumentError: an unknown field in `dtype`, a field with a reserved name, a type that does not fit; what
            this kind of view cannot give.
    """
    for name in wanted.computed.names:
        if name in view.columns:
            raise InvalidArgumentError(
                f"columns=: {name} is a column of the dataset, too, that this view was made with: ask for one of them"
            )
    view._check_dtype(wanted.dtype)
    layout: BatchLayout = replace(view._arranged(_of_records(view, wanted), wanted), names=wanted.names)
    if wanted.corruption is not None:
        layout = _with_corruption(layout, wanted.corruption)
    if wanted.given:
        layout = _with_given(layout, view, wanted.given)
    return _with_values(layout) if wanted.eager else layout


def with_labels(layout: BatchLayout, **rows: Any) -> BatchLayout:
    """Labels, if there are any, as what the computed targets are; `rows` says of these what the view decides."""
    given = layout.computed.targets
    targets = _native.TargetSpec(shorten=layout.lookahead) if given is None else given.copy()
    for name, value in rows.items():
        setattr(targets, name, value)
    if layout.label_field is not None:
        targets.labels = _native.FieldSpec(
            name="labels",
            field=layout.label_field,
            type=layout.label_type.str,
            shorten=layout.lookahead,
            labels=True,
        )
    is_empty = targets.labels is None and not targets.mask
    return replace(layout, computed=layout.computed._replace(targets=None if is_empty else targets))


def with_computed(layout: BatchLayout) -> BatchLayout:
    """Says where the arrays of `computed` lie, behind those of `fields`."""
    sequences, targets, per_span = layout.computed[:3]
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


def with_fields(layout: BatchLayout) -> BatchLayout:
    """Says which fields the native threads make arrays of, inputs and labels first; then as `with_computed`."""
    fields: list[_native.FieldSpec] = []
    has_labels = layout.label_field is not None
    if has_labels:
        fields.append(layout.label_column("inputs"))
        if layout.computed.targets is None:
            fields.append(layout.label_column("labels"))
    for leaf in layout.leaf_of.values():
        # inputs and labels are what is used of their field: the field itself is cast only if somebody asks.
        if has_labels and leaf.name == layout.label_field and not layout.sliced:
            continue
        if _is_made(layout, leaf):
            shorten = layout.lookahead if layout.sliced else 0  # a part is of the window
            fields.append(
                _native.FieldSpec(name=leaf.name, field=leaf.name, type=layout.types[leaf.name].str, shorten=shorten)
            )
    column_of = {each.name: ColumnPlace(at, 0, np.dtype(each.type)) for at, each in enumerate(fields)}
    return with_computed(replace(layout, fields=tuple(fields), column_of=column_of))


def _with_corruption(layout: BatchLayout, corruption: Corruption) -> BatchLayout:
    dtype = _label_type(corruption.field, layout.chosen)
    # The tokens as they are stored are cast only if somebody asks.
    fields = tuple(each for each in layout.fields if each.name != corruption.field)
    column_of = {each.name: ColumnPlace(at, 0, np.dtype(each.type)) for at, each in enumerate(fields)}
    layout = with_computed(replace(layout, fields=fields, column_of=column_of, label_type=dtype))
    number = len(fields) + len(layout.computed.specs)
    types = {"inputs": dtype, "labels": dtype, "attention_mask": np.dtype(np.int64)}
    made = {name: ColumnPlace(number, part, each) for part, (name, each) in enumerate(types.items())}
    return replace(layout, makers=(corruption.make(dtype),), column_of={**layout.column_of, **made})


def _with_given(layout: BatchLayout, view: Any, given: tuple[GivenArray, ...]) -> BatchLayout:
    taken = {*RESERVED_NAMES, *layout.types, *layout.column_of, *layout.per_span_of, *view.columns, "attention_mask"}
    taken.update(each.name for each in layout.names)
    for name, *_ in given:
        if name in taken:
            raise InvalidArgumentError(
                f"PerRow: a batch has the name {excerpt(name)!r} already, for a field, a column or another part of it"
            )
    before = len(layout.fields) + len(layout.computed.specs) + len(layout.makers)
    makers = tuple(_native.make_given(each.base.str, list(each.dims)) for each in given)
    places = {each.name: ColumnPlace(before + at, 0, each.base) for at, each in enumerate(given)}
    return replace(layout, makers=layout.makers + makers, given_of=places)


def _is_made(layout: BatchLayout, leaf: Leaf) -> bool:
    """True if the native threads make an array of the field: the records do not have it as it is given out."""
    if leaf.base.kind not in "SV" and (layout.torch is not None or leaf.name in layout.chosen or layout.sliced):
        return True
    return layout.fields_apart and not layout.sliced


def _with_values(layout: BatchLayout) -> BatchLayout:
    # Of windows there is a value for each span, and nobody knows how many there will be before all rows are read.
    values = tuple(layout.value_types) if layout.ragged else ()
    before = len(layout.fields) + len(layout.computed.specs) + len(layout.makers)
    places = {name: ColumnPlace(before + at, 0, layout.value_types[name].base) for at, name in enumerate(values)}
    return replace(layout, values=values, value_of=places)


def _of_records(view: Any, wanted: Wanted) -> BatchLayout:
    """The records of a view and their fields, before any column is placed."""
    source = view._source
    record_dtype = view.dtype if view.dtype is not None and view.dtype.names else None
    found = tuple(leaves(record_dtype)) if record_dtype is not None else ()
    for leaf in found:
        if leaf.name in RESERVED_NAMES:
            raise InvalidArgumentError(
                f"field {excerpt(leaf.name)!r} is called like an attribute of a batch: rename it"
            )
    label_field, why = view._label_field(found)
    chosen = chosen_types(found, wanted.dtype)
    given = {**(wanted.common or {}), **chosen}
    types = {leaf.name: given.get(leaf.name) or default_type(leaf, wanted.torch) for leaf in found}
    native = view.dataset._native
    types_there = {name: dtype for name, dtype, _ in types_of(native)}
    are_codes = {name for name, _, is_category in types_of(native) if is_category}
    return BatchLayout(
        record_dtype=None if record_dtype is None else stored_dtype(record_dtype, source.stored_record_bytes),
        leaf_of={leaf.name: leaf for leaf in found},
        types=types,
        chosen=chosen,
        computed=wanted.computed,
        value_types={name: types_there[name] for name in view.columns},
        flat=frozenset(types) if source.ragged else frozenset(),
        label_field=label_field,
        label_type=_label_type(label_field, chosen),
        why_no_labels=why,
        lookahead=view.lookahead,
        ragged=source.ragged,
        fields_apart=source.fields_apart or wanted.records_differ,
        torch=wanted.torch,
        decoders=(entry_decoder(view.dataset._native),),
        records_differ=wanted.records_differ,
        sliced=wanted.sliced,
        metadata=view.metadata,
        categories={name: tuple(native.categories(name)) for name in view.columns if name in are_codes},
    )


def _label_type(label_field: str | None, chosen: dict[str, np.dtype[Any]]) -> np.dtype[Any]:
    wanted = None if label_field is None else chosen.get(label_field)
    return wanted if wanted is not None and wanted.kind == "i" else np.dtype(np.int64)
