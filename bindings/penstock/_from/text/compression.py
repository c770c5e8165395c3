"""Bytes of a plain, gzip or Zstandard file or of standard input, and how far into the file the reading is."""

from __future__ import annotations

import errno
import io
import os
import select
import stat
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from penstock._base.errors import Error
from penstock._from.text.far import FarFile
from penstock._make.errors import FileError, InputError

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

_CHUNK_BYTES = 1 << 18
_FEW_BYTES, _MANY_BYTES = 1 << 15, 1 << 22  # of lines that are given at once, first and later
_SEARCH_BYTES = 1 << 16
_PATIENCE_SECONDS = 0.5
_MAX_ZSTD_WINDOW = 1 << 31  # what `zstd --long=31` writes
_ZSTD_BYTES = 1 << 10  # unpacked at once: 4 bytes may be a block of 128 KiB
_CAREFUL_BYTES = 1 << 12  # of a compressed file, read at once where as much as possible is wanted of a damaged one
_BEFORE = ", and what was unpacked before may be wrong too"
_OF_THE_FILE = (errno.EACCES, errno.EPERM)  # errors that other files need not have


def _damaged(name: str, what: str) -> FileError:
    reason = f"{what}: copy the file again"
    return FileError(f"{name}: {reason}", reason)


class _ZstdReader(io.RawIOBase):
    """Frames end to end. Unlike zstandard's stream_reader it refuses a frame that is cut off."""

    def __init__(self, source: IO[bytes], name: str, read_bytes: int) -> None:
        import zstandard

        self._read_bytes = read_bytes
        self._source = source
        self._name = name
        self._new_frame: Callable[[], Any] = zstandard.ZstdDecompressor(max_window_size=_MAX_ZSTD_WINDOW).decompressobj
        self._frame: Any = None
        self._errors: type[Exception] = zstandard.ZstdError
        self._input = memoryview(b"")
        self._output: bytes | memoryview = b""
        self._is_first = True  # piece of the file
        self._damage: FileError | None = None  # behind what was given

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        if self._damage is not None:
            raise self._damage
        view = memoryview(buffer).cast("B")
        size = 0
        try:
            while size < len(view):
                if output := self._output:
                    fits = output[: len(view) - size]
                    view[size : size + len(fits)] = fits
                    size += len(fits)
                    self._output = memoryview(output)[len(fits) :] if len(fits) < len(output) else b""
                elif (size and not self._input) or not self._refill():  # what is read next may come late, or not at all
                    break
        except FileError as error:
            self._damage = error
            if not size:
                raise
        return size

    def _refill(self) -> bool:
        if not self._input:
            self._input = memoryview(self._source.read(self._read_bytes))
        if not self._input:
            if self._frame is not None:
                raise _damaged(self._name, "the Zstandard data is cut off")
            return False
        if self._frame is None:
            self._frame = self._new_frame()
        some = self._input[:_ZSTD_BYTES]
        try:
            self._output = self._frame.decompress(some)
        except self._errors as error:
            if self._is_first and "Unknown frame descriptor" in str(error):
                reason = "it is called .zst and is not packed by Zstandard: rename it"
                raise FileError(f"{self._name}: {reason}", reason) from error
            raise _damaged(self._name, f"damaged Zstandard data ({error}){_BEFORE}") from error
        self._is_first = False
        self._input = self._input[len(some) - len(self._frame.unused_data) :]
        if self._frame.eof:
            self._frame = None
        return True


class _Pieces:
    """What gzip reads of, in pieces that are not larger than wanted."""

    def __init__(self, source: IO[bytes], most_bytes: int) -> None:
        self._source = source
        self._most_bytes = most_bytes

    def read(self, size: int = -1) -> bytes:
        return self._source.read(self._most_bytes if size < 0 else min(size, self._most_bytes))


