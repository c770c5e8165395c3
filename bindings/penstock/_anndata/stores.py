"""AnnData on disk: groups and arrays of an .h5ad file or a zarr store, read by ranges of cells.

h5py and zarr name them alike, so one code reads both. Nothing is read whole but what has a value for each gene, or for
each category.
"""

from __future__ import annotations

import errno
import importlib
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from penstock._errors import InvalidArgumentError, NotFoundError
from penstock._words import excerpt

FORMATS = {"h5ad": (".h5ad", ".h5", ".hdf5"), "zarr": (".zarr",)}
_OLD = "the layout of an anndata before 0.7: read it and write it once with today's anndata"
_MANY = 1 << 16  # values that are looked at at once


def needed(module: str, what: str) -> Any:
    """A module of the extra penstock[cells].

    Raises:
        ModuleNotFoundError: it is not installed; the message says what to install.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module.partition(".")[0]:
            raise
        raise ModuleNotFoundError(
            f"{what} needs the package {module}: pip install 'penstock[cells]'", name=error.name
        ) from None


def format_of(path: str, given: str | None = None) -> str:
    """ "h5ad" or "zarr", as `given` or the extension says."""
    if given is not None:
        if given not in FORMATS:
            raise InvalidArgumentError(f"format={given!r}: must be one of {', '.join(map(repr, FORMATS))}")
        return given
    suffix = Path(path).suffix.lower()
    for name, suffixes in FORMATS.items():
        if suffix in suffixes:
            return name
    raise InvalidArgumentError(f"{path}: neither .h5ad nor .zarr: say which it is with format")


class Store:
    """One opened file or folder. One thread at a time.

    Attributes:
        path: as it was given.
    """

    def __init__(self, path: str, format: str) -> None:
        """Opens it for reading.

        Raises:
            NotFoundError: there is nothing.
            InvalidArgumentError: not of this format, or no AnnData.
        """
        self.path = path
        if not Path(path).exists():
            raise NotFoundError(errno.ENOENT, f"{path}: no such file or folder", path)
        try:
            if format == "h5ad":
                self.root = needed("h5py", path).File(path, "r")
            else:
                self.root = needed("zarr", path).open_group(path, mode="r")
        except ModuleNotFoundError:
            raise
        except Exception as error:  # zarr has many kinds
            raise InvalidArgumentError(f"{path}: cannot be read as {format}: {error}") from None
        for name in ("obs", "var"):
            if name not in self.root:
                raise InvalidArgumentError(f"{path}: there is no {name}: this is no AnnData")

    @cached_property
    def obs(self) -> Frame:
        """Values of cells."""
        return Frame(self.path, self.root, "obs")

    def names_in(self, group: str) -> list[str]:
        """Members of a group; none where it is not there."""
        return sorted(self.root[group].keys()) if group in self.root else []

    def close(self) -> None:
        """Closes the file. May be called twice."""
        if hasattr(self.root, "close"):
            self.root.close()


class Frame:
    """A data frame: names, and columns read by ranges.

    Attributes:
        path: of its file.
        where: "obs", "var" or "raw/var".
    """

    def __init__(self, path: str, root: Any, where: str) -> None:
        """Of the member `where`.

        Raises:
            InvalidArgumentError: it is none, or of a layout that is not read.
        """
        self.path = path
        self.where = where
        if where not in root:
            raise InvalidArgumentError(f"{path}: there is no {where}")
        self._group = root[where]
        if is_array(self._group):
            raise InvalidArgumentError(f"{path}: {where} has {_OLD}")
        index = self._group.attrs.get("_index")
        if index is None or str(index) not in self._group:
            raise InvalidArgumentError(f"{path}: {where} has no index: this is no data frame of AnnData")
        self._index = self._group[str(index)]
        order = [str(name) for name in self._group.attrs.get("column-order", ())]
        self.columns = [name for name in order if name in self._group]

    def __len__(self) -> int:
        """Rows."""
        return int(self._index.shape[0])

    def names(self, begin: int = 0, end: int | None = None) -> list[str]:
        """Names of rows [begin, end)."""
        return texts(self._index, begin, len(self) if end is None else end)

    def element(self, name: str) -> Element:
        """One column."""
        element = Element(self._group, name)
        if element.kind != "other" and element.length != len(self):
            raise InvalidArgumentError(
                f"{self.path}: {self.where}/{excerpt(name)} has {element.length:,} values for {len(self):,} rows"
            )
        return element


class Element:
    """One array of values, however it is encoded.

    Attributes:
        kind: "numbers" (also of booleans), "strings", "categories", "nullable" (numbers of which some are missing) or
            "other": what is not read.
        dtype: of the values; of categories that of the codes.
    """

    def __init__(self, group: Any, name: str) -> None:
        """The member `name`."""
        self._node = node = group[name]
        self._mask: Any = None
        self._categories: Any = None
        encoding = str(node.attrs.get("encoding-type", ""))
        self.kind = "other"
        self.dtype: np.dtype[Any] = np.dtype("V1")
        if is_array(node):
            old = group.get("__categories", {})
            if name in old:
                self.kind, self._categories = "categories", old[name]
            elif is_text(node.dtype):
                self.kind = "strings"
            elif np.dtype(node.dtype).kind in "biuf":
                self.kind = "numbers"
        elif encoding == "categorical":
            self.kind, self._categories, self._node = "categories", node["categories"], node["codes"]
        elif encoding in ("nullable-integer", "nullable-boolean"):
            self.kind, self._mask, self._node = "nullable", node["mask"], node["values"]
        elif encoding == "nullable-string-array":
            self.kind, self._mask, self._node = "strings", node["mask"], node["values"]
        if self.kind in ("numbers", "nullable", "categories"):
            self.dtype = np.dtype(self._node.dtype).newbyteorder("<")

    @property
    def node(self) -> Any:
        """The array of its values, or of its codes."""
        return self._node

    @property
    def shape(self) -> tuple[int, ...]:
        """Of all values."""
        return tuple(int(each) for each in self._node.shape)

    @property
    def length(self) -> int:
        """Of the first axis."""
        return self.shape[0] if self.shape else -1

    @cached_property
    def categories(self) -> list[str]:
        """Names that codes stand for; numbers among them as their text."""
        count = int(self._categories.shape[0])
        if is_text(self._categories.dtype):
            return texts(self._categories, 0, count)
        return [str(each) for each in self._categories[:].tolist()]

    def numbers(self, begin: int, end: int) -> npt.NDArray[Any]:
        """Values [begin, end), or codes."""
        values: npt.NDArray[Any] = np.asarray(self._node[begin:end]).astype(self.dtype, copy=False)
        return values

    def missing(self, begin: int, end: int) -> npt.NDArray[np.bool_] | None:
        """Which of them are missing; None where none can be."""
        return None if self._mask is None else np.asarray(self._mask[begin:end]).astype(bool)

    def strings(self, begin: int, end: int) -> list[str | None]:
        """Values [begin, end), None where one is missing."""
        found: list[str | None] = list(texts(self._node, begin, end))
        missing = self.missing(begin, end)
        if missing is not None:
            found = [None if gone else each for each, gone in zip(found, missing.tolist(), strict=True)]
        return found

    def blocks(self) -> list[tuple[int, int]]:
        """Ranges that together are all values, each small."""
        return [(at, min(at + _MANY, self.length)) for at in range(0, self.length, _MANY)]


def is_array(node: Any) -> bool:
    """Whether it is an array, and not a group."""
    return hasattr(node, "dtype")


def is_text(dtype: Any) -> bool:
    """Whether the values of an array of this type are strings."""
    return np.dtype(dtype).kind in "OSUT"


def texts(array: Any, begin: int, end: int) -> list[str]:
    """Strings [begin, end) of an array of them, or the text of numbers."""
    if np.dtype(array.dtype).kind == "O" and hasattr(array, "asstr"):
        return [str(each) for each in array.asstr()[begin:end]]
    return [each.decode() if isinstance(each, bytes) else str(each) for each in array[begin:end].tolist()]
