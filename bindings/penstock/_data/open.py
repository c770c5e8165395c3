"""Opening datasets and other people's token files: from paths and globs to one dataset."""

from __future__ import annotations

import errno
import json
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import Any

import numpy.typing as npt

from penstock import _native
from penstock._base.arguments import one_of
from penstock._base.errors import InvalidArgumentError, NotFoundError
from penstock._base.unknown_arguments import tells_unknown
from penstock._base.words import warn_caller
from penstock._data import dtype as _dtype
from penstock._data.anndata.counts import checked
from penstock._data.cache import Cache
from penstock._data.dataset import Dataset
from penstock._data.fractions import warn_of_mixed
from penstock._data.not_tokens import refuse_in_place
from penstock._places.attempts import of_one_operation
from penstock._places.buckets import place_of
from penstock._places.paths import PathLike, looking_at
from penstock._places.remote import Address, absolute, far_of, name_of, scheme_of
from penstock._places.storage import Storage
from penstock._places.stores import is_in_store, places_of, stores_of

_INDEX = "index.json"  # of MDS or litdata
FORMATS = tuple(name for name in _native.format_names() if name != _INDEX)
_TYPED = ("raw", "datatrove", "olmo", "mds", _INDEX)
_EXTENSIONS = {
    ".npy": "raw",
    ".bin": "raw",
    ".idx": "megatron",
    ".h5ad": "h5ad",
    ".ds": "datatrove",
}
_ZARR = ("zarr.json", ".zgroup", ".zarray")  # one of them is in the folder of a group or array
_CHECKS = ("index", "all", "none")
_MANIFEST = "dataset.json"
_LOOKED_AT = 16  # token files whose first bytes are looked at: those of one call are of one kind

_OF_VIEWS = "of the view that is made: dataset.windows({0}=…), dataset.documents({0}=…) or dataset.packed(W, {0}=…)"
_OTHERS = {  # arguments of the views that are made next, and of loaders
    **{name: f"it as an argument {_OF_VIEWS.format(name)}" for name in ("end_of_document", "begin_of_document")},
    **dict.fromkeys(("window", "block_size", "seq_length", "lookahead"), "dataset.windows(window, lookahead=1)"),
    "columns": f"it as an argument {_OF_VIEWS.format('columns')}",
    "where": "dataset.where(condition)",
    "packed": "dataset.packed(window)",
    "documents": "dataset.documents()",
    "batch_size": "penstock.Loader(view, batch_size)",
    "mode": "nothing: datasets are opened to be read",
}


@tells_unknown(_OTHERS, "open")
@of_one_operation
def open(
    path: PathLike,
    *more: PathLike,
    dtype: npt.DTypeLike | None = None,
    format: str | None = None,
    column: str | None = None,
    x: str | None = None,
    modality: str | None = None,
    storage: Storage | None = None,
    store: Any = None,
    cache: PathLike | None = None,
    cache_bytes: int | None = None,
    checks: str = "index",
) -> Dataset:
    """Opens a dataset, or token files of other formats in place; several are opened as one, in the order given.

    Args:
        path: a folder that penstock wrote; a Megatron prefix (or its .bin or .idx); an .h5ad file whose X is compressed
            rows and not compressed, whose cells are then documents {gene, count}; a folder of MDS or of litdata's
            TokensLoader (or its index.json), uncompressed; datatrove's .ds; token files, or a glob of any of them; of
            an .npy with OLMo's .csv.gz beside it the documents too. `~` is the home folder; file:///path is a path
            too. Or an address of one of these but .h5ad: http://, https:// (without globs), s3://, gs://, az://, or of
            a filesystem of fsspec. Or a key in `store`.
        *more: further ones of the same kind.
        dtype: what bare token files hold: "u2", or a structured dtype. Files that say it themselves need none.
        format: "penstock", "megatron", "datatrove", "olmo", "mds", "litdata", "h5ad" or "raw", where it is not to be
            found out. Of addresses, .npy and .bin files are raw, a .idx file Megatron's, .ds datatrove's, and an
            index.json is of MDS or litdata; others are datasets of penstock.
        column: of MDS, the one that has the tokens; by default that called tokens or input_ids.
        x: of .h5ad and .h5mu files, where the counts are: "X" (the default), "raw" or "layers/NAME".
        modality: of .h5mu files, which of them.
        storage: how addresses are opened.
        store: what the paths lie in, as its keys: a store of obstore, a filesystem of fsspec, or an object of your own
            whose methods are called by several threads at once: `size(path)`; `list(prefix)`, the keys that begin so,
            or pairs of a key and its bytes; `read(path, offsets, sizes)`, a list of buffers. They raise
            FileNotFoundError and PermissionError; after other exceptions they are called again.
        cache: a folder of this machine that keeps what was read of an address, for later epochs and for other
            processes. Made if it is not there.
        cache_bytes: it takes at most, by default half of what is free on its disk or kept of this dataset already. A
            fixed part of the dataset is kept then, and the rest is read from the address each time.
        checks: what is compared with its check values when it is read, by all views and loaders of the dataset:
            "index", what tells where documents lie, and the first block that is read of each file; "all", records and
            entries as well; "none", nothing. Files of other formats have no check values.

    Returns:
        The dataset.

    Raises:
        NotFoundError: no such file; a folder without manifest (says how to go on).
        IoError: a file cannot be looked at or read: no permission, a name too long, a loop of links, a broken disk.
        CorruptionError: a manifest or header that cannot be, a truncated file.
        InvalidArgumentError: a type is needed and not given; kinds that differ; an .h5ad file that cannot be read in
            place: dense, compressed columns, compressed; a cache of files that lie on this machine.
        OSError: the folder `cache` cannot be written.

    Examples:
        >>> import numpy as np, os, penstock, tempfile
        >>> folder = tempfile.mkdtemp()
        >>> np.arange(10, dtype=np.uint16).tofile(os.path.join(folder, "a.bin"))
        >>> penstock.open(os.path.join(folder, "*.bin"), dtype="u2").windows(5)[1]["token"].tolist()
        [5, 6, 7, 8, 9]
    """
    if format is not None and format not in FORMATS:
        raise InvalidArgumentError(f"format {format!r}: must be one of {', '.join(map(repr, FORMATS))}")
    one_of("checks", checks, _CHECKS)
    if storage is not None and not isinstance(storage, Storage):
        raise InvalidArgumentError(f"storage: a penstock.Storage is wanted, not {type(storage).__name__}")
    paths = places_of((path, *more), storage, store)
    is_remote = bool(far_of(paths))
    kept = Cache.parse(cache, cache_bytes, is_remote)
    kind = _only_kind(paths, format)
    if kind == "raw" and format is None:
        for file in paths[:_LOOKED_AT]:
            if isinstance(file, str):
                refuse_in_place(file, has_type=dtype is not None)
    _check_of_kind(kind, dtype, column, paths[0] if format is None and is_remote else None)
    _check_of_cells(kind, x, modality)
    opened_anew = tuple(absolute(each) for each in paths)
    dataset = _open_kind(kind, opened_anew, _descr(dtype), checks, kept, paths, column or "", x or "X", modality)
    if kind == "h5ad" and len(paths) > 1:
        warn_of_mixed(dataset)
    if dataset.kind == "raw" and dataset.records == 0:
        warn_caller(f"{dataset.path}: an empty file: no records")
    return dataset


