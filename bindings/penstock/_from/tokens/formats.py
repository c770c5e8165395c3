"""Which format an input has, and which options go with it."""

from __future__ import annotations

import errno
import importlib
from collections.abc import Iterable
from pathlib import Path

from penstock._base.errors import InvalidArgumentError, NotFoundError
from penstock._base.words import excerpt
from penstock._data.not_tokens import refuse_content, refuse_name
from penstock._from.tokens.reader import AUTO, Boundary, Input, Reader
from penstock._places.paths import PathLike, looking_at
from penstock._places.storage import Storage
from penstock._places.stores.location import Location, location_of

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
_SHARDS = b'"shards"'
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
    found = [
        Input(at, format or _format_of(at), column, metadata, dtype, boundary)
        for each in given
        for at in location_of(each, storage).expanded()
    ]
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


def _format_of(at: Location) -> str:
    """By the name and what is there; AUTO: penstock.open finds out."""
    name = at.bare.rpartition("/")[2]
    if name == "index.json":
        with at.open() as file:
            return "mds" if _SHARDS in file.read(_INDEX_BYTES) else AUTO
    if name.endswith(".bin") and at.ending(".bin", ".idx").begins_with(_MEGATRON):
        return "megatron"  # bare tokens would lose the documents
    for path in at.on_disk():
        with looking_at(at.path):
            if path.is_dir():
                return _format_of_folder(path)
            if not path.exists():
                if Path(f"{path}.idx").exists():
                    return "megatron"
                raise NotFoundError(errno.ENOENT, f"{at.name}: no such file or folder", at.path)
    return "webdataset" if name.endswith(".tar.gz") else _EXTENSIONS.get(Path(name).suffix.lower(), AUTO)


def _format_of_folder(folder: Path) -> str:
    if (folder / "dataset.json").exists():
        raise InvalidArgumentError(f"{folder}: a dataset of penstock already: it needs no import")
    if (folder / "state.json").exists() or (folder / "dataset_dict.json").exists():
        return "huggingface"
    if (folder / "index.json").exists():
        text = (folder / "index.json").read_bytes()[:_INDEX_BYTES]
        return "mds" if _SHARDS in text else AUTO
    for suffix in (*_EXTENSIONS, ".ds", ".npy", ".bin"):
        if next(folder.glob(f"*{suffix}"), None):
            raise InvalidArgumentError(f'{folder}: a folder of {suffix} files: name the files, "{folder}/*{suffix}"')
    raise InvalidArgumentError(
        f"{folder}: a folder of no format that is imported: save_to_disk of Hugging Face, MDS and litdata are"
    )


def _check(given: Input) -> None:
    """Refuses options that the format has not; what a file of it has is not known yet."""
    if given.format == AUTO:
        refuse_name(given.at.bare, given.name)
        for path in given.at.on_disk():
            refuse_content(str(path))
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
