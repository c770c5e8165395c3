"""AnnData's layout in an .h5ad file, written few cells at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from penstock._base.errors import InvalidArgumentError
from penstock._base.words import excerpt
from penstock._data.anndata.cell_reader import CellReader


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


class FileWriter:
    """AnnData's layout on disk, as anndata 0.8 and later write it."""

    def __init__(self, h5py: Any, file: Any, reader: CellReader) -> None:
        """Of an opened file.

        Raises:
            InvalidArgumentError: a name that no member of a file has.
        """
        for name in (*reader.types, *reader.columns, *reader.texts, *reader.features.columns):
            if "/" in name or name in ("", ".", "_index"):
                raise InvalidArgumentError(f"{excerpt(name)!r} is the name of no member of an .h5ad file: rename it")
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

    def write(self, tell: Callable[[int, int], None]) -> None:
        """Writes all cells."""
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
            tell(done, cells)
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
        elif column._categories is None:
            grows = _Grows(self._obs, name, column.dtype)
        else:
            grows = self._begin_category(self._obs, name, column._categories)
        _says(grows.node, "array", "0.2.0")
        return grows

    def _begin_category(self, group: Any, name: str, categories: Sequence[str]) -> _Grows:
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
            if column._categories is None:
                grows = _Grows(var, name, column.dtype)
            else:
                grows = self._begin_category(var, name, column._categories)
            grows.append(column[:])
            _says(grows.node, "array", "0.2.0")
        self._frame(var, list(self._reader.features.columns))

    def _frame(self, group: Any, order: list[str]) -> None:
        _says(group, "dataframe", "0.2.0", _index="_index")
        group.attrs.create("column-order", np.array(order, dtype=object), dtype=self._text)
