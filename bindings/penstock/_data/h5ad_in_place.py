"""An .h5ad file opened where it lies: h5py tells where its arrays are, the native threads read them."""

from __future__ import annotations

import errno
import hashlib
import json
import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from penstock import _native
from penstock._base.errors import CorruptionError, InvalidArgumentError, NotFoundError
from penstock._base.words import excerpt
from penstock._data.anndata.arrays import reading
from penstock._data.anndata.categories import MOST_STRINGS
from penstock._data.anndata.columns import type_of
from penstock._data.anndata.genes import refuse_twice
from penstock._data.anndata.hdf5 import Helper, session
from penstock._data.anndata.stores import Element, Frame, Store
from penstock._data.anndata.var_columns import part_of
from penstock._data.features import Features
from penstock._data.stored_columns import Columns
from penstock._places.paths import looking_at

_INSTEAD = "`penstock import` it, or load it with penstock.CollectionLoader"
_MOST_EXACT = 1 << 53  # of integers that f8 holds
_MOST_NAME = 255  # bytes of a column's name


class Which(NamedTuple):
    """The part of each file that is opened.

    Attributes:
        x: where the counts are: "X", "raw" or "layers/NAME".
        modality: of MuData, which of them.
    """

    x: str = "X"
    modality: str | None = None

    @property
    def matrix(self) -> str:
        """The member that has them."""
        return "raw/X" if self.x == "raw" else self.x

    @property
    def var(self) -> str:
        """The member with their genes."""
        return "raw/var" if self.x == "raw" else "var"


class FilesInPlace:
    """Knowledge of datasets that lie in others' files, beside their native part.

    Attributes:
        features: names of var, and the columns of it that all files have and agree on.
    """

    def __init__(self, names: list[str], stamps: Sequence[tuple[str, tuple[int, int]]], which: Which) -> None:
        """`names` of the genes; `stamps` are (path, stamp) of the files."""
        self._names = names
        self._stamps = list(dict.fromkeys(stamps))
        self.which = which
        self.features: Features = _VarFeatures(self._stamps, names, which)

    def check(self) -> None:
        """Refuses files that were changed since they were opened.

        Raises:
            CorruptionError: one was.
            NotFoundError: one is gone.
        """
        for path, stamp in self._stamps:
            _check(path, stamp)

    @staticmethod
    def joined(parts: Sequence[FilesInPlace]) -> FilesInPlace:
        """The files of several datasets as one."""
        stamps = [each for part in parts for each in part._stamps]
        return FilesInPlace(parts[0]._names, stamps, parts[0].which)


class _VarFeatures(Features):
    """Names and columns of var; the files are read again when columns are asked for."""

    def __init__(self, files: Sequence[tuple[str, tuple[int, int]]], names: list[str], which: Which) -> None:
        self._files, self._which = files, which
        self._all_names = tuple(names)
        self._columns: Columns | None = None

    @property
    def columns(self) -> Columns:
        if self._columns is None:
            with session() as helper:
                self._columns = Columns(self._open_columns(helper))
        return self._columns

    def _open_columns(self, helper: Helper) -> _native.Dataset:
        path, stamp = self._files[0]
        _check(path, stamp)
        with _opened(helper, path, self._which) as store:
            var = Frame(path, store.root, self._which.var)
            nothing = np.zeros(len(var) + 1, np.uint64)  # genes have values, and no records
            empty = ("|u1", 1, np.zeros(0, np.uint64))
            arrays = _Arrays(nothing, ("gene", *empty), ("count", *empty))
            kinds = {name: kind for name in var.columns if (kind := _kind(var, name)) is not None}
            if len(self._files) > 1:
                agreed = self._agreed(helper, var, kinds)
                kinds = {name: kind for name, kind in kinds.items() if name in agreed}
            return _open_native(path, stamp, arrays, "|u1", var, kinds, "")

    def _agreed(self, helper: Helper, first: Frame, names: Iterable[str]) -> Collection[str]:
        """Those columns of the first file that all others have with the same values, as an import keeps them."""
        parts = {name: part for name in names if (part := part_of(first.element(name))) is not None}
        for path, stamp in self._files[1:]:
            _check(path, stamp)
            with _opened(helper, path, self._which) as store:
                var = Frame(path, store.root, self._which.var)
                for name in list(parts):
                    other = part_of(var.element(name)) if name in var.columns else None
                    whole = None if other is None else parts[name].joined(other, slice(None), slice(None))
                    if whole is None:
                        del parts[name]
                    else:
                        parts[name] = whole
        return parts

    @property
    def _note(self) -> Any:
        return None  # an import notes more than is read in place

    def __len__(self) -> int:
        return len(self._all_names)


