"""Cells of a dataset as AnnData again: in memory, or as an .h5ad file that is written few cells at a time."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from penstock._errors import InvalidArgumentError, IoError
from penstock._words import excerpt

from .matrices import AT_ONCE
from .plan import NAME
from .stores import needed


@dataclass
class Cells:
    """Some cells, one after the other.

    Attributes:
        names: of cells.
        sparse: of each matrix of records (counts [cells], genes, values).
        dense: of each matrix that is a column [cells, genes].
        columns: [cells, …], of categories codes.
        texts: strings of the entries, None where one is missing.
    """

    names: list[str] = field(default_factory=list)
    sparse: dict[str, tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any]]] = field(default_factory=dict)
    dense: dict[str, npt.NDArray[Any]] = field(default_factory=dict)
    columns: dict[str, npt.NDArray[Any]] = field(default_factory=dict)
    texts: dict[str, list[str | None]] = field(default_factory=dict)


class CellReader:
    """Reads a dataset of cells by runs of documents. One thread at a time.

    Attributes:
        genes: names.
        types: of each matrix: "X", or a layer's name.
        texts: keys of the entries beside the cell's name, as the first entry has them.
    """

    def __init__(self, dataset: Any) -> None:
        """Of an opened dataset.

        Raises:
            InvalidArgumentError: it has no features, or neither genes nor a matrix.
        """
        self._dataset = dataset
        features = dataset.features
        if features is None:
            raise InvalidArgumentError(
                f"{dataset.path}: it has no features, the names of genes: Writer(…, features=…) and import keep them"
            )
        self.features = features
        self.genes: list[str] = features.names
        fields = dataset.dtype
        names = () if fields is None else fields.names or ()
        if names and "gene" not in names:
            raise InvalidArgumentError(f"{dataset.path}: its records have no field gene: {', '.join(names)}")
        self._fields = {"X" if name == "count" else name: name for name in names if name != "gene"}
        self.types = {matrix: _matrix_type(fields[name]) for matrix, name in self._fields.items()}
        shapes = {name: dataset.columns[name].shape[1:] for name in dataset.columns}
        self._dense = [name for name, shape in shapes.items() if shape == (len(self.genes),) and name not in self.types]
        self.types.update({name: _matrix_type(dataset.columns[name].dtype) for name in self._dense})
        if not self.types:
            raise InvalidArgumentError(f"{dataset.path}: there are no counts: neither records of genes nor a column X")
        self.columns = {name: dataset.columns[name] for name in shapes if name not in self._dense}
        self._view = dataset.documents(columns=list(shapes))
        self._has_entries = dataset.codec not in (None, "boundaries")
        self.texts: list[str] = []
        if self._has_entries and len(self._view):
            entry = self._view.read([0]).spans[0].metadata
            self.texts = [str(key) for key in entry if key != NAME] if isinstance(entry, Mapping) else []
        for name in self.texts:
            if name in self.columns:
                raise InvalidArgumentError(f"{dataset.path}: {excerpt(name)} is a column, and in the entries too")

    def __len__(self) -> int:
        """Cells."""
        return len(self._view)

    def is_sparse(self, matrix: str) -> bool:
        """Whether records hold it."""
        return matrix not in self._dense

    def parts(self, indices: npt.NDArray[Any]) -> Iterator[Cells]:
        """These cells, few at a time."""
        if not len(indices):
            return
        column_bytes = sum(column.dtype.itemsize * int(np.prod(column.shape[1:])) for column in self.columns.values())
        column_bytes += 8 * len(self._dense) * len(self.genes)
        each = self._dataset.records // max(1, len(self)) + column_bytes // 4 + 1
        step = max(1, AT_ONCE // each)
        for at in range(0, len(indices), step):
            yield self._read(indices[at : at + step])

    def _read(self, indices: npt.NDArray[Any]) -> Cells:
        batch = self._view.read(indices)
        cells = Cells()
        if self._fields:
            counts, genes = np.diff(batch.offsets), batch["gene"]
            self._check_genes(genes, counts, indices)
            for matrix, name in self._fields.items():
                values = batch[name].astype(self.types[matrix])
                cells.sparse[matrix] = (counts, genes, values)
                if len(self._fields) > 1:  # positions are those of all matrices: 0 says that this one has none there
                    kept = values != 0
                    rows = np.repeat(np.arange(len(counts)), counts)[kept]
                    cells.sparse[matrix] = (np.bincount(rows, minlength=len(counts)), genes[kept], values[kept])
        for name in self._dense:
            cells.dense[name] = batch.columns[name].astype(self.types[name])
        for name in self.columns:
            cells.columns[name] = batch.columns[name]
        self._read_entries(batch, indices, cells)
        return cells

    def _check_genes(self, genes: npt.NDArray[Any], counts: npt.NDArray[Any], indices: npt.NDArray[Any]) -> None:
        if not genes.size or int(genes.max()) < len(self.genes):
            return
        at = int(np.argmax(genes))
        cell = int(indices[int(np.searchsorted(np.cumsum(counts), at, "right"))])
        raise InvalidArgumentError(
            f"{self._dataset.path}: cell {cell:,} has gene {int(genes[at]):,} of {len(self.genes):,}"
        )

    def _read_entries(self, batch: Any, indices: npt.NDArray[Any], cells: Cells) -> None:
        cells.texts = {name: [] for name in self.texts}
        for index, span in zip(indices.tolist(), batch.spans, strict=True) if self._has_entries else ():
            entry = span.metadata
            known = entry if isinstance(entry, Mapping) else {}
            cells.names.append(str(known.get(NAME, index)))
            for name in self.texts:
                value = known.get(name)
                cells.texts[name].append(None if value is None else str(value))
        if not self._has_entries:
            cells.names = [str(index) for index in indices.tolist()]


def _matrix_type(dtype: Any) -> str:
    """AnnData's floats: of 4 bytes where these hold every value of the type."""
    base = np.dtype(dtype).base
    return "<f4" if base.str[1:] in ("u1", "u2", "i1", "i2", "f2", "f4", "b1") else "<f8"


