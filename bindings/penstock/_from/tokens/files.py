"""Files that inputs are made of, on this machine or at an address, as Python and pyarrow read them."""

from __future__ import annotations

import io
from pathlib import Path
from typing import BinaryIO, cast

from penstock._base.errors import Error, IoError, NotFoundError
from penstock._data.open import open as open_dataset
from penstock._from.tokens.records import Records
from penstock._places.remote import is_address
from penstock._places.storage import Storage

_AT_ONCE = 1 << 20  # bytes that are read, at least
_NAME = "token"  # of the field of a file of bytes


class _Bytes(io.RawIOBase):
    """A file at an address, opened as bare bytes: the store that reads tokens reads it."""

    def __init__(self, path: str, storage: Storage | None) -> None:
        opened = open_dataset(path, dtype="u1", format="raw", storage=storage)
        self.fingerprint = opened.fingerprint
        self.size = opened.records
        self._records = Records(opened, [_NAME])
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        begin = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self.size}[whence]
        self._at = max(0, begin + offset)
        return self._at

    def tell(self) -> int:
        return self._at

    def readinto(self, out: object) -> int:
        to = memoryview(out).cast("B")  # type: ignore[arg-type]
        end = min(self._at + len(to), self.size)
        if end <= self._at:
            return 0
        count = end - self._at
        to[:count] = self._records.read(self._at, end)[_NAME].data
        self._at = end
        return count


def open_file(path: str, storage: Storage | None) -> BinaryIO:
    """A file that can be sought in.

    Raises:
        NotFoundError: it is not there.
        IoError: it cannot be opened.
    """
    if is_address(path):
        return cast(BinaryIO, io.BufferedReader(_Bytes(path, storage), _AT_ONCE))
    try:
        return Path(path).open("rb", buffering=_AT_ONCE)
    except FileNotFoundError as error:
        raise NotFoundError(error.errno, f"{path}: no such file", path) from None
    except OSError as error:
        raise IoError(error.errno, f"{path}: {error.strerror or error}", path) from error


def begins_with(path: str, storage: Storage | None, head: bytes) -> bool:
    """Whether a server shows a file that begins so. No: it is not there, or the server refuses to show it."""
    try:
        with open_file(path, storage) as file:
            return file.read(len(head)) == head
    except Error:
        return False


def fingerprint_of(path: str, storage: Storage | None) -> str:
    """Of a file at an address: its size, first and last bytes."""
    return _Bytes(path, storage).fingerprint


def size_of(path: str, storage: Storage | None) -> int:
    """Bytes of a file."""
    with open_file(path, storage) as file:
        return file.seek(0, io.SEEK_END)


def beside(folder: str, name: str) -> str:
    """The file of this name in a folder."""
    if not is_address(folder):
        return str(Path(folder) / name)
    path, mark, query = folder.partition("?")
    return f"{path.rstrip('/')}/{name}{mark}{query}"


def folder_of(path: str, name: str) -> str:
    """The folder, where `path` is the file `name` in it."""
    if not is_address(path):
        return str(Path(path).parent) if Path(path).name == name else path
    address, mark, query = path.partition("?")
    return f"{address.removesuffix('/' + name)}{mark}{query}"
