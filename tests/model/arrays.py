"""The arrays of a batch, from docs/loading.md, post-training.md and parallelism.md: rows in, NumPy arrays out."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from by_span import spans_of, values_of
from observations import Given, Row

IGNORED = -100


@dataclass(frozen=True)
class Leaf:
    """A scalar field of the records: its dotted name, type and trailing axes."""

    name: str
    base: np.dtype[Any]
    dims: tuple[int, ...]

    def of(self, records: np.ndarray) -> np.ndarray:
        found = records
        for part in self.name.split("."):
            found = found[part]
        return found


def leaves(dtype: np.dtype[Any], prefix: str = "", dims: tuple[int, ...] = ()) -> Iterator[Leaf]:
    base, shape = dtype.subdtype or (dtype, ())
    if base.names is None:
        yield Leaf(prefix, base, dims + shape)
        return
    for name in base.names:
        yield from leaves(base[name], f"{prefix}.{name}" if prefix else name, dims + shape)


def label_field(found: Sequence[Leaf]) -> str | None:
    integers = [each.name for each in found if each.base.kind in "iu"]
    return "token" if "token" in integers else integers[0] if len(integers) == 1 else None


@dataclass(frozen=True)
class Slice:
    """A context-parallel rank's part of each row."""

    rank: int
    size: int
    layout: str


@dataclass(frozen=True)
class Padded:
    """How `padded` was asked for; `to` None is the longest."""

    to: int | None = None
    multiple_of: int = 1
    left: bool = False
    value: int = 0


@dataclass(frozen=True)
class Computed:
    """What a loader's `columns=` ask for."""

    sequences: bool = False
    max_documents: int | None = None
    fields: tuple[str, ...] = ()  # of LossMask(field=)
    answers: bool = False  # LossMask(spans=)
    within: bool = False  # Labels(cross_document=False)
    quality: bool = False  # PerSpan
    end: int | None = None  # the token that ends documents
    begin: int | None = None  # or begins them


@dataclass(frozen=True)
class Layout:
    """All that decides a batch's arrays, but for its rows.

    Attributes:
        kind: "windows", "packed", "documents", "padded", "opaque", or a form of cells.
        types: of each field, as it is given out.
        label_type: of inputs and labels; None where there are none.
        categories: of columns of documents that are categories: the names, by source.
    """

    kind: str
    window: int
    lookahead: int
    multiple_of: int
    leaves: tuple[Leaf, ...]
    types: Mapping[str, np.dtype[Any]]
    label_field: str | None
    label_type: np.dtype[Any]
    computed: Computed
    values: Mapping[str, np.dtype[Any]]
    categories: tuple[Mapping[str, list[str]], ...]
    metadata: bool | str
    slice: Slice | None = None
    padded: Padded | None = None

    @property
    def has_labels(self) -> bool:
        rows = self.kind in ("packed", "padded") or (self.kind == "windows" and self.lookahead > 0)
        return rows and self.label_field is not None

    @property
    def has_mask(self) -> bool:
        return bool(self.computed.fields) or self.computed.answers


def batch_arrays(given: Sequence[Given], layout: Layout, size: int, window: int) -> dict[str, Any]:
    """What a batch of `size` rows, windows of `window`, has whose first ones are `given`; the others are padding."""
    made = [_of_row(each, layout) for each in given]
    found: dict[str, Any] = {}
    if layout.kind in ("windows", "packed"):
        found |= _rectangle(made, given, layout, size, window)
    elif layout.kind == "padded":
        found |= _padded(made, given, layout, size)
    elif layout.kind == "documents":
        found |= _flat(made, given, layout, size)
    elif layout.computed.sequences:  # of cells, whose other arrays their form has
        found |= _sequences_of_documents(made, given, layout)
    if layout.metadata is not False:
        found |= spans_of(given, layout.metadata)
    if layout.kind not in ("windows", "packed"):
        spans = [each.row.spans[0] for each in given]
        found |= values_of(given, spans, layout.values, layout.categories, size)
    elif layout.values:
        spans = [span for each in given for span in each.row.spans]
        of_rows = [each for each in given for _ in each.row.spans]
        found |= values_of(of_rows, spans, layout.values, layout.categories, len(spans))
    return found


# --- one row


def _of_row(given: Given, layout: Layout) -> dict[str, np.ndarray]:
    """The arrays of a row by name, before padding and slicing; `ends` are those of its sequences."""
    key = (layout.computed, layout.label_field, layout.lookahead, layout.multiple_of, layout.kind)
    if key not in given.row.arrays:
        given.row.arrays[key] = _made(given, layout)
    return given.row.arrays[key]


