"""Collection: stores of AnnData side by side, cell after cell, as one collection for `CollectionLoader`."""

from __future__ import annotations

import hashlib
import os
import warnings
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from penstock._base.arguments import one_of
from penstock._base.errors import InvalidArgumentError
from penstock._base.words import counted, excerpt, quoted, warn_caller
from penstock._data.anndata.counts import Counts, of_each
from penstock._data.anndata.genes import JOINS
from penstock._data.anndata.soma import SomaStore
from penstock._data.anndata.stores import needed
from penstock._data.fractions import LOOKED_AT, has_fractions, mixed_words
from penstock._load.collections.cell_batch import CellBatch, Codes
from penstock._load.collections.cell_stores import CellStore, Indices, is_far
from penstock._places.paths import expand, local_path

_NAMES = 4096  # of cells at either end of each store, by which a state knows them


class Collection:
    """AnnData of several files, stores or in memory as one collection: cells end to end, in place.

    Indexed by integers, a slice or a mask it gives a `CellBatch` of these cells, in memory. obs and var of all are in
    memory, and 8 bytes a cell; of X and what else was asked for nothing is.

    Attributes:
        shape: cells, genes.
        var: DataFrame of the genes, in the order of `anndata.concat`.
        obs: DataFrame of all cells; categories are the same in all batches.

    Examples:
        >>> import anndata, numpy, os, pandas, penstock, scipy.sparse, tempfile  # doctest: +SKIP
        >>> folder = tempfile.mkdtemp()  # doctest: +SKIP
        >>> for name in ("a.h5ad", "b.zarr"):  # doctest: +SKIP
        ...     cells = anndata.AnnData(scipy.sparse.eye(3, format="csr"))
        ...     cells.obs["plate"] = pandas.Categorical([name] * 3)
        ...     (cells.write_h5ad if name == "a.h5ad" else cells.write_zarr)(f"{folder}/{name}")
        >>> both = penstock.Collection.from_anndatas([f"{folder}/a.h5ad", f"{folder}/b.zarr"])  # doctest: +SKIP
        >>> batch = both[[4, 0]]  # doctest: +SKIP
        >>> both.shape, batch.X.toarray().tolist(), batch.codes["plate"].tolist()  # doctest: +SKIP
        ((6, 3), [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]], [1, 0])
    """

    def __init__(
        self, stores: Sequence[CellStore | SomaStore], join: str, layers: Sequence[str], obsm: Sequence[str]
    ) -> None:
        """Made by `from_anndatas`."""
        self._stores = list(stores)
        self._members = ["X", *(f"layers/{name}" for name in layers), *(f"obsm/{name}" for name in obsm)]
        self._rows: dict[tuple[int, str], Any] = {}
        self.obs, self.var, self._genes, counts = _joined(self._stores, join)
        self._starts = np.concatenate([[0], np.cumsum(counts)])
        self.shape = (int(self._starts[-1]), len(self.var))
        self._sparse, self._types = {}, {}
        for member in self._members:
            found = [self._rows_of(number, member) for number in range(len(self._stores))]
            self._check(member, found, counts)
            self._sparse[member] = any(each.is_sparse for each in found)
            dtype = np.result_type(*(each.dtype for each in found))
            has_gaps = any(
                genes is not None and len(set(genes.tolist()) - {-1}) < self.shape[1] for genes in self._genes
            )
            is_filled = has_gaps and not self._sparse[member] and not member.startswith("obsm/")
            self._types[member] = np.dtype("f8") if is_filled and dtype.kind != "f" else dtype  # NaN, as anndata has it

    @classmethod
    def from_anndatas(
        cls,
        stores: Any,
        *,
        join: str = "exact",
        x: Counts = "X",
        layers: Sequence[str] = (),
        obs: Sequence[str] | None = None,
        obsm: Sequence[str] = (),
        modality: str | None = None,
    ) -> Collection:
        """AnnData side by side: nothing is converted, and of X no more is read than a few cells of each.

        Args:
            stores: paths, or globs, of .h5ad and .h5mu files and zarr stores (v2, v3, sharded, compressed or not), or
                AnnData; also mixed. X of each is compressed rows (CSR) or dense.
            join: "exact": all have the same genes in the same order; "inner": genes of all; "outer": of any, in the
                order of `anndata.concat`. obs has the columns that all have, with "outer" those of any.
            x: where the counts are: "X", "raw" or "layers/NAME"; or a list with a place for each of `stores` (for all
                that a glob matches), or {path: place}, where others have "X".
            layers: names of layers that batches have beside X.
            obs: columns of obs that are kept; None: all.
            obsm: names of dense arrays of obsm that batches have.
            modality: of .h5mu files and MuData's zarr stores, which of them.

        Returns:
            The collection; give it to `CollectionLoader`.

        Raises:
            InvalidArgumentError: none, a file of another format, genes that differ or come twice, no such layer, column
                or modality; compressed columns (CSC).
            NotFoundError: a file is not there, or none matches a glob.
            IoError, CorruptionError: a file cannot be read; the message names file and member.
        """
        one_of("join", join, JOINS)
        given = (
            [stores]
            if isinstance(stores, str) or not isinstance(stores, Iterable) or hasattr(stores, "obs")
            else list(stores)
        )
        if not given:
            raise InvalidArgumentError("from_anndatas([]): give at least one")
        places = of_each(x, given)
        if "raw" in places and layers:
            raise InvalidArgumentError("layers go with X, whose genes are not those of raw")
        for name, names in (("layers", layers), ("obs", obs), ("obsm", obsm)):
            if isinstance(names, str):
                raise InvalidArgumentError(f"{name}={names!r:.80}: a list of names is wanted")
        found = [
            CellStore(one, own, modality) for each, own in zip(given, places, strict=True) for one in _matched(each)
        ]
        made = cls._of(found, join, layers, obsm)
        made._warn_of_mixed()
        if obs is not None:
            if missing := [name for name in obs if name not in made.obs]:
                raise InvalidArgumentError(
                    f"obs has no {quoted(missing)}: there are {quoted(list(made.obs)) or 'none'}"
                )
            made.obs = made.obs[list(obs)]
        return made

    @classmethod
    def from_soma(
        cls, experiments: Any, *, measurement: str | None = None, layer: str | None = None, join: str = "exact"
    ) -> Collection:
        """SOMA experiments of TileDB side by side, as CELLxGENE Census has them; needs the package tiledbsoma.

        Args:
            experiments: address of one, or several.
            measurement: None: the only one, or RNA.
            layer: of X; None: the only one, or "data", or "raw".
            join: as of `from_anndatas`.

        Returns:
            The collection; give it to `CollectionLoader`.

        Raises:
            InvalidArgumentError: none, no such measurement or layer, genes that differ.
            NotFoundError: a folder is not there.
        """
        one_of("join", join, JOINS)
        given = [experiments] if isinstance(experiments, str | os.PathLike) else list(experiments)
        if not given:
            raise InvalidArgumentError("from_soma([]): give at least one")
        return cls._of([SomaStore(os.fspath(each), measurement, layer) for each in given], join, (), ())

    @classmethod
    def _of(
        cls, stores: Sequence[CellStore | SomaStore], join: str, layers: Sequence[str], obsm: Sequence[str]
    ) -> Collection:
        """A collection of stores, which are closed where there can be none."""
        try:
            return cls(stores, join, layers, obsm)
        except BaseException:
            for each in stores:
                each.close()
            raise

    @property
    def obs_names(self) -> Any:
        """Names of all cells."""
        return self.obs.index

    @property
    def var_names(self) -> Any:
        """Names of the genes."""
        return self.var.index

    @cached_property
    def codes(self) -> Codes:
        """Numbers of the categories of obs, by column: integers [cells], -1 where one is missing."""
        return Codes(self.obs, None)

    def __getstate__(self) -> dict[str, Any]:
        """Another process opens the files anew."""
        return {**self.__dict__, "_rows": {}}

    def __len__(self) -> int:
        """Cells."""
        return self.shape[0]

    def __getitem__(self, key: Any) -> CellBatch:
        """These cells, in memory: integers in any order, a slice or a mask.

        Raises:
            IndexError: there is no such cell.
        """
        wanted = self._numbers(key)
        indices, places = np.unique(wanted, return_inverse=True)
        read = {member: self._read(member, indices) for member in self._members}
        batch = CellBatch(read, self.obs, self.codes, indices)
        return batch if np.array_equal(indices, wanted) else batch[places.reshape(-1)]

    def describe(self) -> dict[str, Any]:
        """The part of a state that tells it: names of genes, and of cells at either end of each store."""
        names = self.obs_names
        cells = [
            [*names[begin : begin + _NAMES], *names[max(begin, end - _NAMES) : end]]
            for begin, end in zip(self._starts[:-1].tolist(), self._starts[1:].tolist(), strict=True)
        ]
        return {
            "cells": _digest([name for some in cells for name in some]),
            "genes": _digest(self.var_names),
            "members": [f"{member} {self._types[member].str}" for member in self._members],
        }

    def _numbers(self, key: Any) -> Indices:
        if isinstance(key, slice):
            return np.arange(len(self))[key]
        wanted = np.atleast_1d(np.asarray(key))
        if wanted.dtype == bool and wanted.shape == (len(self),):
            return np.flatnonzero(wanted)
        if wanted.size == 0:
            return np.zeros(0, np.int64)
        if wanted.ndim != 1 or wanted.dtype.kind not in "iu":
            raise IndexError(f"{key!r:.80}: integers or booleans [n], or a slice")
        wanted = wanted.astype(np.int64)
        wanted = np.where(wanted < 0, wanted + len(self), wanted)
        if wanted.min() < 0 or wanted.max() >= len(self):
            raise IndexError(f"{key!r:.80}: there are {counted(len(self), 'cell')}")
        return wanted

    def _rows_of(self, number: int, member: str) -> Any:
        if (number, member) not in self._rows:
            self._rows[number, member] = self._stores[number].rows(member)
        return self._rows[number, member]

    def _warn_of_mixed(self) -> None:
        """Says which stores have fractions where others have counts, by the first cells of each."""
        if len(self._stores) < 2 or self._types["X"].kind != "f":
            return
        fractional: list[CellStore | SomaStore] = []
        counts: list[CellStore | SomaStore] = []
        for number, store in enumerate(self._stores):
            rows = self._rows_of(number, "X")
            part = rows.read(np.arange(min(LOOKED_AT, rows.shape[0])))
            values = part.data if hasattr(part, "indptr") else part
            if values.size:
                (fractional if has_fractions(values) else counts).append(store)
        if fractional and counts:
            there = quoted(fractional[0].names_in("layers")) or "none"
            how = f"x='layers/NAME' says it (there are: {there})"
            warn_caller(mixed_words("X", [each.name for each in fractional], counts[0].name, how))

    def _read(self, member: str, indices: Indices) -> Any:
        """A matrix or array of these cells, which ascend and differ."""
        bounds = np.searchsorted(indices, self._starts)
        parts = []
        for number, (first, last) in enumerate(zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True)):
            if last > first:
                part = self._rows_of(number, member).read(indices[first:last] - self._starts[number])
                genes = None if member.startswith("obsm/") else self._genes[number]
                parts.append(self._with_genes(part, genes, member))
        if not parts:
            genes = None if member.startswith("obsm/") else self._genes[0]
            parts.append(self._with_genes(self._rows_of(0, member).read(indices), genes, member))
        dtype = self._types[member]
        if not self._sparse[member]:
            return np.concatenate(parts).astype(dtype, copy=False)
        return (parts[0] if len(parts) == 1 else needed("scipy.sparse", "Collection").vstack(parts, "csr")).astype(
            dtype, copy=False
        )

    def _with_genes(self, part: Any, genes: npt.NDArray[np.int64] | None, member: str) -> Any:
        """Rows of one store as rows of all genes; `genes` are its genes' numbers, None where they are the same."""
        made = needed("scipy.sparse", "Collection").csr_matrix
        if not hasattr(part, "indptr"):
            if genes is not None:
                dtype = self._types[member]
                fill = np.nan if dtype.kind == "f" and not self._sparse[member] else 0
                whole = np.full((len(part), self.shape[1]), fill, dtype)
                whole[:, genes[genes >= 0]] = part[:, genes >= 0]
                part = whole
            return made(part) if self._sparse[member] else part
        if genes is None:
            return part
        numbers, starts, values = genes[part.indices], part.indptr, part.data
        kept = numbers >= 0
        if not kept.all():
            starts = np.concatenate([[0], np.cumsum(kept)])[starts]
            numbers, values = numbers[kept], values[kept]
        found = made((values, numbers.astype(part.indices.dtype), starts), (part.shape[0], self.shape[1]))
        found.sort_indices()
        return found

    def _check(self, member: str, found: list[Any], counts: list[int]) -> None:
        for number, (store, each) in enumerate(zip(self._stores, found, strict=True)):
            wanted = (counts[number],) if member.startswith("obsm/") else (counts[number], self._own_genes(number))
            if each.shape[: len(wanted)] != wanted or len(each.shape) < 2:
                raise InvalidArgumentError(
                    f"{store.name}: {member} has shape {list(each.shape)}, obs and var {list(wanted)}"
                )
            if member.startswith("obsm/") and each.shape[1:] != found[0].shape[1:]:
                raise InvalidArgumentError(
                    f"{store.name}: {member} has {list(each.shape[1:])} for each cell, {self._stores[0].name} has "
                    f"{list(found[0].shape[1:])}"
                )

    def _own_genes(self, number: int) -> int:
        genes = self._genes[number]
        return self.shape[1] if genes is None else len(genes)

    def __repr__(self) -> str:
        """Cells, genes and stores."""
        return f"Collection({self.shape[0]:,} cells, {self.shape[1]:,} genes, {counted(len(self._stores), 'store')})"


