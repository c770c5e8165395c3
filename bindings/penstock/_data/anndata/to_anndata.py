"""Cells of a dataset as AnnData again, in memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from penstock._base.errors import InvalidArgumentError
from penstock._data.anndata.cell_reader import CellReader, Cells
from penstock._data.anndata.stores import needed


def to_anndata(dataset: Any, indices: npt.ArrayLike | None = None) -> Any:
    """As `Dataset.to_anndata`."""
    anndata, pandas = needed("anndata", "to_anndata"), needed("pandas", "to_anndata")
    sparse = needed("scipy.sparse", "to_anndata")
    reader = CellReader(dataset)
    wanted = _numbers(indices, len(reader))
    parts = list(reader.parts(wanted))
    shape = (len(wanted), len(reader.genes))
    matrices = {name: _matrix(reader, parts, name, shape, sparse) for name in reader.types}
    names = [name for part in parts for name in part.names]
    obs, obsm = _columns(reader, parts, pandas)
    var = {name: _given(column, column[:], pandas) for name, column in reader.features.columns.items()}
    return anndata.AnnData(
        matrices.pop("X", None),
        obs=pandas.DataFrame(obs, index=pandas.Index(names, dtype=object)),
        var=pandas.DataFrame(var, index=pandas.Index(reader.genes, dtype=object)),
        obsm=obsm,
        layers=matrices,
        shape=None if "X" in reader.types else shape,
    )


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
    counts, genes, values = (
        np.concatenate([part.sparse[name][at] for part in parts] or [np.empty(0, kind)])
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
        is_plain = column._categories is None and array.ndim > 1
        (obsm if is_plain else obs)[name] = _given(column, array, pandas)
    for name in reader.texts:
        obs[name] = [text for part in parts for text in part.texts[name]]
    return obs, obsm


def _given(column: Any, array: npt.NDArray[Any], pandas: Any) -> Any:
    return array if column._categories is None else pandas.Categorical.from_codes(array, column._categories)