def _made(given: Given, layout: Layout) -> dict[str, np.ndarray]:
    row, wanted = given.row, layout.computed
    if layout.kind == "opaque":
        return {}
    count = len(row.records) - layout.lookahead
    found = {leaf.name: leaf.of(row.records) for leaf in layout.leaves}
    tokens = found[layout.label_field] if layout.label_field is not None else None
    cuts = _cuts(row, layout, tokens)
    counted = _targets(row, layout, cuts)
    found["loss_mask"] = counted[:count]
    if tokens is not None and layout.has_labels:
        following = np.append(tokens[1:], 0).astype(np.int64)[:count]
        found["inputs"] = tokens[:count]
        found["labels"] = np.where(counted[:count], following, IGNORED)
    begins = [0, *(each for each in cuts if 0 < each < count)]
    if layout.kind == "packed" and row.spans:
        rest = -(-row.spans[-1].stop // layout.multiple_of) * layout.multiple_of
        begins += [rest] if rest < count and rest not in begins else []
    found["ends"] = np.array([*begins[1:], count], np.int64)
    lengths = found["ends"] - begins
    found["position_ids"] = np.arange(count) - np.repeat(begins, lengths)
    numbers = np.repeat(np.arange(len(begins)), lengths)
    if layout.kind == "packed":
        covered = np.zeros(count, bool)
        for span in row.spans:
            covered[span.start : span.stop] = True
        numbers = np.where(covered, numbers, -1)
    found["document_ids"] = numbers
    if wanted.quality:
        values = np.full(count, np.float32(-1))
        for span in row.spans:
            values[span.start : min(span.stop, count)] = span.place.metadata["quality"]
        found["quality"] = values
    return found


def _cuts(row: Row, layout: Layout, tokens: np.ndarray | None) -> list[int]:
    """Where documents begin, by the spans or by a token, in all of the row's records."""
    wanted = layout.computed
    if wanted.end is not None and tokens is not None:
        return (np.flatnonzero(tokens == wanted.end) + 1).tolist()
    if wanted.begin is not None:
        return np.flatnonzero(tokens == wanted.begin).tolist()
    return [span.start for span in row.spans]


def _targets(row: Row, layout: Layout, cuts: Sequence[int]) -> np.ndarray:
    """Whether the target of each record, the next one, counts."""
    wanted, records = layout.computed, len(row.records)
    counts = np.ones(records, bool)  # of the target itself
    for leaf in layout.leaves:
        if leaf.name in wanted.fields:
            counts &= leaf.of(row.records) != 0
    if wanted.answers:
        answered = np.zeros(records, bool)
        for span in row.spans:
            for begin, end in span.place.metadata["answers"]:
                first = max(begin - span.offset, 0) + span.start
                last = min(end - span.offset + span.start, span.stop)
                answered[first : max(first, last)] = True
        counts &= answered
    if wanted.within:
        counts[[each for each in cuts if each < records]] = False
    if layout.kind == "packed":
        inside = np.zeros(records, bool)
        for span in row.spans:
            inside[span.start + 1 : span.stop] = True
        counts &= inside
    return np.append(counts[1:], False)


# --- batches


def _rectangle(
    made: Sequence[Mapping[str, np.ndarray]], given: Sequence[Given], layout: Layout, size: int, window: int
) -> dict[str, Any]:
    parts = [_part(each.row, layout, window) for each in given]
    room = window // layout.slice.size if layout.slice else window

    def stacked(name: str, dtype: np.dtype[Any], fill: Any, length: int, dims: tuple[int, ...] = ()) -> np.ndarray:
        out = np.full((size, length, *dims), fill, dtype)
        for number, each in enumerate(made):
            out[number] = each[name] if parts[number] is None else each[name][parts[number]]
        return out

    found: dict[str, Any] = {}
    for leaf in layout.leaves:
        if leaf.base.kind == "S" and layout.slice:
            continue
        length = room if layout.slice else window + layout.lookahead
        found[leaf.name] = stacked(
            leaf.name, layout.types[leaf.name], 0 if leaf.base.kind != "S" else b"", length, leaf.dims
        )
    if layout.has_labels:
        found["inputs"] = stacked("inputs", layout.label_type, 0, room)
        found["labels"] = stacked("labels", layout.label_type, IGNORED, room)
    return found | _columns_of_rectangle(stacked, made, layout, size, window, room)


def _columns_of_rectangle(stacked: Any, made: Any, layout: Layout, size: int, window: int, room: int) -> dict[str, Any]:
    wanted, found = layout.computed, {}
    if layout.has_mask:
        found["loss_mask"] = stacked("loss_mask", np.dtype(bool), False, room)
    if wanted.quality:
        found["columns.quality"] = stacked("quality", np.dtype("f4"), -1, room)
    if not wanted.sequences:
        return found
    positions = stacked("position_ids", np.dtype("i4"), 0, room)
    if size > len(made):
        whole = np.arange(window)
        positions[len(made) :] = whole if layout.slice is None else whole[_chunks(whole, layout.slice)]
    found["position_ids"] = positions
    found["document_ids"] = stacked("document_ids", np.dtype("i4"), -1, room)
    ends = [number * window + each["ends"] for number, each in enumerate(made)]
    ends += [np.array([(number + 1) * window]) for number in range(len(made), size)]
    return found | _cu_seqlens(np.concatenate(ends), wanted, window)


def _cu_seqlens(ends: np.ndarray, wanted: Computed, window: int) -> dict[str, Any]:
    bounds = np.concatenate([[0], ends]).astype(np.int32)
    longest = int(np.diff(bounds).max(initial=0))
    if wanted.max_documents is not None:
        bounds = np.append(bounds, np.full(wanted.max_documents + 1 - len(bounds), bounds[-1], np.int32))
        longest = window or longest
    return {"cu_seqlens": bounds, "max_seqlen": longest}


def _part(row: Row, layout: Layout, window: int) -> np.ndarray | None:
    """The records of a row that are a context-parallel rank's."""
    if layout.slice is None:
        return None
    if layout.slice.layout != "zigzag-documents":
        return _chunks(np.arange(window), layout.slice)
    last = -(-row.spans[-1].stop // layout.multiple_of) * layout.multiple_of if row.spans else 0
    bounds = sorted({0, *(span.start for span in row.spans), last, window})
    return np.concatenate([_chunks(np.arange(a, b), layout.slice) for a, b in itertools.pairwise(bounds)])


def _chunks(records: np.ndarray, part: Slice) -> np.ndarray:
    if part.layout == "contiguous":
        return np.split(records, part.size)[part.rank]
    chunks = np.split(records, 2 * part.size)
    return np.concatenate([chunks[part.rank], chunks[2 * part.size - 1 - part.rank]])


def _padded(
    made: Sequence[Mapping[str, np.ndarray]], given: Sequence[Given], layout: Layout, size: int
) -> dict[str, Any]:
    how = layout.padded
    assert how is not None
    lengths = [len(each.row.records) for each in given]
    longest = how.to if how.to is not None else -(-max([1, *lengths]) // how.multiple_of) * how.multiple_of

    def stacked(name: str, dtype: np.dtype[Any], fill: Any, dims: tuple[int, ...] = ()) -> np.ndarray:
        out = np.full((size, longest, *dims), fill, dtype)
        for number, each in enumerate(made):
            begin = longest - lengths[number] if how.left else 0
            out[number, begin : begin + lengths[number]] = each[name]
        return out

    found: dict[str, Any] = {}
    for leaf in layout.leaves:
        if leaf.base.kind != "S":
            fill = how.value if leaf.name == layout.label_field else 0
            found[leaf.name] = stacked(leaf.name, layout.types[leaf.name], fill, leaf.dims)
    ones = [{"attention_mask": np.ones(length)} for length in lengths]
    out = np.zeros((size, longest), np.int64)
    for number, each in enumerate(ones):
        begin = longest - lengths[number] if how.left else 0
        out[number, begin : begin + lengths[number]] = each["attention_mask"]
    found |= {"attention_mask": out, "lengths": np.array(lengths + [0] * (size - len(made)), np.int64)}
    if layout.has_labels:
        found["inputs"] = stacked("inputs", layout.label_type, how.value)
        found["labels"] = stacked("labels", layout.label_type, IGNORED)
    if layout.has_mask:
        found["loss_mask"] = stacked("loss_mask", np.dtype(bool), False)
    if layout.computed.quality:
        found["columns.quality"] = stacked("quality", np.dtype("f4"), -1)
    return found


def _flat(
    made: Sequence[Mapping[str, np.ndarray]], given: Sequence[Given], layout: Layout, size: int
) -> dict[str, Any]:
    starts = np.cumsum([0, *(len(each.row.records) for each in given)], dtype=np.int64)

    def joined(name: str, dtype: np.dtype[Any], dims: tuple[int, ...] = ()) -> np.ndarray:
        return np.concatenate([np.zeros((0, *dims), dtype), *(each[name] for each in made)]).astype(dtype)

    found: dict[str, Any] = {leaf.name: joined(leaf.name, layout.types[leaf.name], leaf.dims) for leaf in layout.leaves}
    found["offsets"] = np.append(starts, np.full(size - len(made), starts[-1]))
    if layout.has_mask:
        found["loss_mask"] = joined("loss_mask", np.dtype(bool))
    if layout.computed.quality:
        found["columns.quality"] = joined("quality", np.dtype("f4"))
    return found | (_sequences_of_documents(made, given, layout) if layout.computed.sequences else {})


def _sequences_of_documents(
    made: Sequence[Mapping[str, np.ndarray]], given: Sequence[Given], layout: Layout
) -> dict[str, Any]:
    starts = np.cumsum([0, *(len(each.row.records) for each in given)], dtype=np.int64)
    found: dict[str, Any] = {}
    before = np.cumsum([0, *(len(each["ends"]) for each in made)])
    numbers = [each["document_ids"] + first for each, first in zip(made, before, strict=False)]
    found["document_ids"] = np.concatenate([np.zeros(0, np.int32), *numbers]).astype(np.int32)
    found["position_ids"] = np.concatenate([np.zeros(0), *(each["position_ids"] for each in made)]).astype(np.int32)
    ends = [each["ends"] + start for each, start in zip(made, starts, strict=False)]
    found |= _cu_seqlens(np.concatenate([np.zeros(0, np.int64), *ends]), layout.computed, 0)
    return found
