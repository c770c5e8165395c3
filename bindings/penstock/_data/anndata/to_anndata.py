"""Cells of a dataset as AnnData again, in memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from penstock._base.errors import InvalidArgumentError
from penstock._data.anndata.cell_reader import CellReader
from penstock._data.anndata.stores import needed


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
        if column._categories is not None:
            obs[name] = pandas.Categorical.from_codes(array, column._categories)
        else:
            (obsm if array.ndim > 1 else obs)[name] = array
    for name in reader.texts:
        obs[name] = [text for part in parts for text in part.texts[name]]
    var = {}
    for name, column in reader.features.columns.items():
        array = column[:]
        var[name] = array if column._categories is None else pandas.Categorical.from_codes(array, column._categories)
    return anndata.AnnData(
        matrices.pop("X", None),
        obs=pandas.DataFrame(obs, index=pandas.Index(names, dtype=object)),
        var=pandas.DataFrame(var, index=pandas.Index(reader.genes, dtype=object)),
        obsm=obsm,
        layers=matrices,
        shape=None if "X" in reader.types else shape,
    )