class _GzipReader(io.RawIOBase):
    """gzip's reader with errors that name the file."""

    def __init__(self, source: IO[bytes], name: str, read_bytes: int) -> None:
        import gzip

        pieces: Any = _Pieces(source, read_bytes)
        self._file = gzip.GzipFile(fileobj=pieces)
        self._name = name

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        import gzip
        import zlib

        view = memoryview(buffer).cast("B")
        try:
            data = self._file.read1(len(view))
        except EOFError as error:
            raise _damaged(self._name, "the gzip data is cut off") from error
        except Error:  # of what it is read from
            raise
        except (OSError, zlib.error) as error:
            if isinstance(error, OSError) and error.errno is not None:  # of the disk
                raise
            if self._file.tell() == 0 and isinstance(error, gzip.BadGzipFile) and "Not a gzipped" in str(error):
                reason = "it is called .gz and is not packed by gzip: rename it"
                raise FileError(f"{self._name}: {reason}", reason) from error
            raise _damaged(self._name, f"damaged gzip data ({error}){_BEFORE}") from error
        view[: len(data)] = data
        return len(data)


class _PatientReader(io.RawIOBase):
    """A pipe's bytes, with a call of `while_waiting` every half second, however slowly they come."""

    def __init__(self, source: io.RawIOBase, while_waiting: Callable[[], None]) -> None:
        self._source = source
        self._while_waiting = while_waiting
        self._next = 0.0
        self._given_bytes = 0
        self._poll = select.poll()  # select() cannot look at descriptors from 1,024 on
        self._poll.register(source.fileno(), select.POLLIN)

    def readable(self) -> bool:
        return True

    def has_some(self) -> bool:
        """True if a read would not wait."""
        return self._waited(0)

    def _waited(self, seconds: float) -> bool:
        return bool(self._poll.poll(1000 * seconds))

    def tell(self) -> int:
        return self._given_bytes

    def readinto(self, buffer: WriteableBuffer) -> int | None:
        while True:
            if time.monotonic() >= self._next:
                self._while_waiting()
                self._next = time.monotonic() + _PATIENCE_SECONDS
            if self._waited(_PATIENCE_SECONDS):
                count = self._source.readinto(buffer)
                self._given_bytes += count or 0
                return count


def _behind_newline(data: memoryview, begin: int) -> int:
    """Where the last newline at or behind `begin` ends; 0 where there is none."""
    end = len(data)
    while end > begin:
        some = max(begin, end - _SEARCH_BYTES)
        if at := bytes(data[some:end]).rfind(b"\n") + 1:
            return some + at
        end = some
    return 0


def cannot_open(name: str, error: OSError) -> InputError:
    """What an error of opening a file comes to: a FileError where other files need not have it."""
    reason = error.strerror or str(error)
    if error.errno in _OF_THE_FILE:
        reason = os.strerror(error.errno)  # Arrow's has the path in it, as it was opened
        return FileError(f"{name}: {reason}", reason)
    return InputError(f"{name}: {reason}")