class _Arrays(NamedTuple):
    """Where the parts of X lie: each (name, type, values of a chunk, byte of the file at which each chunk begins)."""

    starts: npt.NDArray[np.uint64]
    genes: tuple[str, str, int, npt.NDArray[np.uint64]]
    values: tuple[str, str, int, npt.NDArray[np.uint64]]


class _Look(NamedTuple):
    """A look at a file: all files are looked at before one is opened natively.

    Attributes:
        stamp: of the file then.
        value: type of X/data.
        columns: "category" or the type, of each column of obs.
    """

    stamp: tuple[int, int]
    value: np.dtype[Any]
    columns: dict[str, str]


def open_h5ad(paths: Sequence[str], which: Which) -> tuple[_native.Dataset, FilesInPlace]:
    """Files as one dataset of cells {gene, count} of their X, or what `which` says; columns are those that all have.

    Raises:
        NotFoundError: there is none.
        InvalidArgumentError: X is dense, compressed columns, or filtered (compressed); no AnnData; other genes than
            those of the first file.
        CorruptionError: arrays of lengths that do not go together; a file that changed meanwhile.
    """
    paths = [str(Path(path).absolute()) for path in paths]  # wherever the process goes
    with session() as helper:
        return _open_all(helper, paths, which)


def _open_all(helper: Helper, paths: Sequence[str], which: Which) -> tuple[_native.Dataset, FilesInPlace]:
    looks = [_look(helper, path, which) for path in paths]
    value = _given(np.result_type(*(look.value for look in looks)))
    columns = _common([look.columns for look in looks])
    for path, look in zip(paths, looks, strict=True):
        rounded = [name for name, kind in columns.items() if kind == "<f8" and look.columns[name][1:] in ("i8", "u8")]
        if rounded:
            with _opened(helper, path, which) as store:
                for name in rounded:
                    if not _is_exact(store.obs, name):
                        del columns[name]
    natives, stamps = [], []
    names: list[str] = []
    for path, look in zip(paths, looks, strict=True):
        with _opened(helper, path, which) as store:
            var = Frame(path, store.root, which.var)
            genes = var.names()
            refuse_twice(var, genes)
            fingerprint = hashlib.blake2b(json.dumps(genes).encode(), digest_size=16).hexdigest()
            arrays = _arrays(store, len(genes), which.matrix)
            natives.append(_open_native(path, look.stamp, arrays, value, store.obs, columns, fingerprint))
        _check(path, look.stamp)
        stamps.append((path, look.stamp))
        names = names or genes
    return _native.concatenate(natives), FilesInPlace(names, stamps, which)


def _look(helper: Helper, path: str, which: Which) -> _Look:
    stamp = _stamp(path)
    with _opened(helper, path, which) as store:
        obs = store.obs
        kinds = {name: kind for name in obs.columns if (kind := _kind(obs, name)) is not None}
        return _Look(stamp, np.dtype(_x(store, which.matrix)["data"].dtype), kinds)


