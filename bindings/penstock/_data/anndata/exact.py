"""Floats that hold integers exactly: NumPy promotes and compares 64-bit integers as doubles, in silence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt


def first_inexact(values: npt.NDArray[Any], dtype: npt.DTypeLike = np.float64) -> int | None:
    """The first of these integers that a float of `dtype` does not hold; None where it holds all."""
    if values.dtype.kind not in "iu" or not values.size:
        return None
    bits = np.finfo(dtype).nmant + 1
    if -(1 << bits) <= int(values.min()) and int(values.max()) <= 1 << bits:
        return None
    # Exact are those whose lowest set bit is less than `bits` below their highest.
    flat = values.reshape(-1)
    size = flat.astype(np.uint64)
    if flat.dtype.kind == "i":
        size = np.where(flat < 0, np.uint64(0) - size, size)
    odd = size // np.maximum(size & (np.uint64(0) - size), np.uint64(1))
    bad = np.flatnonzero(odd >> np.uint64(bits))
    return int(flat[bad[0]]) if len(bad) else None


def common_type(types: Sequence[np.dtype[Any]]) -> np.dtype[Any]:
    """NumPy's common type of these, little-endian; whatever their order, which NumPy's answer depends on."""
    known = {each.newbyteorder("<") for each in types}
    return np.result_type(*sorted(known, key=lambda each: (each.kind, each.itemsize))).newbyteorder("<")


def may_round(types: Sequence[np.dtype[Any]]) -> bool:
    """True if the common type of these may round a value of one of them: integers of 8 bytes become floats."""
    return common_type(types).kind == "f" and any(each.kind in "iu" and each.itemsize == 8 for each in types)
