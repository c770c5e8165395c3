"""Arrays that the loader computes beside the fields, as users ask for them: `penstock.columns`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, cast

from penstock._base.arguments import index
from penstock._base.errors import InvalidArgumentError
from penstock._base.words import excerpt, quoted
from penstock._data.bounds import Bounds, document_bounds
from penstock._data.computed import ComputedSpecs
from penstock._data.dtype import RESERVED_NAMES, numpy_type
from penstock._data.fields import leaves, token_leaf
from penstock._data.span_functions import SpanFunctions, ValueFunction, one_value
from penstock._data.token_documents import SIDES
from penstock._native import DocumentBounds, PerSpanSpec, SequenceSpec, TargetSpec

_MOST_DOCUMENTS = (1 << 31) - 2  # int32 holds one value more


@dataclass(frozen=True)
class CuSeqlens:
    """`batch.cu_seqlens`: int32, where each sequence of the flattened batch begins, and the last one's end.

    [documents + 1], or with `max_documents` of the loader [max_documents + 1], padded with the last value: empty
    sequences. A row of padding is one sequence (of documents: none). With it comes `batch.max_seqlen`: the longest, or
    of windows with `max_documents` the window, so that it is the same in all batches.

    Attributes:
        end_of_document: the token that ends a document, for datasets whose spans or tokenizer do not say; the same as
            `dataset.windows(…, end_of_document=…)`.
        begin_of_document: the token with which a document begins, likewise.

    Examples:
        >>> import numpy as np, os, penstock, tempfile
        >>> path = os.path.join(tempfile.mkdtemp(), "tokens.bin")
        >>> np.array([5, 6, 0, 7, 8, 9, 9, 0], "u2").tofile(path)
        >>> view = penstock.open(path, dtype="u2").windows(4)
        >>> ends = penstock.columns.CuSeqlens(end_of_document=0)
        >>> batch = next(penstock.Loader(view, 2, order="sequential", columns=[ends, "document_ids"]))
        >>> batch.cu_seqlens.tolist(), batch.document_ids.tolist()
        ([0, 3, 4, 8], [[0, 0, 0, 1], [0, 0, 0, 0]])
    """

    name: ClassVar[str] = "cu_seqlens"
    end_of_document: int | None = None
    begin_of_document: int | None = None


@dataclass(frozen=True)
class PositionIds:
    """`batch.position_ids`: int32 [rows, window] (of documents [records]), each record's place in its sequence.

    Attributes:
        end_of_document: as of `CuSeqlens`.
        begin_of_document: as of `CuSeqlens`.
    """

    name: ClassVar[str] = "position_ids"
    end_of_document: int | None = None
    begin_of_document: int | None = None


@dataclass(frozen=True)
class DocumentIds:
    """`batch.document_ids`: int32 [rows, window] (of documents [records]), the number of each record's sequence.

    Sequences are numbered from 0 in each row, those of documents, which have no axis of rows, through the batch; -1 in
    rows that are padding.

    Attributes:
        end_of_document: as of `CuSeqlens`.
        begin_of_document: as of `CuSeqlens`.
    """

    name: ClassVar[str] = "document_ids"
    end_of_document: int | None = None
    begin_of_document: int | None = None


@dataclass(frozen=True)
class LossMask:
    """`batch.loss_mask`: bool [rows, window] (of documents [records]), whether the loss at each record counts.

    It belongs to the *target*, the record that follows: false where that does not count, where there is none (the last
    record of a row without lookahead, or of a document in a packed or padded row) and in padding. `batch.labels` are
    -100 there. Several masks count together: a target that one of them leaves out is out.

    Attributes:
        field: of the records, bool or integers: a target counts where it is not 0.
        spans: a function of a document's metadata that gives the ranges [[begin, end), …] of its records that count,
            counted from the document's begin. `next` calls it, once for each entry of a batch, on entries that were
            read ahead; the arrays are then filled by native code.

    Examples:
        >>> import os, penstock, tempfile
        >>> path = os.path.join(tempfile.mkdtemp(), "chats")
        >>> with penstock.Writer(path, fields={"token": "u2"}, metadata="json") as writer:
        ...     writer.append(token=[1, 2, 3, 4], metadata={"answers": [[2, 4]]})
        ...     writer.append(token=[5, 6, 7, 8, 9], metadata={"answers": [[1, 2], [4, 5]]})
        >>> view = penstock.open(path).windows(4, lookahead=1)
        >>> answers = penstock.columns.LossMask(spans=lambda metadata: metadata["answers"])
        >>> batch = next(penstock.Loader(view, 2, order="sequential", columns=[answers], framework="numpy"))
        >>> batch.inputs.tolist(), batch.labels.tolist()
        ([[1, 2, 3, 4], [5, 6, 7, 8]], [[-100, 3, 4, -100], [6, -100, -100, 9]])
        >>> batch.loss_mask.astype(int).tolist()
        [[0, 1, 1, 0], [1, 0, 0, 1]]
    """

    name: ClassVar[str] = "loss_mask"
    field: str | None = None
    spans: Callable[[Any], Any] | None = None


@dataclass(frozen=True)
class Labels:
    """Which of `batch.labels` are left out. Those of packed and padded rows never cross documents.

    Attributes:
        cross_document: False: labels whose record is of another document than its input are -100, and `loss_mask` is
            false there.
    """

    name: ClassVar[str] = "labels"
    cross_document: bool = True


@dataclass(frozen=True)
class PerSpan:
    """`batch.columns[name]`: [rows, window] (of documents [records]), a value of each document, for all its records.

    Attributes:
        name: of the array.
        f: a function of the document's metadata that gives the value; called as `LossMask.spans` is.
        dtype: of the array: a bool, an integer or a float.
        fill: the value in padding.

    Examples:
        >>> import os, penstock, tempfile
        >>> path = os.path.join(tempfile.mkdtemp(), "corpus")
        >>> with penstock.Writer(path, fields={"token": "u2"}, metadata="json") as writer:
        ...     for length in (3, 7):
        ...         writer.append(token=range(length), metadata={"quality": length / 2})
        >>> quality = penstock.columns.PerSpan("quality", lambda metadata: metadata["quality"], "f4", fill=0)
        >>> view = penstock.open(path).windows(5)
        >>> batch = next(penstock.Loader(view, 2, order="sequential", columns=[quality], framework="numpy"))
        >>> batch.columns["quality"].tolist()
        [[1.5, 1.5, 1.5, 3.5, 3.5], [3.5, 3.5, 3.5, 3.5, 3.5]]
    """

    name: str
    f: Callable[[Any], Any]
    dtype: Any
    fill: Any = 0


Column = CuSeqlens | PositionIds | DocumentIds | LossMask | Labels | PerSpan
_Sequence = CuSeqlens | PositionIds | DocumentIds
_KINDS: dict[str, type[_Sequence]] = {each.name: each for each in (CuSeqlens, PositionIds, DocumentIds)}
_WITH_OPTIONS = {each.name: each.__name__ for each in (LossMask, Labels)}


def resolve(
    columns: Iterable[str | Column], max_documents: int | None, view: Any
) -> tuple[ComputedSpecs, SpanFunctions | None]:
    """What the native loader makes for a loader's `columns` of this view, and what `next` calls for them.

    Raises:
        InvalidArgumentError: an unknown column, one that is given twice, several ends of documents or none that is
            known, `max_documents` without `cu_seqlens`, a field that is not there, functions of metadata that the view
            does not read.
    """
    if isinstance(columns, str) or not isinstance(columns, Iterable):
        raise InvalidArgumentError(f'columns={columns!r:.80}: must be a list, such as ["cu_seqlens"]')
    wanted = [_column(each) for each in columns]
    names = [each.name for each in wanted if not isinstance(each, LossMask)]
    for name in names:
        if names.count(name) > 1:
            raise InvalidArgumentError(f"columns=: {excerpt(name)} is there twice")
    if max_documents is not None:
        if "cu_seqlens" not in names:
            raise InvalidArgumentError('max_documents= is of cu_seqlens: give columns=["cu_seqlens"] too')
        max_documents = index("max_documents", max_documents, 1, _MOST_DOCUMENTS)
    if not wanted:
        return ComputedSpecs(), None
    if view.dtype is None or not view.dtype.names:
        raise InvalidArgumentError(f"columns={[each.name for each in wanted]}: opaque documents have no records")
    sequences = [each for each in wanted if isinstance(each, _Sequence)]
    crossing = [each for each in wanted if isinstance(each, Labels) and not each.cross_document]
    bounds = _bounds([*sequences, *crossing], view) if sequences or crossing else Bounds()
    masks = [each for each in wanted if isinstance(each, LossMask)]
    values = [each for each in wanted if isinstance(each, PerSpan)]
    for each in wanted:
        if not isinstance(each, _Sequence):
            view._check_column(_called(each))
    labels = [each for each in wanted if isinstance(each, Labels)]
    for each in labels:
        if not isinstance(each.cross_document, bool):
            raise InvalidArgumentError(f"Labels(cross_document={each.cross_document!r:.80}): must be True or False")
    computed = ComputedSpecs(
        tuple(_sequence_specs(sequences, max_documents, view, bounds)),
        _target_spec(masks, bool(crossing), view, bounds),
        tuple(_per_span_spec(each, view) for each in values),
        wants_labels=bool(labels) and not (crossing and masks),
    )
    return computed, _span_functions(masks, values, view)


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
            raise InvalidArgumentError(f"columns=: there is no column {given!r:.80}; there are {there} and PerSpan(…)")
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
    what = "LossMask(spans=…)" if by_span else _called(values[0])
    dataset = view.dataset
    for called, function in [*(("LossMask(spans=…)", each) for each in by_span), *((_called(v), v.f) for v in values)]:
        if not callable(function):
            raise InvalidArgumentError(f"{called}: {function!r:.80} is no function of metadata")
    if dataset.spans == 0:
        raise InvalidArgumentError(f"{what}: {dataset.path} has no spans, whose metadata it is a function of")
    if dataset.codec in (None, "boundaries"):
        raise InvalidArgumentError(
            f"{what}: {dataset.path} has boundaries of documents and no metadata, which it is a function of"
        )
    if view.metadata is not True:
        raise InvalidArgumentError(
            f"{what} is a function of metadata, which this view does not read: metadata={view.metadata!r}; "
            f"dataset.{view.kind}(…, metadata=True) does"
        )
    if by_span and dataset.layout == "ids":
        raise InvalidArgumentError(
            f"{what}: {dataset.path} has the ids layout, whose spans do not say where in a document they begin: "
            "use PerSpan or LossMask(field=…), or penstock.convert(…, layout='compact')"
        )
    per_span = tuple(ValueFunction(each.name, each.f, numpy_type(each.dtype)) for each in values)
    return SpanFunctions((dataset.path,), tuple(by_span), per_span)
