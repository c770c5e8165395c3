"""A file that HDF5 writes through Python, so that an error of the disk is kept from the library.

HDF5 cannot close a file whose last bytes could not be written: it keeps it open, and the process crashes when another
is closed. So every write succeeds as far as HDF5 is told, and `check` says what really happened.
"""

from __future__ import annotations

import os
from typing import Any

from penstock._base.errors import IoError
from penstock._places.unfinished import hold, removed, unfinished


class OutputFile:
    """A new file, written and read at places, as h5py wants a file object. One thread at a time.

    Attributes:
        path: of the file, unfinished.
    """

    def __init__(self, shown: str) -> None:
        """Makes it, as an unfinished one of `shown`, which messages call it.

        Raises:
            IoError: it cannot be made.
        """
        self._shown = shown
        self._error: OSError | None = None
        self._at = 0
        while not self._make():
            self.close()
            removed(self.path)

    def _make(self) -> bool:
        self.path = unfinished(self._shown)
        try:
            self._descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
        except OSError as error:
            raise self._told(error) from error
        return hold(self._descriptor, self.path)

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """As of io.RawIOBase."""
        bases = {os.SEEK_SET: 0, os.SEEK_CUR: self._at}
        self._at = offset + (bases[whence] if whence in bases else os.fstat(self._descriptor).st_size)
        return self._at

    def tell(self) -> int:
        """As of io.RawIOBase."""
        return self._at

    def readinto(self, buffer: Any) -> int:
        """As of io.RawIOBase; zeros where nothing was written."""
        view = memoryview(buffer).cast("B")
        view[:] = bytes(len(view))
        done = 0
        try:
            while done < len(view) and (some := os.preadv(self._descriptor, [view[done:]], self._at + done)):
                done += some
        except OSError as error:
            self._keep(error)
        self._at += len(view)
        return len(view)

    def read(self, size: int) -> bytes:
        """As of io.RawIOBase; h5py knows a file object by it."""
        buffer = bytearray(size)
        self.readinto(buffer)
        return bytes(buffer)

    def write(self, buffer: Any) -> int:
        """As of io.RawIOBase; what fails is kept."""
        view = memoryview(buffer).cast("B")
        done = 0
        try:
            while done < len(view) and self._error is None:
                done += os.pwrite(self._descriptor, view[done:], self._at + done)
        except OSError as error:
            self._keep(error)
        self._at += len(view)
        return len(view)

    def truncate(self, size: int) -> int:
        """As of io.RawIOBase; what fails is kept."""
        try:
            os.ftruncate(self._descriptor, size)
        except OSError as error:
            self._keep(error)
        return size

    def flush(self) -> None:
        """Nothing: it has no buffer."""

    def check(self) -> None:
        """Says what could not be written.

        Raises:
            IoError: something could not.
        """
        if self._error is not None:
            raise self._told(self._error) from self._error

    def sync(self) -> None:
        """Puts all of it on the disk.

        Raises:
            IoError: something was not written, or cannot be synced.
        """
        try:
            os.fsync(self._descriptor)
        except OSError as error:
            self._keep(error)
        self.check()

    def close(self) -> None:
        """Closes it. May be called twice."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
        self._descriptor = -1

    def _keep(self, error: OSError) -> None:
        self._error = self._error or error

    def _told(self, error: OSError) -> IoError:
        return IoError(error.errno, f"{self._shown}: cannot be written: {error.strerror or error}", self._shown)
