"""Files of HDF5, read by a process of its own whose memory and time are bounded: see hdf5_child.py.

What it answers is JSON and bytes, which are looked at as a file's would be. Groups and arrays are named as h5py names
them.
"""

from __future__ import annotations

import atexit
import errno
import json
import os
import select
import signal
import struct
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from penstock._base.errors import CorruptionError, Error, InvalidArgumentError, IoError
from penstock._base.words import excerpt
from penstock._data.anndata.hdf5_child import bound_s
from penstock._places.paths import looking_at

_CHILD = Path(__file__).with_name("hdf5_child.py")
_PLUGINS = ("hdf5plugin",)  # filters of HDF5 that a process has when it imports them
_LENGTHS = struct.Struct("<QQ")
_AT_ONCE = 16 << 20  # bytes that one request asks for
_MOST_FAILURES = 20
_ANSWER_S = 60.0  # until an answer, however small the file: its process may have to start first
_END_S = 5.0  # until a killed process is gone, but for one whose disk does not answer
_IDLE: list[Helper] = []  # at most one, for the next session of this process
_ALL: weakref.WeakSet[Helper] = weakref.WeakSet()
_LOCK = threading.Lock()


class Helper:
    """One process. One thread at a time."""

    def __init__(self) -> None:
        """Starts it, and waits for nothing."""
        if not sys.executable:
            raise InvalidArgumentError("sys.executable is empty: HDF5 is read by a Python process of its own")
        one_thread = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
        self.owner = os.getpid()
        self._failures = 0
        life, ours = os.pipe()
        self._life = os.fdopen(ours, "wb", 0)  # the kernel ends the process when it is closed
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", str(_CHILD), str(life)],
                bufsize=0,  # for poll()
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={**os.environ, **one_thread},
                pass_fds=(life,),
                start_new_session=True,  # Ctrl-C is for the parent
            )
        except BaseException:
            self._life.close()
            raise
        finally:
            os.close(life)
        _ALL.add(self)
        plugins = [name for name in _PLUGINS if name in sys.modules]
        self._send({"path": [os.path.abspath(each) for each in sys.path], "plugins": plugins})  # noqa: PTH100 - "" too

    def is_alive(self) -> bool:
        """False if it has ended, or HDF5 has failed often or for memory: its state is not trusted then."""
        return self._failures < _MOST_FAILURES and self._process.poll() is None

    def ask(self, what: str, most: int, seconds: float, **asked: Any) -> tuple[dict[str, Any], bytearray]:
        """The answer, of at most `most` bytes and within `seconds`; errors are of `what`, a file with its member.

        Raises:
            CorruptionError: HDF5 cannot read it, or not within the bounds.
            IoError: the system cannot.
            InvalidArgumentError: it leads to another file.
            TimeoutError: there is no answer.
        """
        end = time.monotonic() + seconds
        try:
            self._send(asked)
            head = self._receive(_LENGTHS.size, end)
            texts, data = _LENGTHS.unpack(head)
            if texts + data > most:
                self.end()
                raise CorruptionError(
                    f"{what} cannot be read: {texts + data:,} bytes are beyond what a file so small has"
                )
            told = json.loads(self._receive(texts, end))
            received = self._receive(data, end)
        except (EOFError, BrokenPipeError, ConnectionResetError):
            raise CorruptionError(f"{what} cannot be read: {self._how_it_ended()}") from None
        except BaseException:  # half an answer may have been received
            self.end()
            raise
        self._failures += _MOST_FAILURES if "memory" in told else "error" in told
        if number := int(told.get("errno", 0)):
            raise IoError(number, f"{what} cannot be read: {os.strerror(number)}", what)
        if "error" in told:
            raise CorruptionError(f"{what} cannot be read: {excerpt(str(told['error']))}")
        if "memory" in told:
            raise CorruptionError(f"{what} cannot be read: it wants more memory than a file of its size may")
        if "refused" in told:
            raise InvalidArgumentError(f"{what} {told['refused']}")
        return told, received

    def end(self) -> None:
        """Ends the process, at once. May be called twice."""
        if os.getpid() != self.owner:
            return
        self._process.kill()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_END_S)
        self._close_pipes()

    def forget(self) -> None:
        """In a forked child, whose copies of the pipes would keep the process alive after the parent."""
        self._process.returncode = 0  # or subprocess warns of it: it is the parent's
        self._close_pipes()

    def _close_pipes(self) -> None:
        for pipe in (self._process.stdin, self._process.stdout, self._life):
            with suppress(OSError):
                if pipe is not None:
                    pipe.close()

    def _send(self, value: Any) -> None:
        assert self._process.stdin is not None
        left = memoryview(json.dumps(value).encode() + b"\n")
        while left:
            left = left[self._process.stdin.write(left) :]

    def _receive(self, count: int, end: float) -> bytearray:
        assert self._process.stdout is not None
        poll = select.poll()
        poll.register(self._process.stdout, select.POLLIN)
        data = bytearray(count)
        view, at = memoryview(data), 0
        while at < count:
            if not poll.poll(max(0.0, end - time.monotonic()) * 1000):
                raise TimeoutError
            got = self._process.stdout.readinto(view[at:])  # type: ignore[attr-defined]
            if not got:
                raise EOFError
            at += got
        return data

    def _how_it_ended(self) -> str:
        code = self._process.wait()
        self.end()
        if code == -signal.SIGXCPU:
            return "HDF5 comes to no end with it"
        return f"HDF5 ended with {signal.Signals(-code).name if code < 0 else f'code {code}'}"


