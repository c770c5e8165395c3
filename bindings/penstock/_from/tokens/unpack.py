"""Compressed files of known size."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import io
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

from penstock._base.errors import CorruptionError, Error, InvalidArgumentError, IoError
from penstock._base.words import excerpt
from penstock._from.tokens.reader import damaged, needed
from penstock._places.stores.location import Location

_STEP = 1 << 22
_ARROW = {"zstd": "zstd", "br": "brotli", "snappy": "snappy"}  # as pyarrow calls them
_OWN: dict[str, Callable[[Any], Any]] = {"gz": gzip.open, "bz2": bz2.open}


def unpack(source: Location, kind: str, said: dict[str, Any], size: int, out: Path) -> None:
    """Writes what a file holds, which must be `size` bytes.

    Args:
        source: the file.
        kind: of the compression.
        said: what index.json says of the file: its bytes, and digests if there are.
        size: of what it holds.
        out: where that goes.

    Raises:
        InvalidArgumentError: a compression that is not known.
        CorruptionError: it is damaged, is another file than is said, or holds another number of bytes.
        ModuleNotFoundError: pyarrow is not installed, which unpacks zstd, br and snappy.
    """
    if kind not in _ARROW and kind not in _OWN:
        raise InvalidArgumentError(f"{source.name}: compression {kind!r:.40}: zstd, br, snappy, gz and bz2 are read")
    with source.open() as file:
        _check(source.name, file, said)
        file.seek(0)
        try:
            if kind == "snappy":  # which has no stream
                _unpack_snappy(source.name, file, size, out)
            elif kind in _OWN:
                _write(source.name, _OWN[kind](file), size, out)
            else:
                pyarrow = needed("pyarrow", source.name)
                opened = pyarrow.input_stream(file, compression=_ARROW[kind])
                _write(source.name, opened, size, out)
        except Error:
            raise
        except (OSError, EOFError, ValueError, zlib.error) as error:  # of which Arrow's are
            if isinstance(error, OSError) and error.errno is not None:  # as of a full disk
                raise IoError(error.errno, f"{source.name}: {error.strerror}", source.path) from error
            raise damaged(source.name, error) from error


def copy(source: Location, size: int, out: Path) -> None:
    """Writes what a file of no compression holds, which must be `size` bytes."""
    with source.open() as file:
        _write(source.name, file, size, out)


def _check(name: str, file: BinaryIO, said: dict[str, Any]) -> None:
    bytes_said, hashes = said.get("bytes"), said.get("hashes")
    size = file.seek(0, io.SEEK_END)
    if isinstance(bytes_said, int) and size != bytes_said:
        raise CorruptionError(f"{name}: {size:,} bytes, index.json says {bytes_said:,}")
    for kind, wanted in (hashes if isinstance(hashes, dict) else {}).items():
        if kind not in hashlib.algorithms_guaranteed or kind.startswith("shake"):  # others are not of Python
            continue
        file.seek(0)
        digest = hashlib.new(kind)
        while data := file.read(_STEP):
            digest.update(data)
        if digest.hexdigest() != wanted:
            raise CorruptionError(f"{name}: its {kind} is {digest.hexdigest()}, index.json says {excerpt(wanted)}")


def _unpack_snappy(name: str, file: BinaryIO, size: int, out: Path) -> None:
    pyarrow = needed("pyarrow", name)
    out.write_bytes(pyarrow.decompress(file.read(), decompressed_size=size, codec="snappy", asbytes=False))


def _write(name: str, file: Any, size: int, out: Path) -> None:
    written = 0
    with file, out.open("wb") as target:
        while written <= size and (data := file.read(_STEP)):
            target.write(data)
            written += len(data)
    if written != size:
        more = "more" if written > size else f"{written:,}"
        raise CorruptionError(f"{name}: unpacks to {more} bytes, index.json says {size:,}")
