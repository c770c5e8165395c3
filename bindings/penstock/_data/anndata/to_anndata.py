"""Cells of a dataset as AnnData again, in memory."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import numpy.typing as npt

from penstock._base.errors import InvalidArgumentError
from penstock._data.anndata.cell_reader import CellReader, Cells, with_noted_types
from penstock._data.anndata.forms import ColumnForm
from penstock._data.anndata.members import VARM
from penstock._data.anndata.stores import needed
from penstock._data.anndata.trees import Tree, write_tree


def to_anndata(dataset: Any, indices: npt.ArrayLike | None = None) -> Any:
    """As `Dataset.to_anndata`."""
    anndata, pandas = needed("anndata", "to_anndata"), needed("pandas", "to_anndata")
    sparse = needed("scipy.sparse", "to_anndata")

    def made(reader: CellReader) -> Any:
        return _made(anndata, pandas, sparse, reader, _numbers(indices, len(reader)))

    return with_noted_types(dataset, made)


def _made(anndata: Any, pandas: Any, sparse: Any, reader: CellReader, wanted: npt.NDArray[Any]) -> Any:
    parts = list(reader.parts(wanted))
    shape = (len(wanted), len(reader.genes))
    matrices = {name: _matrix(reader, parts, name, shape, sparse) for name in reader.types}
    names = [name for part in parts for name in part.names]
    obs, obsm = _columns(reader, parts, pandas)
    features = reader.features.columns
    var = {
        name: _given(column, column[:], pandas, reader.var_forms.get(name))
        for name, column in features.items()
        if name not in reader.varm
    }
    made = anndata.AnnData(
        matrices.pop("X", None),
        obs=pandas.DataFrame(obs, index=pandas.Index(names, dtype=object)),
        var=pandas.DataFrame(var, index=pandas.Index(reader.genes, dtype=object)),
        obsm=obsm,
        varm={name.removeprefix(VARM): features[name][:] for name in reader.varm},
        uns=_read(reader.uns()),
        layers=matrices,
        shape=None if "X" in reader.types else shape,
    )
    if reader.raw is not None:
        rows = [part.raw for part in parts if part.raw is not None]
        x = _rows(rows, reader.raw["dtype"], (len(wanted), reader.raw["genes"]), sparse)
        made.raw = anndata.AnnData(x, obs=made.obs[[]], var=_read({"var": reader.raw_var()})["var"])
    return made


def _numbers(indices: npt.ArrayLike | None, count: int) -> npt.NDArray[Any]:
    """Which of `count` cells are wanted."""
    wanted = np.arange(count) if indices is None else np.asarray(indices)
    if wanted.dtype.kind == "b":
        if wanted.shape != (count,):
            raise InvalidArgumentError(f"a mask of shape {list(wanted.shape)}: [{count}] wanted")
        wanted = np.flatnonzero(wanted)
    if wanted.ndim != 1 or (wanted.size and wanted.dtype.kind not in "iu"):
        raise InvalidArgumentError(
            f"indices of shape {list(wanted.shape)} and type {wanted.dtype}: integers [n] wanted"
        )
    return wanted


def _matrix(reader: CellReader, parts: list[Cells], name: str, shape: tuple[int, int], sparse: Any) -> Any:
    """X or a layer: compressed rows, or dense where a column has it."""
    dtype = reader.types[name]
    if not reader.is_sparse(name):
        return np.concatenate([part.dense[name] for part in parts] or [np.empty(shape, dtype)])
    return _rows([part.sparse[name] for part in parts], dtype, shape, sparse)


def _rows(parts: list[Any], dtype: str, shape: tuple[int, int], sparse: Any) -> Any:
    counts, genes, values = (
        np.concatenate([part[at] for part in parts] or [np.empty(0, kind)])
        for at, kind in enumerate(("i8", "i8", dtype))
    )
    starts = np.concatenate([[0], np.cumsum(counts)])
    index = "i4" if len(genes) < 1 << 31 else "i8"
    return sparse.csr_matrix((values, genes.astype(index), starts.astype(index)), shape)


def _columns(reader: CellReader, parts: list[Cells], pandas: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """obs and obsm: columns by their axes, then texts of the entries."""
    obs: dict[str, Any] = {}
    obsm: dict[str, Any] = {}
    for name, column in reader.columns.items():
        array = np.concatenate([part.columns[name] for part in parts]) if parts else column[:0]
        (obs if reader.is_of_obs(column) else obsm)[name] = _given(column, array, pandas, reader.forms.get(name))
    for name in reader.texts:
        obs[name] = [text for part in parts for text in part.texts[name]]
    return obs, obsm


def _given(column: Any, array: npt.NDArray[Any], pandas: Any, form: ColumnForm | None) -> Any:
    if form is not None and form.kind == "nullable":
        values, missing = form.nullable(array)
        kind = pandas.arrays.BooleanArray if values.dtype.kind == "b" else pandas.arrays.IntegerArray
        return kind(values, missing)
    names = column._categories
    if names is None:
        return array
    if form is None:
        return pandas.Categorical.from_codes(array, names)
    if form.kind == "strings":
        return [None if code < 0 else names[code] for code in array.tolist()]
    return pandas.Categorical.from_codes(array, form.categories(names), ordered=form.ordered)


def _read(trees: dict[str, Tree]) -> dict[str, Any]:
    """As anndata reads them from a file: one in memory."""
    if not trees:
        return {}
    h5py = needed("h5py", "to_anndata")
    try:
        read = needed("anndata.io", "to_anndata").read_elem
    except ModuleNotFoundError:  # before anndata 0.11
        read = needed("anndata.experimental", "to_anndata").read_elem
    with h5py.File(io.BytesIO(), "w") as file:
        for name, tree in trees.items():
            write_tree(h5py, file, name, tree)
        return {name: read(file[name]) for name in trees}
