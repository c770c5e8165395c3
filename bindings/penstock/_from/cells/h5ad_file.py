"""AnnData's layout in an .h5ad file, written few cells at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from penstock._base.errors import InvalidArgumentError
from penstock._base.words import excerpt
from penstock._data.anndata.cell_reader import CellReader
from penstock._data.anndata.members import VARM
from penstock._data.anndata.trees import write_tree
from penstock._from.cells.h5ad_columns import ColumnWriter, Grows, says


class FileWriter:
    """AnnData's layout on disk, as anndata 0.8 and later write it."""

    def __init__(self, h5py: Any, file: Any, reader: CellReader) -> None:
        """Takes an opened file.

        Raises:
            InvalidArgumentError: a name that no member of a file has.
        """
        var = [name for name in reader.features.columns if name not in reader.varm]
        for name in (*reader.types, *reader.columns, *reader.texts, *var):
            if "/" in name or name in ("", ".", "_index"):
                raise InvalidArgumentError(f"{excerpt(name)!r} is the name of no member of an .h5ad file: rename it")
        self._h5py = h5py
        self._text = h5py.string_dtype()
        self._reader = reader
        self._file = says(file, "anndata", "0.1.0")
        layers, obsm = (says(file.create_group(name), "dict", "0.1.0") for name in ("layers", "obsm"))
        self._matrices: dict[str, Any] = {}
        for name, dtype in reader.types.items():
            self._matrices[name] = self._begin_matrix(file if name == "X" else layers, name, dtype)
        if reader.raw is not None:
            raw = says(file.create_group("raw"), "raw", "0.1.0")
            self._raw = self._begin_rows(raw, "X", reader.raw["dtype"], reader.raw["genes"])
            write_tree(h5py, raw, "var", reader.raw_var())
            says(raw.create_group("varm"), "dict", "0.1.0")
        obs = file.create_group("obs")
        self._obs = ColumnWriter(obs, self._text)
        self._names = Grows(obs, "_index", self._text)
        self._columns = {
            name: (self._obs if reader.is_of_obs(column) else ColumnWriter(obsm, self._text)).begin(
                name, column, reader.forms.get(name)
            )
            for name, column in reader.columns.items()
        }
        self._texts = {name: self._obs.texts(name) for name in reader.texts}

    def write(self, tell: Callable[[int, int], None]) -> None:
        """Writes all cells.

        Raises:
            NotAsNoted: values that the noted types do not hold.
        """
        done, cells = 0, len(self._reader)
        starts = dict.fromkeys([*self._matrices, "raw/X"], 0)
        for part in self._reader.parts(np.arange(cells)):
            self._names.append(part.names)
            sparse = [(name, self._matrices[name], rows) for name, rows in part.sparse.items()]
            sparse += [] if part.raw is None else [("raw/X", self._raw, part.raw)]
            for name, (data, indices, indptr), (counts, genes, values) in sparse:
                data.append(values)
                indices.append(genes.astype(np.int32))
                indptr.append(starts[name] + np.cumsum(counts))
                starts[name] += len(genes)
            for name, block in part.dense.items():
                self._matrices[name].append(block)
            for name, column in part.columns.items():
                self._columns[name].append(column)
            for name, texts in part.texts.items():
                self._texts[name].append(texts)
            done += len(part.names)
            tell(done, cells)
        self._end()

    def _begin_matrix(self, group: Any, name: str, dtype: str) -> Any:
        shape = (len(self._reader), len(self._reader.genes))
        if not self._reader.is_sparse(name):
            grows = Grows(group, name, dtype, shape[1:])
            says(grows.node, "array", "0.2.0")
            return grows
        return self._begin_rows(group, name, dtype, shape[1])

    def _begin_rows(self, group: Any, name: str, dtype: str, genes: int) -> list[Grows]:
        shape = np.array([len(self._reader), genes], np.int64)
        node = says(group.create_group(name), "csr_matrix", "0.1.0", shape=shape)
        parts = [Grows(node, "data", dtype), Grows(node, "indices", "<i4"), Grows(node, "indptr", "<i8")]
        parts[2].append(np.zeros(1, np.int64))
        return parts

    def _end(self) -> None:
        reader = self._reader
        order = [name for name, column in reader.columns.items() if reader.is_of_obs(column)]
        self._obs.end("_index", [*order, *reader.texts])
        says(self._names.node, "string-array", "0.2.0")
        group, varm = self._file.create_group("var"), says(self._file.create_group("varm"), "dict", "0.1.0")
        var = ColumnWriter(group, self._text)
        says(group.create_dataset("_index", data=reader.genes, dtype=self._text), "string-array", "0.2.0")
        names = []
        for name, column in reader.features.columns.items():
            if name in reader.varm:
                ColumnWriter(varm, self._text).begin(name.removeprefix(VARM), column, None).append(column[:])
            else:
                var.begin(name, column, reader.var_forms.get(name)).append(column[:])
                names.append(name)
        var.end("_index", names)
        uns = says(self._file.create_group("uns"), "dict", "0.1.0")
        for name, tree in reader.uns().items():
            write_tree(self._h5py, uns, name, tree)