@contextmanager
def session() -> Iterator[Helper]:
    """A process for some files, one after the other or at once; kept for the next session if it is whole then."""
    helper = acquire()
    try:
        yield helper
    except Error:  # after which all files were closed
        release(helper)
        raise
    except BaseException:
        helper.end()
        raise
    release(helper)


def acquire() -> Helper:
    """A process of one's own, until `release` or `Helper.end`."""
    with _LOCK:
        while _IDLE:
            helper = _IDLE.pop()
            if helper.owner == os.getpid() and helper.is_alive():
                return helper
            helper.end()
    return Helper()


def release(helper: Helper) -> None:
    """Gives back one that has no file open."""
    with _LOCK:
        if helper.owner == os.getpid() and not _IDLE and helper.is_alive():
            _IDLE.append(helper)
            return
    helper.end()


def _end_all() -> None:
    for helper in list(_ALL):
        helper.end()


def _forget_all() -> None:
    global _LOCK
    _LOCK = threading.Lock()  # another thread of the parent may have held it
    _IDLE.clear()
    for helper in list(_ALL):
        helper.forget()


atexit.register(_end_all)
os.register_at_fork(after_in_child=_forget_all)


class Node:
    """A group or an array of a file.

    Attributes:
        attrs: those that AnnData's layout has.
    """

    def __init__(self, file: File, member: str, told: dict[str, Any]) -> None:
        """As the process told of it."""
        self._file = file
        self._member = member
        self._number = told["node"]
        self.attrs: dict[str, Any] = {name: value for name, value in told["attributes"].items() if value is not None}

    def _ask(self, do: str, **asked: Any) -> tuple[dict[str, Any], bytearray]:
        where = f" [{asked['begin']:,}, {asked['end']:,})" if "begin" in asked else ""
        return self._file.ask(self._member, where, do=do, node=self._number, **asked)


class Group(Node):
    """A group."""

    def __init__(self, file: File, member: str, told: dict[str, Any]) -> None:
        """As the process told of it, and maybe of its members."""
        super().__init__(file, member, told)
        self._members: dict[str, dict[str, Any] | None] | None = told.get("members")

    def __contains__(self, name: str) -> bool:
        """True if there is a member of this name."""
        if self._members is not None and "/" not in name:
            return name in self._members
        return bool(self._ask("has", name=name)[0]["has"])

    def __getitem__(self, name: str) -> Group | ArrayNode:
        """A member."""
        member = f"{self._member}/{name}".lstrip("/")
        told = None if self._members is None else self._members.get(name)
        if told is None:
            told = self._file.ask(member, do="get", node=self._number, name=name)[0]
        return (ArrayNode if "dtype" in told else Group)(self._file, member, told)

    def get(self, name: str, default: Any = None) -> Any:
        """A member, or `default`."""
        return self[name] if self.__contains__(name) else default

    def keys(self) -> list[str]:
        """Names of members."""
        return [str(each) for each in (self._ask("keys")[0]["keys"] if self._members is None else self._members)]


