"""The record of what a run did to files: tests/faults/crash/record.c writes it, one entry a call, in their order."""

from __future__ import annotations

import os
import struct
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "python"))

import _c_library

HERE = Path(__file__).parent
_HEAD = struct.Struct("<Qq")  # and a mutex
_ENTRY = struct.Struct("<6I5Q")
SYNCS = "FY"


@dataclass(frozen=True)
class Entry:
    """One call that succeeded.

    Attributes:
        kind: C create, D mkdir, L link, U unlink or rmdir, M rename, S symlink, T a file without a name; W write,
            X truncate, A allocate, N allocate without a change of the size, Z punch; F fsync, Y sync of all; B a note
            of the recording itself; ? what cannot be replayed.
        inode: of the file or folder, as the system numbers it.
        parent: the folder of `name`.
        parent2: the folder of `name2`.
        size: new size, or bytes; of a rename its flags; of a sync 1 for a folder.
    """

    kind: str
    pid: int
    inode: int
    parent: int
    parent2: int
    offset: int
    size: int
    name: str
    name2: str
    data: bytes

    def __str__(self) -> str:
        words = [_WORDS[self.kind], f"inode {self.inode}" if self.inode else "", self.name, self.name2]
        if self.data:
            words.append(f"{len(self.data):,} bytes at {self.offset:,}")
        return " ".join(filter(None, words))


_WORDS = dict(zip("CDLUMSTWXANZFYB?", (
    "create", "mkdir", "link", "unlink", "rename", "symlink", "create without a name", "write", "truncate",
    "allocate", "reserve", "punch", "fsync", "sync", "note", "unknown"
), strict=True))  # fmt: skip


def library(folder: Path) -> Path | None:
    """The recorder as LD_PRELOAD takes it; None without a compiler of C."""
    return _c_library.built(folder / "record.so", HERE / "record.c")


def read(log: Path) -> list[Entry]:
    with log.open("rb") as file:
        used = _HEAD.unpack(file.read(_HEAD.size))[0]
        file.seek(0)
        return list(_parsed(file.read(used)))


def _parsed(text: bytes) -> Iterator[Entry]:
    at = 128  # behind the head, as record.c has it
    while at < len(text):
        size, kind, pid, name, name2, data, inode, parent, parent2, offset, count = _ENTRY.unpack_from(text, at)
        begin = at + _ENTRY.size
        parts = [text[begin : begin + name]]
        parts += [text[begin + name : begin + name + name2]]
        parts += [text[begin + name + name2 : begin + name + name2 + data]]
        names = (os.fsdecode(parts[0]), os.fsdecode(parts[1]))
        yield Entry(chr(kind), pid, inode, parent, parent2, offset, count, *names, parts[2])
        at += size
