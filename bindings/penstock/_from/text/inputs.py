"""Which files are read, in which order, and as what."""

from __future__ import annotations

import glob
import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from penstock._base.errors import Error, InvalidArgumentError, IoError, NotFoundError
from penstock._from.text import sniff
from penstock._from.text.compression import ByteInput, cannot_open
from penstock._from.text.far import FarFile, FarFiles
from penstock._make.errors import FileError, InputError, UsageError
from penstock._places.hub import is_hub
from penstock._places.paths import is_there
from penstock._places.remote import Address, far_of, is_address, name_of
from penstock._places.storage import Storage
from penstock._places.stores.addresses import addresses_of
from penstock._places.stores.hub_files import HubAddress, HubFiles, Pins

FORMATS = ("jsonl", "text", "parquet")
_FORMAT_OF_SUFFIX = {".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl", ".parquet": "parquet", ".pq": "parquet"}
_COMPRESSION_OF_SUFFIX = {".gz": "gz", ".zst": "zst", ".zstd": "zst"}
_PACKED = {".xz", ".bz2", ".lz4", ".zip", ".7z", ".rar", ".tar", ".tgz"}
_AT_ONCE = 16  # addresses that are asked for their sizes
_TABLES = {".csv": "commas", ".tsv": "tabs"}


@dataclass(frozen=True)
class Input:
    """One input. `path` is None for standard input; `name` of an address has no secrets; `published_name` is what
    metadata may hold: never absolute; `refused` is why nothing can be read of it."""

    name: str
    path: Path | FarFile | None
    format: str
    compression: str
    size_bytes: int
    published_name: str
    refused: str = ""

    @property
    def rereadable(self) -> bool:
        """Whether a second reading gives the same bytes."""
        return bool(self.refused) or (self.path is not None and self.path.is_file())

    @property
    def kind(self) -> str:
        """The suffix before that of the compression, without its dot: `py`, `txt`; empty where there is none."""
        suffixes = Path(self.published_name).suffixes
        if suffixes and suffixes[-1].lower() in _COMPRESSION_OF_SUFFIX:
            suffixes.pop()
        return suffixes[-1][1:] if suffixes else ""


def expand_inputs(
    patterns: Sequence[str],
    format: str | None = None,
    storage: Storage | None = None,
    *,
    skips: bool = False,
    pins: Pins | None = None,
) -> list[Input]:
    """The inputs that files, addresses, globs (sorted by name) and `-` stand for, in the order given.

    Args:
        patterns: As typed.
        format: One of FORMATS for all of them; None looks at each suffix.
        storage: How addresses are reached.
        skips: Give a file whose bytes are no text, or that may not be read, as a refused one.
        pins: The commits at which repositories of the Hub are read; it is told of new ones.

    Raises:
        UsageError: No such file, a folder, a file given twice, a compression that is not known, `-` without format; a
            file that is no text or may not be read, but not where this skips.
        penstock.IoError: An address cannot be reached.
    """
    hub = _hub_of(patterns, storage, pins)
    given = [each for pattern in patterns for each in _expand(pattern, storage, hub)]
    addresses = {each.path: each for each in far_of(given)}
    names = [name_of(each) for each in given]
    seen: set[str] = set()
    for name in names:
        real = name if name == "-" or name in addresses else os.path.realpath(name)
        if real in seen:
            raise UsageError(f"{name} is given twice: name each input once")
        seen.add(real)
    published = _published_names(names, addresses)
    files = FarFiles(list(addresses.values()))
    far_files = {name: FarFile(files, number) for number, name in enumerate(addresses)}
    if not addresses:
        return [_describe(name, published[name], format, skips) for name in names]
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return list(pool.map(lambda name: _describe(name, published[name], format, skips, far_files.get(name)), names))


def _hub_of(patterns: Sequence[str], storage: Storage | None, pins: Pins | None) -> HubFiles | None:
    """Those among the inputs that lie on the Hub; None: none."""
    known = [each for each in patterns if is_hub(each)]
    try:
        return HubFiles(known, storage or Storage(), pins or Pins()) if known else None
    except InvalidArgumentError as error:
        raise UsageError(str(error)) from None


def _expand(pattern: str, storage: Storage | None, hub: HubFiles | None) -> Sequence[str | Address]:
    if is_address(pattern):
        try:
            if hub is not None and is_hub(pattern):
                return hub.find(pattern, _is_named_as_data)
            return addresses_of(pattern, storage)
        except (InvalidArgumentError, NotFoundError) as error:
            raise UsageError(str(error)) from None
    pattern = os.path.expanduser(pattern)  # noqa: PTH111 - a Path would change how the name is written
    if pattern == "-" or is_there(pattern):
        return [pattern]
    if not glob.has_magic(pattern):
        raise UsageError(f"{pattern}: no such file")
    # Path.glob would lose how the name was typed.
    matches = glob.glob(pattern, recursive=True)  # noqa: PTH207
    found = sorted(name for name in matches if not Path(name).is_dir())
    if not found:
        raise UsageError(f"{pattern}: no file matches")
    return found


def _is_named_as_data(name: str) -> bool:
    """Whether a file is read by its suffix, and not because all others are text."""
    suffixes = ["", *(suffix.lower() for suffix in Path(name).suffixes)]
    if suffixes[-1] in _COMPRESSION_OF_SUFFIX:
        suffixes.pop()
    return suffixes[-1] in (*_FORMAT_OF_SUFFIX, ".txt")