def _stamp(path: str) -> tuple[int, int]:
    with looking_at(path):
        try:
            status = os.stat(path)  # noqa: PTH116 - follows links, as opening does
        except (FileNotFoundError, NotADirectoryError):
            raise NotFoundError(errno.ENOENT, f"{path}: no such file or folder", path) from None
    return status.st_ino, status.st_mtime_ns


def _check(path: str, stamp: tuple[int, int]) -> None:
    if _stamp(path) != stamp:
        raise CorruptionError(f"{path}: changed since it was opened: open it anew")


@contextmanager
def _opened(helper: Helper, path: str, which: Which) -> Iterator[Store]:
    """The file; whatever is raised meanwhile is one error that names it."""
    with reading(path):
        store = Store(path, "h5ad", helper, which.modality)
        try:
            yield store
        finally:
            store.close()


def _given(dtype: np.dtype[Any]) -> str:
    """The type that values are given out as: as they are stored but for what no cell has."""
    if dtype.kind == "b":
        return "|u1"
    return "<f8" if dtype.kind in "iu" and dtype.itemsize == 8 else dtype.newbyteorder("<").str


def _common(columns: Sequence[dict[str, str]]) -> dict[str, str]:
    """The columns that all have, as one type that holds all of their values."""
    found: dict[str, str] = {}
    for name in columns[0]:
        kinds = {each.get(name, "") for each in columns}
        if kinds == {"category"}:
            found[name] = "category"
        elif not kinds & {"category", ""}:
            found[name] = np.result_type(*(np.dtype(kind) for kind in kinds)).newbyteorder("<").str
    return found


def _is_exact(frame: Frame, name: str) -> bool:
    """True if f8 holds all integers of a column."""
    values = frame.element(name).numbers(0, len(frame))
    return not len(values) or (int(values.max()) <= _MOST_EXACT and int(values.min()) >= -_MOST_EXACT)


def _open_native(
    path: str,
    stamp: tuple[int, int],
    arrays: _Arrays,
    value: str,
    frame: Frame,
    kinds: dict[str, str],
    fingerprint: str,
) -> _native.Dataset:
    def field(array: tuple[str, str, int, npt.NDArray[np.uint64]], given: str) -> Any:
        name, stored, chunk, places = array
        return name, stored, given, chunk, places

    return _native.open_field_arrays(
        path=path,
        stamp=stamp,
        format="h5ad",
        starts=arrays.starts,
        genes=field(arrays.genes, "<u4"),
        values=field(arrays.values, value),
        columns_json=json.dumps([[name, kind] for name, kind in kinds.items()]),
        columns=[_column(frame, name, kind) for name, kind in kinds.items()],
        features_fingerprint=fingerprint,
    )


def _x(store: Store, name: str) -> Any:
    """The group X, or another, of compressed rows."""
    x = store.root.get(name)
    encoding = "" if x is None else str(x.attrs.get("encoding-type", ""))
    if x is None or encoding != "csr_matrix":
        kinds = {"csc_matrix": "compressed columns", "array": "dense"}
        what = "is not there" if x is None else f"is {kinds.get(encoding, encoding or 'of a layout that is not read')}"
        layers = "" if x is not None else f" (there are layers {', '.join(store.names_in('layers')) or 'none'})"
        raise InvalidArgumentError(
            f"{store.path}: {excerpt(name)} {what}{layers}; only compressed rows (CSR) are read in place: {_INSTEAD}"
        )
    return x


