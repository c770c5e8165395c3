"""Stores of AnnData, read by rows where they lie: .h5ad and .h5mu files, zarr stores, AnnData in memory.

h5py and zarr decode what is compressed; of compressed rows only the ranges are read in which wanted cells lie.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from penstock._base.errors import CorruptionError, InvalidArgumentError, NotFoundError
from penstock._base.words import quoted
from penstock._data.anndata.stores import needed

Indices = npt.NDArray[np.int64]

_GAP = 1024  # unwanted values between wanted ones that are read, not skipped, where nothing is decoded
_USE = "CollectionLoader"
_IMPORT = "`penstock import` takes it"


class SparseRows:
    """A matrix of compressed rows of a store. One thread at a time.

    Attributes:
        shape: cells, genes.
        dtype: of the values.
    """

    is_sparse = True

    def __init__(self, what: str, group: Any) -> None:
        """Reads where rows begin, 8 bytes a cell; `what` it is called in messages."""
        encoding = str(group.attrs.get("encoding-type", ""))
        if encoding != "csr_matrix":
            said = "compressed columns (CSC)" if encoding == "csc_matrix" else encoding or "without an encoding"
            raise InvalidArgumentError(f"{what} is {said}; compressed rows (CSR) or dense is read in place: {_IMPORT}")
        self.shape = tuple(int(each) for each in group.attrs["shape"])
        self._data, self._indices = group["data"], group["indices"]
        self.dtype: np.dtype[Any] = np.dtype(self._data.dtype)
        self._starts = np.asarray(group["indptr"][:]).astype(np.int64)
        if self._starts.shape != (self.shape[0] + 1,) or self._starts[-1] > self._data.shape[0]:
            raise InvalidArgumentError(
                f"{what}: {self.shape[0]:,} cells, {len(self._starts):,} starts of rows, the last at "
                f"{int(self._starts[-1]):,} of {self._data.shape[0]:,} values"
            )
        if (np.diff(self._starts, prepend=0) < 0).any():
            raise CorruptionError(f"{what}: starts of rows, indptr, that do not ascend")
        self._what = what
        self._gap = _gap(self._data)

    def read(self, rows: Indices) -> Any:
        """Rows as a CSR matrix [rows, genes]; `rows` ascend."""
        begins, ends = self._starts[rows], self._starts[rows + 1]
        counts = ends - begins
        starts = np.concatenate([[0], np.cumsum(counts)])
        values = _gathered(self._data, begins, ends, self._gap)
        genes = _gathered(self._indices, begins, ends, self._gap)
        if genes.size and not 0 <= int(genes.min()) <= int(genes.max()) < self.shape[1]:
            raise CorruptionError(f"{self._what}: a value of gene {int(genes.max()):,} of {self.shape[1]:,}")
        made = needed("scipy.sparse", _USE).csr_matrix
        index = np.int32 if max(int(starts[-1]), self.shape[1]) < 1 << 31 else np.int64
        return made((values, genes.astype(index, copy=False), starts.astype(index)), (len(rows), self.shape[1]))


class DenseRows:
    """A dense matrix, or an array of obsm, of a store. One thread at a time.

    Attributes:
        shape: cells, then axes.
        dtype: of the values.
    """

    is_sparse = False

    def __init__(self, node: Any) -> None:
        """Nothing is read."""
        self.shape = tuple(int(each) for each in node.shape)
        self.dtype: np.dtype[Any] = np.dtype(node.dtype)
        self._node = node
        chunks = getattr(node, "chunks", None)
        self._gap = int(chunks[0]) if chunks else 4

    def read(self, rows: Indices) -> npt.NDArray[Any]:
        """Rows [rows, …]; `rows` ascend."""
        return _gathered(self._node, rows, rows + 1, self._gap)


class _RowsInMemory:
    def __init__(self, matrix: Any) -> None:
        self.is_sparse = needed("scipy.sparse", _USE).issparse(matrix)
        self.shape, self.dtype = matrix.shape, matrix.dtype
        self._matrix = matrix.tocsr() if self.is_sparse else np.asarray(matrix)

    def read(self, rows: Indices) -> Any:
        found = self._matrix[rows]
        return needed("scipy.sparse", _USE).csr_matrix(found) if self.is_sparse else found


def _gap(node: Any) -> int:
    """Values between two wanted ones up to which both are read at once: a chunk that is decoded is decoded once."""
    chunks = getattr(node, "chunks", None)
    is_plain = hasattr(node, "compression") and node.compression is None and not node.shuffle
    return _GAP if is_plain or not chunks else max(_GAP, int(chunks[0]))


def _gathered(node: Any, begins: Indices, ends: Indices, gap: int) -> npt.NDArray[Any]:
    """Ranges [begins, ends) of the first axis of an array, end to end; they ascend."""
    wanted = ends > begins
    begins, ends = begins[wanted], ends[wanted]
    total = int((ends - begins).sum())
    out = np.empty((total, *node.shape[1:]), np.dtype(node.dtype).newbyteorder("="))
    cuts = np.flatnonzero(begins[1:] - ends[:-1] > gap) + 1
    at = 0
    for first, last in zip([0, *cuts.tolist()], [*cuts.tolist(), len(begins)], strict=True):
        if first == last:
            break  # nothing at all is wanted
        low, counts = int(begins[first]), ends[first:last] - begins[first:last]
        block, count = np.asarray(node[low : int(ends[last - 1])]), int(counts.sum())
        if count < len(block):
            before = np.concatenate([[0], np.cumsum(counts)[:-1]])
            block = block[np.repeat(begins[first:last] - low - before, counts) + np.arange(count)]
        out[at : at + count] = block
        at += count
    return out


class CellStore:
    """One AnnData, wherever it is. One thread at a time; pickles where it is a file.

    Attributes:
        name: of the store, for messages.
    """

    def __init__(self, given: Any, x: str, modality: str | None) -> None:
        """Of a path, or AnnData in memory or backed; `x` says where the counts are.

        Raises:
            InvalidArgumentError: neither.
            NotFoundError: nothing is there.
        """
        if getattr(given, "isbacked", False):
            if given.is_view:
                raise InvalidArgumentError("a view of a backed AnnData: give the AnnData itself, or its file")
            given = given.filename
        self._memory = None if isinstance(given, str | os.PathLike) else given
        if self._memory is not None and not (hasattr(given, "obs") and hasattr(given, "var_names")):
            raise InvalidArgumentError(f"{type(given).__name__}: a path or an AnnData is wanted")
        self.name = f"{type(given).__name__} in memory" if self._memory is not None else os.fspath(given)
        self._x, self._modality = x, modality
        self._root: Any = None
        if self._memory is None and "://" not in self.name:
            self.name = str(Path(self.name).absolute())  # wherever the process goes
            if not Path(self.name).exists():
                raise NotFoundError(2, f"{self.name}: no such file or folder", self.name)

    def __getstate__(self) -> dict[str, Any]:
        """Another process opens it anew."""
        return {**self.__dict__, "_root": None}

    def frames(self) -> tuple[Any, Any]:
        """(obs, var) as data frames; var is that of raw where the counts are."""
        var = "raw/var" if self._x == "raw" else "var"
        if self._memory is not None:
            return self._memory.obs, self._memory.raw.var if self._x == "raw" else self._memory.var
        try:
            read = needed("anndata.io", _USE).read_elem
        except ModuleNotFoundError:  # before anndata 0.11
            read = needed("anndata.experimental", _USE).read_elem
        return read(self._member("obs")), read(self._member(var))

    def names_in(self, group: str) -> list[str]:
        """Members of "layers" or "obsm"."""
        if self._memory is not None:
            return list(getattr(self._memory, group).keys())
        return sorted(self._open()[group].keys()) if group in self._open() else []

    def rows(self, member: str) -> Any:
        """X, a layer or an array of obsm: "X", "layers/NAME", "obsm/NAME"."""
        group, _, name = (
            "raw/X" if member == "X" and self._x == "raw" else self._x if member == "X" else member
        ).partition("/")
        if name and group != "raw" and name not in self.names_in(group):
            raise InvalidArgumentError(
                f"{self.name}: no {group}/{name}: there are {quoted(self.names_in(group)) or 'none'}"
            )
        if self._memory is not None:
            whole = self._memory.raw if group == "raw" else self._memory
            return _RowsInMemory(whole.X if not name or group == "raw" else getattr(whole, group)[name])
        node = self._member(f"{group}/{name}" if name else group)
        return DenseRows(node) if hasattr(node, "dtype") else SparseRows(f"{self.name}: {member}", node)

    def _member(self, name: str) -> Any:
        root = self._open()
        if name not in root:
            raise InvalidArgumentError(f"{self.name}: there is no {name}")
        return root[name]

    def _open(self) -> Any:
        if self._root is None:
            if self.name.endswith((".h5ad", ".h5mu", ".h5", ".hdf5")):
                root = needed("h5py", self.name).File(self.name, "r")
            else:
                root = needed("zarr", self.name).open_group(self.name, mode="r")
            if "mod" in root and "X" not in root:
                root = _modality(self.name, root["mod"], self._modality)
            elif self._modality is not None:
                raise InvalidArgumentError(f"{self.name}: modality={self._modality!r}: it has no modalities, it is one")
            self._root = root
        return self._root


def _modality(path: str, group: Any, wanted: str | None) -> Any:
    names = sorted(group.keys())
    if wanted is None and len(names) == 1:
        wanted = names[0]
    if wanted not in names:
        said = "which modality is wanted" if wanted is None else f"no modality {wanted!r}"
        raise InvalidArgumentError(f"{path}: {said}: modality= is one of {quoted(names)}")
    return group[wanted]
