"""Columns of obs as a model of cells takes them: codes of what values mean, or numbers."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from penstock._base.errors import InvalidArgumentError
from penstock._base.words import counted, excerpt
from penstock._data.dataset import Dataset
from penstock._data.stored_columns import DocumentColumn

Numbers = npt.NDArray[np.int64]
_MOST_NAMES = 10  # of columns, in a message
_MOST_CODES = 65_535  # different numbers that are categories: as of strings in an import
_MOST_FRACTIONS = 256  # of numbers with fractions, such as doses


@dataclass(frozen=True)
class Coded:
    """A column whose values are counted through.

    Attributes:
        name: of the column.
        values: what each code means, [codes].
        table: of categories, int64 by the dataset's code + 1: the code here; of numbers these, ascending.
        is_category: which of the two `table` is.
    """

    name: str
    values: npt.NDArray[Any]
    table: npt.NDArray[Any]
    is_category: bool

    def codes(self, stored: npt.NDArray[Any]) -> Numbers:
        """Codes of stored values, int64 [cells]."""
        found = self.table[stored.astype(np.int64) + 1] if self.is_category else np.searchsorted(self.table, stored)
        return found.astype(np.int64)

    def codes_of(self, stored: Any) -> Any:
        """Codes of a tensor [rows] of stored values: int64 [rows, 1]."""
        import torch

        table = self._tensor
        if self.is_category:
            return table[stored.long() + 1, None]
        return torch.searchsorted(table, stored.to(table.dtype))[:, None]

    @functools.cached_property
    def _tensor(self) -> Any:
        import torch

        return torch.from_numpy(self.table)


def coded(argument: str, name: str, dataset: Dataset, cells: Numbers | None) -> Coded:
    """A column of categories, or of numbers, each of which is one; in the dataset's order, or ascending.

    Raises:
        InvalidArgumentError: no such column; a cell without a value.
    """
    column = _column(argument, name, dataset)
    stored = _values(argument, column, cells)
    if column.categories is None:
        there = _distinct(argument, name, stored)
        return Coded(name, there, _searched(there), False)
    _check_there(argument, name, stored < 0, cells)
    return Coded(name, np.array(column.categories, object), np.arange(-1, len(column.categories)), True)


def labels(name: str, dataset: Dataset, cells: Numbers | None, unlabeled: str) -> tuple[Coded, Numbers]:
    """A column of labels, whose last value is what cells without one are called; and the code of each cell.

    As scvi-tools has it, the label that was last takes the place of `unlabeled`.

    Raises:
        InvalidArgumentError: no such column; a cell without a number; `unlabeled` is one of the numbers.
    """
    column = _column("labels_key", name, dataset)
    stored = _values("labels_key", column, cells)
    if column.categories is None:
        there = _distinct("labels_key", name, stored)
        names = [*map(str, there.tolist()), unlabeled]
        if unlabeled in names[:-1]:
            raise InvalidArgumentError(
                f"unlabeled_category={unlabeled!r}: the labels of {excerpt(name)} are numbers: {unlabeled} is one of "
                "them; penstock.annotate adds a column of categories"
            )
        found = Coded(name, np.array(names, object), _searched(there), False)
        return found, found.codes(stored)
    values = list(column.categories)
    if unlabeled in values:
        at = values.index(unlabeled)
        values[at], values[-1] = values[-1], values[at]
    else:
        values.append(unlabeled)
    code_of = {value: code for code, value in enumerate(values)}
    table = np.array([len(values) - 1, *(code_of[each] for each in column.categories)], np.int64)
    found = Coded(name, np.array(values, object), table, True)
    return found, found.codes(stored)


def numbers(argument: str, name: str, dataset: Dataset, cells: Numbers | None) -> str:
    """The name of a column of numbers.

    Raises:
        InvalidArgumentError: no such column; categories; a cell without a number.
    """
    column = _column(argument, name, dataset)
    if column.categories is not None:
        raise InvalidArgumentError(f"{argument}: {excerpt(name)!r} is of categories: numbers are wanted")
    _values(argument, column, cells)
    return name


def _distinct(argument: str, name: str, stored: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The different numbers, ascending.

    Raises:
        InvalidArgumentError: there are too many for categories: numbers that were measured.
    """
    there = np.unique(stored)
    is_measured = stored.dtype.kind == "f" and bool((np.floor(there) != there).any())
    most = min(_MOST_FRACTIONS, stored.size // 2) if is_measured else _MOST_CODES
    if len(there) > most:
        raise InvalidArgumentError(
            f"{argument}={excerpt(name)!r}: {counted(len(there), 'different number')}"
            f"{' with fractions' * is_measured} in {counted(stored.size, 'cell')}: each would be a category, and "
            f"{most:,} may be; continuous_covariate_keys= takes numbers that are measured"
        )
    return there


def _column(argument: str, name: Any, dataset: Dataset) -> DocumentColumn:
    columns = dataset.columns
    if not isinstance(name, str) or name not in columns:
        there = [excerpt(each) for each in columns]
        more = f" and {len(there) - _MOST_NAMES:,} more" if len(there) > _MOST_NAMES else ""
        said = f"there are {', '.join(there[:_MOST_NAMES])}{more}" if there else "it has none"
        raise InvalidArgumentError(f"{argument}={name!r:.80}: the dataset has no such column: {said}")
    column = columns[name]
    if len(column.shape) > 1:
        raise InvalidArgumentError(
            f"{argument}={excerpt(name)!r}: each of its values is {list(column.shape[1:])}: one for a cell is wanted"
        )
    return column


def _values(argument: str, column: DocumentColumn, cells: Numbers | None) -> npt.NDArray[Any]:
    """Values of the cells; of numbers none is NaN."""
    stored: npt.NDArray[Any] = column[:] if cells is None else column[cells]
    if column.categories is None:
        _check_there(argument, column.name, stored != stored, cells)
    return stored


def _check_there(argument: str, name: str, missing: npt.NDArray[np.bool_], cells: Numbers | None) -> None:
    if missing.any():
        first = int(np.argmax(missing))
        cell = first if cells is None else int(cells[first])
        raise InvalidArgumentError(
            f"{argument}: {counted(int(missing.sum()), 'cell')} without {excerpt(name)!r}, the first is cell {cell:,}: "
            f'choose those that have one, dataset.where("{excerpt(name)} is not null")'
        )


def _searched(ascending: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The same numbers in a type that torch can search."""
    if ascending.dtype.kind == "f":
        return ascending.astype(np.float64 if ascending.dtype.itemsize == 8 else np.float32)
    return ascending.astype(np.int64)
