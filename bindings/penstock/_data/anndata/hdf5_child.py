"""The process that reads HDF5: run as a script, with bounds on its memory and time, by `hdf5.Helper`.

HDF5 believes what a damaged file says: it may take any memory, never end, or end the process. So nothing else happens
here, and nothing of penstock is imported. Other files that a file names are not opened: they may be pipes. A request is
a line of JSON; an answer is the lengths of a JSON text and of bytes, then both.
"""

from __future__ import annotations

import fcntl
import importlib
import json
import os
import re
import resource
import select
import struct
import sys
from pathlib import Path
from typing import Any, NoReturn

Answer = tuple[dict[str, Any], Any]  # JSON and bytes

_IDLE_S = 20.0  # without an open file
_MEMORY = 512 << 20  # beside what the process has when it begins, and a multiple of the largest file
_MOST_GROWTH = 16  # what is unpacked of a byte of a file
_CPU_S = 2  # of one request, and as much again …
_CPU_BYTES = 256 << 20  # … for each so many bytes of the file
_DEPTH = 2  # below a member that is asked for, what is told of at once …
_MOST_MEMBERS = 512  # … unless a group has more
_ATTRIBUTES = ("_index", "column-order", "encoding-type", "encoding-version", "ordered", "shape")
_MOST_LINKS = 16  # that lead to one another; as many as HDF5 follows
_COMPACT, _CONTIGUOUS, _CHUNKED, _VIRTUAL = range(4)  # h5py.h5d's layouts
_COPY = "copy all into one file, and give that"
_SAMPLES, _SAMPLE = 16, 1 << 12  # chunks whose values are compared with the file's, values at either end of each


class Refused(Exception):
    """A part of a file that is not read, though HDF5 can."""


def bound_bytes(file_bytes: int) -> int:
    """The most bytes that an answer about a file of this size, and the process for it, may have."""
    return _MEMORY // 2 + _MOST_GROWTH * file_bytes


