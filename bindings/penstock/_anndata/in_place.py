"""An .h5ad file opened where it lies: h5py tells where its arrays are, the native threads read them."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from penstock import _native
from penstock._columns import Columns
from penstock._errors import CorruptionError, InvalidArgumentError
from penstock._features import Features
from penstock._words import counted, excerpt

from .columns import MOST_STRINGS, nullable_type
from .stores import Element, Frame, Store

_KINDS = "biuf"
_INSTEAD = "`penstock import` it, or load it with penstock.CollectionLoader"


class FilesInPlace:
    """What datasets that lie in others' files know beside their native part.

    Attributes:
        features: names and columns of var, of the first file.
    """

    def __init__(self, features: Features, stamps: Sequence[tuple[str, tuple[int, int]]]) -> None:
        """`stamps` are (path, stamp) of the files."""
        self.features = features
        self._stamps = list(stamps)

    def check(self) -> None:
        """Refuses files that were changed since they were opened.

        Raises:
            CorruptionError: one was, or is gone.
        """
        for path, stamp in self._stamps:
            if not Path(path).exists() or _stamp(path) != stamp:
                raise CorruptionError(f"{path}: changed since it was opened: open it anew")

    @staticmethod
    def joined(parts: Sequence[FilesInPlace]) -> FilesInPlace:
        """Of several datasets as one."""
        return FilesInPlace(parts[0].features, [each for part in parts for each in part._stamps])


class _VarFeatures(Features):
    """Names and columns of var; the file is read when they are asked for."""

    def __init__(self, path: str, names: list[str]) -> None:
        self._path = path
        self._names = names
        self._columns: Columns | None = None

    @property
    def names(self) -> list[str]:
        return self._names

    @property
    def columns(self) -> Columns:
        if self._columns is None:
            stamp = _stamp(self._path)
            store = Store(self._path, "h5ad")
            try:
                var = Frame(self._path, store.root, "var")
                nothing = np.zeros(len(var) + 1, np.uint64)  # genes have values, and no records
                empty = ("", "|u1", 1, np.zeros(0, np.uint64))
                arrays = {"starts": nothing, "genes": ("gene", *empty[1:]), "values": ("count", *empty[1:])}
                self._columns = Columns(_open_native(self._path, stamp, arrays, var, ""))
            finally:
                store.close()
        return self._columns

    def __len__(self) -> int:
        return len(self._names)


def open_h5ad(path: str) -> tuple[_native.Dataset, FilesInPlace]:
    """One file, as cells {gene, count} of its X.

    Raises:
        NotFoundError: there is none.
        InvalidArgumentError: X is dense, compressed columns, or filtered (compressed); no AnnData.
        CorruptionError: arrays of lengths that do not go together.
    """
    stamp = None if not Path(path).exists() else _stamp(path)
    store = Store(path, "h5ad")
    try:
        genes = Frame(path, store.root, "var").names()
        arrays = _arrays(store, len(genes))
        fingerprint = hashlib.blake2b(json.dumps(genes).encode(), digest_size=16).hexdigest()
        assert stamp is not None
        native = _open_native(path, stamp, arrays, store.obs, fingerprint)
    finally:
        store.close()
    return native, FilesInPlace(_VarFeatures(path, genes), [(path, stamp)])


def _stamp(path: str) -> tuple[int, int]:
    status = os.stat(path)  # noqa: PTH116 - follows links, as opening does
    return status.st_ino, status.st_mtime_ns


def _open_native(
    path: str, stamp: tuple[int, int], arrays: dict[str, Any], frame: Frame, fingerprint: str
) -> _native.Dataset:
    columns = [found for name in frame.columns if (found := _column(frame, name)) is not None]
    return _native.open_field_arrays(
        path=path,
        stamp=stamp,
        format="h5ad",
        **arrays,
        columns_json=json.dumps([[name, kind] for name, kind, _ in columns]),
        columns=[where for _, _, where in columns],
        features_fingerprint=fingerprint,
    )


def _arrays(store: Store, genes: int) -> dict[str, Any]:
    """Where the parts of X lie."""
    x = store.root.get("X")
    encoding = "" if x is None else str(x.attrs.get("encoding-type", ""))
    if x is None or encoding != "csr_matrix":
        kinds = {"csc_matrix": "compressed columns", "array": "dense"}
        what = "is not there" if x is None else f"is {kinds.get(encoding, encoding or 'of a layout that is not read')}"
        raise InvalidArgumentError(f"{store.path}: X {what}; only compressed rows (CSR) are read in place: {_INSTEAD}")
    rows, columns = (int(each) for each in x.attrs["shape"])
    starts = np.asarray(x["indptr"])
    if rows != len(store.obs) or columns != genes or len(starts) != rows + 1:
        raise CorruptionError(
            f"{store.path}: X is {rows:,} × {columns:,} with {counted(len(starts), 'start')} of rows, obs has "
            f"{len(store.obs):,} and var {genes:,}"
        )
    stored = int(x["indices"].shape[0])
    if int(x["data"].shape[0]) != stored or (len(starts) and not 0 <= int(starts[-1]) <= stored):
        raise CorruptionError(
            f"{store.path}: X/indptr ends at {int(starts[-1]):,}; there are {stored:,} indices and "
            f"{int(x['data'].shape[0]):,} data"
        )
    falls = np.flatnonzero(np.diff(starts.astype(np.int64)) < 0)
    if len(falls) or int(starts[0]) != 0:
        at = int(falls[0]) if len(falls) else 0
        raise CorruptionError(
            f"{store.path}: X/indptr falls at cell {at:,}: from {int(starts[at]):,} to {int(starts[at + 1]):,}"
            if len(falls)
            else f"{store.path}: X/indptr begins with {int(starts[0]):,}, expected 0"
        )
    return {
        "starts": starts.astype(np.uint64),
        "genes": ("gene", *_place(store.path, "X/indices", x["indices"])),
        "values": ("count", *_place(store.path, "X/data", x["data"])),
    }


def _place(path: str, name: str, array: Any) -> tuple[str, int, npt.NDArray[np.uint64]]:
    """(type, values of a chunk, byte of the file at which each chunk begins) of an array of one axis."""
    why = _why_not(array)
    if why:
        raise InvalidArgumentError(f"{path}: {name} {why}, which is not read in place: {_INSTEAD}")
    dtype, count = np.dtype(array.dtype), int(array.shape[0])
    if array.chunks is None:
        return dtype.str, max(count, 1), np.array([array.id.get_offset()] if count else [], np.uint64)
    size = int(array.chunks[0])
    places = np.full(-(-count // size), -1, np.int64)

    def note(chunk: Any) -> None:
        if chunk.filter_mask == 0 and chunk.chunk_offset[0] < count:
            places[chunk.chunk_offset[0] // size] = chunk.byte_offset

    if count:
        array.id.chunk_iter(note)
    if (places < 0).any():
        at = int(np.flatnonzero(places < 0)[0]) * size
        raise InvalidArgumentError(f"{path}: {name}: values from {at:,} on are not written: {_INSTEAD}")
    return dtype.str, size, places.astype(np.uint64)


class _Layout(NamedTuple):
    """Of HDF5: h5py.h5d's constants, which importing it would cost whoever has no .h5ad."""

    compact: int = 0
    contiguous: int = 1
    chunked: int = 2


