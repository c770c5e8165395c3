"""Stores of AnnData, read by rows where they lie: .h5ad and .h5mu files, zarr stores, AnnData in memory.

h5py and zarr decode what is compressed; of compressed rows only the ranges are read in which wanted cells lie.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from penstock._base.errors import CorruptionError, InvalidArgumentError, NotFoundError
from penstock._base.words import excerpt, quoted
from penstock._data.anndata.arrays import is_array, reading
from penstock._data.anndata.soma import is_soma
from penstock._data.anndata.stores import OLD, needed, refuse_other
from penstock._places.paths import looking_at

Indices = npt.NDArray[np.int64]

_GAP = 1024  # unwanted values between wanted ones that are read, not skipped, where nothing is decoded
_AT_ONCE = 1 << 22  # values, or one chunk of them
_USE = "CollectionLoader"
_IMPORT = "`penstock import` takes it"
_HDF5 = (".h5ad", ".h5mu", ".h5", ".hdf5")
_WANTED = "an .h5ad or .h5mu file, or a zarr store of AnnData, is wanted"
_ZARR = ("zarr.json", ".zgroup")  # one of them is in the folder of a group


def is_far(path: str) -> bool:
    """True for an address, which zarr opens."""
    return "://" in path and not path.startswith("file://")


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
        if len(self.shape) != 2 or np.dtype(self._data.dtype).kind not in "biuf":
            raise InvalidArgumentError(
                f"{what}: {list(self.shape)} of {self._data.dtype}: numbers of two axes are wanted"
            )
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
        """Rows as a CSR matrix [rows, genes]; `rows` ascend.

        Raises:
            CorruptionError: they cannot be read.
        """
        begins, ends = self._starts[rows], self._starts[rows + 1]
        counts = ends - begins
        starts = np.concatenate([[0], np.cumsum(counts)])
        with reading(self._what):
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

    def __init__(self, what: str, node: Any) -> None:
        """Nothing is read; `what` it is called in messages."""
        self.shape = tuple(int(each) for each in node.shape)
        self.dtype: np.dtype[Any] = np.dtype(node.dtype)
        if self.dtype.kind not in "biuf" or len(self.shape) < 2:
            raise InvalidArgumentError(f"{what}: {list(self.shape)} of {self.dtype}: numbers of two axes are wanted")
        self._what, self._node = what, node
        chunks = getattr(node, "chunks", None)
        self._gap = int(chunks[0]) if chunks else 4

    def read(self, rows: Indices) -> npt.NDArray[Any]:
        """Rows [rows, …]; `rows` ascend.

        Raises:
            CorruptionError: they cannot be read.
        """
        with reading(self._what):
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
    at = 0
    for low, high, first, last in _blocks(begins, ends, gap, _step(node)):
        starts = np.maximum(begins[first:last], low)
        counts = np.minimum(ends[first:last], high) - starts
        block, count = np.asarray(node[low:high]), int(counts.sum())
        if count < len(block):
            before = np.concatenate([[0], np.cumsum(counts)[:-1]])
            block = block[np.repeat(starts - low - before, counts) + np.arange(count)]
        out[at : at + count] = block
        at += count
    return out


def _blocks(begins: Indices, ends: Indices, gap: int, step: int) -> Iterator[tuple[int, int, int, int]]:
    """Ranges that are read at once, each with the number of its first wanted one and of that after its last.

    They are wanted ones with gaps of at most `gap` between them, cut at multiples of `step`.
    """
    cuts = (np.flatnonzero(begins[1:] - ends[:-1] > gap) + 1).tolist()
    for first, last in zip([0, *cuts], [*cuts, len(begins)], strict=True):
        if first == last:
            return  # nothing at all is wanted
        low, end = int(begins[first]), int(ends[last - 1])
        if low // step == (end - 1) // step:
            yield low, end, first, last
            continue
        while low < end:
            stop = min(end, (low // step + 1) * step)
            part = int(np.searchsorted(ends, low, "right")), int(np.searchsorted(begins, stop))
            yield low, min(stop, int(ends[part[1] - 1])), *part
            following = int(np.searchsorted(ends, stop, "right"))
            low = max(stop, int(begins[following])) if following < last else end


def _step(node: Any) -> int:
    """Rows of an array that are read at once at most: whole chunks, so that none is decoded twice."""
    chunks = getattr(node, "chunks", None)
    chunk = max(1, int(chunks[0])) if chunks else 1
    row = max(1, int(np.prod(node.shape[1:], dtype=np.int64)))
    return chunk * max(1, _AT_ONCE // (chunk * row))


class CellStore:
    """One AnnData, wherever it is. One thread at a time; pickles where it is a file.

    Attributes:
        name: of the store, for messages.
    """

    def __init__(self, given: Any, x: str, modality: str | None) -> None:
        """Takes a path, or AnnData in memory or backed; `x` says where the counts are.

        Raises:
            InvalidArgumentError: neither; no such modality of MuData in memory.
            NotFoundError: nothing is there.
        """
        if getattr(given, "isbacked", False):
            if given.is_view:
                raise InvalidArgumentError("a view of a backed AnnData: give the AnnData itself, or its file")
            given = given.filename
        self._x, self._modality = x, modality
        self._root: Any = None
        self._memory: Any = None
        if isinstance(given, str | os.PathLike):
            self.name = _checked_path(os.fspath(given))
            return
        self.name = f"{type(given).__name__} in memory"
        if not (hasattr(given, "obs") and hasattr(given, "var_names")):
            raise InvalidArgumentError(f"{type(given).__name__}: a path or an AnnData is wanted")
        if hasattr(given, "mod"):
            given = _modality(self.name, given.mod, modality)
        elif modality is not None:
            raise InvalidArgumentError(_NO_MODALITY.format(self.name, modality))
        self._memory = given

    def __getstate__(self) -> dict[str, Any]:
        """Another process opens it anew."""
        return {**self.__dict__, "_root": None}

    def close(self) -> None:
        """Closes its file, and what was read by it. May be called twice."""
        root, self._root = self._root, None
        if hasattr(root, "file") and hasattr(root.file, "close"):  # of HDF5
            root.file.close()

    def frames(self) -> tuple[Any, Any]:
        """(obs, var) as data frames; var is that of raw where the counts are.

        Raises:
            InvalidArgumentError: there is none, or of a layout that is not read.
            CorruptionError: one cannot be read.
        """
        if self._memory is not None:
            if self._x == "raw" and self._memory.raw is None:
                raise InvalidArgumentError(f"{self.name}: there is no raw")
            return self._memory.obs, self._memory.raw.var if self._x == "raw" else self._memory.var
        try:
            read = needed("anndata.io", _USE).read_elem
        except ModuleNotFoundError:  # before anndata 0.11
            read = needed("anndata.experimental", _USE).read_elem
        return self._frame("obs", read), self._frame("raw/var" if self._x == "raw" else "var", read)

    def _frame(self, name: str, read: Any) -> Any:
        node = self._member(name)
        if is_array(node):
            raise InvalidArgumentError(f"{self.name}: {name} has {OLD}")
        with reading(f"{self.name}: {name}"):
            found = read(node)
        if not (hasattr(found, "index") and hasattr(found, "columns")):
            raise InvalidArgumentError(f"{self.name}: {name} is no data frame of AnnData, but {type(found).__name__}")
        return found

    def names_in(self, group: str) -> list[str]:
        """Members of "layers" or "obsm"."""
        if self._memory is not None:
            return list(getattr(self._memory, group).keys())
        root = self._open()
        with reading(f"{self.name}: {group}"):
            if group in root and is_array(root[group]):
                raise InvalidArgumentError(f"{self.name}: {group} is an array, a group is wanted")
            return sorted(root[group].keys()) if group in root else []

    def rows(self, member: str) -> Any:
        """X, a layer or an array of obsm: "X", "layers/NAME", "obsm/NAME".

        Raises:
            InvalidArgumentError: there is none, or of a layout that is not read.
            CorruptionError: a part of it is missing, or cannot be read.
        """
        group, _, name = (
            "raw/X" if member == "X" and self._x == "raw" else self._x if member == "X" else member
        ).partition("/")
        if name and group != "raw" and name not in self.names_in(group):
            raise InvalidArgumentError(
                f"{self.name}: no {group}/{name}: there are {quoted(self.names_in(group)) or 'none'}"
            )
        if self._memory is not None:
            whole = self._memory.raw if group == "raw" else self._memory
            found = whole.X if not name or group == "raw" else getattr(whole, group)[name]
            if found is None:
                raise InvalidArgumentError(f"{self.name}: there is no {member}")
            return _RowsInMemory(found)
        node, what = self._member(f"{group}/{name}" if name else group), f"{self.name}: {member}"
        with reading(what):
            return DenseRows(what, node) if is_array(node) else SparseRows(what, node)

    def _member(self, name: str) -> Any:
        root = self._open()
        with reading(f"{self.name}: {name}"):
            is_there = name in root
        if not is_there:
            why = f": {_NO_ANNDATA}" if name in ("obs", "var") else ""
            raise InvalidArgumentError(f"{self.name}: there is no {name}{why}")
        with reading(f"{self.name}: {name}"):
            return root[name]

    def _open(self) -> Any:
        if self._root is None:
            root = _opened(self.name)
            with reading(self.name):
                has_modalities = "mod" in root and "X" not in root
            if has_modalities:
                root = _modality(self.name, root["mod"], self._modality)
            elif self._modality is not None:
                raise InvalidArgumentError(_NO_MODALITY.format(self.name, self._modality))
            self._root = root
        return self._root


_NO_MODALITY = "{}: modality={!r}: it has no modalities, it is one"
_NO_ANNDATA = "this is no AnnData (10x's .h5 files and folders are for `penstock import`)"


def _checked_path(path: str) -> str:
    """The path, absolute wherever the process goes; an address as it is.

    Raises:
        InvalidArgumentError: a file or folder of another kind by its name.
        NotFoundError: nothing is there.
    """
    if is_far(path):
        return path
    name = str(Path(path).absolute())
    with looking_at(name):
        is_there, is_folder = Path(name).exists(), Path(name).is_dir()
    if not is_there:
        raise NotFoundError(2, f"{name}: no such file or folder", name)
    if not is_folder and not name.lower().endswith((*_HDF5, ".zip")):
        raise InvalidArgumentError(f"{name}: cannot be told by its name: {_WANTED}")
    if is_folder and not any((Path(name) / each).exists() for each in _ZARR):
        what = "a SOMA experiment: Collection.from_soma reads it" if is_soma(name) else "no zarr store"
        raise InvalidArgumentError(f"{name}: {what}{'' if is_soma(name) else f': {_WANTED}'}")
    return name


def _opened(name: str) -> Any:
    """The root of a file or store.

    Raises:
        InvalidArgumentError: it is of another format.
        IoError: it cannot be looked at.
        CorruptionError: it cannot be read.
    """
    if not is_far(name) and name.lower().endswith(_HDF5):
        refuse_other(name)
        file = needed("h5py", name).File
        with reading(name):
            return file(name, "r")
    open_group = needed("zarr", name).open_group
    try:
        return open_group(name, mode="r")
    except ModuleNotFoundError:
        raise
    except Exception as error:  # zarr has many kinds
        said = excerpt(error) or type(error).__name__
        raise InvalidArgumentError(f"{name}: cannot be read as a zarr store: {said}: {_WANTED}") from error


def _modality(path: str, group: Any, wanted: str | None) -> Any:
    names = sorted(group.keys())
    if wanted is None and len(names) == 1:
        wanted = names[0]
    if wanted not in names:
        said = "which modality is wanted" if wanted is None else f"no modality {wanted!r}"
        raise InvalidArgumentError(f"{path}: {said}: modality= is one of {quoted(names)}")
    return group[wanted]