def _joined(
    stores: list[CellStore | SomaStore], join: str
) -> tuple[Any, Any, list[npt.NDArray[np.int64] | None], list[int]]:
    """(obs, var, of each store its genes' numbers or None, cells of each), by anndata.concat of obs and var alone."""
    anndata = needed("anndata", "Collection")
    frames = [store.frames() for store in stores]
    for store, (_, var) in zip(stores, frames, strict=True):
        if not var.index.is_unique:
            twice = var.index[var.index.duplicated()][0]
            raise InvalidArgumentError(f"{store.name}: two genes are both named {excerpt(twice)}")
    first = frames[0][1].index
    for store, (_, var) in zip(stores, frames, strict=True):
        if join == "exact" and not var.index.equals(first):
            raise InvalidArgumentError(
                f"{stores[0].name} and {store.name} have other genes ({len(first):,} and {len(var):,}), or another "
                "order of them: choose join='inner' or 'outer'"
            )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of names of cells that come twice
        shells = [anndata.AnnData(obs=obs, var=var) for obs, var in frames]
        joined = (
            shells[0]
            if len(shells) == 1
            else anndata.concat(shells, join="inner" if join == "exact" else join, merge="same")
        )
    if not joined.n_vars:
        raise InvalidArgumentError(f"no gene is in all of {quoted([store.name for store in stores])}")
    numbers = [
        None if var.index.equals(joined.var_names) else joined.var_names.get_indexer(var.index) for _, var in frames
    ]
    return joined.obs, joined.var, numbers, [len(obs) for obs, _ in frames]


def _matched(given: Any) -> list[Any]:
    """The stores that a glob matches; what is none as it is."""
    is_here = isinstance(given, str | os.PathLike) and not is_far(os.fspath(given))
    return list(expand(local_path(given))) if is_here else [given]


def _digest(names: Any) -> str:
    return hashlib.blake2b("\0".join(map(str, names)).encode(), digest_size=16).hexdigest()
