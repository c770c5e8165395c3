"""Orders of many values: stable, with those that are missing at the end."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

_TOP = np.uint32(1 << 31)


def order_of(values: npt.NDArray[Any], descending: bool = False) -> npt.NDArray[np.int64]:
    """The places of values in order, int64; equal ones stay as they are, and NaN comes last either way.

    Values of 4 bytes and less are sorted as numbers of 8 that have their place in the lower half: NumPy sorts these
    several times as fast as it gives a stable order.
    """
    if values.dtype.kind == "b":
        values = values.view(np.uint8)
    if values.dtype.itemsize > 4 or len(values) >= 1 << 32:
        if descending:
            values = -values if values.dtype.kind == "f" else ~values
        return np.argsort(values, kind="stable")
    keys = _keys(values)
    if descending:
        missing = np.isnan(values) if values.dtype.kind == "f" else None
        keys = ~keys
        if missing is not None:
            keys[missing] = np.uint32(0xFFFFFFFF)
    both = keys.astype(np.uint64) << np.uint64(32)
    both |= np.arange(len(values), dtype=np.uint64)
    both.sort()
    both &= np.uint64(0xFFFFFFFF)
    return both.view(np.int64)


def _keys(values: npt.NDArray[Any]) -> npt.NDArray[np.uint32]:
    """uint32 in the order of the values; NaN the last."""
    kind = values.dtype.kind
    if kind == "u":
        return values.astype(np.uint32)
    if kind == "i":
        return values.astype(np.int32).view(np.uint32) ^ _TOP
    floats = values.astype(np.float32) + np.float32(0)  # -0 is 0
    bits = floats.view(np.uint32)
    keys = np.where(bits & _TOP, ~bits, bits | _TOP)
    keys[np.isnan(floats)] = np.uint32(0xFFFFFFFF)
    return keys
