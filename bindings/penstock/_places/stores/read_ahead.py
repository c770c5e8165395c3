"""Bytes of a file of a server or bucket, read from front to back a piece ahead, or anywhere."""

from __future__ import annotations

import io
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

# Of a request; each that follows on the one before is twice as large, and begins before it is asked for, from the
# second one on: the beginning may be all that is wanted.
_FIRST_BYTES = 1 << 18
_MOST_BYTES = 8 << 20


class FarReader(io.RawIOBase):
    """Bytes of a file. One thread at a time; reads raise penstock.Error."""

    def __init__(self, store: Any, path: str, size: int) -> None:
        """Reads nothing yet."""
        self._store = store
        self._path = path
        self._size = size
        self._at = 0
        self._block = memoryview(b"")
        self._begins = 0  # of the block
        self._next_bytes = _FIRST_BYTES
        self._ahead: Future[bytes] | None = None  # the block behind this one
        self._thread: ThreadPoolExecutor | None = None

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = max(0, offset + (0, self._at, self._size)[whence])
        return self._at

    def readinto(self, buffer: WriteableBuffer) -> int:
        view = memoryview(buffer).cast("B")
        if self._at >= self._size or not len(view):
            return 0
        if not self._begins <= self._at < self._begins + len(self._block):
            self._load(len(view))
        begin = self._at - self._begins
        part = self._block[begin : begin + len(view)]
        view[: len(part)] = part
        self._at += len(part)
        return len(part)

    def _load(self, wanted: int) -> None:
        """The block that begins here, of which at least so many bytes are wanted."""
        follows = len(self._block) > 0 and self._at == self._begins + len(self._block)
        ahead, self._ahead = self._ahead, None
        if follows and ahead is not None:
            self._block = memoryview(ahead.result())
        else:
            self._next_bytes = _FIRST_BYTES
            size = min(self._size - self._at, max(wanted, self._next_bytes))
            self._block = memoryview(self._store.read(self._path, self._at, size))
        self._begins = self._at
        end = self._begins + len(self._block)
        if follows and end < self._size:
            self._next_bytes = min(_MOST_BYTES, 2 * self._next_bytes)
            self._thread = self._thread or ThreadPoolExecutor(1, "penstock-read-ahead")
            size = min(self._next_bytes, self._size - end)
            self._ahead = self._thread.submit(self._store.read, self._path, end, size)

    def close(self) -> None:
        if self._thread is not None:
            self._thread.shutdown(wait=False, cancel_futures=True)
            self._thread = None
        self._ahead = None
        super().close()
