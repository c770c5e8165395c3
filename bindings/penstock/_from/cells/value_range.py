"""Ranges of values, by which the smallest type is found that holds them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from penstock._base.errors import InvalidArgumentError
from penstock._data.anndata.exact import first_inexact


@dataclass
class Range:
    """The values that there are, as far as the smallest type that holds them depends on it.

    Attributes:
        whole: all are integers from 0 on.
        most: the greatest of them, while `whole`.
        exact4: a float of 4 bytes holds each of them.
        zeros: how many are zero.
        count: how many there are.
        fractional: some that were looked at are no integers.
        negative: some that were looked at are below 0.
    """

    whole: bool = True
    most: int = 0
    exact4: bool = True
    zeros: int = 0
    count: int = 0
    fractional: bool = False
    negative: bool = False

    def add(self, values: npt.NDArray[Any], count_zeros: bool) -> None:
        """Looks at more values."""
        self.count += values.size
        if not values.size:
            return
        if count_zeros:
            self.zeros += values.size - int(np.count_nonzero(values))
        if values.dtype.kind == "b":
            self.most = max(self.most, int(values.max()))
        elif values.dtype.kind in "iu":
            low, high = int(values.min()), int(values.max())
            self.whole &= low >= 0
            self.most = max(self.most, high)
            self.exact4 &= first_inexact(values, np.float32) is None
            inexact = first_inexact(values)
            if inexact is not None:
                raise InvalidArgumentError(f"the count {inexact:,} is exact in no float")
        else:
            if self.whole:
                with np.errstate(invalid="ignore"):
                    self.whole = bool((values >= 0).all()) and bool((np.floor(values) == values).all())
                if self.whole and bool(np.isfinite(values).all()):
                    self.most = max(self.most, int(values.max()))
                else:
                    self.whole = False
                    there = values[np.isfinite(values)]
                    self.fractional |= bool((np.floor(there) != there).any())
                    self.negative |= bool((there < 0).any())
            if self.exact4 and values.dtype.itemsize == 8:
                with np.errstate(over="ignore", invalid="ignore"):
                    self.exact4 = bool(np.array_equal(values.astype(np.float32), values, equal_nan=True))

    def settled(self, dtype: np.dtype[Any]) -> bool:
        """True if more values of this type can change nothing that is asked of sparse ones."""
        if self.whole or (dtype.kind in "iu" and dtype.itemsize == 8):  # which no float may hold
            return False
        return not self.exact4 or dtype.kind == "b" or dtype.str[1:] in ("f2", "f4")

    def merge(self, other: Range) -> None:
        """Takes what another saw of the rest."""
        self.whole &= other.whole
        self.most = max(self.most, other.most)
        self.exact4 &= other.exact4
        self.zeros += other.zeros
        self.count += other.count
        self.fractional |= other.fractional
        self.negative |= other.negative

    def smallest(self) -> str:
        """The smallest of u1, u2, u4 that holds all, else f4, or f8 where f4 loses."""
        if self.whole:
            for dtype, limit in (("<u1", 1 << 8), ("<u2", 1 << 16), ("<u4", 1 << 32)):
                if self.most < limit:
                    return dtype
        return "<f4" if self.exact4 else "<f8"