class ByteInput:
    """One open input: `file` gives decompressed bytes, `consumed()` the bytes of the file itself read so far."""

    def __init__(
        self,
        path: Path | FarFile | None,
        name: str,
        compression: str,
        while_waiting: Callable[[], None] = lambda: None,
        careful: bool = False,
    ) -> None:
        """Opens `path` (None: standard input); `compression` is "", "gz" or "zst".

        `while_waiting` is called every half second while a pipe or standard input is read; it may raise. With `careful`
        so little of a compressed file is read at once that hardly anything is lost of what comes before a damaged
        place, and that `consumed` is hardly ahead of what was unpacked.

        Raises:
            InputError: The file cannot be opened; FileError where that is of this file alone.
        """
        try:
            # A descriptor of its own: closing this leaves standard input open.
            opened: io.RawIOBase = (
                path.open()
                if isinstance(path, FarFile)
                else io.FileIO(os.dup(sys.stdin.fileno()) if path is None else str(path))
            )
        except Error as error:
            raise InputError(str(error)) from error
        except OSError as error:
            raise cannot_open(name, error) from error
        self._file = opened
        self._damage: FileError | None = None
        self._peeked = 0  # bytes in the buffer of `file`
        try:
            is_pipe = isinstance(opened, io.FileIO) and not stat.S_ISREG(os.fstat(opened.fileno()).st_mode)
        except OSError as error:
            opened.close()
            raise cannot_open(name, error) from error
        self._pipe = _PatientReader(opened, while_waiting) if is_pipe else None
        self._raw: io.BufferedReader = io.BufferedReader(self._pipe or opened, _CHUNK_BYTES)
        self._begin = 0 if is_pipe else opened.tell()  # of a file that is standard input, a part may be read already
        self.name = name
        readers = {"gz": _GzipReader, "zst": _ZstdReader}
        self.file: io.BufferedReader = self._raw
        self._unpacked_bytes = 0
        if compression:
            self._unpacked_bytes = _CHUNK_BYTES  # of one read: gzip loses what it unpacks together with what is damaged
            read_bytes = _CAREFUL_BYTES if careful else _CHUNK_BYTES
            self.file = io.BufferedReader(readers[compression](self._raw, name, read_bytes), _CHUNK_BYTES)

    def peek(self) -> bytes:
        """Some of the first bytes, which are still to be read; at least those that came at once."""
        found = self.file.peek(1)
        self._peeked = len(found)
        return found

    def whole_lines(self) -> Iterator[bytes | memoryview]:
        """What is left, some of it at a time, from the beginning of a line to the end of one; the last may lack it.

        Raises:
            FileError: The data is damaged; the whole lines before that were given.
        """
        parts: list[memoryview] = []  # of a line that has not ended, and is longer than what is read at once
        rest = memoryview(b"")  # behind them
        want = _FEW_BYTES
        while True:
            data = self._read(rest, want)
            if len(data) == len(rest):
                break
            at = _behind_newline(data, len(rest))
            if not at:
                parts.append(data)
                rest = memoryview(b"")
            else:
                yield b"".join((*parts, data[:at])) if parts else data[:at]
                parts, rest = [], memoryview(bytes(data[at:]))
            del data  # its memory is of use again while the next is read
            want = min(2 * want, _MANY_BYTES)
        if parts or rest:
            yield b"".join((*parts, rest))

    def _read(self, rest: memoryview, most: int) -> memoryview:
        """`rest` and so many bytes behind it, read into their place: a copy costs as much as splitting lines.

        Fewer where a pipe has no more now, at the end, before damage: the next call tells of it.
        """
        if self._damage is not None:
            raise self._damage
        size = len(rest)
        end = size + most
        data = memoryview(np.empty(end + self._unpacked_bytes, np.uint8))
        data[:size] = rest
        while size < end:
            try:
                count = self._read_into(data[size : size + self._unpacked_bytes if self._unpacked_bytes else end])
            except FileError as error:
                self._damage = error
                if size > len(rest):
                    break
                raise
            if not count:
                break
            size += count
            if self._pipe is not None and not self._pipe.has_some():
                break
        # A little is copied, so that its buffer is let go.
        return data[:size] if 2 * size > len(data) else memoryview(bytes(data[:size]))

    def _read_into(self, buffer: memoryview) -> int:
        """Past the buffer of `file`, but for what was looked at."""
        if not self._peeked:
            return self.file.raw.readinto(buffer) or 0
        data = self.file.read1(min(self._peeked, len(buffer)))
        buffer[: len(data)] = data
        self._peeked -= len(data)
        return len(data)

    def consumed(self) -> int:
        """Bytes of the file read so far; 0 for what cannot tell."""
        try:
            return max(0, self._raw.tell() - self._begin)
        except (OSError, ValueError):
            return 0

    def close(self) -> None:
        """Closes the file; standard input stays open."""
        self._file.close()
