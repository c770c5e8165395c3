"""A file system of /dev/fuse that passes all on to a folder, until it is told to be slow, to hang, or to fail.

One process of its own serves it, in plain Python; the numbers are those of linux/fuse.h.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import mmap
import os
import stat
import struct
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from matter import mount, unmount

SLOW, HANG, LOST, STALE, READ_ONLY = range(1, 6)
_HEADER, _ANSWER, _ATTRIBUTES = struct.Struct("<IIQQIIIHH"), struct.Struct("<IiQ"), struct.Struct("<6Q10I")
_CONTROL = struct.Struct("<iidq")  # what it does, from which call on, for how many seconds; calls until now
_MOST_WRITE = 128 << 10
_BIG_WRITES = 1 << 5
_NOTHING = (2, 42, 36)  # FORGET, BATCH_FORGET, INTERRUPT: no answer
_CHANGES = (4, 6, 9, 10, 11, 12, 13, 16, 35, 43, 45)
_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True)


class Served:
    """Mounted at a folder while it is used as a context; a child serves it."""

    def __init__(self, of: Path, at: Path) -> None:
        self._of, self._at = of, at
        self._control = mmap.mmap(-1, 4096)

    def __enter__(self) -> Served:
        self.tell(0, 0)
        device = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
        mount("fuse", self._at, f"fd={device},rootmode=40000,user_id=0,group_id=0,default_permissions,allow_other")
        self._child = os.fork()
        if self._child == 0:
            with contextlib.suppress(BaseException):
                _libc.prctl(_PR_SET_PDEATHSIG, 9)
                _Server(device, self._of, self._control).serve()
            os._exit(0)
        os.close(device)
        return self

    def __exit__(self, *_: object) -> None:
        unmount(self._at)
        with contextlib.suppress(OSError):
            os.kill(self._child, 9)
        os.waitpid(self._child, 0)

    def tell(self, what: int, call: int, seconds: float = 0.0) -> None:
        """From its call of this number on; calls are counted from here."""
        self._control[: _CONTROL.size] = _CONTROL.pack(what, call, seconds, 0)

    @property
    def calls(self) -> int:
        return int(_CONTROL.unpack(self._control[: _CONTROL.size])[3])


class _Server:
    def __init__(self, device: int, of: Path, control: mmap.mmap) -> None:
        self._device, self._control = device, control
        root = os.open(of, os.O_PATH | os.O_DIRECTORY)
        status = os.fstat(root)
        self._nodes: dict[int, int] = {1: root}  # by number: a descriptor that only names
        self._numbers = {(status.st_dev, status.st_ino): 1}
        self._next, self._stale_below, self._hung = 2, 0, False
        self._generation = 0
        self._listed: dict[int, list[tuple[str, os.stat_result]]] = {}
        self._calls: dict[int, Callable[[int, bytes], bytes]] = {
            1: self._lookup, 3: self._attributes, 4: self._set, 5: self._readlink, 6: self._symlink, 9: self._mkdir,
            10: self._unlink, 11: self._rmdir, 12: self._rename, 13: self._link, 14: self._open, 15: self._read,
            16: self._write, 17: self._statfs, 18: self._release, 20: self._fsync, 25: self._nothing, 26: self._init,
            27: self._opendir, 28: self._readdir, 29: self._releasedir, 30: self._nothing, 35: self._create,
            43: self._allocate, 45: self._rename2,
        }  # fmt: skip

    def serve(self) -> None:
        while True:
            try:
                request = os.read(self._device, _MOST_WRITE + 8192)
            except InterruptedError:
                continue
            _, call, unique, node, *_ = _HEADER.unpack_from(request)
            if call in _NOTHING:
                continue
            try:
                answer, code = self._answer(call, node, request[_HEADER.size :]), 0
            except OSError as error:
                answer, code = b"", error.errno or errno.EIO
            except KeyError:
                answer, code = b"", errno.ENOENT
            with contextlib.suppress(FileNotFoundError):  # its process is gone
                os.write(self._device, _ANSWER.pack(_ANSWER.size + len(answer), -code, unique) + answer)

    def _answer(self, call: int, node: int, body: bytes) -> bytes:
        what, at, seconds, number = _CONTROL.unpack(self._control[: _CONTROL.size])
        self._control[: _CONTROL.size] = _CONTROL.pack(what, at, seconds, number + 1)
        if what and number >= at:
            if what == LOST:
                os._exit(0)
            if what == SLOW or (what == HANG and not self._hung):
                self._hung = True
                time.sleep(seconds)
            if what == STALE and not self._stale_below:
                self._forget_all()
            if what == READ_ONLY and (call in _CHANGES or (call == 14 and struct.unpack("<I", body[:4])[0] & 3)):
                raise OSError(errno.EROFS, "")
        if 1 < node < self._stale_below:
            raise OSError(errno.ESTALE, "")
        if call not in self._calls:
            raise OSError(errno.ENOSYS, "")
        return self._calls[call](node, body)

    def _forget_all(self) -> None:
        """As a server of NFS that was started again on a restored disk: handles are worth nothing, names are."""
        self._stale_below = self._next
        self._numbers = {key: number for key, number in self._numbers.items() if number == 1}
        self._generation += 1

    # --- nodes

    def _path(self, node: int) -> str:
        return f"/proc/self/fd/{self._nodes[node]}"

    def _entry(self, parent: int, name: bytes) -> bytes:
        found = os.open(name, os.O_PATH | os.O_NOFOLLOW, dir_fd=self._nodes[parent])
        status = os.fstat(found)
        key = status.st_dev, status.st_ino
        number = self._numbers.get(key)
        if number is None:
            number, self._next = self._next, self._next + 1
            self._numbers[key], self._nodes[number] = number, found
        else:
            os.close(found)
        return struct.pack("<4Q2I", number, self._generation, 0, 0, 0, 0) + _packed(status)

    def _lookup(self, node: int, body: bytes) -> bytes:
        return self._entry(node, _name(body))

    def _attributes(self, node: int, _: bytes) -> bytes:
        return struct.pack("<QII", 0, 0, 0) + _packed(os.fstat(self._nodes[node]))

    def _set(self, node: int, body: bytes) -> bytes:
        given = struct.unpack_from("<IIQQQQQQIIIIIIII", body)
        valid, size, mode = given[0], given[3], given[11]
        if valid & 1:
            os.chmod(self._path(node), stat.S_IMODE(mode))  # noqa: PTH101
        if valid & 8:
            os.truncate(self._path(node), size)
        if valid & 0x30:
            times = [given[5] * 10**9 + given[8], given[6] * 10**9 + given[9]]
            now = time.time_ns()
            times = [now if valid & bit else each for each, bit in zip(times, (0x80, 0x100), strict=True)]
            os.utime(self._path(node), ns=(times[0], times[1]))
        return self._attributes(node, b"")

    # --- names

    def _readlink(self, node: int, _: bytes) -> bytes:
        return os.readlink(b"", dir_fd=self._nodes[node])

    def _symlink(self, node: int, body: bytes) -> bytes:
        name, target = body.split(b"\0")[:2]
        os.symlink(target, name, dir_fd=self._nodes[node])
        return self._entry(node, name)

    def _mkdir(self, node: int, body: bytes) -> bytes:
        mode, _ = struct.unpack_from("<II", body)
        os.mkdir(_name(body[8:]), mode, dir_fd=self._nodes[node])
        return self._entry(node, _name(body[8:]))

    def _unlink(self, node: int, body: bytes) -> bytes:
        os.unlink(_name(body), dir_fd=self._nodes[node])
        return b""

    def _rmdir(self, node: int, body: bytes) -> bytes:
        os.rmdir(_name(body), dir_fd=self._nodes[node])
        return b""

    def _rename(self, node: int, body: bytes) -> bytes:
        return self._renamed(node, struct.unpack_from("<Q", body)[0], 0, body[8:])

    def _rename2(self, node: int, body: bytes) -> bytes:
        to, flags, _ = struct.unpack_from("<QII", body)
        return self._renamed(node, to, flags, body[16:])

    def _renamed(self, node: int, to: int, flags: int, names: bytes) -> bytes:
        old, new = names.split(b"\0")[:2]
        if _libc.renameat2(self._nodes[node], old, self._nodes[to], new, flags):
            raise OSError(ctypes.get_errno(), "")
        return b""

    def _link(self, node: int, body: bytes) -> bytes:
        of, name = struct.unpack_from("<Q", body)[0], _name(body[8:])
        os.link(self._path(of), name, dst_dir_fd=self._nodes[node], follow_symlinks=True)
        return self._entry(node, name)

    # --- files

    def _open(self, node: int, body: bytes) -> bytes:
        flags = struct.unpack_from("<I", body)[0] & ~(os.O_NOFOLLOW | os.O_CREAT | os.O_EXCL | os.O_DIRECT)
        return struct.pack("<QIi", os.open(self._path(node), flags), 0, 0)

    def _create(self, node: int, body: bytes) -> bytes:
        flags, mode, _, _ = struct.unpack_from("<IIII", body)
        name = _name(body[16:])
        file = os.open(name, (flags & ~os.O_DIRECT) | os.O_CREAT, mode & 0o7777, dir_fd=self._nodes[node])
        return self._entry(node, name) + struct.pack("<QIi", file, 0, 0)

    def _read(self, _: int, body: bytes) -> bytes:
        file, offset, size = struct.unpack_from("<QQI", body)
        return os.pread(file, size, offset)

    def _write(self, _: int, body: bytes) -> bytes:
        file, offset, size = struct.unpack_from("<QQI", body)
        return struct.pack("<II", os.pwrite(file, body[40 : 40 + size], offset), 0)

    def _allocate(self, _: int, body: bytes) -> bytes:
        file, offset, size, how = struct.unpack_from("<QQQI", body)
        if how:
            raise OSError(errno.EOPNOTSUPP, "")
        os.posix_fallocate(file, offset, size)
        return b""

    def _fsync(self, _: int, body: bytes) -> bytes:
        os.fsync(struct.unpack_from("<Q", body)[0])
        return b""

    def _release(self, _: int, body: bytes) -> bytes:
        os.close(struct.unpack_from("<Q", body)[0])
        return b""

    def _statfs(self, node: int, _: bytes) -> bytes:
        found = os.statvfs(self._path(node))
        counts = found.f_blocks, found.f_bfree, found.f_bavail, found.f_files, found.f_ffree
        return struct.pack("<5Q10I", *counts, found.f_bsize, found.f_namemax, found.f_frsize, *[0] * 7)

    # --- folders

    def _opendir(self, node: int, _: bytes) -> bytes:
        folder = self._path(node)
        names = os.listdir(folder)  # noqa: PTH208
        handle = max(self._listed, default=0) + 1
        self._listed[handle] = [(name, os.lstat(f"{folder}/{name}")) for name in names]
        return struct.pack("<QIi", handle, 0, 0)

    def _readdir(self, _: int, body: bytes) -> bytes:
        handle, offset, size = struct.unpack_from("<QQI", body)
        found = b""
        for number, (name, status) in enumerate(self._listed[handle][offset:], offset + 1):
            raw = os.fsencode(name)
            each = struct.pack("<QQII", status.st_ino, number, len(raw), stat.S_IFMT(status.st_mode) >> 12) + raw
            each += bytes(-len(each) % 8)
            if len(found) + len(each) > size:
                break
            found += each
        return found

    def _releasedir(self, _: int, body: bytes) -> bytes:
        del self._listed[struct.unpack_from("<Q", body)[0]]
        return b""

    def _nothing(self, *_: Any) -> bytes:
        return b""

    def _init(self, _: int, body: bytes) -> bytes:
        _, minor, ahead, flags = struct.unpack_from("<IIII", body)
        answer = struct.pack(
            "<IIIIHHIIHHI", 7, min(minor, 38), ahead, flags & _BIG_WRITES, 12, 9, _MOST_WRITE, 1, 0, 0, 0
        )
        return answer.ljust(64, b"\0")


def _name(body: bytes) -> bytes:
    return body.partition(b"\0")[0]


def _packed(status: os.stat_result) -> bytes:
    times = status.st_atime_ns, status.st_mtime_ns, status.st_ctime_ns
    seconds, rest = [each // 10**9 for each in times], [each % 10**9 for each in times]
    counts = status.st_mode, status.st_nlink, status.st_uid, status.st_gid, 0, status.st_blksize, 0
    return _ATTRIBUTES.pack(status.st_ino, status.st_size, status.st_blocks, *seconds, *rest, *counts)