class ArrayNode(Node):
    """An array.

    Attributes:
        shape: all axes.
        dtype: of its values; object where they are strings of any length.
        chunks: of the file; None where it has none.
    """

    def __init__(self, file: File, member: str, told: dict[str, Any]) -> None:
        """As the process told of it."""
        super().__init__(file, member, told)
        self.shape = tuple(int(each) for each in told["shape"])
        self.dtype: np.dtype[Any] = np.dtype(str(told["dtype"]))
        self.chunks = None if told["chunks"] is None else tuple(int(each) for each in told["chunks"])

    def __len__(self) -> int:
        """Values of the first axis; 0 where there is none."""
        return self.shape[0] if self.shape else 0

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        """All values."""
        values = self[:]
        return values if dtype is None else values.astype(dtype)

    def __getitem__(self, which: slice) -> npt.NDArray[Any]:
        """Values of a range of the first axis."""
        begin, end, _ = which.indices(len(self))
        row = self.dtype.itemsize * int(np.prod(self.shape[1:], dtype=object))
        self._check(max(0, end - begin) * row)
        out = np.empty((max(0, end - begin), *self.shape[1:]), self.dtype.newbyteorder("="))
        step = max(1, _AT_ONCE // max(1, row))
        for at in range(begin, end, step):
            stop = min(at + step, end)
            told, data = self._ask("read", begin=at, end=stop)
            values = np.frombuffer(data, np.dtype(str(told["dtype"]))).reshape(stop - at, *self.shape[1:])
            out[at - begin : stop - begin] = values
        return out

    def texts(self, begin: int, end: int) -> list[str]:
        """Strings [begin, end), or the text of numbers."""
        self._check(8 * max(0, end - begin))
        found: list[str] = []
        for at in range(begin, end, 1 << 17):
            stop = min(at + (1 << 17), end)
            part = [str(each) for each in self._ask("texts", begin=at, end=stop)[0]["texts"]]
            if len(part) != stop - at:
                raise CorruptionError(f"{self._file.path}: {self._member}: {len(part):,} strings for {stop - at:,}")
            found += part
        return found

    def whole(self, most: int) -> tuple[tuple[int, ...] | None, Any]:
        """(shape, [(name of a field or "", values or texts)]); (None, why) where it is too large, or no values."""
        told, data = self._ask("whole", room=min(most, self._file.most))
        if "why" in told:
            return None, str(told["why"])
        shape = tuple(int(each) for each in told["shape"])
        count = int(np.prod(shape, dtype=object))
        found: list[tuple[str, Any]] = []
        at = 0
        for name, dtype, texts in told["fields"]:
            kind = np.dtype("V0" if texts is not None else str(dtype))
            values: Any = np.frombuffer(data, kind, count, at) if texts is None else [str(each) for each in texts]
            at += count * kind.itemsize
            if len(values) != count:
                raise CorruptionError(f"{self._file.path}: {self._member}: {len(values):,} values for {count:,}")
            found.append((str(name), values))
        return shape, found

    def place(self) -> tuple[str, int, npt.NDArray[np.int64]]:
        """(why its values do not lie in the file as they are; values of a chunk; byte of the file at which each begins,
        -1 where it is not written). Of an array of one axis."""
        told, data = self._ask("place")
        if told.get("why"):
            return str(told["why"]), 0, np.empty(0, np.int64)
        return "", int(told["size"]), np.frombuffer(data, np.int64)

    def _check(self, count: int) -> None:
        if count > self._file.most:
            raise CorruptionError(
                f"{self._file.path}: {self._member} says that it has {count:,} bytes, more than a file of its size can"
            )


class File(Group):
    """An opened file. One thread at a time.

    Attributes:
        path: as it was given.
        most: bytes that one array of it may have.
    """

    def __init__(self, helper: Helper, path: str) -> None:
        """Opens it.

        Raises:
            CorruptionError: HDF5 cannot read it.
            IoError: there is no answer.
        """
        self.path = path
        self.most = 1 << 30
        self._helper = helper
        # Twice its time of a processor, and more: then it is that bound that ends it, if it works at all.
        self._seconds = _ANSWER_S + 2 * bound_s(_size(path))
        told = self._answer(path, do="open", path=os.path.abspath(path))[0]  # noqa: PTH100
        self._open = int(told["file"])
        self.most = int(told["bytes"])
        super().__init__(self, "", told["root"])

    def ask(self, member: str, where: str = "", **asked: Any) -> tuple[dict[str, Any], bytearray]:
        """The answer of the process about a member."""
        what = f"{self.path}: {excerpt(member)}{where}" if member else self.path
        return self._answer(what, **asked)

    def close(self) -> None:
        """Closes it. May be called twice."""
        if self._open and self._helper.is_alive():
            with suppress(Error):
                self._answer(self.path, do="close", file=self._open)
        self._open = 0

    def _answer(self, what: str, **asked: Any) -> tuple[dict[str, Any], bytearray]:
        try:
            return self._helper.ask(what, self.most, self._seconds, **asked)
        except TimeoutError:
            said = f"{what} cannot be read: no answer within {self._seconds:,.0f} s"
            raise IoError(errno.ETIMEDOUT, said, self.path) from None


def _size(path: str) -> int:
    with looking_at(path):
        return Path(path).stat().st_size
