"""A file system as a loss of power may leave it: what was synced lasts, anything else may or may not.

Rules, of which POSIX promises no more:
- bytes and size of a file last once it is synced; before, each 512-byte sector of each write may or may not be there;
- a name in a folder lasts once the folder is synced, which says nothing of the file's bytes; before, each change of
  names may or may not be there, in any combination. A rename in one folder is there whole or not at all. Of one between
  folders the new name may be there beside the old one; the old one does not go without the new one.
"""

from __future__ import annotations

import os
import random
import stat
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from crash.entries import Entry

SECTOR = 512
EXCHANGE = 2  # RENAME_EXCHANGE


@dataclass(frozen=True)
class Leaf:
    """A file, or with `target` a symbolic link; `number` tells which names are one file."""

    number: int
    data: bytes
    target: str | None = None
    mtime_ns: int | None = None  # of a file that was there before, as long as it is not written


State = dict[str, Leaf | None]
"""What lies where, by path from the root; None: a folder."""


@dataclass
class File:
    """A file's bytes: as they last, and as the process sees them."""

    number: int
    lasting: bytes = b""
    seen: bytes = b""
    pending: list[tuple[str, int, bytes]] = field(default_factory=list)  # kind, offset or size, bytes
    mtime_ns: int | None = None
    target: str | None = None

    def change(self, kind: str, at: int, data: bytes) -> None:
        self.pending.append((kind, at, data))
        self.seen = bytes(_changed(bytearray(self.seen), kind, at, data))
        self.mtime_ns = None

    def sync(self) -> None:
        self.lasting = self.seen
        self.pending.clear()

    def zeroed(self) -> bytes:
        """The size is there, and none of the bytes."""
        return self.lasting[: len(self.seen)].ljust(len(self.seen), b"\0")

    def torn(self, chosen: random.Random) -> bytes:
        """Some sectors of each write, and some of the other changes, are there, under one of three sizes."""
        data, share = bytearray(self.lasting), chosen.choice((0.2, 0.5, 0.8))
        for kind, at, piece in self.pending:
            if kind in "WZ":
                for begin, end in _sectors(at, at + len(piece)):
                    if chosen.random() < share:
                        _changed(data, kind, begin, piece[begin - at : end - at])
            elif chosen.random() < share:
                _changed(data, kind, at, piece)
        size = chosen.choice((len(self.seen), len(data), len(self.lasting)))
        return bytes(data[:size].ljust(size, b"\0"))


