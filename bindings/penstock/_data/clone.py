"""BatchCopy: a batch with memory of its own, which can be pickled, queued and saved."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, cast

import numpy as np
import numpy.typing as npt

from penstock._base import errors as _errors
from penstock._data.batch import Batch
from penstock._data.spans import Span, Spans
from penstock._data.sparse import csr_of

if TYPE_CHECKING:
    from penstock._data.arrays import BatchLayout

# What a batch offers beside its fields, spans and csr; the names of arrays are also those of _cached().
_OFFERED = (
    "inputs", "labels", "records", "columns", "cu_seqlens", "max_seqlen", "position_ids", "document_ids", "loss_mask",
    "attention_mask", "lengths", "indices", "epochs", "sources", "first_records", "positions", "valid", "offsets",
)  # fmt: skip


class _Facts(NamedTuple):
    """What a copy knows of the native batch."""

    rows: int
    valid: int
    position: int
    end: int
    of_all: int
    world_size: int
    micro_batches: int


@dataclass(frozen=True)
class _Layout:
    """What methods of `Batch` ask of its layout."""

    types: dict[str, Any]
    column_of: dict[str, None]
    flat: frozenset[str]
    label_field: str | None
    has_tokens: bool
    ragged: bool
    value_types: dict[str, Any]
    categories: dict[str, tuple[str, ...]]
    torch: Any


class _Error(NamedTuple):
    """Why there is no such array."""

    kind: str
    words: str


class _Unsigned(NamedTuple):
    """A tensor of unsigned integers as signed ones: torch 2.13 cannot load a pickle of uint16, uint32 or uint64."""

    signed: Any
    name: str

    def tensor(self, torch: Any) -> Any:
        return self.signed.view(getattr(torch, self.name))


class BatchCopy(Batch):
    """What `Batch.clone` gives: all that the batch offers, copied; it pickles, and holds nothing of the loader.

    `torch.load` takes it with `weights_only=False`. Metadata of spans is decoded already.
    """

    __slots__ = ("_csr_parts", "_missing")

    _csr_parts: tuple[str, tuple[int, int]] | None
    _missing: dict[str, _Error]

    def __reduce__(self) -> Any:
        """Pickles as its arrays."""
        layout = self._layout
        has_torch = layout.torch is not None
        names = {
            name: getattr(layout, name)
            for name in (
                "types",
                "column_of",
                "flat",
                "label_field",
                "has_tokens",
                "ragged",
                "value_types",
                "categories",
            )
        }
        arrays = _all({name: each for name, each in self._arrays.items() if name != "csr"}, _picklable)
        arrays["columns"] = dict(arrays["columns"])
        return _restored, (
            type(self), tuple(cast("_Facts", self._native)), self._job, names, has_torch, arrays, self._spans,
            self._csr_parts, {name: tuple(error) for name, error in self._missing.items()},
        )  # fmt: skip

    @property
    def records(self) -> npt.NDArray[Any]:
        """The records as read, see `Batch.records`."""
        return cast("npt.NDArray[Any]", self._cached("records", self._raise))

    @property
    def spans(self) -> Spans:
        """The metadata entries of all rows, by row and start."""
        if self._spans is None:
            self._raise("spans")
        return self._spans

    def to(self, device: Any, non_blocking: bool = False) -> BatchCopy:
        """The copy with its tensors on a device; `records` and `spans` stay where they are."""
        if self._layout.torch is None:
            super().to(device)  # refuses
        tensor = self._layout.torch.Tensor

        def moved(array: Any) -> Any:
            return array.to(device, non_blocking=non_blocking) if isinstance(array, tensor) else array

        return _mapped(self, moved)

    def clone(self) -> BatchCopy:
        """Another copy."""
        return _mapped(self, _copied)

    def _cached(self, name: str, make: Callable[[str], Any]) -> Any:
        if name not in self._arrays:
            if name != "csr" or self._csr_parts is None:
                self._raise(name)
            value, shape = self._csr_parts
            self._arrays[name] = csr_of(self.offsets, self["gene"], self[value], shape, self._layout.torch)
        return self._arrays[name]

    def _raise(self, name: str) -> NoReturn:
        kind, words = self._missing[name]
        raise (AttributeError(words) if kind == "AttributeError" else getattr(_errors, kind)(words))


class SpanCopies(Spans):
    """Spans with memory of their own: the arrays, the entries' bytes, and what the codec made of each."""

    __slots__ = ("_decoded", "_rest")

    def __init__(self, rest: _Entries, sources: int, has_entries: bool, decoded: list[Any]) -> None:
        super().__init__(cast("Any", rest), (None,) * sources, has_entries)
        self._rest, self._decoded = rest, decoded

    def __reduce__(self) -> Any:
        """Pickles as its arrays, bytes and objects."""
        return SpanCopies, (self._rest, len(self._decoders), self._has_entries, self._decoded)

    def _metadata(self, span: Span) -> Any:
        self._entries()
        found = self._decoded[span._at]
        if isinstance(found, _Error):
            raise getattr(_errors, found.kind)(found.words)
        return found


