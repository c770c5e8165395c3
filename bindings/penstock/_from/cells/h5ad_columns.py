"""Columns of obs and var in an .h5ad file, appended to few cells at a time, in the form that an import noted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from penstock._data.anndata.forms import ColumnForm


class Grows:
    """A dataset of HDF5 that is appended to."""

    def __init__(self, group: Any, name: str, dtype: Any, shape: tuple[int, ...] = ()) -> None:
        """Makes it, empty; `shape` is of one row."""
        width = max(1, int(np.prod(shape)))
        chunk = (max(1, (1 << 16) // width), *shape)
        self.node = group.create_dataset(name, (0, *shape), dtype, maxshape=(None, *shape), chunks=chunk)

    def append(self, values: Any) -> None:
        """Writes more rows."""
        if len(values):
            at = self.node.shape[0]
            self.node.resize(at + len(values), 0)
            self.node[at:] = values


def says(node: Any, kind: str, version: str, **more: Any) -> Any:
    """Gives a node the attributes by which anndata knows it."""
    node.attrs.update({"encoding-type": kind, "encoding-version": version, **more})
    return node


class Texts:
    """Strings, of which some may be missing."""

    def __init__(self, group: Any, name: str, text: Any) -> None:
        """`text` is HDF5's type of strings."""
        self._group, self._name = group, name
        node = says(group.create_group(name), "nullable-string-array", "0.1.0")
        self._values, self._mask = Grows(node, "values", text), Grows(node, "mask", "?")
        says(self._values.node, "string-array", "0.2.0")
        says(self._mask.node, "array", "0.2.0")

    def append(self, texts: Sequence[str | None]) -> None:
        """Writes more."""
        self._values.append(["" if text is None else text for text in texts])
        self._mask.append(np.array([text is None for text in texts], bool))

    def end(self) -> None:
        """Makes a plain array of them where none is missing."""
        mask = self._mask.node
        if any(bool(mask[at : at + (1 << 20)].any()) for at in range(0, mask.shape[0], 1 << 20)):
            return
        self._group.move(f"{self._name}/values", f"{self._name}.values")
        del self._group[self._name]
        self._group.move(f"{self._name}.values", self._name)


class _TextsOfCodes:
    """Strings that are a category of the dataset."""

    def __init__(self, texts: Texts, categories: Sequence[str]) -> None:
        self._texts, self._categories = texts, categories

    def append(self, codes: npt.NDArray[Any]) -> None:
        self._texts.append([None if code < 0 else self._categories[code] for code in codes.tolist()])


class _Nullable:
    def __init__(self, group: Any, name: str, form: ColumnForm) -> None:
        kind = "boolean" if np.dtype(form.dtype).kind == "b" else "integer"
        node = says(group.create_group(name), f"nullable-{kind}", "0.1.0")
        self._form = form
        self._values, self._mask = Grows(node, "values", form.dtype), Grows(node, "mask", "?")
        says(self._values.node, "array", "0.2.0")
        says(self._mask.node, "array", "0.2.0")

    def append(self, values: npt.NDArray[Any]) -> None:
        there, missing = self._form.nullable(values)
        self._values.append(there)
        self._mask.append(missing)


class ColumnWriter:
    """Begins columns of a group, and ends them. One thread.

    Attributes:
        text: HDF5's type of strings.
    """

    def __init__(self, group: Any, text: Any) -> None:
        """Takes a group that is to be a data frame."""
        self._group, self.text = group, text
        self._texts: list[Texts] = []

    def begin(self, name: str, column: Any, form: ColumnForm | None) -> Any:
        """A column of a dataset; what it returns takes arrays of its values: `append(values)`."""
        if form is not None and form.kind == "nullable":
            return _Nullable(self._group, name, form)
        if column._categories is None:
            grows = Grows(self._group, name, column.dtype, column.shape[1:])
            says(grows.node, "array", "0.2.0")
            return grows
        if form is not None and form.kind == "strings":
            return _TextsOfCodes(self.texts(name), column._categories)
        return self._category(name, column._categories, form)

    def texts(self, name: str) -> Texts:
        """Strings of any number of values."""
        self._texts.append(Texts(self._group, name, self.text))
        return self._texts[-1]

    def end(self, index: str, order: Sequence[str]) -> None:
        """Ends all; `order` are the columns' names."""
        for each in self._texts:
            each.end()
        says(self._group, "dataframe", "0.2.0", _index=index)
        self._group.attrs.create("column-order", np.array(order, dtype=object), dtype=self.text)

    def _category(self, name: str, names: Sequence[str], form: ColumnForm | None) -> Grows:
        node = says(self._group.create_group(name), "categorical", "0.2.0", ordered=form is not None and form.ordered)
        if form is not None and form.dtype:
            says(node.create_dataset("categories", data=form.categories(names)), "array", "0.2.0")
        else:
            says(node.create_dataset("categories", data=names, dtype=self.text), "string-array", "0.2.0")
        count = len(names)
        grows = Grows(node, "codes", "i1" if count < 1 << 7 else "<i2" if count < 1 << 15 else "<i4")
        says(grows.node, "array", "0.2.0")
        return grows
