"""Names in a dataset of the members of AnnData that cells are made of, and the types that they come back as."""

from __future__ import annotations

from typing import Any

import numpy as np

X = "X"
"""The matrix of counts, as AnnData and the column of dense ones have it."""
LAYERS = "layers/"
"""The beginning of names of dense layers' columns, and of members of a file."""
RAW = "raw"
"""The key of raw's values in a cell's entry."""
VARM = "varm/"
"""The beginning of names of features' columns that are arrays of varm."""
NAME = "name"
"""The key of a cell's name in its entry."""


def given_back(dtype: Any) -> str:
    """The float that a matrix of this type comes back as: of 4 bytes where that holds every value of the type."""
    base = np.dtype(dtype).base
    return "<f4" if base.str[1:] in ("u1", "u2", "i1", "i2", "f2", "f4", "b1") else "<f8"
