"""raw of AnnData, a matrix of other genes than X: kept as bytes of each cell's entry, for an export alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from penstock._base.errors import InvalidArgumentError
from penstock._data.anndata.exact import common_type
from penstock._data.anndata.limits import Limits
from penstock._data.anndata.matrices import Matrix
from penstock._data.anndata.opened import Opened
from penstock._data.anndata.stores import Frame, Store
from penstock._data.anndata.trees import NotKept, pack, read_tree

_MATRIX, _VAR = "raw/X", "raw/var"
_ROOM = 3 << 20  # of names and columns of its genes, packed


def plan_raw(opened: Opened, limits: Limits) -> dict[str, Any]:
    """Its type, how many genes it has, and their names and columns, packed.

    Raises:
        InvalidArgumentError: an input has none, or one of other genes than the first; compressed columns; no room.
    """
    first: Any = None
    genes, types = 0, []
    for source in range(len(opened)):
        store = opened.store(source)
        if "raw" not in store.root:
            raise InvalidArgumentError(f"{store.path}: there is no raw to keep: leave raw out")
        matrix = matrix_of(store, limits)
        names = Frame(store.path, store.root, _VAR).names()
        if matrix.shape != (len(store.obs), len(names)):
            raise InvalidArgumentError(f"{matrix}: shape {list(matrix.shape)}, but there are {len(names):,} genes")
        try:
            tree = read_tree(store.path, store.root["raw"], "var", "raw")
        except NotKept as error:
            raise InvalidArgumentError(f"{store.path}: {_VAR} {error}: leave raw out") from None
        first, genes = (tree, len(names)) if first is None else (first, genes)
        if tree != first:
            raise InvalidArgumentError(f"{store.path}: {_VAR} is another than that of {opened.path(0)}: leave raw out")
        types.append(matrix.dtype)
    packed, others = pack({"var": first}, _ROOM)
    if others:
        raise InvalidArgumentError(f"{opened.path(0)}: {_VAR} has no room in a dataset: leave raw out")
    return {"dtype": common_type(types).str, "genes": genes, "var": packed}


def matrix_of(store: Store, limits: Limits) -> Matrix:
    """raw's matrix.

    Raises:
        InvalidArgumentError: it is of compressed columns.
    """
    matrix = Matrix(store, _MATRIX, limits.values)
    if matrix.kind == "csc":
        raise InvalidArgumentError(f"{matrix}: compressed columns, which are not kept as raw: leave raw out")
    return matrix


class RawEntries:
    """raw of some cells, as their entries have it. One thread at a time."""

    def __init__(self, store: Store, planned: dict[str, Any], limits: Limits) -> None:
        """`planned` is what `plan_raw` said."""
        self.matrix = matrix_of(store, limits)
        self._dtype = np.dtype(planned["dtype"])

    def weights(self, begin: int, end: int) -> npt.NDArray[np.int64]:
        """How many values reading each of the cells takes."""
        return self.matrix.weights(begin, end)

    def read(self, begin: int, end: int) -> list[list[bytes]]:
        """Bytes of each cell's genes, u4, and of their values; `weights` was asked for them."""
        counts, genes, values = self.matrix.read(begin, end)
        genes, values = genes.astype("<u4"), values.astype(self._dtype)
        ends = np.cumsum(counts).tolist()
        return [
            [genes[first:last].tobytes(), values[first:last].tobytes()]
            for first, last in zip([0, *ends[:-1]], ends, strict=True)
        ]
