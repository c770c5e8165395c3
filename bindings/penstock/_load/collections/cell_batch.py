"""CellBatch: some cells of a `Collection`, in memory; their obs is made when it is asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from penstock._data.anndata.stores import needed


class Codes(Mapping[str, npt.NDArray[Any]]):
    """Numbers of the categories of obs, by column: integers [cells], -1 where one is missing."""

    def __init__(self, obs: Any, indices: npt.NDArray[np.int64] | None, whole: Codes | None = None) -> None:
        """Takes obs of all cells; with `indices` for those, of which `whole` has the codes of all."""
        self._obs, self._indices, self._whole = obs, indices, whole
        self._found: dict[str, npt.NDArray[Any]] = {}

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        """Codes of one column; raises KeyError where it is no category."""
        if name not in self._found:
            if name not in self._obs or not hasattr(self._obs[name], "cat"):
                raise KeyError(f"{name!r:.80}: the categories are {', '.join(self)}")
            if self._whole is None or self._indices is None:
                self._found[name] = self._obs[name].cat.codes.to_numpy()
            else:
                self._found[name] = self._whole[name][self._indices]
        return self._found[name]

    def __iter__(self) -> Iterator[str]:
        """Names of the columns that are categories."""
        return (name for name in self._obs if hasattr(self._obs[name], "cat"))

    def __len__(self) -> int:
        """How many there are."""
        return sum(1 for _ in self)


class CellBatch:
    """Some cells: X, and layers and obsm where they were asked for. Pickles with its own rows of obs.

    Attributes:
        X: CSR matrix, or dense [cells, genes].
        layers: by name.
        obsm: by name.
        shape: cells, genes.
    """

    def __init__(self, read: Mapping[str, Any], obs: Any, codes: Codes, indices: npt.NDArray[np.int64]) -> None:
        """Made by a Collection: `obs` and `codes` are those of all cells."""
        self._read = dict(read)
        self._all_obs, self._all_codes, self._indices = obs, codes, indices
        self._obs: Any = None
        self._codes: Codes | None = None
        self.X = read["X"]
        self.shape = self.X.shape
        self.layers = {name.partition("/")[2]: each for name, each in read.items() if name.startswith("layers/")}
        self.obsm = {name.partition("/")[2]: each for name, each in read.items() if name.startswith("obsm/")}

    @property
    def obs(self) -> Any:
        """DataFrame of these cells, made now; its categories are those of all cells."""
        if self._obs is None:
            self._obs = self._all_obs.iloc[self._indices]
        return self._obs

    @property
    def codes(self) -> Codes:
        """Numbers of the categories of obs, by column; no DataFrame is made."""
        if self._codes is None:
            self._codes = Codes(self._all_obs, self._indices, self._all_codes)
        return self._codes

    @property
    def obs_names(self) -> Any:
        """Names of these cells."""
        return self._all_obs.index[self._indices]

    @property
    def n_obs(self) -> int:
        """Cells."""
        return int(self.shape[0])

    @property
    def nbytes(self) -> int:
        """Bytes of the matrices and arrays."""
        total = 0
        for each in self._read.values():
            arrays = [each] if hasattr(each, "nbytes") else [each.data, each.indices, each.indptr]
            total += sum(array.nbytes for array in arrays)
        return total

    def to_anndata(self, var: Any = None) -> Any:
        """AnnData of these cells; `var` is the collection's."""
        return needed("anndata", "to_anndata").AnnData(
            self.X, obs=self.obs.copy(), var=var, layers=self.layers, obsm=self.obsm
        )

    def __getitem__(self, places: Any) -> CellBatch:
        """Those of these cells at `places`, integers [n] in any order."""
        read = {name: each[places] for name, each in self._read.items()}
        return CellBatch(read, self._all_obs, self._all_codes, self._indices[places])

    def __len__(self) -> int:
        """Cells."""
        return int(self.shape[0])

    def __getstate__(self) -> dict[str, Any]:
        """With the rows of obs that are its own alone."""
        return {"read": self._read, "obs": self.obs}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Takes what `__getstate__` gave."""
        obs = state["obs"]
        self.__init__(state["read"], obs, Codes(obs, None), np.arange(len(obs)))  # type: ignore[misc]

    def __repr__(self) -> str:
        """Cells and genes."""
        return f"CellBatch({self.shape[0]:,} cells, {self.shape[1]:,} genes)"
