"""Values of fields, as a writer is given them, packed into records."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from penstock._base.errors import InvalidArgumentError
from penstock._data import dtype as _dtype


def pack_records(
    dtype: np.dtype[Any] | None, records: Any, fields: dict[str, Any]
) -> tuple[npt.NDArray[np.uint8], int]:
    """The bytes of records of `dtype` (None: of opaque documents, which have none), and how many there are.

    Args:
        dtype: Of the dataset.
        records: All fields at once, as a structured array [n]; None: `fields` has them.
        fields: Each field's values: [n], [n, dims…] for sub-arrays, or one value for all records.

    Raises:
        InvalidArgumentError: A field is missing or unknown, a value does not fit, lengths differ.
    """
    if dtype is None:
        if records is not None or fields:
            raise InvalidArgumentError("records for a writer of opaque documents (fields=None)")
        return np.empty(0, np.uint8), 0
    names = dtype.names or ()
    if records is not None:
        array = np.asarray(records)
        if fields or array.dtype.names is None:
            raise InvalidArgumentError(f"records must be one structured array with the fields {', '.join(names)}")
        fields = {name: array[name] for name in array.dtype.names}
    if set(fields) != set(names):
        missing, unknown = set(names) - set(fields), set(fields) - set(names)
        said = [f"missing: {', '.join(sorted(missing))}"] if missing else []
        said += [f"unknown: {', '.join(sorted(unknown))}"] if unknown else []
        raise InvalidArgumentError(f"fields {'; '.join(said)}; this writer has {', '.join(names)}")
    return _assemble(dtype, {name: _dtype.fit(fields[name], dtype[name], name) for name in names})


def _assemble(dtype: np.dtype[Any], parts: dict[str, npt.NDArray[Any]]) -> tuple[npt.NDArray[np.uint8], int]:
    counts = {
        name: len(part) for name, part in parts.items() if part.ndim > len(dtype[name].shape)
    }  # the others are one value for all records
    if len(set(counts.values())) > 1:
        raise InvalidArgumentError(f"fields of different lengths: {counts}")
    count = next(iter(counts.values()), 1)
    if len(parts) == 1 and counts:
        return _dtype.as_bytes(next(iter(parts.values()))), count
    packed = np.empty(count, dtype)
    for name, part in parts.items():
        packed[name] = part
    return _dtype.as_bytes(packed), count


def numbers(values: npt.ArrayLike, name: str) -> npt.NDArray[np.uint64]:
    """`values` as counts or numbers of entries; `name` is for messages."""
    return np.atleast_1d(_dtype.fit(values, np.dtype("<u8"), name))