def _only_kind(paths: Sequence[str | Address], format: str | None) -> str:
    kinds = {format or (_kind_at(each) if isinstance(each, Address) else _kind_of(each)) for each in paths}
    if len(kinds) > 1:
        raise InvalidArgumentError(f"datasets of kinds {' and '.join(sorted(kinds))} cannot be opened as one")
    return kinds.pop()


def _check_of_kind(kind: str, dtype: npt.DTypeLike | None, column: str | None, guessed: str | Address | None) -> None:
    """Refuses arguments that this kind does not have; `guessed`: the first address, whose name alone said the kind."""
    if dtype is not None and kind not in _TYPED:
        hint = ""
        if guessed is not None:
            hint = f'; if {name_of(guessed)} holds bare tokens, give format="raw": its name does not say so'
        raise InvalidArgumentError(f"dtype {dtype!r}: {kind} datasets say their type themselves{hint}")
    if column is not None and kind not in ("mds", _INDEX):
        raise InvalidArgumentError(f"column {column!r}: {kind} datasets have none of MDS to choose")


def _check_of_cells(kind: str, x: str | None, modality: str | None) -> None:
    if kind != "h5ad" and (x is not None or modality is not None):
        named = f"x={x!r}" if x is not None else f"modality={modality!r}"
        raise InvalidArgumentError(f"{named}: is of .h5ad and .h5mu files, this is {kind}")
    if x is not None:
        checked(x)


def _opened(
    kind: str,
    paths: Sequence[str | Address],
    descr: str,
    checks: str,
    cache: Cache | None,
    reopen: Any,
    column: str,
    x: str,
    modality: str | None,
) -> Dataset:
    addresses = far_of(paths)
    names = [name_of(each) for each in paths]
    if kind != "h5ad":
        stores = stores_of(paths)
        if cache is not None:
            if kind != "penstock" and any(is_in_store(each) for each in addresses):
                raise InvalidArgumentError(
                    f"cache={cache.folder!r}: nothing tells {names[0]} in this store= from a file of the same name in "
                    "another one: give an address instead of store=; a dataset of penstock is told by its manifest"
                )
            place = ";".join(sorted({place_of(scheme_of(each.path), each.storage) for each in addresses}))
            return cache.opened(kind, names, descr, checks, stores, reopen, column, place)
        return Dataset(_native.open_as(kind, names, descr, checks, stores, column), reopen)
    if addresses:
        raise InvalidArgumentError(f"{addresses[0].path}: .h5ad files are opened in place on this machine alone")
    from penstock._data.h5ad_in_place import Which, open_h5ad

    try:
        native, files = open_h5ad(names, Which(x, modality))
    except InvalidArgumentError as error:
        if not str(error).endswith(_OTHER_GENES):
            raise
        raise InvalidArgumentError(
            f"{error}: other genes, or the same ones in another order. `penstock import --join inner` makes a dataset "
            'of them, and penstock.Collection.from_anndatas(…, join="inner") reads them in place; "outer" keeps all'
        ) from None
    return Dataset(native, reopen, files)


