"""What a loader's `columns=` come to: specifications for the native side, and functions that `next` calls."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, cast

from penstock._base.arguments import index
from penstock._base.errors import InvalidArgumentError
from penstock._base.words import excerpt, quoted
from penstock._data.bounds import Bounds, document_bounds
from penstock._data.column_kinds import (
    Column,
    CuSeqlens,
    DocumentIds,
    FillInTheMiddle,
    Labels,
    LossMask,
    Names,
    PerRow,
    PerSpan,
    PositionIds,
    SpanCorruption,
)
from penstock._data.computed import ComputedSpecs
from penstock._data.dtype import RESERVED_NAMES, numpy_type
from penstock._data.fields import leaves, token_leaf
from penstock._data.span_functions import SpanFunctions, ValueFunction, one_value
from penstock._data.token_documents import SIDES
from penstock._native import DocumentBounds, PerSpanSpec, SequenceSpec, TargetSpec

_MOST_DOCUMENTS = (1 << 31) - 2  # int32 holds one value more


_Sequence = CuSeqlens | PositionIds | DocumentIds
_KINDS: dict[str, type[_Sequence]] = {each.name: each for each in (CuSeqlens, PositionIds, DocumentIds)}
_WITH_OPTIONS = {each.name: each.__name__ for each in (LossMask, Labels, FillInTheMiddle, SpanCorruption, PerRow)}


def resolve(
    columns: Iterable[str | Column], max_documents: int | None, view: Any
) -> tuple[ComputedSpecs, SpanFunctions | None]:
    """A loader's `columns` of this view, as the native loader makes them, and the functions that `next` calls.

    Raises:
        InvalidArgumentError: an unknown column, one that is given twice, several ends of documents or none that is
            known, `max_documents` without `cu_seqlens`, a field that is not there, functions of metadata that the view
            does not read.
    """
    wanted: list[Column] = [
        each for each in _wanted(columns) if not isinstance(each, FillInTheMiddle | SpanCorruption | PerRow | Names)
    ]
    most = _most_documents(max_documents, wanted)
    if not wanted:
        return ComputedSpecs(), None
    if view.dtype is None or not view.dtype.names:
        raise InvalidArgumentError(f"columns={[each.name for each in wanted]}: opaque documents have no records")
    chosen = _Chosen.of(wanted)
    bounds = _bounds(chosen.bounded, view) if chosen.bounded else Bounds()
    for each in chosen.of_records:
        view._check_column(_called(each))
    _check_labels(chosen.labels)
    computed = ComputedSpecs(
        tuple(_sequence_specs(chosen.sequences, most, view, bounds)),
        _target_spec(chosen.masks, bool(chosen.crossing), view, bounds),
        tuple(_per_span_spec(each, view) for each in chosen.values),
        wants_labels=bool(chosen.labels) and not (chosen.crossing and chosen.masks),
    )
    return computed, _span_functions(chosen.masks, chosen.values, view)


class _Chosen(NamedTuple):
    """The columns that were asked for, by what computes them."""

    sequences: list[_Sequence]
    masks: list[LossMask]
    labels: list[Labels]
    values: list[PerSpan]

    @staticmethod
    def of(wanted: list[Column]) -> _Chosen:
        return _Chosen(
            [each for each in wanted if isinstance(each, _Sequence)],
            [each for each in wanted if isinstance(each, LossMask)],
            [each for each in wanted if isinstance(each, Labels)],
            [each for each in wanted if isinstance(each, PerSpan)],
        )

    @property
    def crossing(self) -> list[Labels]:
        """Labels that end with their document."""
        return [each for each in self.labels if not each.cross_document]

    @property
    def of_records(self) -> list[Column]:
        """Those that are of records, whatever else they are of."""
        return [*self.masks, *self.labels, *self.values]

    @property
    def bounded(self) -> list[_Sequence | Labels]:
        """Those that need to know where documents begin."""
        return [*self.sequences, *self.crossing]


def _wanted(columns: Any) -> list[Column]:
    """The columns that a user named; each once, but for masks, which count together, and what is of some sources."""
    if isinstance(columns, str) or not isinstance(columns, Iterable):
        raise InvalidArgumentError(f'columns={columns!r:.80}: must be a list, such as ["cu_seqlens"]')
    wanted = [_column(each) for each in columns]
    names = [
        str(each.name or each.column) if isinstance(each, Names) else each.name
        for each in wanted
        if not isinstance(each, LossMask | FillInTheMiddle | PerRow)
    ]
    for name in names:
        if names.count(name) > 1:
            raise InvalidArgumentError(f"columns=: {excerpt(name)} is there twice")
    return wanted


def _most_documents(given: int | None, wanted: list[Column]) -> int | None:
    if given is None:
        return None
    if "cu_seqlens" not in [each.name for each in wanted]:
        raise InvalidArgumentError('max_documents= is of cu_seqlens: give columns=["cu_seqlens"] too')
    return index("max_documents", given, 1, _MOST_DOCUMENTS)


def _check_labels(labels: list[Labels]) -> None:
    for each in labels:
        if not isinstance(each.cross_document, bool):
            raise InvalidArgumentError(f"Labels(cross_document={each.cross_document!r:.80}): must be True or False")


def _called(column: Column) -> str:
    return f"PerSpan({excerpt(column.name)!r})" if isinstance(column, PerSpan) else type(column).__name__


def _column(given: Any) -> Column:
    if isinstance(given, str):
        if given in _WITH_OPTIONS:
            raise InvalidArgumentError(
                f"columns=: {given} says too little: give penstock.columns.{_WITH_OPTIONS[given]}(…)"
            )
        if given not in _KINDS:
            there = ", ".join([*_KINDS, *_WITH_OPTIONS])
            raise InvalidArgumentError(
                f"columns=: there is no column {given!r:.80}; there are {there}, PerSpan(…) and Names(…)"
            )
        return _KINDS[given]()
    if not isinstance(given, Column):
        raise InvalidArgumentError(f"columns=: {given!r:.80} is neither a name nor one of penstock.columns")
    return given


def _sequence_specs(
    wanted: list[_Sequence], max_documents: int | None, view: Any, bounds: Bounds
) -> Iterator[SequenceSpec]:
    names = [each.name for each in wanted]
    for name in [*names, "max_seqlen"] if "cu_seqlens" in names else names:
        bounded = max_documents if name in ("cu_seqlens", "max_seqlen") else None
        yield SequenceSpec(name=name, shorten=view.lookahead, bounds=_native_bounds(bounds), max_documents=bounded)


def _bounds(wanted: list[Any], view: Any) -> Bounds:
    """Where documents begin: by the token that the columns or the view give, else by spans, else by the tokenizer."""
    given = {(side, value) for each in wanted for side in SIDES if (value := getattr(each, side, None)) is not None}
    said: Bounds | None = view._column_bounds(sorted(given, key=repr))
    if said is not None:
        return said
    if len(given) > 1:
        named = [f"{side} is {value!r:.80}" for side, value in sorted(given, key=repr)]
        raise InvalidArgumentError(f"columns=: {' and '.join(named)}: give one")
    dataset = view.dataset
    if given:
        by, value = given.pop()
        bounds = document_bounds(view.dtype, **dict.fromkeys(("end", "begin")) | {by.partition("_")[0]: value})
        dataset._check_side(bounds)
        return cast(Bounds, bounds)
    if dataset.spans > 0:
        return Bounds()
    end = (dataset.tokenizer or {}).get("end_of_document")
    if end is None:
        raise InvalidArgumentError(
            f"{_called(wanted[0])}: {dataset.path} has no spans, and no tokenizer that says which token ends a "
            "document: give dataset.windows(…, end_of_document=…) or begin_of_document=…"
        )
    leaf, why = token_leaf(view.dtype)
    if leaf is None:
        raise InvalidArgumentError(f"{_called(wanted[0])}: end_of_document of which field? {why}")
    return Bounds("end_of_document", leaf, index("end_of_document", end, 0, (1 << 63) - 1))


def _native_bounds(bounds: Bounds) -> DocumentBounds:
    return DocumentBounds(by=bounds.by, field=bounds.field, value=bounds.value)


def _target_spec(masks: list[LossMask], is_cut: bool, view: Any, bounds: Bounds) -> TargetSpec | None:
    fields = []
    there = [leaf.name for leaf in leaves(view.dtype)]
    for mask in masks:
        if (mask.field is None) == (mask.spans is None):
            raise InvalidArgumentError("columns=: LossMask takes field= or spans=: give exactly one of them")
        if mask.spans is not None:
            continue
        if mask.field not in there:
            raise InvalidArgumentError(
                f"LossMask(field={mask.field!r:.80}): there is no such field; the fields are {quoted(there)}"
            )
        fields.append(mask.field)
    if not masks and not is_cut:
        return None
    return TargetSpec(
        mask=bool(masks),
        shorten=view.lookahead,
        fields=tuple(fields),
        cross_document=not is_cut,
        bounds=_native_bounds(bounds),
    )


def _per_span_spec(value: PerSpan, view: Any) -> PerSpanSpec:
    if not isinstance(value.name, str) or not value.name:
        raise InvalidArgumentError(f"PerSpan(name={value.name!r:.80}): must be a name")
    if value.name in _KINDS or value.name in _WITH_OPTIONS or value.name == "max_seqlen":
        raise InvalidArgumentError(f"PerSpan({value.name!r}): another column has this name")
    if value.name in {*RESERVED_NAMES, *(leaf.name for leaf in leaves(view.dtype)), *view.columns}:
        raise InvalidArgumentError(
            f"PerSpan({value.name!r}): a batch has this name already, for a field, a column or another part of it"
        )
    if value.dtype is None:
        raise InvalidArgumentError(f"{_called(value)}: dtype=None: give the type of its values")
    try:
        dtype = numpy_type(value.dtype)
    except InvalidArgumentError as error:
        raise InvalidArgumentError(f"{_called(value)}: {error}") from None
    if dtype.kind not in "biuf" or dtype.itemsize > 8:
        raise InvalidArgumentError(
            f"{_called(value)}: dtype={value.dtype!r:.80}: must be a bool, an integer or a float of at most 8 bytes"
        )
    try:
        fill = one_value(bool(value.fill) if dtype.kind == "b" and value.fill in (0, 1) else value.fill, dtype)
    except ValueError:
        raise InvalidArgumentError(f"{_called(value)}: fill={value.fill!r:.80}: must be one value of {dtype}") from None
    return PerSpanSpec(
        name=value.name,
        type=dtype.str,
        fill=int.from_bytes(fill.tobytes(), "little"),
        shorten=view.lookahead,
    )


def _span_functions(masks: list[LossMask], values: list[PerSpan], view: Any) -> SpanFunctions | None:
    by_span = [each.spans for each in masks if each.spans is not None]
    if not by_span and not values:
        return None
    for called, function in [*(("LossMask(spans=…)", each) for each in by_span), *((_called(v), v.f) for v in values)]:
        if not callable(function):
            raise InvalidArgumentError(f"{called}: {function!r:.80} is no function of metadata")
    _check_metadata("LossMask(spans=…)" if by_span else _called(values[0]), bool(by_span), view)
    per_span = tuple(ValueFunction(each.name, each.f, numpy_type(each.dtype)) for each in values)
    return SpanFunctions((view.dataset.path,), tuple(by_span), per_span)


def _way_out(is_mask: bool) -> str:
    other = ", or LossMask(field=…) with a field of 0 and 1 beside the tokens" if is_mask else ""
    return f": make a dataset with penstock write or import and --metadata{other}"


def _check_metadata(what: str, is_mask: bool, view: Any) -> None:
    """Refuses functions of metadata that the view does not read, or whose places in documents nobody knows."""
    dataset = view.dataset
    if dataset.spans == 0:
        raise InvalidArgumentError(
            f"{what}: {dataset.path} has no spans, whose metadata it is a function of{_way_out(is_mask)}"
        )
    if dataset.codec in (None, "boundaries"):
        raise InvalidArgumentError(
            f"{what}: {dataset.path} has boundaries of documents and no metadata, which it is a function of"
            f"{_way_out(is_mask)}"
        )
    if view.metadata is not True:
        raise InvalidArgumentError(
            f"{what} is a function of metadata, which this view does not read: metadata={view.metadata!r}; "
            f"dataset.{view.kind}(…, metadata=True) does"
        )
    if is_mask and dataset.layout == "ids":
        raise InvalidArgumentError(
            f"{what}: {dataset.path} has the ids layout, whose spans do not say where in a document they begin: "
            "use PerSpan or LossMask(field=…), or penstock.convert(…, layout='compact')"
        )
