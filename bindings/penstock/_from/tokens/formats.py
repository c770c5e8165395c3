"""Which format an input has, and which options go with it."""

from __future__ import annotations

import errno
import importlib
from collections.abc import Iterable
from contextlib import nullcontext
from pathlib import Path

from penstock._base.errors import InvalidArgumentError, NotFoundError
from penstock._base.words import excerpt
from penstock._data.not_tokens import refuse_content, refuse_name
from penstock._data.open import expand
from penstock._from.tokens.files import begins_with, open_file
from penstock._from.tokens.reader import AUTO, Boundary, Input, Reader
from penstock._places.paths import PathLike, local_path, looking_at
from penstock._places.remote import is_address
from penstock._places.storage import Storage

IN_PLACE = ("raw", "megatron", "datatrove", "olmo", "litdata", "mds")
FORMATS = (*IN_PLACE, "huggingface", "parquet", "webdataset")
_READERS = {
    "huggingface": "arrow.ArrowReader",
    "parquet": "parquet.ParquetReader",
    "webdataset": "tars.TarReader",
    "mds": "mds.open_mds",
}
_EXTENSIONS = {".parquet": "parquet", ".arrow": "huggingface", ".tar": "webdataset", ".tgz": "webdataset"}
_MEGATRON = b"MMIDIDX"
_INDEX_BYTES = 1 << 20  # of an index.json that are looked at
_WITH_DOCUMENTS = ("huggingface", "parquet", "webdataset")
_WITH_COLUMN = ("mds", "huggingface", "parquet", "webdataset")
_WITH_METADATA = (*_WITH_COLUMN, "olmo")


def inputs_of(
    given: Iterable[PathLike],
    format: str | None,
    column: str | None,
    metadata: tuple[str, ...] | None,
    dtype: str | None,
    boundary: Boundary | None,
    storage: Storage | None,
) -> list[Input]:
    """Each file, folder or address that is named, in order; of them an index.json is opened.

    Raises:
        NotFoundError: there is none of a name.
        InvalidArgumentError: a format that cannot be, or an option of another one.
    """
    if format is not None and format not in FORMATS:
        raise InvalidArgumentError(f"format={format!r:.80}: must be one of {', '.join(map(repr, FORMATS))}")
    found = []
    for each in given:
        far = isinstance(each, str) and is_address(each)
        for path in [str(each)] if far else expand(local_path(each)):
            with nullcontext() if far else looking_at(path):
                kind = format or (_format_of_address(path, storage) if far else _format_at(path))
            found.append(Input(path, kind, column, metadata, dtype, boundary, storage if far else None))
    for one in found:
        _check(one)
    return found


def open_reader(given: Input) -> Reader:
    """Opens an input.

    Raises:
        penstock.Error: it cannot be, or is of another format.
        ModuleNotFoundError: a package is not installed that its format needs.
    """
    place = _READERS.get(given.format, "in_place.InPlace")
    module, _, name = place.partition(".")
    found: Reader = getattr(importlib.import_module(f"{__package__}.{module}"), name)(given)
    return found


def _format_of_address(path: str, storage: Storage | None) -> str:
    name = path.partition("?")[0]
    if name.endswith("/index.json"):
        with open_file(path, storage) as file:
            return "mds" if b'"shards"' in file.read(_INDEX_BYTES) else AUTO
    if name.endswith(".bin"):  # as on this machine; bare tokens would lose the documents
        index = name.removesuffix(".bin") + ".idx" + path[len(name) :]
        if begins_with(index, storage, _MEGATRON):
            return "megatron"
    return _format_of_name(name)


def _format_of_name(path: str) -> str:
    return "webdataset" if path.endswith(".tar.gz") else _EXTENSIONS.get(Path(path).suffix.lower(), AUTO)


def _format_at(path: str) -> str:
    """By the name, or what a folder holds; "raw": penstock.open finds out."""
    place = Path(path)
    if not place.exists():
        if Path(f"{path}.idx").exists():
            return "megatron"
        raise NotFoundError(errno.ENOENT, f"{path}: no such file or folder", path)
    if place.is_dir():
        return _format_of_folder(place)
    if place.name == "index.json":
        return _format_of_folder(place.parent)
    return _format_of_name(path)


def _format_of_folder(folder: Path) -> str:
    if (folder / "dataset.json").exists():
        raise InvalidArgumentError(f"{folder}: a dataset of penstock already: it needs no import")
    if (folder / "state.json").exists() or (folder / "dataset_dict.json").exists():
        return "huggingface"
    if (folder / "index.json").exists():
        text = (folder / "index.json").read_bytes()[:_INDEX_BYTES]
        return "mds" if b'"shards"' in text else AUTO
    for suffix in (*_EXTENSIONS, ".ds", ".npy", ".bin"):
        if next(folder.glob(f"*{suffix}"), None):
            raise InvalidArgumentError(f'{folder}: a folder of {suffix} files: name the files, "{folder}/*{suffix}"')
    raise InvalidArgumentError(
        f"{folder}: a folder of no format that is imported: save_to_disk of Hugging Face, MDS and litdata are"
    )


def _check(given: Input) -> None:
    """Refuses options that the format has not; what a file of it has is not known yet."""
    far = is_address(given.path)
    path = given.path.partition("?")[0] if far else given.path
    if given.format == AUTO:
        refuse_name(path, given.name)
        if not far:
            refuse_content(path)
    if given.boundary is not None and given.format in _WITH_DOCUMENTS:
        raise InvalidArgumentError(
            f"{given.name}: {given.format} says itself where documents are: leave {given.boundary.by} out"
        )
    if given.column is not None and given.format not in _WITH_COLUMN:
        raise InvalidArgumentError(
            f"column={excerpt(given.column)!r}: {given.name} has no columns; {', '.join(_WITH_COLUMN)} have"
        )
    if given.metadata and given.format not in (*_WITH_METADATA, AUTO):
        raise InvalidArgumentError(
            f"metadata={excerpt(','.join(given.metadata))!r}: {given.name} has none that is read; "
            f"{', '.join(_WITH_METADATA)} have"
        )
