"""Where the arrays of a batch come from: each is made when it is first asked for, and kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from penstock import _native
from penstock._base.errors import InvalidArgumentError
from penstock._data.arrays import BatchLayout, ColumnPlace
from penstock._data.job_text import JobText
from penstock._data.spans import Spans


class BatchArrays:
    """A ready native batch and the arrays that were asked for; `Batch` gives them their names."""

    __slots__ = ("_arrays", "_device", "_job", "_layout", "_native", "_spans")

    def __init__(
        self, native: _native.Batch, layout: BatchLayout, job: JobText | tuple[int, str] | None = None
    ) -> None:
        """Wraps a ready native batch; `job` is what states of the loader that gives it hold, or (version, text)."""
        self._native = native
        self._layout = layout
        self._job = job
        self._arrays: dict[str, Any] = {}
        self._device: tuple[Any, bool] | None = None  # where its tensors are, and whether copying them waits
        self._spans: Spans | None = None

    def _cached(self, name: str, make: Callable[[str], Any]) -> Any:
        array = self._arrays.get(name)
        if array is None:
            array = self._arrays[name] = self._moved(make(name))
        return array

    def _moved(self, array: Any) -> Any:
        if self._device is None or not isinstance(array, self._layout.torch.Tensor):
            return array
        device, non_blocking = self._device
        return array.to(device, non_blocking=non_blocking)

    def _tensor_names(self) -> list[str]:
        layout = self._layout
        names = [
            "indices",
            "epochs",
            "sources",
            "first_records",
            "positions",
            "valid",
            *layout.types,
            *layout.column_of,
        ]
        if layout.ragged:
            names.append("offsets")
        return [name for name in dict.fromkeys(names) if name != "max_seqlen"]

    def _sources(self) -> npt.NDArray[np.int64]:
        found = self._native.sources()  # a mixture's sources have a native number for each window
        return np.where(found < 0, -1, found % len(self._layout.decoders))

    def _offsets(self, name: str) -> Any:
        place = self._layout.column_of.get(name)
        return self._given(self._native.starts()) if place is None else self._column(place)

    def _field(self, name: str) -> Any:
        layout = self._layout
        place = layout.column_of.get(name)
        if place is not None:
            return self._column(place)
        dtype = layout.types[name]
        if layout.sliced:
            raise InvalidArgumentError(
                f"field {name}: byte strings have no part for a context-parallel rank: leave context_parallel= out"
            )
        if layout.torch is None or dtype.kind in "SV":
            found = self._native.field(name, dtype)  # None where the batch's own records are of another type
            if found is not None:
                return found
        return self._cast(_native.FieldSpec(name=name, field=name, type=dtype.str), dtype)

    def _labels(self, name: str) -> Any:
        place = self._layout.column_of.get(name)
        if place is not None:
            return self._column(place)
        return self._cast(self._layout.label_column(name), self._layout.label_type)

    def _columns(self) -> dict[str, Any]:
        layout = self._layout
        found = {}
        codes = {}
        for at, (name, dtype) in enumerate(layout.value_types.items()):
            place = layout.value_of.get(name)
            values = self._given(self._native.values(at, dtype.base)) if place is None else self._column(place)
            found[name] = self._moved(values)
            codes[name] = values
        for each in layout.names:
            found[each.name] = each.strings[np.asarray(codes[each.column])]
        for name, place in layout.given_of.items():
            found[name] = self._moved(self._column(place))
        for name in layout.computed.names:
            place = layout.per_span_of.get(name)
            found[name] = getattr(self, name) if place is None else self._moved(self._column(place))
        return found

    def _sequences(self, name: str) -> Any:
        place = self._layout.column_of.get(name)
        if place is None:
            wanted = "cu_seqlens" if name == "max_seqlen" else name
            raise InvalidArgumentError(f'this batch has no {name}: ask for it by Loader(…, columns=["{wanted}"])')
        return self._column(place)

    def _loss_mask(self, name: str) -> Any:
        place = self._layout.column_of.get(name)
        if place is None:
            raise InvalidArgumentError(
                "this batch has no loss_mask: ask for it by Loader(…, columns=[penstock.columns.LossMask(…)])"
            )
        return self._column(place)

    def _padded(self, name: str) -> Any:
        place = self._layout.column_of.get(name)
        if place is None:
            raise InvalidArgumentError(f"this batch has no {name}: it is of dataset.documents().padded()")
        return self._column(place)

    def _column(self, place: ColumnPlace) -> Any:
        array = self._native.column(*place)
        if array is None:
            return self._lent_column(place)
        return array if place.type.kind in "SV" else self._given(array)  # torch has no byte strings

    def _lent_column(self, place: ColumnPlace) -> Any:
        # Slices of the lent tensor, so that torch tracks copies from them.
        layout, native = self._layout, self._native
        number, part, dtype = place
        at, shape = native.place(number, part, dtype)
        if dtype.kind in "SV":
            size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
            return native.lender[at : at + size].numpy().view(dtype).reshape(shape).copy()
        torch_dtype = layout.torch.from_numpy(np.empty(0, dtype)).dtype
        count = int(np.prod(shape, dtype=np.int64))
        array = native.lender[at : at + count * dtype.itemsize].view(torch_dtype).view(shape)
        array._penstock = native  # a held array counts against max_bytes, as its whole batch is held
        return array

    def _cast(self, field: _native.FieldSpec, dtype: np.dtype[Any]) -> Any:
        made = self._native.cast(field, dtype)
        return made if dtype.kind in "SV" else self._given(made)

    def _given(self, array: npt.NDArray[Any]) -> Any:
        return array if self._layout.torch is None else self._layout.torch.from_numpy(array)