def to_anndata(dataset: Any, indices: npt.ArrayLike | None = None) -> Any:
    """As `Dataset.to_anndata`."""
    anndata, pandas = needed("anndata", "to_anndata"), needed("pandas", "to_anndata")
    sparse = needed("scipy.sparse", "to_anndata")
    reader = CellReader(dataset)
    wanted = np.arange(len(reader)) if indices is None else np.asarray(indices)
    if wanted.dtype.kind == "b":
        if wanted.shape != (len(reader),):
            raise InvalidArgumentError(f"a mask of shape {list(wanted.shape)}: [{len(reader)}] wanted")
        wanted = np.flatnonzero(wanted)
    if wanted.ndim != 1 or (wanted.size and wanted.dtype.kind not in "iu"):
        raise InvalidArgumentError(
            f"indices of shape {list(wanted.shape)} and type {wanted.dtype}: integers [n] wanted"
        )
    parts = list(reader.parts(wanted))
    shape = (len(wanted), len(reader.genes))
    matrices = {}
    for name, dtype in reader.types.items():
        if not reader.is_sparse(name):
            matrices[name] = np.concatenate([part.dense[name] for part in parts] or [np.empty(shape, dtype)])
            continue
        counts, genes, values = (
            np.concatenate([part.sparse[name][at] for part in parts] or [np.empty(0, kind)])
            for at, kind in enumerate(("i8", "i8", dtype))
        )
        starts = np.concatenate([[0], np.cumsum(counts)])
        index = "i4" if len(genes) < 1 << 31 else "i8"
        matrices[name] = sparse.csr_matrix((values, genes.astype(index), starts.astype(index)), shape)
    names = [name for part in parts for name in part.names]
    obs: dict[str, Any] = {}
    obsm: dict[str, Any] = {}
    for name, column in reader.columns.items():
        array = np.concatenate([part.columns[name] for part in parts]) if parts else column[:0]
        if column.categories is not None:
            obs[name] = pandas.Categorical.from_codes(array, column.categories)
        else:
            (obsm if array.ndim > 1 else obs)[name] = array
    for name in reader.texts:
        obs[name] = [text for part in parts for text in part.texts[name]]
    var = {}
    for name, column in reader.features.columns.items():
        array = column[:]
        var[name] = array if column.categories is None else pandas.Categorical.from_codes(array, column.categories)
    return anndata.AnnData(
        matrices.pop("X", None),
        obs=pandas.DataFrame(obs, index=pandas.Index(names, dtype=object)),
        var=pandas.DataFrame(var, index=pandas.Index(reader.genes, dtype=object)),
        obsm=obsm,
        layers=matrices,
        shape=None if "X" in reader.types else shape,
    )


def export_h5ad(dataset: Any, out: str, progress: Callable[[int, int], None] | None = None) -> int:
    """Writes all cells as an .h5ad file, whole or not at all, and returns how many there are.

    Memory is bounded whatever the dataset's size.

    Raises:
        InvalidArgumentError: something is at `out`, or the dataset is not one of cells.
        IoError: it cannot be written.
    """
    h5py = needed("h5py", "export")
    if Path(out).exists():
        raise InvalidArgumentError(f"{out} is there already: choose another --out")
    reader = CellReader(dataset)
    partial = f"{out}.partial-{os.getpid()}"
    try:
        with h5py.File(partial, "w") as file:
            _FileWriter(h5py, file, reader).write(progress)
        os.link(partial, out)  # never over another file
    except OSError as error:
        raise IoError(error.errno, f"{out}: cannot be written: {error}", out) from error
    finally:
        Path(partial).unlink(missing_ok=True)
    return len(reader)


