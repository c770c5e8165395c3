"""Cells of a dataset, few at a time, as AnnData has them: matrices, obs, obsm, texts."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from penstock import _native
from penstock._base.errors import InvalidArgumentError
from penstock._base.resources import memory_bytes
from penstock._base.words import excerpt
from penstock._data.anndata.forms import ColumnForm, NotAsNoted, Note, cast_exactly
from penstock._data.anndata.limits import Limits
from penstock._data.anndata.members import LAYERS, NAME, RAW, VARM, X, given_back
from penstock._data.anndata.trees import Tree, unpack

T = TypeVar("T")
LIMITS = Limits()
_FIRST = 256  # cells that are read before it is known how long their texts are


@dataclass
class Cells:
    """Some cells, one after the other.

    Attributes:
        names: of cells.
        sparse: of each matrix of records (counts [cells], genes, values).
        dense: of each matrix that is a column [cells, genes].
        columns: [cells, …], of categories codes.
        texts: strings of the entries, None where one is missing.
        raw: of raw, where entries have it (counts [cells], genes, values).
    """

    names: list[str] = field(default_factory=list)
    sparse: dict[str, tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any]]] = field(default_factory=dict)
    dense: dict[str, npt.NDArray[Any]] = field(default_factory=dict)
    columns: dict[str, npt.NDArray[Any]] = field(default_factory=dict)
    texts: dict[str, list[str | None]] = field(default_factory=dict)
    raw: tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any]] | None = None


class CellReader:
    """Reads a dataset of cells by runs of documents. One thread at a time.

    Attributes:
        genes: names.
        types: of each matrix: "X", or a layer's name.
        texts: keys of the entries beside the cell's name, as the first entry has them.
        forms: of columns of obs, as an import noted them; those that the columns still have.
        var_forms: the same of the features' columns.
        varm: names of those of the features' columns that are arrays of varm.
        lost: what an AnnData of these cells does not have of the imported one, or has as another type, in words.
    """

    def __init__(self, dataset: Any, as_noted: bool = True) -> None:
        """Takes an opened dataset; `as_noted`: types and forms are those that an import noted, if one did.

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
        self.genes: list[str] = list(features._all_names)
        self._fields = _fields_of_matrices(dataset)
        self._note = Note.of(features._note)
        noted = self._note if as_noted else Note()
        stored = {matrix: dataset.dtype[name] for matrix, name in self._fields.items()}
        columns = {name: dataset.columns[name] for name in dataset.columns}
        self._dense = {
            name.removeprefix(LAYERS): name
            for name, column in columns.items()
            if column.shape[1:] == (len(self.genes),) and (name == X or name.startswith(LAYERS))
        }
        for matrix in self._fields:
            self._dense.pop(matrix, None)  # records have it: the column is one of obsm
        stored |= {matrix: columns[name].dtype for matrix, name in self._dense.items()}
        self.types = {name: noted.matrices.get(name) or given_back(dtype) for name, dtype in stored.items()}
        if not self.types:
            raise InvalidArgumentError(f"{dataset.path}: there are no counts: neither records of genes nor a column X")
        self.columns = {name: column for name, column in columns.items() if name not in self._dense.values()}
        self._view = dataset.documents(columns=list(columns))
        self._source = _native.make_documents(dataset._native, [])
        # A note tells raw and uns of one import; datasets that are opened as one may have others.
        self._is_one = dataset._count == 1
        self.raw = self._note.raw if self._is_one else None
        self._has_entries = dataset.codec not in (None, "boundaries")
        self.texts: list[str] = self._keys_of_entries()
        for name in self.texts:
            if name in self.columns:
                raise InvalidArgumentError(f"{dataset.path}: {excerpt(name)} is a column, and in the entries too")
        self.varm = {
            name for name, column in features.columns.items() if name.startswith(VARM) and len(column.shape) > 1
        }
        self.forms, changed = _forms(noted.obs, self.columns, "obs")
        self.var_forms, of_var = _forms(noted.var, features.columns, "var")
        self.lost = [*self._note.left_out, *self._note.altered, *changed, *of_var]
        if not self._is_one:
            there = [name for name, noted_one in (("raw", self._note.raw), ("uns", self._note.uns)) if noted_one]
            self.lost += [f"{name} (of datasets that are opened as one: combine them)" for name in there]
        if not as_noted:
            self.lost.append("types of the imported AnnData (values were added or changed that these do not hold)")

    def uns(self) -> dict[str, Tree]:
        """Members of uns, as they lay in the imported file; none of datasets that are opened as one."""
        return unpack(self._note.uns, self._dataset.path) if self._is_one else {}

    def raw_var(self) -> Tree:
        """raw's genes, as they lay in the imported file; where there is raw."""
        assert self.raw is not None
        return unpack(self.raw["var"], self._dataset.path)["var"]

    def is_of_obs(self, column: Any) -> bool:
        """True if a column is of obs; else of obsm, which has arrays."""
        return column._categories is not None or len(column.shape) == 1

    def _keys_of_entries(self) -> list[str]:
        """As the first entry has them, but for the cell's name."""
        if not self._has_entries or not len(self._view):
            return []
        entry = self._view.read([0]).spans[0].metadata
        return (
            [str(key) for key in entry if key not in (NAME, *([RAW] if self._note.raw else []))]
            if isinstance(entry, Mapping)
            else []
        )

    def __len__(self) -> int:
        """Cells."""
        return len(self._view)

    def is_sparse(self, matrix: str) -> bool:
        """True if records hold it."""
        return matrix not in self._dense

    def parts(self, indices: npt.NDArray[Any]) -> Iterator[Cells]:
        """These cells, few at a time: as many as have LIMITS.values together, or one."""
        column_bytes = sum(column.dtype.itemsize * math.prod(column.shape[1:]) for column in self.columns.values())
        column_bytes += 8 * len(self._dense) * len(self.genes)
        at, most, text_bytes = 0, _FIRST if self.texts or self.raw else LIMITS.cells, 0
        while at < len(indices):
            some = indices[at : at + most]
            ends = np.cumsum(self._lengths(some) * len(self._fields) + ((column_bytes + text_bytes) // 4 + 1))
            part = self._read(some[: max(1, int(np.searchsorted(ends, LIMITS.values, "right")))])
            at += len(part.names)
            most = LIMITS.cells
            # How long texts are is seen when they are read: those before tell of the next ones.
            text_bytes = sum(len(text or "") for texts in part.texts.values() for text in texts) // len(part.names)
            text_bytes += 2 * len(part.raw[1]) * 4 // len(part.names) if part.raw else 0
            yield part

    def _lengths(self, indices: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
        """Records of each of these cells; none is read."""
        if not self._fields or int(indices.min()) < 0 or int(indices.max()) >= len(self):
            return np.zeros(len(indices), np.int64)  # reading refuses what is not there
        rows = _native.read_rows(self._source, indices.astype(np.uint64), [], 0, memory_bytes())
        return np.diff(rows.starts())

    def _read(self, indices: npt.NDArray[Any]) -> Cells:
        batch = self._view.read(indices)
        cells = Cells()
        if self._fields:
            counts, genes = np.diff(batch.offsets), batch["gene"]
            self._check_genes(genes, counts, indices)
            for matrix, name in self._fields.items():
                values = cast_exactly(batch[name], np.dtype(self.types[matrix]))
                cells.sparse[matrix] = (counts, genes, values)
                if len(self._fields) > 1:  # positions are those of all matrices: 0 says that this one has none there
                    kept = values != 0
                    rows = np.repeat(np.arange(len(counts)), counts)[kept]
                    cells.sparse[matrix] = (np.bincount(rows, minlength=len(counts)), genes[kept], values[kept])
        for matrix, name in self._dense.items():
            cells.dense[matrix] = cast_exactly(batch.columns[name], np.dtype(self.types[matrix]))
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
        raw: list[Any] = []
        for index, span in zip(indices.tolist(), batch.spans, strict=True) if self._has_entries else ():
            entry = span.metadata
            known = entry if isinstance(entry, Mapping) else {}
            cells.names.append(str(known.get(NAME, index)))
            raw.append(known.get(RAW) or (b"", b""))
            for name in self.texts:
                value = known.get(name)
                cells.texts[name].append(None if value is None else str(value))
        if self.raw:
            genes, values = (b"".join(each[at] for each in raw) for at in range(2))
            counts = np.array([len(each[0]) // 4 for each in raw], np.int64)
            cells.raw = counts, np.frombuffer(genes, "<u4"), np.frombuffer(values, self.raw["dtype"])
        if not self._has_entries:
            cells.names = [str(index) for index in indices.tolist()]


def with_noted_types(dataset: Any, make: Callable[[CellReader], T]) -> T:
    """The result of `make` with a reader of the types that an import noted, or of others where these hold no value.

    Raises:
        InvalidArgumentError: as CellReader.
    """
    try:
        return make(CellReader(dataset))
    except NotAsNoted:
        return make(CellReader(dataset, as_noted=False))


def _forms(
    noted: Mapping[str, ColumnForm], columns: Mapping[str, Any], where: str
) -> tuple[dict[str, ColumnForm], list[str]]:
    """(forms that columns still have, those that are lost in words)."""
    there = {name: form for name, form in noted.items() if name in columns}
    fits = {name: form for name, form in there.items() if form.fits(columns[name])}
    changed = [
        f"{where}/{excerpt(name)} (changed since the import: {form.kind} then)"
        for name, form in there.items()
        if name not in fits
    ]
    return fits, changed


def _fields_of_matrices(dataset: Any) -> dict[str, str]:
    """The fields of the records that are matrices, by what these are called in AnnData."""
    fields = dataset.dtype
    names = () if fields is None else fields.names or ()
    if names and "gene" not in names:
        raise InvalidArgumentError(f"{dataset.path}: its records have no field gene: {', '.join(names)}")
    if "count" in names and X in names:
        raise InvalidArgumentError(f"{dataset.path}: its records have a field X beside count, which is X in AnnData")
    return {X if name == "count" else name: name for name in names if name != "gene"}
