"""SOMA experiments of TileDB, as CELLxGENE Census has them: obs, and of one measurement var and a layer of X.

tiledbsoma reads them. Names of cells and genes are obs_id or var_id, as its import of AnnData calls them, or feature_id
of genes, as Census does, else their soma_joinid.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from penstock._base.errors import InvalidArgumentError, NotFoundError
from penstock._base.words import quoted
from penstock._data.anndata.stores import needed

_GROUP = "__tiledb_group.tdb"  # a file of the folder of a group
_NAMES = {"obs": ("obs_id",), "var": ("var_id", "feature_id")}
_LAYERS = ("data", "raw")  # which is taken where there are several


def is_soma(path: str) -> bool:
    """True for a folder that is a group of TileDB with obs and ms in it."""
    folder = Path(path)
    return all((folder / name).exists() for name in (_GROUP, "obs", "ms"))


class SomaStore:
    """One experiment. One thread at a time; pickles.

    Attributes:
        name: its address, for messages.
    """

    def __init__(self, uri: str, measurement: str | None, layer: str | None) -> None:
        """Nothing is read; None: the only one, of layers "data" or "raw" where there are several.

        Raises:
            NotFoundError: nothing is there.
        """
        self.name = uri
        if "://" not in uri:
            self.name = str(Path(uri).absolute())  # wherever the process goes
            if not Path(uri).exists():
                raise NotFoundError(2, f"{self.name}: no such file or folder", self.name)
        self._wanted, self._layer = measurement, layer
        self._opened: Any = None
        self._numbers: dict[str, npt.NDArray[np.int64]] = {}

    def __getstate__(self) -> dict[str, Any]:
        """Another process opens it anew."""
        return {**self.__dict__, "_opened": None}

    def frames(self) -> tuple[Any, Any]:
        """(obs, var) as data frames, in the order of soma_joinid."""
        experiment = self._open()
        return self._frame("obs", experiment.obs), self._frame("var", self._measurement().var)

    def names_in(self, group: str) -> list[str]:
        """No names: batches of an experiment have one layer."""
        return []

    def rows(self, member: str) -> SomaRows:
        """X, the layer that was chosen."""
        if member != "X":
            raise InvalidArgumentError(f"{self.name}: {member}: of an experiment one layer of X is read")
        if not self._numbers:
            self.frames()
        return SomaRows(self._array(), self._numbers["obs"], self._numbers["var"])

    def close(self) -> None:
        """Closes it. May be called twice."""
        if self._opened is not None:
            self._opened.close()
            self._opened = None

    def _open(self) -> Any:
        if self._opened is None:
            self._opened = needed("tiledbsoma", self.name, "tiledbsoma").Experiment.open(self.name)
        return self._opened

    def _measurement(self) -> Any:
        found = self._open().ms
        return found[_chosen(f"{self.name}: measurement", self._wanted, sorted(found.keys()), ("RNA",))]

    def _array(self) -> Any:
        found = self._measurement().X
        return found[_chosen(f"{self.name}: layer of X", self._layer, sorted(found.keys()), _LAYERS)]

    def _frame(self, which: str, table: Any) -> Any:
        frame = table.read().concat().to_pandas().sort_values("soma_joinid")
        self._numbers[which] = frame["soma_joinid"].to_numpy()
        name = next((name for name in _NAMES[which] if name in frame), "soma_joinid")
        frame.index = frame[name].astype(str).to_numpy()
        return frame if name == "soma_joinid" else frame.drop(columns=name)


class SomaRows:
    """A sparse array of cells by genes, read by cells. One thread at a time.

    Attributes:
        shape: cells, genes.
        dtype: of the values.
    """

    is_sparse = True

    def __init__(self, array: Any, cells: npt.NDArray[np.int64], genes: npt.NDArray[np.int64]) -> None:
        """`cells` and `genes` are their soma_joinid, ascending."""
        self._array, self._cells, self._genes = array, cells, genes
        self.shape = (len(cells), len(genes))
        self.dtype: np.dtype[Any] = np.dtype(array.schema.field("soma_data").type.to_pandas_dtype())

    def read(self, rows: npt.NDArray[np.int64]) -> Any:
        """Rows as a CSR matrix [rows, genes]; `rows` ascend."""
        made = needed("scipy.sparse", "CollectionLoader").csr_matrix
        if not len(rows):
            return made((0, self.shape[1]), dtype=self.dtype)
        wanted = self._cells[rows]
        found = self._array.read((wanted,)).tables().concat()
        cells, genes, values = (found[name].to_numpy() for name in ("soma_dim_0", "soma_dim_1", "soma_data"))
        places = np.searchsorted(wanted, cells), np.searchsorted(self._genes, genes)
        matrix = made((values, places), (len(rows), self.shape[1]))
        matrix.sort_indices()
        return matrix


def write_as_h5ad(path: str, measurement: str | None, layer: str | None, out: Path) -> None:
    """Writes the cells of an experiment as an .h5ad file, few at a time.

    Raises:
        InvalidArgumentError: no such measurement or layer.
        NotFoundError: it is not there.
    """
    h5py, anndata = needed("h5py", path), needed("anndata", path)
    store = SomaStore(path, measurement, layer)
    try:
        _write(h5py, anndata, store, out)
    finally:
        store.close()


def _write(h5py: Any, anndata: Any, store: SomaStore, out: Path) -> None:
    obs, var = store.frames()
    rows = store.rows("X")
    with h5py.File(out, "w") as file:
        anndata.AnnData(obs=obs, var=var).write_h5ad(out.with_suffix(".frames"))
        with h5py.File(out.with_suffix(".frames"), "r") as frames:
            for name in ("obs", "var"):
                frames.copy(name, file)
        out.with_suffix(".frames").unlink()
        file.attrs.update({"encoding-type": "anndata", "encoding-version": "0.1.0"})
        x = file.create_group("X")
        shape = np.array(rows.shape, np.int64)
        x.attrs.update({"encoding-type": "csr_matrix", "encoding-version": "0.1.0", "shape": shape})
        arrays = [
            x.create_dataset(name, (0,), dtype, maxshape=(None,), chunks=(1 << 16,))
            for name, dtype in (("data", rows.dtype), ("indices", "<i4"))
        ]
        starts = [np.zeros(1, np.int64)]
        for begin in range(0, len(obs), _CELLS):
            part = rows.read(np.arange(begin, min(begin + _CELLS, len(obs))))
            for node, values in zip(arrays, (part.data, part.indices), strict=True):
                at = node.shape[0]
                node.resize(at + len(values), 0)
                node[at:] = values
            starts.append(starts[-1][-1] + part.indptr[1:].astype(np.int64))
        x.create_dataset("indptr", data=np.concatenate(starts))


_CELLS = 1 << 14  # that are read at once


def _chosen(what: str, wanted: str | None, names: list[str], usual: tuple[str, ...]) -> str:
    if wanted is None:
        wanted = names[0] if len(names) == 1 else next((each for each in usual if each in names), None)
    if wanted not in names:
        raise InvalidArgumentError(f"{what} {wanted!r}: there are {quoted(names) or 'none'}")
    return wanted
