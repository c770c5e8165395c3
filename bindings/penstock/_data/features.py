"""Features: what the records of a dataset name by number, such as the genes of cells."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from penstock import _native
from penstock._base.errors import CorruptionError, InvalidArgumentError
from penstock._base.words import counted, excerpt
from penstock._data import dtype as _dtype
from penstock._data.column_values import ColumnValues, column_types, infer, types_json
from penstock._data.stored_columns import Columns

NAMES = "names"
"""The key of the names in a mapping of features."""


class Features:
    """Names of what records count, by their numbers, and typed values of each; read when they are asked for.

    A record's gene 7 is `names[7]`, and `columns["highly_variable"][7]` is what the writer noted of it.

    Examples:
        >>> import os, penstock, tempfile
        >>> path = os.path.join(tempfile.mkdtemp(), "cells")
        >>> genes = {"names": ["CD4", "CD8A", "GNLY"], "chromosome": ["12", "2", "2"], "length": [458, 235, 145]}
        >>> with penstock.Writer(path, {"gene": "u2", "count": "u1"}, "boundaries", features=genes) as writer:
        ...     writer.append(gene=[0, 2], count=[3, 1])
        >>> features = penstock.open(path).features
        >>> features.names, features.columns["length"][1].item(), features.columns["chromosome"].categories
        (['CD4', 'CD8A', 'GNLY'], 235, ['12', '2'])
    """

    def __init__(self, open_dataset: Callable[[], Any], fingerprint: str) -> None:
        """Made by `Dataset.features`; nothing is read yet."""
        self._open = open_dataset
        self._fingerprint = fingerprint

    @cached_property
    def _dataset(self) -> Any:
        dataset = self._open()
        if dataset.fingerprint != self._fingerprint or dataset.mode != "opaque":
            raise CorruptionError(
                f"{dataset.path}: {dataset.mode} of fingerprint {dataset.fingerprint}, the manifest above it says "
                f"opaque of {self._fingerprint}"
            )
        return dataset

    @cached_property
    def _all_names(self) -> tuple[str, ...]:
        """The names for use inside the package: a caller may change the list `names`."""
        try:
            return tuple(_native.opaque_texts(self._dataset._native))
        except UnicodeDecodeError as error:
            raise CorruptionError(f"{self._dataset.path}: the name of a feature is no UTF-8: {error}") from None

    @cached_property
    def names(self) -> list[str]:
        """Name of each, in the order of their numbers: read once, the same list each time."""
        return list(self._all_names)

    @property
    def columns(self) -> Columns:
        """Typed values of each, by name; as the columns of a dataset."""
        columns: Columns = self._dataset.columns
        return columns

    @cached_property
    def _note(self) -> Any:
        """JSON that was kept beside names and columns, see Noted; None: nothing."""
        return json.loads(self._dataset._native.task_json(0))

    def __len__(self) -> int:
        """How many there are."""
        return int(self._dataset.spans)

    def __repr__(self) -> str:
        """How many, and which columns."""
        return f"Features({counted(len(self), 'feature')}, {self.columns!r})"


FeatureTuple = tuple[list[str], str, list[list[str]], list[Any], str]


@dataclass
class Noted:
    """Features with what is kept beside them, in their shard.json: it goes wherever they are copied to.

    Attributes:
        columns: names and columns, as a mapping.
        note: any JSON of at most 8 MiB.
    """

    columns: dict[str, Any] = field(default_factory=dict)
    note: Any = None


def feature_table(given: Any) -> FeatureTuple | None:
    """The `features=` of a writer, for the native side.

    These are names, types, categories and values of each column, and what is kept beside them as JSON.

    Raises:
        InvalidArgumentError: neither names nor a table of them; names that are empty or there twice; columns of another
            length; a type that no column has; categories that a manifest has no room for.
    """
    if given is None:
        return None
    names, columns = _names_and_columns(given)
    for name in names:
        if not isinstance(name, str):
            raise InvalidArgumentError(f"features: the name {name!r:.80} is {type(name).__name__}, a string is wanted")
        try:
            name.encode()
        except UnicodeEncodeError:
            raise InvalidArgumentError(f"features: the name {name!r:.80} is no Unicode text") from None
    types = column_types({name: infer(name, values) for name, values in columns.items()})
    packer = ColumnValues(types)
    categories: list[list[str]] = []
    arrays: list[Any] = []
    for number, each in enumerate(types):
        values = columns[each.name]
        if len(values) != len(names):
            raise InvalidArgumentError(
                f"features: the column {excerpt(each.name)} has {counted(len(values), 'value')} for "
                f"{counted(len(names), 'name')}"
            )
        if each.is_category:
            array, known = packer.codes(number, values, len(names))
            categories.append(known)
        else:
            array = np.ascontiguousarray(_dtype.fit(values, each.dtype, each.name, "feature"))
            categories.append([])
        arrays.append(array)
    note = given._note if isinstance(given, Features) else given.note if isinstance(given, Noted) else None
    table = [str(name) for name in names], types_json(types), categories, arrays, json.dumps(note)
    _native.check_features(table)
    return table


class _Categories:
    """Codes and all names of a category, as `infer` and a writer take them."""

    def __init__(self, codes: Any, categories: list[str]) -> None:
        self.codes, self.categories = codes, categories

    def __len__(self) -> int:
        return len(self.codes)


def _names_and_columns(given: Any) -> tuple[list[Any], dict[str, Any]]:
    if isinstance(given, Noted):
        given = given.columns
    if isinstance(given, Features):
        values = {name: column[:] for name, column in given.columns.items()}
        categories = {name: column._categories for name, column in given.columns.items()}
        return list(given._all_names), {
            name: array if (known := categories[name]) is None else _Categories(array, list(known))
            for name, array in values.items()
        }
    if hasattr(given, "index") and hasattr(given, "columns"):  # a DataFrame
        return list(given.index), {str(name): given[name] for name in given.columns}
    if isinstance(given, Mapping):
        if NAMES not in given:
            raise InvalidArgumentError('features: a mapping with "names" and columns beside them is wanted')
        return list(given[NAMES]), {str(name): values for name, values in given.items() if name != NAMES}
    if isinstance(given, str) or not isinstance(given, (Sequence, np.ndarray)):
        raise InvalidArgumentError(
            f"features={given!r:.80}: a list of names, a DataFrame, or a mapping with names and columns is wanted"
        )
    return list(given), {}
