"""Members of a tar, read once from its beginning to its end; a tar that is not whole is an error, not a shorter tar.

tarfile itself takes a header that cannot be read, and a file that just ends, for the end of the archive.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import tarfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import IO, Any

from penstock._base.errors import CorruptionError, Error, InvalidArgumentError, IoError
from penstock._base.words import excerpt
from penstock._from.tokens.reader import Input

_BUFFER = 1 << 20
_BLOCK = 1 << 14  # tarfile copies what is left of a block at each read
_MOST = 1 << 32  # bytes of a member
_ENDS = 8  # reads at the end of a tar that is whole are fewer
_AGAIN = "copy the file again"
_OPEN: dict[bytes, Callable[..., Any]] = {b"\x1f\x8b": gzip.open, b"BZh": bz2.open, b"\xfd7zXZ": lzma.open}
_END: type[Exception] = vars(tarfile)["EOFHeaderError"]  # zeros where a header is looked for
_NOTHING: type[Exception] = vars(tarfile)["EmptyHeaderError"]
_ERRORS = (tarfile.TarError, EOFError, zlib.error, lzma.LZMAError, OverflowError, ValueError, gzip.BadGzipFile)


class TarFile:
    """One tar, plain or in gzip, bzip2 or xz. One thread."""

    def __init__(self, given: Input) -> None:
        """Opens nothing yet."""
        self._given = given
        self._path = given.name
        self._passed = 0

    def members(self) -> Iterator[tuple[str, Callable[[], bytes]]]:
        """Names of regular files, with what reads the file before the next one is asked for.

        Raises:
            CorruptionError: it is no tar, or is damaged or cut off.
            NotFoundError: it is not there.
            IoError: it cannot be read.
        """
        self._passed = 0
        with (
            self._saying(),
            self._opened() as file,
            tarfile.open(fileobj=_Ending(file), mode="r|", bufsize=_BLOCK, tarinfo=_Header) as tar,
        ):
            while (member := tar.next()) is not None:
                vars(tar)["members"] = []  # else it remembers all
                if member.isreg():
                    yield member.name, partial(self._read, tar, member)
                self._passed += 1
            self._read_rest(tar.fileobj)

    def _opened(self) -> IO[bytes]:
        file = self._given.at.open()
        head = file.read(6)
        file.seek(0)
        opener = next((each for magic, each in _OPEN.items() if head.startswith(magic)), None)
        return file if opener is None else io.BufferedReader(opener(file), _BUFFER)

    def _read_rest(self, file: Any) -> None:
        """To the end, where gzip compares its check value."""
        while data := file.read(_BUFFER):
            if data.count(0) < len(data):
                raise CorruptionError(
                    f"{self._path}: data after the end mark that follows {self._passed:,} members: of tars that were "
                    f"put end to end import each by itself; else {_AGAIN}"
                )

    def _read(self, tar: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
        if member.size > _MOST or member.sparse is not None:
            raise InvalidArgumentError(
                f"{self._path}: {excerpt(member.name)}: {member.size:,} bytes, or with holes: a member has at most "
                f"{_MOST:,}"
            )
        with self._saying():
            file = tar.extractfile(member)
            data = b"" if file is None else file.read()
        if len(data) != member.size:
            raise CorruptionError(f"{self._path}: {excerpt(member.name)} is cut off: {_AGAIN}")
        return data

    @contextmanager
    def _saying(self) -> Iterator[None]:
        try:
            yield
        except Error:
            raise
        except _ERRORS as error:
            raise CorruptionError(
                f"{self._path}: no whole tar, after {self._passed:,} members: {excerpt(error)}: {_AGAIN}"
            ) from error
        except OSError as error:
            if error.errno is None:  # as bz2 has for data that are none
                raise CorruptionError(f"{self._path}: after {self._passed:,} members: {error}: {_AGAIN}") from error
            raise IoError(error.errno, f"{self._path}: {error.strerror or error}", self._path) from error


class _Ending(io.RawIOBase):
    """A file that ends: tarfile passes over a member that is said to have 2^63 bytes by as many reads as that takes."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._empty = 0

    def read(self, size: int = -1, /) -> bytes:
        data = self._file.read(size)
        self._empty += not data
        if self._empty > _ENDS:
            raise EOFError("it ends within a member")
        return data


class _Header(tarfile.TarInfo):
    """A header that cannot be read is an error, wherever it stands."""

    @classmethod
    def fromtarfile(cls, of: tarfile.TarFile) -> _Header:
        try:
            return super().fromtarfile(of)
        except _END:
            raise
        except _NOTHING as error:
            raise tarfile.ReadError("it ends without the zeros that every tar ends with") from error
        except tarfile.HeaderError as error:
            raise tarfile.ReadError(str(error)) from error
