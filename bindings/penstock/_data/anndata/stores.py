"""AnnData on disk: groups and arrays of an .h5ad file or a zarr store, read by ranges of cells.

hdf5 and zarr name them alike, so one code reads both. Nothing is read whole but what has a value for each gene, or for
each category.
"""

from __future__ import annotations

import errno
import importlib
import importlib.util
import math
import stat
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from penstock._base.errors import CorruptionError, InvalidArgumentError, IoError, NotFoundError
from penstock._base.extras import install
from penstock._base.words import excerpt
from penstock._data.anndata.arrays import Array, array_of, is_array, reading
from penstock._data.anndata.hdf5 import File, Helper
from penstock._data.anndata.tenx import as_anndata
from penstock._places.paths import looking_at

FORMATS = {"h5ad": (".h5ad", ".h5", ".hdf5", ".h5mu"), "zarr": (".zarr",)}
OLD = "the layout of an anndata before 0.7: read it and write it once with today's anndata"
_MANY = 1 << 16  # values that are looked at at once
_SIGNATURE = b"\x89HDF\r\n\x1a\n"  # at byte 0, 512, 1024, 2048, …
_TEXT_BYTES = 1 << 23  # of strings that are looked at at once


def needed(module: str, what: str, package: str = "") -> Any:
    """A module that a package of the extra `cells` has, or `package`.

    Raises:
        ModuleNotFoundError: it is not installed; the message says what to install.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module.partition(".")[0]:
            raise
        how = f"pip install {package}" if package else install("cells")
        raise ModuleNotFoundError(f"{what} needs the package {module}: {how}", name=error.name) from None


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


def refuse_other(path: str) -> None:
    """Refuses a file that is no HDF5 by its first bytes: it is not damaged, but another one.

    Raises:
        InvalidArgumentError: it is, or no regular file: to open a pipe may take for ever.
        IoError: it cannot be read.
    """
    with looking_at(path):
        mode = Path(path).stat().st_mode
    if not stat.S_ISREG(mode):
        what = "a folder" if stat.S_ISDIR(mode) else "not a regular file but a pipe or device"
        raise InvalidArgumentError(f"{path}: cannot be read as h5ad: it is {what}")
    try:
        with Path(path).open("rb") as file:
            at, is_hdf5 = 0, False
            while not is_hdf5 and file.seek(at) == at and len(head := file.read(len(_SIGNATURE))) == len(_SIGNATURE):
                is_hdf5, at = head == _SIGNATURE, max(512, 2 * at)
    except OSError as error:
        raise IoError(error.errno, f"{path}: {error.strerror or error}", path) from error
    if not is_hdf5:
        raise InvalidArgumentError(f"{path}: cannot be read as h5ad: it has no signature of HDF5")


class Store:
    """One opened file or folder. One thread at a time.

    Attributes:
        path: as it was given.
    """

    def __init__(
        self,
        path: str,
        format: str,
        helper: Helper | None = None,
        modality: str | None = None,
        file: str | None = None,
    ) -> None:
        """Opens it for reading; `helper` reads HDF5, `modality` is one of MuData's, `file` is read in place of `path`.

        Raises:
            NotFoundError: there is nothing.
            IoError: it cannot be looked at.
            InvalidArgumentError: not of this format, no AnnData, or no such modality.
            CorruptionError: it cannot be read.
        """
        self.path = path
        self.root: Any = None
        file = path if file is None else file
        with looking_at(path):
            if not Path(file).exists():
                raise NotFoundError(errno.ENOENT, f"{path}: no such file or folder", path)
        if format == "h5ad":
            assert helper is not None
            refuse_other(file)
            if importlib.util.find_spec("h5py") is None:
                needed("h5py", path)
            self.root = File(helper, file)
        else:
            try:
                self.root = needed("zarr", path).open_group(file, mode="r")
            except ModuleNotFoundError:
                raise
            except Exception as error:  # zarr has many kinds
                raise InvalidArgumentError(f"{path}: cannot be read as {format}: {error}") from None
        self._file = self.root
        try:
            self._choose(modality)
        except BaseException:
            self.close()
            raise

    def _choose(self, modality: str | None) -> None:
        """Goes to the AnnData that is wanted: the root, a modality, or a matrix of 10x that is one."""
        path = self.path
        with reading(f"{path}: mod"):
            mod = self.root.get("mod")
        if mod is not None and not is_array(mod):
            with reading(f"{path}: mod"):
                names = sorted(str(each) for each in mod.keys())  # noqa: SIM118 - groups of zarr
            modality = names[0] if modality is None and len(names) == 1 else modality
            if modality not in names:
                said = "say which modality is wanted" if modality is None else f"no modality {excerpt(modality)}"
                raise InvalidArgumentError(f"{path}: {said} (modality): there are {', '.join(map(excerpt, names))}")
            with reading(f"{path}: mod/{excerpt(modality)}"):
                self.root = mod[modality]
        elif modality is not None:
            raise InvalidArgumentError(
                f"{path}: no modality {excerpt(modality)}: it is one AnnData, without modalities"
            )
        with reading(path):
            self.root = as_anndata(self.root)
        for name in ("obs", "var"):
            with reading(f"{path}: {name}"):
                is_there = name in self.root
            if not is_there:
                raise InvalidArgumentError(f"{path}: there is no {name}: this is no AnnData")

    @cached_property
    def obs(self) -> Frame:
        """Values of cells."""
        return Frame(self.path, self.root, "obs")

    @cached_property
    def _obsm(self) -> dict[str, Element]:
        return {}

    def obsm(self, name: str) -> Element:
        """One array of obsm."""
        if name not in self._obsm:
            self._obsm[name] = Element(self.path, self.root["obsm"], name, "obsm")
        return self._obsm[name]

    def names_in(self, group: str) -> list[str]:
        """Members of a group; none where it is not there."""
        with reading(f"{self.path}: {group}"):
            if group not in self.root:
                return []
            if is_array(self.root[group]):
                raise InvalidArgumentError(f"{self.path}: {group} is an array, a group is wanted")
            return sorted(self.root[group].keys())

    def close(self) -> None:
        """Closes the file. May be called twice."""
        if hasattr(self._file, "close"):
            self._file.close()


class Frame:
    """A data frame: names, and columns read by ranges.

    Attributes:
        path: of its file.
        where: "obs", "var" or "raw/var".
    """

    def __init__(self, path: str, root: Any, where: str) -> None:
        """Opens the member `where`.

        Raises:
            InvalidArgumentError: it is none, or of a layout that is not read.
        """
        self.path = path
        self.where = where
        with reading(f"{path}: {where}"):
            self._group = root.get(where)
        if self._group is None:
            raise InvalidArgumentError(f"{path}: there is no {where}")
        if is_array(self._group):
            raise InvalidArgumentError(f"{path}: {where} has {OLD}")
        with reading(f"{path}: {where}"):
            index = self._group.attrs.get("_index")
            order = [str(name) for name in self._group.attrs.get("column-order", ())]
            has_index = index is not None and str(index) in self._group
        if not has_index:
            raise InvalidArgumentError(f"{path}: {where} has no index: this is no data frame of AnnData")
        self._index = array_of(path, self._group, str(index), where)
        if len(self._index.shape) != 1:
            raise InvalidArgumentError(f"{self._index}: shape {list(self._index.shape)}, one axis is wanted")
        with reading(f"{path}: {where}"):
            there = set(self._group.keys())
        self.columns = [name for name in order if name in there]
        self._elements: dict[str, Element] = {}

    def __len__(self) -> int:
        """Rows."""
        return len(self._index)

    def names(self, begin: int = 0, end: int | None = None) -> list[str]:
        """Names of rows [begin, end)."""
        return self._index.texts(begin, len(self) if end is None else end)

    def element(self, name: str) -> Element:
        """One column."""
        if name not in self._elements:
            element = Element(self.path, self._group, name, self.where)
            if element.kind != "other" and element.length != len(self):
                raise InvalidArgumentError(f"{element} has {element.length:,} values for {len(self):,} rows")
            self._elements[name] = element
        return self._elements[name]


class Element:
    """One array of values, however it is encoded.

    Attributes:
        kind: "numbers" (also of booleans), "strings", "categories", "nullable" (numbers of which some are missing) or
            "other": what is not read.
        dtype: of the values; of categories that of the codes.
        shape: of all values.
        is_ordered: whether it is categories with an order.
    """

    def __init__(self, path: str, group: Any, name: str, where: str) -> None:
        """The member `name` of a group, which `where` says in messages.

        Raises:
            InvalidArgumentError: a part of it is missing, or parts are of different lengths.
        """
        self._what = f"{path}: {where}/{excerpt(name)}"
        self._mask: Array | None = None
        self._categories: Array | None = None
        self.kind = "other"
        self.dtype: np.dtype[Any] = np.dtype("V1")
        with reading(self._what):
            node = group[name]
            encoding = str(node.attrs.get("encoding-type", ""))
            self.is_ordered = encoding == "categorical" and bool(node.attrs.get("ordered", False))
            old = group.get("__categories", {})
        self.shape: tuple[int, ...] = ()
        if is_array(node):
            self._node = Array(path, f"{where}/{excerpt(name)}", node)
            if name in old:
                self.kind, self._categories = "categories", array_of(path, old, name, f"{where}/__categories")
            elif self._node.is_text:
                self.kind = "strings"
            elif self._node.dtype.kind in "biuf" and self._node.dtype.itemsize <= 8:
                self.kind = "numbers"
        else:
            inside = f"{where}/{excerpt(name)}"
            if encoding == "categorical":
                self.kind, self._categories = "categories", array_of(path, node, "categories", inside)
                self._node = array_of(path, node, "codes", inside)
            elif encoding in ("nullable-integer", "nullable-boolean", "nullable-string-array"):
                self.kind = "strings" if "string" in encoding else "nullable"
                self._mask = array_of(path, node, "mask", inside)
                self._node = array_of(path, node, "values", inside)
            else:
                return
        self.shape = self._node.shape
        if self._mask is not None and self._mask.shape != self.shape:
            raise InvalidArgumentError(
                f"{self._mask}: shape {list(self._mask.shape)}, of the values {list(self.shape)}"
            )
        if self.kind in ("numbers", "nullable", "categories"):
            self.dtype = self._node.dtype.newbyteorder("<")
        if self.dtype.kind not in ("iu" if self.kind == "categories" else "biufV"):
            raise InvalidArgumentError(f"{self._node}: {self.dtype}: integers are wanted")

    def __str__(self) -> str:
        """File and member."""
        return self._what

    @property
    def node(self) -> Any:
        """The file's own array of its values, or of its codes."""
        return self._node.node

    @property
    def length(self) -> int:
        """Values of the first axis."""
        return self.shape[0] if self.shape else -1

    @property
    def has_numbers(self) -> bool:
        """True for categories that are numbers; an empty list of them, as of values that all miss, is none."""
        return self._categories is not None and len(self._categories) > 0 and not self._categories.is_text

    @property
    def category_dtype(self) -> np.dtype[Any] | None:
        """Type of categories that are numbers; None where they are strings, or none."""
        return self._categories.dtype.newbyteorder("<") if self._categories is not None and self.has_numbers else None

    @cached_property
    def categories(self) -> list[str]:
        """Names that codes stand for; numbers among them as their text.

        Raises:
            CorruptionError: a name is there twice.
        """
        assert self._categories is not None
        if self._categories.is_text:
            names = self._categories.texts(0, len(self._categories))
        else:
            names = [str(each) for each in self._categories.read(0, len(self._categories)).tolist()]
        if len(set(names)) != len(names):
            raise CorruptionError(f"{self._categories}: a name is there twice")
        return names

    def numbers(self, begin: int, end: int) -> npt.NDArray[Any]:
        """Values [begin, end), or codes.

        Raises:
            InvalidArgumentError: a code beyond the categories.
        """
        values: npt.NDArray[Any] = self._node.read(begin, end).astype(self.dtype, copy=False)
        if self.kind == "categories" and values.size and int(values.max()) >= len(self.categories):
            raise InvalidArgumentError(f"{self}: code {int(values.max())} of {len(self.categories)} categories")
        return values

    def missing(self, begin: int, end: int) -> npt.NDArray[np.bool_] | None:
        """Which of them are missing; None where none can be."""
        return None if self._mask is None else self._mask.read(begin, end).astype(bool)

    def strings(self, begin: int, end: int) -> list[str | None]:
        """Values [begin, end), None where one is missing."""
        if self.kind == "categories":
            names = self.categories
            return [None if code < 0 else names[code] for code in self.numbers(begin, end).tolist()]
        found: list[str | None] = list(self._node.texts(begin, end))
        missing = self.missing(begin, end)
        if missing is not None:
            found = [None if gone else each for each, gone in zip(found, missing.tolist(), strict=True)]
        return found

    def blocks(self) -> list[tuple[int, int]]:
        """Ranges that together are all values, each small."""
        step = max(1, _MANY // max(1, math.prod(self.shape[1:])))
        return [(at, min(at + step, self.length)) for at in range(0, self.length, step)]

    def blocks_of_strings(self) -> Iterator[list[str | None]]:
        """All strings, few at a time: as many as the ones before say that memory has room for."""
        at, step = 0, 1 << 10
        while at < self.length:
            found = self.strings(at, min(at + step, self.length))
            at += len(found)
            each = sum(len(text) for text in found if text is not None) // max(1, len(found)) + 8
            step = max(1, min(_MANY, 4 * step, _TEXT_BYTES // each))
            yield found