def _arrays(store: Store, genes: int, name: str) -> _Arrays:
    x = _x(store, name)
    rows, columns = (int(each) for each in x.attrs["shape"])
    starts = np.asarray(x["indptr"])
    if starts.dtype.kind not in "iu" or rows != len(store.obs) or columns != genes or starts.shape != (rows + 1,):
        raise CorruptionError(
            f"{store.path}: {name} is {rows:,} × {columns:,} with starts of rows {list(starts.shape)} of "
            f"{starts.dtype}, obs has {len(store.obs):,} and var {genes:,}"
        )
    stored, last = int(x["indices"].shape[0]), int(starts[-1])
    if int(x["data"].shape[0]) != stored or not 0 <= last <= stored:
        raise CorruptionError(
            f"{store.path}: {name}/indptr ends at {last:,}; there are {stored:,} indices and "
            f"{int(x['data'].shape[0]):,} data"
        )
    return _Arrays(
        starts.astype(np.uint64),
        ("gene", *_place(store.path, f"{name}/indices", x["indices"])),
        ("count", *_place(store.path, f"{name}/data", x["data"])),
    )


def _place(path: str, name: str, array: Any) -> tuple[str, int, npt.NDArray[np.uint64]]:
    """(type, values of a chunk, byte of the file at which each chunk begins) of an array of one axis."""
    if len(array.shape) != 1:
        raise CorruptionError(f"{path}: {name}: shape {list(array.shape)}, one axis is wanted")
    why, size, places = array.place()
    if why:
        raise InvalidArgumentError(f"{path}: {name} {why}, which is not read in place: {_INSTEAD}")
    if (places < 0).any():
        at = int(np.flatnonzero(places < 0)[0]) * size
        raise InvalidArgumentError(f"{path}: {name}: values from {at:,} on are not written: {_INSTEAD}")
    return array.dtype.str, size, places.astype(np.uint64)


def _kind(frame: Frame, name: str) -> str | None:
    """ "category" or the type of a column; None where it is of a kind that is not read, or has a name that none has."""
    element = frame.element(name)
    if not 0 < len(name.encode()) <= _MOST_NAME or "\0" in name or name in frame.columns[: frame.columns.index(name)]:
        return None
    if element.kind == "other" or len(element.shape) != 1 or element.dtype.itemsize > 8:
        return None
    if element.kind == "strings":
        return None if _strings(element) is None else "category"
    if element.kind == "categories":
        return "category"
    if element.kind == "nullable":
        return type_of(element).str
    return element.dtype.str


def _column(frame: Frame, name: str, kind: str) -> Any:
    """(byte of the file or bytes, bytes of a value, categories) of a column that is given out as `kind`."""
    element = frame.element(name)
    count = len(frame)
    offset = _offset(element) if count else None
    if element.kind == "strings":
        found = _strings(element)
        assert found is not None
        return found[0].tobytes(), 4, found[1]
    if element.kind == "categories":
        categories, stored = element.categories, element.dtype
        if offset is not None and stored.kind == "i" and stored.itemsize <= 4:
            return offset, stored.itemsize, categories
        codes = element.numbers(0, count)
        if (codes.astype(np.int64) < -1).any():
            raise CorruptionError(f"{element}: code {int(codes.min()):,}: none is below -1")
        return codes.astype(np.int32).tobytes(), 4, categories
    wanted = np.dtype(kind)
    if element.kind == "numbers" and offset is not None and element.dtype == wanted:
        return offset, wanted.itemsize, None
    values, missing = element.numbers(0, count).astype(wanted), element.missing(0, count)
    if missing is not None and missing.any():
        values[missing] = np.nan
    return values.tobytes(), wanted.itemsize, None


def _offset(element: Element) -> int | None:
    """Byte of the file at which the values lie end to end; None where they do not."""
    if element.node.chunks is not None:
        return None
    why, _, places = element.node.place()
    return None if why or not len(places) else int(places[0])


def _strings(element: Element) -> tuple[npt.NDArray[np.int32], list[str]] | None:
    """Codes, and the names in the order in which they come; None where there are too many."""
    codes: dict[str, int] = {}
    found = np.full(element.length, -1, np.int32)
    at = 0
    for block in element.blocks_of_strings():
        for text in block:
            if text is not None:
                found[at] = codes.setdefault(text, len(codes))
            at += 1
        if len(codes) > MOST_STRINGS:
            return None
    return found, list(codes)