def _typed(address: Address) -> str:
    # A commit would make the bytes of metadata depend on it.
    return address.typed if isinstance(address, HubAddress) else address.path


def _published_names(names: list[str], addresses: Mapping[str, Address]) -> dict[str, str]:
    # A published file holds no absolute path: these lose the folder that all of them share.
    outside = [name for name in names if name != "-" and (Path(name).is_absolute() or name.startswith(".."))]
    absolute = {name: os.path.abspath(name) for name in outside}  # noqa: PTH100 (links stay as they are)
    absolute.update({name: f"/{_typed(each).replace('://', '/', 1)}" for name, each in addresses.items()})
    shared = os.path.commonpath([str(Path(path).parent) for path in absolute.values()]) if absolute else ""
    published = {name: Path(name).as_posix() for name in names}
    published.update({name: Path(path).relative_to(shared).as_posix() for name, path in absolute.items()})
    return published


def _describe(
    name: str, published_name: str, format: str | None, skips: bool = False, far: FarFile | None = None
) -> Input:
    if name == "-":
        return _standard_input(format)
    path = Path(name)
    if far is None and path.is_dir():
        raise UsageError(f"{name} is a folder: give a glob such as '{path / '**' / '*.jsonl'}'")
    found, compression = _said_by_name(name, format)
    size_bytes = _size(far or path)
    refused = ""
    # A line with zeros costs that line alone, where bad lines are left out.
    sure = format == "text" or (skips and found == "jsonl")
    try:
        if far is None and not path.exists():
            raise _RefusedError("a link to nothing")
        if found != "parquet" and size_bytes > 0:
            compression = _look_into(far or path, name, compression, sure, found == "jsonl")
        elif size_bytes > 0 and far is None:  # of one that is far its reader looks at the end
            _look_into_parquet(path, name)
    except _RefusedError as error:
        refused = error.reason
        if not skips:
            raise UsageError(f"{name}: {refused}") from None
    return Input(name, far or path, found, compression, size_bytes, published_name, refused)


def _size(path: Path | FarFile) -> int:
    try:
        if isinstance(path, FarFile):
            return path.size()
        return path.stat().st_size if path.is_file() else 0
    except NotFoundError as error:
        raise UsageError(str(error)) from None


def _standard_input(format: str | None) -> Input:
    if format is None:
        raise UsageError("standard input has no suffix: say --format jsonl or --format text")
    if format == "parquet":
        raise UsageError("Parquet needs a file that can be sought in: save standard input to a file first")
    return Input("standard input", None, format, "", 0, "-")


def _said_by_name(name: str, format: str | None) -> tuple[str, str]:
    """The format, if that is not given, and the compression that a file's suffixes tell."""
    suffixes = ["", *(suffix.lower() for suffix in Path(name).suffixes)]
    compression = _COMPRESSION_OF_SUFFIX.get(suffixes[-1], "")
    suffix = suffixes[-2] if compression else suffixes[-1]
    if suffix in _PACKED:
        raise UsageError(f"{name}: {suffix} is not read; .gz and .zst are: unpack it first, and give its files")
    found = format or _FORMAT_OF_SUFFIX.get(suffix, "text")
    if found == "parquet" and compression:
        raise UsageError(f"{name}: Parquet compresses inside: unpack the file first")
    if format is None and suffix in _TABLES:
        raise UsageError(
            f"{name}: a table with {_TABLES[suffix]} between its columns: convert it to Parquet or JSON lines, for "
            "example by DuckDB or pandas; --format text takes it as text"
        )
    return found, compression


class _RefusedError(Exception):
    """A file that cannot be an input."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def _look_into_parquet(path: Path, name: str) -> None:
    """Looks at the first bytes.

    Raises:
        _RefusedError: It is known to be something else.
    """
    try:
        with path.open("rb") as file:
            kind = sniff.instead_of_parquet(file.read(sniff.HEAD_BYTES))
    except OSError:
        return  # its reader says why
    if kind is not None:
        raise _RefusedError(f"{kind.what}: {kind.advice}")


def _look_into(path: Path | FarFile, name: str, compression: str, sure: bool, is_lines: bool) -> str:
    """The compression that the file's first bytes show.

    Args:
        path: A regular file with bytes in it.
        name: As typed.
        compression: What its name says.
        sure: Whether zeros are let pass: the user says that it is text, or its reader leaves out what has them.
        is_lines: Whether it is JSON lines.

    Raises:
        _RefusedError: It is known to be no text, or may not be read.
        IoError: It cannot be read for reasons of this machine.
    """
    try:
        if isinstance(path, FarFile):
            head = path.head(sniff.HEAD_BYTES)
        else:
            with path.open("rb") as file:
                head = file.read(sniff.HEAD_BYTES) or b""
        compression = compression or sniff.compression_of(head)
        if compression:
            opened = ByteInput(path, name, compression)
            try:
                head = opened.file.read(sniff.HEAD_BYTES)
            finally:
                opened.close()
    except OSError as error:
        if isinstance(error, Error):
            raise
        if isinstance(cannot_open(name, error), FileError):
            raise _RefusedError(str(error.strerror)) from None
        raise IoError(error.errno, f"{name}: {error.strerror}", name) from None
    except InputError:
        return compression  # its reader says what is wrong, and where
    kind = sniff.kind_of(head) or (None if sure else sniff.binary(head))
    if kind is None and is_lines and not sure:
        kind = sniff.instead_of_lines(head)
    if kind is not None:
        inside = " inside" if compression else ""
        raise _RefusedError(f"{kind.what}{inside}: {kind.advice}")
    return compression