def _why_not(array: Any) -> str:
    """Why an array's values do not lie in the file as they are; empty: they do."""
    dtype, plist = np.dtype(array.dtype), array.id.get_create_plist()
    if plist.get_nfilters() > 0:
        return f"is compressed or filtered ({array.compression or 'filters of HDF5'})"
    if plist.get_layout() not in (_Layout().contiguous, _Layout().chunked) or array.external:
        return "is stored inside of headers, in other files or virtually"
    if array.ndim != 1 or dtype.kind not in _KINDS or dtype.itemsize > 8 or dtype.newbyteorder("<") != dtype:
        return f"is {dtype} {list(array.shape)}"
    if array.chunks is None and array.shape[0] and array.id.get_offset() is None:
        return "has no values in the file"
    return "" if array.file.userblock_size == 0 else "lies behind a user block"


def _column(frame: Frame, name: str) -> tuple[str, str, Any] | None:
    """(name, type, where) of a column of a frame as the native side takes it; None where it is of a kind not read."""
    element = frame.element(name)
    count = len(frame)
    if element.kind == "other" or len(element.shape) != 1 or element.dtype.itemsize > 8:
        return None
    if element.kind == "strings":
        return _strings(element, name)
    if element.kind == "categories":
        codes = element.dtype.kind == "i" and element.dtype.itemsize <= 4
        if codes and not _why_not(element.node) and element.node.chunks is None and count:
            return name, "category", (int(element.node.id.get_offset()), element.dtype.itemsize, element.categories)
        values = element.numbers(0, count).astype(np.int32)
        return name, "category", (values.tobytes(), 4, element.categories)
    dtype = element.dtype
    if element.kind == "numbers" and not _why_not(element.node) and element.node.chunks is None and count:
        return name, dtype.str, (int(element.node.id.get_offset()), dtype.itemsize, None)
    if element.kind == "nullable":
        dtype = np.dtype(nullable_type(f"{frame.path}: {frame.where}/{excerpt(name)}", element))
    values, missing = element.numbers(0, count).astype(dtype), element.missing(0, count)
    if missing is not None and missing.any():
        values[missing] = np.nan
    return name, dtype.str, (values.tobytes(), dtype.itemsize, None)


def _strings(element: Element, name: str) -> tuple[str, str, Any] | None:
    codes: dict[str, int] = {}
    found = np.full(element.length, -1, np.int32)
    for begin, end in element.blocks():
        for at, text in enumerate(element.strings(begin, end), begin):
            if text is not None:
                found[at] = codes.setdefault(text, len(codes))
        if len(codes) > MOST_STRINGS:
            return None
    return name, "category", (found.tobytes(), 4, list(codes))