def _sectors(begin: int, end: int) -> Iterable[tuple[int, int]]:
    while begin < end:
        stop = min(end, (begin // SECTOR + 1) * SECTOR)
        yield begin, stop
        begin = stop


def _changed(data: bytearray, kind: str, at: int, piece: bytes) -> bytearray:
    """W writes, Z makes zeros without making it longer, A makes it longer, X cuts it or makes it longer."""
    if kind == "X":
        del data[at:]
    if kind in "XA":
        data.extend(bytes(max(0, at - len(data))))
        return data
    if kind == "Z":
        piece = piece[: max(0, len(data) - at)]
    data.extend(bytes(max(0, at - len(data))))
    data[at : at + len(piece)] = piece
    return data


@dataclass
class Naming:
    """One call's change of names: (folder, name, what it names then; None: nothing), of which each lasts or not."""

    sets: list[tuple[int, str, int | None]]
    lasts: list[bool]


class Model:
    """Files and folders below a root, as a process sees them and as they last."""

    def __init__(self, root: Path, unsynced: Iterable[str] = ()) -> None:
        """Looks at what is there now, all of which lasts, but for the bytes of files in `unsynced` folders."""
        self._numbers: dict[int, int] = {}  # ours by the system's, which come again
        self.files: dict[int, File] = {}
        self._lasting: dict[int, dict[str, int]] = {}
        self._namings: list[Naming] = []  # not all of which last
        self._unnamed: set[int] = set()  # files
        self.root = self._folder(root.stat().st_ino)
        self._look(root, self.root)
        for folder in unsynced:
            for path in (root / folder).rglob("*"):
                if path.is_file():
                    file = self.files[self._numbers[path.stat().st_ino]]
                    file.lasting, file.pending = b"", [("W", 0, file.seen)]

    def _look(self, folder: Path, number: int) -> None:
        for each in sorted(os.scandir(folder), key=lambda each: each.name):
            status = each.stat(follow_symlinks=False)
            if stat.S_ISDIR(status.st_mode):
                found = self._folder(status.st_ino)
                self._look(Path(each.path), found)
            elif (known := self._numbers.get(status.st_ino)) is not None:
                found = known
            else:
                found = self._file(status.st_ino)
                file = self.files[found]
                if stat.S_ISLNK(status.st_mode):
                    file.target = str(Path(each.path).readlink())
                else:
                    file.lasting = file.seen = Path(each.path).read_bytes()
                    file.mtime_ns = status.st_mtime_ns
            self._lasting[number][each.name] = found

    def _folder(self, inode: int) -> int:
        number = self._numbers[inode] = len(self.files) + len(self._lasting)
        self._lasting[number] = {}
        return number

    def _file(self, inode: int) -> int:
        number = self._numbers[inode] = len(self.files) + len(self._lasting)
        self.files[number] = File(number)
        return number

    # ---- calls

    def apply(self, entry: Entry) -> None:
        """Does what a call did.

        Raises:
            ValueError: it cannot be replayed.
        """
        kind = entry.kind
        if kind in "BN" or (kind == "?" and self._numbers.get(entry.inode) in self._unnamed):
            return
        if kind == "?" or (kind == "M" and entry.size & EXCHANGE):
            raise ValueError(f"cannot be replayed: {entry}")
        if kind in "CDTS":
            number = self._folder(entry.inode) if kind == "D" else self._file(entry.inode)
            if kind == "S":
                self.files[number].target = os.fsdecode(entry.data)
            if kind == "T":
                self._unnamed.add(number)
            else:
                self._name([(entry.parent, entry.name, number)])
        elif kind == "L":
            self._unnamed.discard(self._numbers[entry.inode])
            self._name([(entry.parent, entry.name, self._numbers[entry.inode])])
        elif kind == "U":
            self._name([(entry.parent, entry.name, None)])
        elif kind == "M":
            number = self._numbers[entry.inode]
            self._name([(entry.parent, entry.name, None), (entry.parent2, entry.name2, number)])
        elif kind == "F":
            self._sync(self._numbers[entry.inode])
        elif kind == "Y":
            for number in [*self.files, *self._lasting]:
                self._sync(number)
        else:
            self._change(self.files[self._numbers[entry.inode]], entry)

    def _change(self, file: File, entry: Entry) -> None:
        if entry.kind == "W":
            file.change("W", entry.offset, entry.data)
        elif entry.kind == "Z":
            file.change("Z", entry.offset, bytes(entry.size))
        else:
            file.change(entry.kind, entry.offset + entry.size, b"")

    def _name(self, sets: list[tuple[int, str, int | None]]) -> None:
        own = [(self._numbers[folder], name, number) for folder, name, number in sets]
        self._namings.append(Naming(own, [False] * len(own)))

    def _sync(self, number: int) -> None:
        if number in self.files:
            self.files[number].sync()
            return
        for each in self._namings:
            for i, (folder, _, _) in enumerate(each.sets):
                if folder == number:
                    each.lasts[i] = True
            if each.lasts[0]:  # what is gone from here is there
                each.lasts = [True] * len(each.lasts)
        while self._namings and all(self._namings[0].lasts):
            for folder, name, named in self._namings.pop(0).sets:
                _set(self._lasting[folder], name, named)

    # ---- what may be left

    @property
    def is_synced(self) -> bool:
        """True if nothing may be lost."""
        return not self._namings and not any(each.pending for each in self.files.values())

    def state(self, names: Callable[[], bool], data: Callable[[File], bytes]) -> State:
        """What is left where `names` chooses of the changes of names, one after the other, and `data` of the bytes."""
        folders = {number: dict(entries) for number, entries in self._lasting.items()}
        for each in self._namings:
            is_there = [lasts or names() for lasts in each.lasts]
            if len(each.sets) == 2:
                within_one = each.sets[0][0] == each.sets[1][0]
                is_there = [is_there[0] and (is_there[1] or within_one), is_there[0] if within_one else is_there[1]]
            for chosen, (folder, name, number) in zip(is_there, each.sets, strict=True):
                if chosen:
                    _set(folders[folder], name, number)
        state: State = {}
        self._walk(folders, self.root, "", state, {}, data, frozenset())
        return state

    def _walk(
        self,
        folders: dict[int, dict[str, int]],
        number: int,
        path: str,
        state: State,
        leaves: dict[int, Leaf],
        data: Callable[[File], bytes],
        above: frozenset[int],
    ) -> None:
        for name, found in sorted(folders[number].items()):
            if found in folders:
                if found not in above:  # a folder that is moved below itself by what is left is in no place
                    state[path + name] = None
                    self._walk(folders, found, f"{path}{name}/", state, leaves, data, above | {number, found})
                continue
            if found not in leaves:
                file = self.files[found]
                left = data(file) if file.pending else file.lasting
                leaves[found] = Leaf(found, left, file.target, file.mtime_ns)
            state[path + name] = leaves[found]


def _set(entries: dict[str, int], name: str, number: int | None) -> None:
    if number is None:
        entries.pop(name, None)
    else:
        entries[name] = number