_OTHER_GENES = "the names of their features differ"  # layout/dataset/concatenate.cpp


def _kind_at(address: Address) -> str:
    """By its name: a server does not say what a folder holds."""
    extension = PurePosixPath(address.path).suffix.lower()
    if address.path.endswith("/" + _MANIFEST):
        raise InvalidArgumentError(f"{address.path}: the manifest of a dataset: give its folder")
    if address.path.endswith("/" + _INDEX):
        return _INDEX
    return _EXTENSIONS.get(extension, "penstock")


def refuse_foreign(path: str, why: str) -> None:
    """Refuses what is there but was not written by penstock, for what only datasets of penstock can do.

    Args:
        path: what is to be a dataset's folder.
        why: what cannot be done with other files, and what can.

    Raises:
        NotFoundError: There is nothing of this name.
        InvalidArgumentError: Token files, or a folder of them.
    """
    with looking_at(path):
        extension = _token_extension(path)
        is_zarr = extension is None and not (Path(path) / _MANIFEST).exists() and _is_zarr(Path(path))
        is_folder = Path(path).is_dir()
    if is_folder and extension is None and not is_zarr:
        return
    if extension is None and not is_zarr:
        _kind_of(path)  # says if it is not there
    what = "a zarr store" if is_zarr else f"a folder of {extension} files" if extension else "a file of another format"
    if is_zarr or path.lower().endswith(".h5ad"):
        made = "`penstock import` makes a dataset of it"
        why = made if is_zarr else f"{why}; {made}"
    raise InvalidArgumentError(f"{path}: {what}, no dataset of penstock: {why}")


def _open_kind(
    kind: str,
    absolute: Sequence[str | Address],
    descr: str,
    checks: str,
    cache: Cache | None = None,
    paths: Sequence[str | Address] | None = None,
    column: str = "",
    x: str = "X",
    modality: str | None = None,
) -> Dataset:
    """`absolute` is what another process opens; `paths`, if given, what this one does."""
    reopen = (_open_kind, (kind, tuple(absolute), descr, checks, cache, None, column, x, modality))
    dataset = _opened(kind, absolute if paths is None else paths, descr, checks, cache, reopen, column, x, modality)
    dataset._count = len(absolute)
    return dataset


def _kind_of(path: str) -> str:
    with looking_at(path):
        if Path(path).is_dir():
            _refuse_foreign_folder(path)
        elif Path(path).name == _MANIFEST:
            raise InvalidArgumentError(f"{path}: the manifest of a dataset: give its folder, {Path(path).parent}")
        kind = _native.recognise_format(path)
    if kind is not None and path.lower().endswith(".h5mu"):
        return "h5ad"  # of which it has several
    if kind is None:
        raise NotFoundError(errno.ENOENT, f"{path}: no such file or folder", path)
    return kind


def _refuse_foreign_folder(path: str) -> None:
    """A folder of token files is a usual mistake: the files are what is opened."""
    folder = Path(path)
    if (folder / _MANIFEST).exists():
        return
    if (folder / _INDEX).exists():
        if _native.recognise_format(path) in ("mds", "litdata"):
            return
        raise InvalidArgumentError(f"{path}: its {_INDEX} lists neither shards of MDS nor chunks of litdata")
    if _is_zarr(folder):
        raise InvalidArgumentError(
            f"{path}: a zarr store, whose chunks only zarr reads: `penstock import` it, or load it in place with "
            "penstock.CollectionLoader; cells of AnnData by penstock.Collection.from_anndatas"
        )
    if extension := _token_extension(path):
        raise InvalidArgumentError(
            f'{path}: no dataset of penstock, but a folder of {extension} files: name the files, "{path}/*{extension}" '
            "(and their dtype if they do not say it)"
        )


def _is_zarr(folder: Path) -> bool:
    return any((folder / name).exists() for name in _ZARR)


def _token_extension(path: str) -> str | None:
    """ ".bin", ".npy" or ".ds" where a folder holds such files and no manifest."""
    folder = Path(path)
    if (folder / _MANIFEST).exists():
        return None
    return next((each for each in (".bin", ".npy", ".ds") if any(folder.glob(f"*{each}"))), None)


def _descr(dtype: npt.DTypeLike | None) -> str:
    if dtype is None:
        return ""
    given = _dtype.numpy_dtype(dtype)
    packed = _dtype.packed(given)
    # Unlike the writer, which converts, this reads what lies there: it would be misread in silence.
    if packed != given:
        raise InvalidArgumentError(f"dtype {given}: has padding or is big-endian, which cannot be read in place")
    if packed.names is None:
        packed = _dtype.numpy_dtype([("token", packed)])
    return json.dumps(_dtype.descr(packed))
