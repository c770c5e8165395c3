"""What a writer's `columns=` says, and values of documents on their way into the native writer."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from penstock import _native
from penstock._base.errors import InvalidArgumentError
from penstock._base.words import excerpt
from penstock._data import dtype as _dtype

ColumnSpec = Any
"""A dtype, a (dtype, shape) pair, "category", or a list of strings: the categories, in the order of their codes."""

_KINDS = "biuf"


class ColumnType:
    """A column's type, as a writer was told it.

    Attributes:
        name: of the column.
        dtype: of one value, with its shape; int32 for codes of categories.
        is_category: whether values are strings.
        declared: the categories that were given; None where they are taken as they come.
    """

    def __init__(self, name: str, spec: ColumnSpec) -> None:
        """Reads `spec`.

        Raises:
            InvalidArgumentError: a type that no column has.
        """
        self.name = name
        self.declared: list[str] | None = None
        if isinstance(spec, list):
            self.declared = _strings(name, spec)
        self.is_category = self.declared is not None or (isinstance(spec, str) and spec == "category")
        self.dtype = np.dtype("<i4") if self.is_category else _dtype.packed(spec, f"column {name}")
        if self.dtype.names is not None or self.dtype.base.kind not in _KINDS:
            raise InvalidArgumentError(
                f'column {excerpt(name)}: {spec!r:.80}: columns hold booleans, integers, floats or "category"'
            )

    def descr(self) -> list[Any]:
        """As manifests say it."""
        if self.is_category:
            return [self.name, "category"]
        shape = list(self.dtype.shape)
        return [self.name, self.dtype.base.str, *([shape] if shape else [])]


def column_types(columns: Mapping[str, ColumnSpec] | None) -> list[ColumnType]:
    """The types that `columns=` of a writer names.

    Raises:
        InvalidArgumentError: no mapping of names, or a type that cannot be.
    """
    if columns is None:
        return []
    if not isinstance(columns, Mapping) or not all(isinstance(name, str) for name in columns):
        raise InvalidArgumentError(
            f'columns={columns!r:.80}: a mapping from names to types is wanted: {{"plate": "category", "score": "f4"}}'
        )
    return [ColumnType(name, spec) for name, spec in columns.items()]


def types_json(types: Sequence[ColumnType]) -> str:
    """As the native side reads them."""
    return json.dumps([each.descr() for each in types])


def check_columns(columns: Mapping[str, ColumnSpec]) -> None:
    """Refuses what no writer takes, before one is at work.

    Raises:
        InvalidArgumentError: a type, a name or categories that cannot be, or that a manifest has no room for.
    """
    types = column_types(columns)
    _native.check_columns(types_json(types), [each.declared or [] for each in types])


def infer(name: str, values: Any) -> ColumnSpec:
    """The type that a column of these values has: their dtype and shape, or categories of what are strings.

    Raises:
        InvalidArgumentError: one value for all, or categories that are neither strings nor numbers.
    """
    categorical = getattr(values, "cat", values)
    if hasattr(categorical, "codes") and hasattr(categorical, "categories"):
        return _category_names(name, categorical)
    array = _as_array(values)
    if array.ndim == 0:
        raise InvalidArgumentError(
            f"column {excerpt(name)}: one value for all documents; an array [documents, …] is wanted"
        )
    if array.dtype.kind in "OUT":
        return "category"
    return (array.dtype, array.shape[1:]) if array.ndim > 1 else array.dtype


class ColumnValues:
    """Makes arrays of values, and of strings codes and the names that these count; any thread.

    Attributes:
        types: of the columns.
    """

    def __init__(self, types: Sequence[ColumnType]) -> None:
        """For columns of these types."""
        self.types = list(types)
        self._declared = [
            None if each.declared is None else {name: number for number, name in enumerate(each.declared)}
            for each in self.types
        ]

    def pack(self, given: Mapping[str, Any] | None, documents: int | None) -> list[tuple[npt.NDArray[Any], list[str]]]:
        """Values and names of each column, for the native writer; names are those of this call alone.

        Args:
            given: a value for each column if `documents` is None, else [documents, …].
            documents: how many; None for one, whose values are given bare.

        Raises:
            InvalidArgumentError: a column is missing or unknown, values of another shape or beyond the type.
        """
        given = {} if given is None else given
        names = [each.name for each in self.types]
        if set(given) != set(names):
            missing = [excerpt(name) for name in names if name not in given]
            unknown = [excerpt(str(name)) for name in given if name not in names]
            said = [f"missing: {', '.join(missing)}"] if missing else []
            said += [f"unknown: {', '.join(unknown)}"] if unknown else []
            there = f"this writer has {', '.join(map(excerpt, names))}" if names else "this writer has none"
            raise InvalidArgumentError(f"columns {'; '.join(said)}; {there}")
        packed: list[tuple[npt.NDArray[Any], list[str]]] = []
        for number, each in enumerate(self.types):
            values = [given[each.name]] if documents is None else given[each.name]
            count = 1 if documents is None else documents
            packed.append(self._strings(number, values, count) if each.is_category else (_fit(each, values, count), []))
        return packed

    def codes(self, number: int, values: Any, count: int) -> tuple[npt.NDArray[np.int32], list[str]]:
        """int32 codes [count] of strings, -1 for None and NaN; and the names that they count: the declared ones, if so.

        Raises:
            InvalidArgumentError: something that is no string, a name that was not declared, another length.
        """
        codes, names = self._strings(number, values, count)
        declared = self._declared[number]
        if declared is None:
            return codes, names
        place = np.array([*(declared[name] for name in names), -1], np.int32)
        return place[codes], list(declared)

    def _strings(self, number: int, values: Any, count: int) -> tuple[npt.NDArray[np.int32], list[str]]:
        column, declared = self.types[number], self._declared[number]
        names, codes = _names_and_codes(column.name, values)
        if len(codes) != count:
            raise InvalidArgumentError(f"column {excerpt(column.name)}: {len(codes):,} values for {count:,} documents")
        for name in names:
            if declared is not None and name not in declared:
                raise InvalidArgumentError(
                    f"column {excerpt(column.name)}: {excerpt(name)!r} is none of its {len(declared):,} categories"
                )
        return codes.astype(np.int32), names


def _names_and_codes(column: str, values: Any) -> tuple[list[str], npt.NDArray[np.int64]]:
    """Distinct strings that occur, and for each value which of them it is; -1 where it is missing."""
    categorical = getattr(values, "cat", values)
    if hasattr(categorical, "codes") and hasattr(categorical, "categories"):
        codes = np.asarray(categorical.codes).astype(np.int64)
        names = _category_names(column, categorical)
        used = np.unique(codes[codes >= 0])
        place = np.full(len(names) + 1, -1, np.int64)
        place[used] = np.arange(len(used))
        return [names[at] for at in used], place[codes]
    if isinstance(values, str):
        raise InvalidArgumentError(f"column {excerpt(column)}: one string for all documents; a list of them is wanted")
    array = _as_array(values)
    if array.ndim != 1:
        raise InvalidArgumentError(f"column {excerpt(column)}: values of shape {list(array.shape)}, expected one axis")
    if array.dtype.kind == "U":
        names_array, places = np.unique(array, return_inverse=True)
        return _strings(column, names_array.tolist()), places.astype(np.int64)
    numbers: dict[str, int] = {}
    picked = np.empty(len(array), np.int64)
    for at, value in enumerate(array.tolist()):
        if _is_missing(value):
            picked[at] = -1
        elif isinstance(value, str):
            picked[at] = numbers.setdefault(value, len(numbers))
        else:
            _strings(column, [value])  # refuses it; as a key, what has no hash would raise first
    return _strings(column, list(numbers)), picked


def _category_names(column: str, categorical: Any) -> list[str]:
    # obs of AnnData often has clusters numbered by integers: their text, as importing takes it.
    values = (each.item() if isinstance(each, np.generic) else each for each in categorical.categories)
    return _strings(column, [str(each) if isinstance(each, (bool, int, float)) else each for each in values])


def _as_array(values: Any) -> npt.NDArray[Any]:
    # NumPy makes strings of all that a list holds beside one.
    if isinstance(values, (list, tuple)) and any(isinstance(each, str) for each in values):
        array = np.empty(len(values), object)
        array[:] = values
        return array
    return np.asarray(values)


def _is_missing(value: Any) -> bool:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return True
    return type(value).__name__ == "NAType"  # pandas.NA, which equals nothing


def _strings(column: str, values: list[Any]) -> list[str]:
    for value in values:
        if not isinstance(value, str):
            raise InvalidArgumentError(
                f"column {excerpt(column)}: {value!r:.80} is {type(value).__name__}: categories are strings"
            )
        try:
            value.encode()
        except UnicodeEncodeError:
            raise InvalidArgumentError(f"column {excerpt(column)}: {value!r:.80} is no Unicode text") from None
    if len(set(values)) != len(values):
        raise InvalidArgumentError(f"column {excerpt(column)}: a category is there twice")
    return [str(value) for value in values]


def _fit(column: ColumnType, values: Any, count: int) -> npt.NDArray[Any]:
    array = _dtype.fit(values, column.dtype, column.name, "document")
    shape = (count, *column.dtype.shape)
    if array.shape != shape:
        raise InvalidArgumentError(
            f"column {excerpt(column.name)}: values of shape {list(array.shape)}, expected {list(shape)}"
        )
    return np.ascontiguousarray(array)