@dataclass(frozen=True)
class _Entries:
    """What is asked of the native list of spans."""

    parts: tuple[npt.NDArray[Any], ...]
    entries: list[bytes]

    def __len__(self) -> int:
        return len(self.parts[0])

    def arrays(self) -> tuple[npt.NDArray[Any], ...]:
        return self.parts

    def get(self, at: int) -> tuple[Any, ...]:
        row, start, stop, begins, ends, offset, ids, source = (each[at].tolist() for each in self.parts)
        return row, start, stop, begins, ends, None if offset < 0 else offset, *ids, source

    def of_row(self, row: int) -> tuple[int, int]:
        begin, end = np.searchsorted(self.parts[0], [row, row + 1]).tolist()
        return begin, end

    def raw(self, at: int) -> bytes:
        return self.entries[at]


def cloned(batch: Batch) -> BatchCopy:
    """The copy of a loader's or a view's batch; an entry that cannot be decoded is an error where it is asked for."""
    layout, native = batch._layout, batch._native
    state = None if batch._job is None else batch.state_dict()
    end = native.end if state is None else state["position"]
    missing: dict[str, _Error] = {}
    arrays: dict[str, Any] = {}
    for name in dict.fromkeys((*layout.types, *_OFFERED)):
        try:
            arrays[name] = batch[name] if name in layout.types else getattr(batch, name)
        except (_errors.Error, AttributeError) as error:
            missing[name] = _Error(type(error).__name__, str(error))
    csr, spans = None, None
    try:
        value = "" if layout.cells is None else layout.cells.value
        csr = (value, tuple(batch.csr.shape))
    except (_errors.Error, AttributeError) as error:
        missing["csr"] = _Error(type(error).__name__, str(error))
    try:
        spans = _copied_spans(batch.spans)
    except _errors.Error as error:
        missing["spans"] = _Error(type(error).__name__, str(error))
    mine = _Layout(
        layout.types,
        dict.fromkeys(layout.column_of),
        layout.flat,
        layout.label_field,
        layout.has_tokens,
        layout.ragged,
        layout.value_types,
        layout.categories,
        layout.torch,
    )
    shared = native.of_all, native.world_size, native.micro_batches
    facts = _Facts(native.rows, native.valid, batch.position, end, *shared)
    job = None if state is None else (state["version"], state["job"])
    return _made(BatchCopy, facts, job, mine, _all(arrays, _copied), spans, csr, missing)


def _made(
    kind: Any, facts: _Facts, job: Any, layout: _Layout, arrays: Any, spans: Any, csr: Any, missing: Any
) -> BatchCopy:
    copy: BatchCopy = kind(cast("Any", facts), cast("BatchLayout", layout), job)
    copy._arrays, copy._spans, copy._csr_parts, copy._missing = arrays, spans, csr, missing
    return copy


def _restored(
    kind: Any, facts: Any, job: Any, names: Any, has_torch: bool, arrays: Any, spans: Any, csr: Any, missing: Any
) -> BatchCopy:
    layout = _Layout(**names, torch=importlib.import_module("torch") if has_torch else None)
    arrays = _all(arrays, lambda array: array.tensor(layout.torch) if isinstance(array, _Unsigned) else array)
    errors = {name: _Error(*error) for name, error in missing.items()}
    return _made(kind, _Facts(*facts), job, layout, arrays, spans, csr, errors)


def _mapped(copy: BatchCopy, change: Callable[[Any], Any]) -> BatchCopy:
    arrays = {name: array for name, array in copy._arrays.items() if name != "csr"}
    facts, layout = cast("_Facts", copy._native), cast("_Layout", copy._layout)
    parts = copy._spans, copy._csr_parts, copy._missing
    return _made(type(copy), facts, copy._job, layout, _all(arrays, change), *parts)


def _all(arrays: Mapping[str, Any], change: Callable[[Any], Any]) -> dict[str, Any]:
    """Each array changed; one that has two names once."""
    done: dict[int, Any] = {}

    def once(array: Any) -> Any:
        if id(array) not in done:
            done[id(array)] = change(array)
        return done[id(array)]

    found = {name: once(array) for name, array in arrays.items() if name != "columns"}
    found["columns"] = MappingProxyType({name: once(array) for name, array in arrays["columns"].items()})
    return found


def _copied(array: Any) -> Any:
    if isinstance(array, np.ndarray):
        return array.copy()
    return array.clone() if hasattr(array, "clone") else array


def _picklable(array: Any) -> Any:
    name = str(getattr(array, "dtype", "")).removeprefix("torch.")
    if isinstance(array, np.ndarray) or name not in ("uint16", "uint32", "uint64"):
        return array
    signed = getattr(importlib.import_module("torch"), name.removeprefix("u"))
    return _Unsigned(array.view(signed), name)


def _copied_spans(spans: Spans) -> SpanCopies:
    parts = (spans.rows, spans.starts, spans.stops, spans.begins, spans.ends, spans.offsets, spans.ids, spans.source)
    has_entries = spans._has_entries
    raw = [span.raw for span in spans] if has_entries else []
    decoded = [_decoded(span) for span in spans] if has_entries else []
    return SpanCopies(_Entries(tuple(each.copy() for each in parts), raw), len(spans._decoders), has_entries, decoded)


def _decoded(span: Span) -> Any:
    try:
        found = span.metadata
    except _errors.Error as error:
        return _Error(type(error).__name__, str(error))
    return found.copy() if isinstance(found, np.ndarray) else found
