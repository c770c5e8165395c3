"""Columns of Arrow as the buffers that they lie in (Apache Arrow, "Arrow Columnar Format", 1.5)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from penstock import _native
from penstock._from.engines.pieces import Pieces
from penstock._from.text.block import Known

if TYPE_CHECKING:
    import numpy.typing as npt

    Payload = tuple[Any, npt.NDArray[np.uint64], npt.NDArray[np.uint64]]  # bytes, where each begins, where it ends


def text(column: Any) -> Payload | None:
    """Strings without nulls."""
    import pyarrow

    large = pyarrow.types.is_large_string(column.type)
    if not (large or pyarrow.types.is_string(column.type)):
        return None
    _, offsets, data = column.buffers()
    if data is None:  # all of them are empty
        data = b""
    ends = _offsets(offsets, large, column.offset, len(column))
    return data, ends[:-1], ends[1:]


def ids(column: Any) -> Payload | None:
    """Lists of integers without nulls, as the bytes of i8."""
    import pyarrow

    types = pyarrow.types
    if not (types.is_list(column.type) or types.is_large_list(column.type)):
        return None
    values = column.values
    if values.null_count or (types.is_uint64(values.type)):
        return None
    ends = _offsets(column.buffers()[1], types.is_large_list(column.type), column.offset, len(column))
    first, last = int(ends[0]), int(ends[-1])
    array = values.slice(first, last - first).to_numpy().astype(np.int64, copy=False)
    ends = (ends - ends[0]) * np.uint64(8)
    return np.ascontiguousarray(array).view(np.uint8), ends[:-1], ends[1:]


def known(batch: Any) -> Known | None:
    """Metadata of the rows of a record batch; None where a column is of a type that Python has to look at."""
    columns = []
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        described = _described(column)
        if described is None:
            return None
        columns.append((name, *described))
    found = _native.rows_json(columns, len(batch))
    return None if found is None else Known(Pieces(*found[0]), Pieces(*found[1]))


def _described(column: Any) -> tuple[Any, ...] | None:
    """Kind, bytes of an item, validity, offsets, data, offset; None of other kinds."""
    import pyarrow

    types, kind = pyarrow.types, column.type
    buffers = column.buffers()
    if types.is_string(kind) or types.is_large_string(kind):
        validity, offsets, data = buffers
        return "utf8" if types.is_string(kind) else "large_utf8", 1, validity, offsets, data, column.offset
    known = (
        ("bool", types.is_boolean),
        ("uint", types.is_unsigned_integer),
        ("int", types.is_signed_integer),
        ("float", lambda kind: types.is_float32(kind) or types.is_float64(kind)),
    )
    for name, is_it in known:
        if is_it(kind):
            size = 1 if name == "bool" else kind.bit_width // 8
            return name, size, buffers[0], None, buffers[1], column.offset
    return None


def _offsets(buffer: Any, large: bool, offset: int, count: int) -> npt.NDArray[np.uint64]:
    kind: Any = np.int64 if large else np.int32
    if buffer is None:
        return np.zeros(count + 1, np.uint64)
    return np.frombuffer(buffer, kind, count + 1, offset * np.dtype(kind).itemsize).astype(np.uint64)
