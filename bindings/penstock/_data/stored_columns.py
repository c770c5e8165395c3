"""Columns: typed values of each document, read by themselves."""

from __future__ import annotations

import json
import math
import operator
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from penstock import _native
from penstock._base.errors import InvalidArgumentError
from penstock._base.resources import memory_bytes
from penstock._base.words import counted, excerpt
from penstock._data.spans import VALUES

_MOST_DOCUMENTS = 1 << 16  # that one read gathers
_MOST_BYTES = 64 << 20  # of the values that one read gathers; a value alone may have more
_DENSE = 8  # of so many in a row, one is wanted: all of them are read,
_NARROW_BYTES = 4096  # if a value has at most a block's bytes: wider ones would be read for nothing


class DocumentColumn:
    """One column of a dataset: a value for each document, read when it is asked for.

    Attributes:
        name: of the column.
        dtype: of the values; int32 of a category: numbers of `categories`, -1 where a document has none.
        categories: the names that codes stand for; None where it is no category.
        shape: [documents, trailing axes…].

    Examples:
        >>> import os, penstock, tempfile
        >>> path = os.path.join(tempfile.mkdtemp(), "cells")
        >>> columns = {"plate": "category", "score": "f4"}
        >>> with penstock.Writer(path, {"token": "u2"}, columns=columns) as writer:
        ...     for plate, score in ("p7", 0.5), ("p2", 1.5), ("p7", 2.5):
        ...         writer.append(token=[1, 2], columns={"plate": plate, "score": score})
        >>> plate = penstock.open(path).columns["plate"]
        >>> plate.categories, plate[:].tolist(), plate.shape
        (['p7', 'p2'], [0, 1, 0], (3,))
    """

    def __init__(self, native: _native.Dataset, name: str, dtype: np.dtype[Any], is_category: bool) -> None:
        """Made by `Dataset.columns`; `dtype` is that of one value, with its shape."""
        self._native = native
        self.name = name
        self.dtype: np.dtype[Any] = dtype.base
        self.shape: tuple[int, ...] = (native.entries, *dtype.shape)
        self._categories = tuple(native.categories(name)) if is_category else None
        self.categories: list[str] | None = (
            None if self._categories is None else list(self._categories)
        )  # a caller may change it

    def __len__(self) -> int:
        """Documents of the dataset (entries, in the layout "ids")."""
        return self.shape[0]

    def __getitem__(self, which: Any) -> Any:
        """Values of some documents; only those are read, in whole blocks of 4 KiB.

        Args:
            which: an integer, a slice, integers [n], or a mask, bool [documents].

        Returns:
            One value, or NumPy [n, trailing axes…].

        Raises:
            IndexError: there is no such document.
            InvalidArgumentError: neither integers nor a mask of this length.
        """
        count = len(self)
        if isinstance(which, slice):
            return self._slice(range(count)[which])
        if not isinstance(which, (list, tuple, np.ndarray)):
            try:
                at = operator.index(which)
            except TypeError:
                which = np.asarray(which)
            else:
                if not -count <= at < count:
                    raise IndexError(f"document {at:,} of {count:,}")
                return self._range(at % count, 1)[0]
        array = np.asarray(which)
        if array.dtype.kind == "b":
            if array.shape != (count,):
                raise InvalidArgumentError(f"a mask of shape {list(array.shape)}: [{count}] wanted")
            array = np.flatnonzero(array)
        if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
            raise InvalidArgumentError(
                f"a column is indexed by integers [n], a slice or a mask, not by {array.dtype} {list(array.shape)}"
            )
        return self._gather(array)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        """All values."""
        array = self._range(0, len(self))
        return array if dtype is None else array.astype(dtype)

    def _slice(self, numbers: range) -> npt.NDArray[Any]:
        if not numbers:
            return self._range(0, 0)
        first, last = min(numbers[0], numbers[-1]), max(numbers[0], numbers[-1])
        if abs(numbers.step) > (_DENSE if self._value_bytes <= _NARROW_BYTES else 1):
            return self._gather(np.arange(numbers.start, numbers.stop, numbers.step))
        values = self._range(first, last + 1 - first)
        return values[:: numbers.step] if numbers.step > 0 else values[::-1][:: -numbers.step]

    def _gather(self, indices: npt.NDArray[Any]) -> npt.NDArray[Any]:
        count = len(self)
        if indices.size == 0:
            return self._range(0, 0)
        low, high = int(indices.min()), int(indices.max())
        if low < -count or high >= count:
            raise IndexError(f"document {low if low < -count else high:,} of {count:,}")
        wanted = np.where(indices < 0, indices.astype(np.int64) + count, indices).astype(np.uint64)
        first, last = int(wanted.min()), int(wanted.max())
        if self._value_bytes <= _NARROW_BYTES and last - first < _DENSE * len(wanted):
            values: npt.NDArray[Any] = self._range(first, last + 1 - first)[
                (wanted - np.uint64(first)).astype(np.int64)
            ]
            return values
        source = _native.make_values(self._native, [self.name])
        gathered = np.empty((len(wanted), *self.shape[1:]), self.dtype)
        step = max(1, min(_MOST_DOCUMENTS, _MOST_BYTES // self._value_bytes))
        for at in range(0, len(wanted), step):
            rows = _native.read_rows(source, wanted[at : at + step], [], VALUES, memory_bytes())
            gathered[at : at + step] = rows.values(0, self.dtype)
        return gathered

    def _range(self, first: int, count: int) -> npt.NDArray[Any]:
        return self._native.read_column(self.name, first, count, self.dtype)

    @property
    def _value_bytes(self) -> int:
        return self.dtype.itemsize * math.prod(self.shape[1:])

    def __repr__(self) -> str:
        """Name, type and length."""
        kind = f"{len(self._categories):,} categories" if self._categories is not None else str(self.dtype)
        axes = f", each {list(self.shape[1:])}" if len(self.shape) > 1 else ""
        return f"DocumentColumn({excerpt(self.name)!r}, {kind}, {counted(len(self), 'document')}{axes})"


class Columns(Mapping[str, DocumentColumn]):
    """The columns of a dataset, by name; nothing is read before one is indexed."""

    def __init__(self, native: _native.Dataset) -> None:
        """Of an opened dataset."""
        self._native = native
        self._types = {name: (dtype, is_category) for name, dtype, is_category in types_of(native)}
        self._made: dict[str, DocumentColumn] = {}

    def __getitem__(self, name: str) -> DocumentColumn:
        """The column of this name."""
        if name not in self._types:
            there = f"there are {', '.join(map(excerpt, self._types))}" if self._types else "this dataset has none"
            raise KeyError(f"no column {excerpt(str(name))}: {there}")
        if name not in self._made:  # its categories may be many
            self._made[name] = DocumentColumn(self._native, name, *self._types[name])
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        """Names, in their order on disk."""
        return iter(self._types)

    def __len__(self) -> int:
        """How many there are."""
        return len(self._types)

    def to_arrow(self, names: Iterable[str] | None = None, *, document: bool = False) -> Any:
        """Columns as an Arrow table, for SQL and charts: one row a document.

        Categories are dictionaries of strings, null where there is none; values with axes are lists of a fixed size;
        float16 becomes float32, which DuckDB and Polars know.

        Args:
            names: of the columns, which alone are read; None: all of them.
            document: whether the number of the document comes first, as int64 `document`.

        Returns:
            A pyarrow.Table.

        Raises:
            InvalidArgumentError: `document` is wanted, and a column is called so.
            KeyError: there is no such column.

        Examples:
            >>> import os, penstock, tempfile
            >>> path = os.path.join(tempfile.mkdtemp(), "cells")
            >>> with penstock.Writer(path, {"token": "u2"}, columns={"plate": "category"}) as writer:
            ...     for plate in "p7", "p2", None:
            ...         writer.append(token=[1], columns={"plate": plate})
            >>> penstock.open(path).columns.to_arrow(document=True).to_pylist()[1:]
            [{'document': 1, 'plate': 'p2'}, {'document': 2, 'plate': None}]
        """
        import pyarrow

        wanted = {name: self[name] for name in (self if names is None else names)}
        arrays = {name: _to_arrow(column) for name, column in wanted.items()}
        if not document:
            return pyarrow.table(arrays)
        if "document" in wanted:
            raise InvalidArgumentError('a column is called "document", which is the number of the document')
        return pyarrow.table({"document": pyarrow.array(np.arange(self._native.entries)), **arrays})

    def __repr__(self) -> str:
        """Names and types."""
        shown = (f"{excerpt(name)}: {_words(dtype, category)}" for name, (dtype, category) in self._types.items())
        return f"Columns({', '.join(shown)})"


def types_of(native: _native.Dataset) -> list[tuple[str, np.dtype[Any], bool]]:
    """(name, dtype with its shape, whether it is a category) of each column of a dataset."""
    found = []
    for name, kind, *shape in json.loads(native.columns_json):
        dtype = np.dtype("<i4") if kind == "category" else np.dtype((kind, tuple(shape[0]) if shape else ()))
        found.append((name, dtype, kind == "category"))
    return found


def names_of(columns: Any) -> tuple[str, ...]:
    """Names of columns as a user gave them.

    Raises:
        InvalidArgumentError: they are no list of names.
    """
    if isinstance(columns, str) or not all(isinstance(each, str) for each in columns):
        raise InvalidArgumentError(f'columns={columns!r:.80}: a list of names is wanted, such as ["plate"]')
    return tuple(columns)


def _to_arrow(column: DocumentColumn) -> Any:
    import pyarrow

    values = np.asarray(column)
    if values.dtype == np.float16:
        values = values.astype(np.float32)
    if column._categories is not None:
        codes = pyarrow.array(values, mask=values < 0)
        return pyarrow.DictionaryArray.from_arrays(codes, pyarrow.array(column._categories, pyarrow.string()))
    array = pyarrow.array(values.reshape(-1))
    for size in reversed(values.shape[1:]):
        array = pyarrow.FixedSizeListArray.from_arrays(array, size)
    return array


def _words(dtype: np.dtype[Any], is_category: bool) -> str:
    return "category" if is_category else str(dtype)
