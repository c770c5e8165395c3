"""Compressed files of known size."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from penstock._errors import CorruptionError, Error, InvalidArgumentError
from penstock._words import excerpt

from .reader import damaged, needed

_STEP = 1 << 22
_ARROW = {"zstd": "zstd", "br": "brotli", "snappy": "snappy"}  # as pyarrow calls them
_OWN: dict[str, Callable[[Path], Any]] = {"gz": gzip.open, "bz2": bz2.open}


def unpack(source: Path, kind: str, size: int, out: Path) -> None:
    """Writes what a file holds, which must be `size` bytes.

    Raises:
        InvalidArgumentError: a compression that is not known.
        CorruptionError: it is damaged, or holds another number of bytes.
        ModuleNotFoundError: pyarrow is not installed, which unpacks zstd, br and snappy.
    """
    if kind not in _ARROW and kind not in _OWN:
        raise InvalidArgumentError(f"{source}: compression {kind!r:.40}: zstd, br, snappy, gz and bz2 are read")
    if kind == "snappy":  # which has no stream
        _unpack_snappy(source, size, out)
        return
    errors: tuple[type[Exception], ...] = (OSError, EOFError, ValueError, zlib.error)
    try:
        if kind in _OWN:
            file = _OWN[kind](source)
        else:
            pyarrow = needed("pyarrow", str(source))
            errors = (*errors, pyarrow.ArrowException)
            file = pyarrow.input_stream(str(source), compression=_ARROW[kind])
        _unpack_stream(source, file, size, out)
    except errors as error:
        if isinstance(error, Error):
            raise
        raise damaged(str(source), error) from error


def check_packed(source: Path, said: dict[str, Any]) -> None:
    """Compares a compressed file with what index.json says of it: its size, and the digests that there are.

    Raises:
        CorruptionError: they differ.
    """
    size, hashes = said.get("bytes"), said.get("hashes")
    if isinstance(size, int) and source.stat().st_size != size:
        raise CorruptionError(f"{source}: {source.stat().st_size:,} bytes, index.json says {size:,}")
    for name, wanted in (hashes if isinstance(hashes, dict) else {}).items():
        if name not in hashlib.algorithms_guaranteed or name.startswith("shake"):  # others are not of Python
            continue
        with source.open("rb") as file:
            found = hashlib.file_digest(file, name).hexdigest()
        if found != wanted:
            raise CorruptionError(f"{source}: its {name} is {found}, index.json says {excerpt(wanted)}")


def _unpack_snappy(source: Path, size: int, out: Path) -> None:
    pyarrow = needed("pyarrow", str(source))
    try:
        data = pyarrow.decompress(source.read_bytes(), decompressed_size=size, codec="snappy", asbytes=False)
    except (pyarrow.ArrowException, OSError) as error:
        raise damaged(str(source), error) from error
    out.write_bytes(data)


def _unpack_stream(source: Path, file: Any, size: int, out: Path) -> None:
    written = 0
    with file, out.open("wb") as target:
        while written <= size and (data := file.read(_STEP)):
            target.write(data)
            written += len(data)
    if written != size:
        more = "more" if written > size else f"{written:,}"
        raise CorruptionError(f"{source}: unpacks to {more} bytes, index.json says {size:,}")