class _Grows:
    """A dataset of HDF5 that is appended to."""

    def __init__(self, group: Any, name: str, dtype: Any, shape: tuple[int, ...] = ()) -> None:
        width = max(1, int(np.prod(shape)))
        chunk = (max(1, (1 << 16) // width), *shape)
        self.node = group.create_dataset(name, (0, *shape), dtype, maxshape=(None, *shape), chunks=chunk)

    def append(self, values: Any) -> None:
        if len(values):
            at = self.node.shape[0]
            self.node.resize(at + len(values), 0)
            self.node[at:] = values


def _says(node: Any, kind: str, version: str, **more: Any) -> Any:
    node.attrs.update({"encoding-type": kind, "encoding-version": version, **more})
    return node


class _FileWriter:
    """AnnData's layout on disk, as anndata 0.8 and later write it."""

    def __init__(self, h5py: Any, file: Any, reader: CellReader) -> None:
        self._text = h5py.string_dtype()
        self._reader = reader
        self._file = _says(file, "anndata", "0.1.0")
        layers, self._obsm = (_says(file.create_group(name), "dict", "0.1.0") for name in ("layers", "obsm"))
        self._matrices: dict[str, Any] = {}
        for name, dtype in reader.types.items():
            self._matrices[name] = self._begin_matrix(file if name == "X" else layers, name, dtype)
        self._obs = file.create_group("obs")
        self._names = _Grows(self._obs, "_index", self._text)
        self._columns = {name: self._begin_column(name, column) for name, column in reader.columns.items()}
        self._texts = {name: self._begin_text(name) for name in reader.texts}

    def write(self, progress: Callable[[int, int], None] | None) -> None:
        done, cells = 0, len(self._reader)
        starts = dict.fromkeys(self._matrices, 0)
        for part in self._reader.parts(np.arange(cells)):
            self._names.append(part.names)
            for name, (counts, genes, values) in part.sparse.items():
                data, indices, indptr = self._matrices[name]
                data.append(values)
                indices.append(genes.astype(np.int32))
                indptr.append(starts[name] + np.cumsum(counts))
                starts[name] += len(genes)
            for name, block in part.dense.items():
                self._matrices[name].append(block)
            for name, column in part.columns.items():
                self._columns[name].append(column)
            for name, texts in part.texts.items():
                strings, mask = self._texts[name]
                strings.append(["" if text is None else text for text in texts])
                mask.append(np.array([text is None for text in texts]))
            done += len(part.names)
            if progress is not None:
                progress(done, cells)
        self._end()

    def _begin_matrix(self, group: Any, name: str, dtype: str) -> Any:
        shape = (len(self._reader), len(self._reader.genes))
        if not self._reader.is_sparse(name):
            grows = _Grows(group, name, dtype, shape[1:])
            _says(grows.node, "array", "0.2.0")
            return grows
        node = _says(group.create_group(name), "csr_matrix", "0.1.0", shape=np.array(shape, np.int64))
        parts = [_Grows(node, "data", dtype), _Grows(node, "indices", "<i4"), _Grows(node, "indptr", "<i8")]
        parts[2].append(np.zeros(1, np.int64))
        return parts

    def _begin_column(self, name: str, column: Any) -> _Grows:
        if len(column.shape) > 1:
            grows = _Grows(self._obsm, name, column.dtype, column.shape[1:])
        elif column.categories is None:
            grows = _Grows(self._obs, name, column.dtype)
        else:
            grows = self._begin_category(self._obs, name, column.categories)
        _says(grows.node, "array", "0.2.0")
        return grows

    def _begin_category(self, group: Any, name: str, categories: list[str]) -> _Grows:
        node = _says(group.create_group(name), "categorical", "0.2.0", ordered=False)
        _says(node.create_dataset("categories", data=categories, dtype=self._text), "string-array", "0.2.0")
        count = len(categories)
        return _Grows(node, "codes", "i1" if count < 1 << 7 else "<i2" if count < 1 << 15 else "<i4")

    def _begin_text(self, name: str) -> tuple[_Grows, _Grows]:
        node = _says(self._obs.create_group(name), "nullable-string-array", "0.1.0")
        values, mask = _Grows(node, "values", self._text), _Grows(node, "mask", "?")
        _says(values.node, "string-array", "0.2.0")
        _says(mask.node, "array", "0.2.0")
        return values, mask

    def _end(self) -> None:
        for name, (_, mask) in self._texts.items():
            blocks = range(0, mask.node.shape[0], 1 << 20)
            if not any(bool(mask.node[at : at + (1 << 20)].any()) for at in blocks):  # a plain array of strings
                self._obs.move(f"{name}/values", f"{name}.values")
                del self._obs[name]
                self._obs.move(f"{name}.values", name)
        order = [name for name, column in self._reader.columns.items() if len(column.shape) == 1]
        self._frame(self._obs, [*order, *self._reader.texts])
        _says(self._names.node, "string-array", "0.2.0")
        var = self._file.create_group("var")
        _says(var.create_dataset("_index", data=self._reader.genes, dtype=self._text), "string-array", "0.2.0")
        for name, column in self._reader.features.columns.items():
            if column.categories is None:
                grows = _Grows(var, name, column.dtype)
            else:
                grows = self._begin_category(var, name, column.categories)
            grows.append(column[:])
            _says(grows.node, "array", "0.2.0")
        self._frame(var, list(self._reader.features.columns))

    def _frame(self, group: Any, order: list[str]) -> None:
        _says(group, "dataframe", "0.2.0", _index="_index")
        group.attrs.create("column-order", np.array(order, dtype=object), dtype=self._text)