def bound_s(file_bytes: int) -> int:
    """Seconds of a processor that one answer about a file of this size may take."""
    return _CPU_S * (1 + file_bytes // _CPU_BYTES)


class Child:
    """Opened files and their members, by number."""

    def __init__(self, h5py: Any, numpy: Any) -> None:
        """With the modules that it reads with."""
        self.h5py, self.numpy = h5py, numpy
        self.files: dict[int, tuple[Any, int]] = {}  # file, its bytes
        self.nodes: dict[int, tuple[Any, int]] = {}  # node, number of its file
        self.last = 0
        self.begin = int(Path("/proc/self/statm").read_bytes().split()[0]) * resource.getpagesize()

    def bound(self, file_bytes: int) -> None:
        """Sets bounds for the next request: of the largest file that is open."""
        size = max([file_bytes, *(each for _, each in self.files.values())])
        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        wanted = self.begin + bound_bytes(size) + _MEMORY // 2
        resource.setrlimit(resource.RLIMIT_AS, (wanted if hard < 0 else min(wanted, hard), hard))
        used = resource.getrusage(resource.RUSAGE_SELF)
        seconds = int(used.ru_utime + used.ru_stime) + 1 + bound_s(size)
        _, hard = resource.getrlimit(resource.RLIMIT_CPU)
        resource.setrlimit(resource.RLIMIT_CPU, (seconds if hard < 0 else min(seconds, hard), hard))

    def answer(self, asked: dict[str, Any]) -> Answer:
        """The answer to a request."""
        found: Answer = getattr(self, "_" + asked.pop("do"))(**asked)
        return found

    def _open(self, path: str) -> Answer:
        size = Path(path).stat().st_size
        self.bound(size)
        file = self.h5py.File(path, "r")
        self.last += 1
        self.files[self.last] = file, size
        return {"file": self.last, "bytes": bound_bytes(size), "root": self._told(file, self.last)}, b""

    def _close(self, file: int) -> Answer:
        for number in [number for number, (_, of) in self.nodes.items() if of == file]:
            del self.nodes[number]
        self.files.pop(file)[0].close()
        return {}, b""

    def _has(self, node: int, name: str) -> Answer:
        try:
            self._member(self.nodes[node][0], name)
        except KeyError as error:  # also of a read that the system refused
            if _errno_in(str(error)):
                raise
            return {"has": False}, b""
        return {"has": True}, b""

    def _get(self, node: int, name: str) -> Answer:
        group, file = self.nodes[node]
        return self._told(self._member(group, name), file, _DEPTH), b""

    def _keys(self, node: int) -> Answer:
        return {"keys": list(self.nodes[node][0].keys())}, b""

    def _read(self, node: int, begin: int, end: int) -> Answer:
        values = self.numpy.ascontiguousarray(self.nodes[node][0][begin:end])
        if values.dtype.kind not in "biuf":
            raise TypeError(f"{values.dtype}: numbers are wanted")
        return {"dtype": values.dtype.str, "shape": values.shape}, memoryview(values).cast("B") if values.size else b""

    def _texts(self, node: int, begin: int, end: int) -> Answer:
        array = self.nodes[node][0]
        if array.dtype.kind == "O":
            return {"texts": [str(each) for each in array.asstr()[begin:end]]}, b""
        values = self.numpy.asarray(array[begin:end]).tolist()
        return {"texts": [each.decode() if isinstance(each, bytes) else str(each) for each in values]}, b""

    def _whole(self, node: int, room: int) -> Answer:
        """All values of an array of any shape, its fields apart where it is of records."""
        array = self.nodes[node][0]
        if array.shape is None:
            return {"why": "has no values"}, b""
        if array.size * max(1, array.dtype.itemsize) > room:
            return {"why": f"has more than {room >> 20} MiB"}, b""
        values = self.numpy.asarray(array[()])
        fields, data = [], []
        for name in values.dtype.names or ("",):
            part = values[name] if name else values
            if part.dtype.kind in "OSU":
                flat = part.reshape(-1).tolist()
                fields.append(
                    [name, "text", [each.decode() if isinstance(each, bytes) else str(each) for each in flat]]
                )
            elif part.dtype.kind in "biufc" and part.dtype.itemsize <= 16:
                little = self.numpy.ascontiguousarray(part, part.dtype.newbyteorder("<"))
                fields.append([name, little.dtype.str, None])
                data.append(little.tobytes())
            else:
                return {"why": f"is of type {part.dtype}"}, b""
        return {"shape": list(values.shape), "fields": fields}, b"".join(data)

    def _place(self, node: int) -> Answer:
        """Where the values of an array of one axis lie in the file, or why they do not lie there as they are."""
        array = self.nodes[node][0]
        why = self._why_not(array)
        if why:
            return {"why": why}, b""
        count = int(array.shape[0])
        if array.chunks is None:
            places = self.numpy.array([array.id.get_offset()] if count else [], self.numpy.int64)
            return self._placed(array, places, max(count, 1))
        size = int(array.chunks[0])
        if -(-count // size) > max(1, array.id.get_num_chunks()):
            return {"why": "has values that are not written"}, b""
        places = self.numpy.full(-(-count // size), -1, self.numpy.int64)

        def note(chunk: Any) -> None:
            if chunk.filter_mask == 0 and chunk.chunk_offset[0] < count:
                places[chunk.chunk_offset[0] // size] = chunk.byte_offset

        if count:
            array.id.chunk_iter(note)
        return self._placed(array, places, size)

    def _placed(self, array: Any, places: Any, size: int) -> Answer:
        shift = self._shift(array, places, size)
        if shift is None:
            return {"why": "lies behind a user block, at no place that is known"}, b""
        places[places >= 0] += shift
        return {"size": size}, places.tobytes()

    def _shift(self, array: Any, places: Any, size: int) -> int | None:
        """Bytes that places of chunks lack: libraries differ in adding a user block, which MuData's files have."""
        block = int(array.file.userblock_size)
        if not block or not len(places):
            return 0
        count, width = int(array.shape[0]), int(array.dtype.itemsize)
        there = self.numpy.flatnonzero(places >= 0)
        by_place = there[self.numpy.argsort(places[there], kind="stable")].tolist()
        # Before the first chunk in the file and behind the last one there is more than the array, whatever its values.
        chunks = [*by_place[:1], *by_place[-1:], *by_place[:: max(1, len(by_place) // _SAMPLES)]]
        with Path(array.file.filename).open("rb") as file:
            for chunk in dict.fromkeys(chunks):
                low, high = chunk * size, min((chunk + 1) * size, count)
                for begin in dict.fromkeys((low, max(low, high - _SAMPLE))):
                    wanted = self.numpy.asarray(array[begin : min(begin + _SAMPLE, high)]).tobytes()
                    found = []
                    for shift in (0, block):
                        file.seek(int(places[chunk]) + (begin - low) * width + shift)
                        found += [shift] if file.read(len(wanted)) == wanted else []
                    if len(found) == 1:
                        return found[0]
        return None

    def _why_not(self, array: Any) -> str:
        h5t, dtype, plist = self.h5py.h5t, self.numpy.dtype(array.dtype), array.id.get_create_plist()
        if plist.get_nfilters() > 0:
            return f"is compressed or filtered ({array.compression or 'filters of HDF5'})"
        if plist.get_layout() not in (_CONTIGUOUS, _CHUNKED):
            return "is stored inside of headers or virtually"
        is_plain = dtype.kind in "biuf" and dtype.itemsize <= 8 and dtype.newbyteorder("<") == dtype
        # NumPy has one boolean and one float of each size; HDF5 may store them as anything.
        if array.ndim != 1 or not is_plain or array.id.get_type() != h5t.py_create(dtype, logical=True):
            return f"is {dtype} {list(array.shape)}, stored as no array of NumPy's is"
        if array.chunks is None and array.shape[0] and array.id.get_offset() is None:
            return "has no values in the file"
        return ""

    def _member(self, group: Any, name: str) -> Any:
        """A member by its path, all of which is in this file."""
        node, parts, links = group, name.split("/"), 0
        while parts:
            part = parts.pop(0)
            if part in ("", "."):
                continue
            if not isinstance(node, self.h5py.Group):
                raise KeyError(name)
            link = node.get(part, getlink=True)
            if isinstance(link, self.h5py.ExternalLink):
                raise Refused(f"is a link to another file, {link.filename[:80]!r}: {_COPY}")
            if not isinstance(link, self.h5py.SoftLink):
                node = node[part]  # a KeyError where there is none
                continue
            links += 1
            if links > _MOST_LINKS:
                raise KeyError(f"{name}: more than {_MOST_LINKS} links")
            node = node.file if link.path.startswith("/") else node
            parts = [*link.path.split("/"), *parts]
        return node

    def _refuse_other_files(self, array: Any) -> None:
        if array.id.get_create_plist().get_external_count():
            raise Refused(f"is stored in another file, {str(array.external[0][0])[:80]!r}: {_COPY}")
        if array.id.get_create_plist().get_layout() == _VIRTUAL:
            others = [each.file_name for each in array.virtual_sources() if each.file_name != "."]
            if others:
                raise Refused(f"is a view of another file, {others[0][:80]!r}: {_COPY}")

    def _told(self, node: Any, file: int, depth: int = 0) -> dict[str, Any]:
        """The kind, shape and attributes of a node, which gets a number."""
        self.last += 1
        self.nodes[self.last] = node, file
        found: dict[str, Any] = {
            "node": self.last,
            "attributes": {name: self._attribute(node, name) for name in _ATTRIBUTES},
        }
        if isinstance(node, self.h5py.Dataset):
            self._refuse_other_files(node)
            shape, chunks = list(node.shape or ()), node.chunks
            found |= {"shape": shape, "dtype": node.dtype.str, "chunks": chunks and list(chunks)}
        elif not isinstance(node, self.h5py.Group):
            raise TypeError(f"a {type(node).__name__}, neither group nor array")
        elif depth and len(node) <= _MOST_MEMBERS:
            found["members"] = {name: self._told_of_member(node, name, file, depth - 1) for name in node}
        return found

    def _told_of_member(self, group: Any, name: str, file: int, depth: int) -> dict[str, Any] | None:
        try:
            return self._told(self._member(group, name), file, depth)
        except Exception:  # said when it is asked for
            return None

    def _attribute(self, node: Any, name: str) -> Any:
        if name not in node.attrs:
            return None
        value = node.attrs[name]
        value = value.tolist() if hasattr(value, "tolist") else value
        if isinstance(value, bytes):
            return value.decode()
        if isinstance(value, list):
            return [each.decode() if isinstance(each, bytes) else each for each in value]
        return value


def _bind_to_parent(life: int) -> None:
    """The kernel ends this process by SIGIO when the pipe into which its parent never writes is closed.

    That interrupts a read that waits for ever; a thread of the parent may end, unlike with PR_SET_PDEATHSIG. It is not
    the pipe of requests, whose writer signals a request when it may be read already.
    """
    fcntl.fcntl(life, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(life, fcntl.F_SETFL, fcntl.fcntl(life, fcntl.F_GETFL) | os.O_ASYNC)
    poll = select.poll()
    poll.register(life, 0)  # for POLLHUP alone
    if poll.poll(0):  # closed before
        os._exit(0)


_KINDS: dict[type, str] = {MemoryError: "memory", Refused: "refused"}


def _errno_in(words: str) -> int:
    """The system's error, where HDF5 says in its message that a call failed; else 0."""
    found = re.search(r".*, errno = (\d{1,4}), error message = '", words, re.DOTALL)  # the last: names come before it
    return int(found[1]) if found else 0


def _serve(child: Child, requests: Any, answers: Any) -> None:
    while True:
        if not select.select([requests], [], [], None if child.files else _IDLE_S)[0]:
            return
        line = requests.readline()
        if not line:
            return
        try:
            child.bound(0)
            told, data = child.answer(json.loads(line))
            text = json.dumps(told).encode()
        except BaseException as error:
            words = f"{error}" or type(error).__name__
            kind = _KINDS.get(type(error), "error")
            told, data, text = None, b"", json.dumps({kind: words[:500], "errno": _errno_in(words)}).encode()
        answers.write(struct.pack("<QQ", len(text), len(data)))
        answers.write(text)
        answers.write(data)
        answers.flush()
        del told, data, text


def _main() -> NoReturn:
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints is no answer
    requests = os.fdopen(0, "rb", 0)  # unbuffered, for select()
    _bind_to_parent(int(sys.argv[1]))
    begin = json.loads(requests.readline())
    sys.path[:] = begin["path"]
    h5py, numpy = importlib.import_module("h5py"), importlib.import_module("numpy")
    for name in begin["plugins"]:
        importlib.import_module(name)
    try:
        _serve(Child(h5py, numpy), requests, answers)
    finally:
        os._exit(0)


if __name__ == "__main__":
    _main()
