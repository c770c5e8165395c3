"""What a dataset calls the members of AnnData that its cells are made of, and the types that they come back as."""

from __future__ import annotations

from typing import Any

import numpy as np

X = "X"
"""The matrix of counts, as AnnData and the column of dense ones have it."""
LAYERS = "layers/"
"""What the columns of dense layers begin with, as members of a file do."""
RAW = "raw"
"""The key of raw's values in a cell's entry."""
VARM = "varm/"
"""What the columns of features begin with that are arrays of varm."""
NAME = "name"
"""The key of a cell's name in its entry."""


def given_back(dtype: Any) -> str:
    """The float that a matrix of this type comes back as: of 4 bytes where that holds every value of the type."""
    base = np.dtype(dtype).base
    return "<f4" if base.str[1:] in ("u1", "u2", "i1", "i2", "f2", "f4", "b1") else "<f8"
