"""Files of the Hugging Face Hub that a run reads: each repository at one commit, whatever becomes of its branch."""

from __future__ import annotations

import errno
import json
import posixpath
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from penstock._base.errors import InvalidArgumentError, NotFoundError
from penstock._base.words import counted
from penstock._places.hub import Hub, HubPath, patiently
from penstock._places.storage import Storage
from penstock._places.stores.addresses import StoreAddress
from penstock._places.stores.by_address import checked
from penstock._places.stores.globs import has_glob, matches

_DIGITS = re.compile(r"\d+")
_DIGIT_END = re.compile(r"\d+$")
_AT_ONCE = 500  # paths that are asked for by one request
_SHOWN = 3  # globs that a message suggests


@dataclass(frozen=True, repr=False)
class HubAddress(StoreAddress):
    """A file of a repository.

    Args:
        path: its address, with the commit.
        typed: its address as the user has it, with a branch or none.
        size: bytes.
    """

    typed: str = ""
    size: int = 0

    def __reduce__(self) -> tuple[Any, ...]:
        return HubAddress, (self.path, "", "", self.storage, None, None, self.typed, self.size)


class Pins:
    """The commits that revisions of repositories were when a run first looked.

    Attributes:
        commits: by addresses of repositories with revisions.
    """

    def __init__(self, commits: Mapping[str, str] | None = None) -> None:
        """`commits` are of the run that this one goes on with."""
        self._before = dict(commits or {})
        self.commits: dict[str, str] = {}

    @classmethod
    def of_note(cls, note: bytes | None) -> Pins:
        """Those of `note`; none of one that cannot be read."""
        try:
            said = json.loads(note or b"{}")
        except ValueError:
            said = {}
        if not isinstance(said, dict):
            said = {}
        return cls({name: commit for name, commit in said.items() if isinstance(commit, str)})

    def note(self) -> bytes:
        """As `of_note` reads them."""
        return json.dumps(self.commits, indent=1).encode() + b"\n"

    def pinned(self, hub: Hub, path: HubPath, deadline: float) -> HubPath:
        """The same at a commit. Raises as `patiently`."""
        if path.root not in self.commits:
            before = self._before.get(path.root)
            sought = path if before is None else replace(path, revision=before)
            try:
                self.commits[path.root] = patiently(path.root, deadline, lambda: hub.commit(sought))
            except NotFoundError as error:
                if before is None:
                    raise
                raise InvalidArgumentError(
                    f"{error}: the run that is gone on with read this commit, which is not there any more: start anew "
                    "with --overwrite and without --resume"
                ) from None
        return replace(path, revision=self.commits[path.root])


class HubFiles:
    """Finds files of repositories. One thread."""

    def __init__(self, patterns: Iterable[str], storage: Storage, pins: Pins) -> None:
        """Asks for nothing yet; `patterns` are all that will be looked for, so that files are asked for together.

        Raises:
            InvalidArgumentError: huggingface_hub is not installed; one is no address of the Hub.
        """
        self._storage = storage
        self._pins = pins
        self._hub = Hub(storage)
        self._typed: dict[HubPath, list[str]] = {}  # paths that are no globs, by their repositories
        for pattern in patterns:
            path = HubPath.parse(checked(pattern, "hf"))
            if path.path and not has_glob(path.path):
                self._typed.setdefault(path.at(""), []).append(path.path)
        self._known: dict[HubPath, dict[str, int]] = {}

    def find(self, pattern: str, reads: Callable[[str], bool]) -> list[HubAddress]:
        """The file of an address, or those that a glob matches, sorted.

        Args:
            pattern: One of those that were given.
            reads: Whether a file is read by its name, for messages.

        Raises:
            NotFoundError: There is none; no such repository or revision.
            InvalidArgumentError: It is a repository or a folder: the message has globs for its files.
            IoError: It cannot be asked for.
        """
        pattern = checked(pattern, "hf")
        path = HubPath.parse(pattern)
        if has_glob(path.path):
            return self._matching(path, pattern)
        pinned = self._pins.pinned(self._hub, path, self._storage.deadline)
        size = self._described(path, pinned).get(path.path) if path.path else -1
        if size is None:
            raise NotFoundError(errno.ENOENT, f"{pattern}: there is no such file in it at {pinned.revision}", pattern)
        if size < 0:
            raise InvalidArgumentError(self._of_folder(path, pinned, pattern, reads))
        return [self._address(pinned, pattern, size)]

    def _described(self, path: HubPath, pinned: HubPath) -> dict[str, int]:
        """Bytes of all paths of the repository that were given and are there; of folders -1."""
        repository = path.at("")
        if repository not in self._known:
            known = self._known[repository] = {}
            paths = self._typed[repository]
            for begin in range(0, len(paths), _AT_ONCE):
                some = paths[begin : begin + _AT_ONCE]
                asked = partial(self._hub.described, pinned, some)
                found = patiently(path.root, self._storage.deadline, asked)
                known.update({each.path: each.size for each in found.values()})
        return self._known[repository]

    def _matching(self, path: HubPath, pattern: str) -> list[HubAddress]:
        pinned = self._pins.pinned(self._hub, path, self._storage.deadline)
        parts = path.path.split("/")
        first = next(number for number, part in enumerate(parts) if has_glob(part))
        folder = "/".join(parts[:first])
        tree = self._tree(pinned.at(folder), recursive=first < len(parts) - 1 or parts[first] == "**")
        try:
            found = matches(tree, path.path)
        except NotFoundError:
            found = []
        files = [(each, tree.sizes[each]) for each in found if tree.sizes.get(each, -1) >= 0]
        if not files:
            raise NotFoundError(errno.ENOENT, f"{pattern}: no file matches at {pinned.revision}", pattern)
        above = pattern.removesuffix(path.path)
        return [self._address(pinned.at(each), above + each, size) for each, size in files]

    def _tree(self, pinned: HubPath, recursive: bool) -> _Tree:
        def listed() -> _Tree:
            try:
                return _Tree({each.path: each.size for each in self._hub.listing(pinned, recursive)})
            except FileNotFoundError:
                if not pinned.path:
                    raise
                return _Tree({})  # there is no such folder

        return patiently(str(pinned), self._storage.deadline, listed)

    def _address(self, pinned: HubPath, typed: str, size: int) -> HubAddress:
        return HubAddress(str(pinned), "", "", self._storage, None, None, typed, size)

    def _of_folder(self, path: HubPath, pinned: HubPath, pattern: str, reads: Callable[[str], bool]) -> str:
        """How to name the files of a repository or a folder."""
        names = [name for name, size in self._tree(pinned, recursive=True).sizes.items() if size >= 0]
        globs = globs_of(each for each in names if reads(each))
        what = "folder" if path.path else path.what
        if not globs:
            return f"{pattern}: a {what}, and none of its {len(names):,} files is named as one that is read"
        above = pattern.removesuffix(path.path).rstrip("/")
        shown = ", ".join(f"'{above}/{glob}' ({count:,})" for glob, count in globs[:_SHOWN])
        others = len(names) - sum(count for _, count in globs[:_SHOWN])
        rest = f"; {counted(others, 'other file')}" if others else ""
        return f"{pattern}: a {what}, which may hold more sets of files than one: name them, as in {shown}{rest}"


class _Tree:
    """Files and folders of a repository, as `matches` asks for them."""

    def __init__(self, sizes: dict[str, int]) -> None:
        self.sizes = sizes
        self._names: dict[str, list[str]] = {}
        for path, size in sizes.items():
            folder, _, name = path.rpartition("/")
            self._names.setdefault(folder, []).append(name + "/" if size < 0 else name)

    def list(self, folder: str) -> list[str]:
        """Names in a folder; those of folders end with a slash."""
        return self._names.get(folder, [])


def globs_of(paths: Iterable[str]) -> list[tuple[str, int]]:
    """Globs that match paths that differ in numbers alone, and how many each matches; those of most paths first.

    A path without others like it is given as it is.
    """
    alike: dict[str, list[str]] = {}
    for path in paths:
        alike.setdefault(_DIGITS.sub("0", path), []).append(path)
    parts = [[each.split("/") for each in same] for same in alike.values()]
    found = [("/".join(map(_glob_of, zip(*same, strict=True))), len(same)) for same in parts]
    return sorted(found, key=lambda each: (-each[1], each[0]))


def _glob_of(names: Sequence[str]) -> str:
    """One that matches these names: what they begin with, and the suffixes that they end with."""
    if len(set(names)) == 1:
        return names[0]
    begin = _DIGIT_END.sub("", posixpath.commonprefix(names))
    end = posixpath.commonprefix([each[len(begin) :][::-1] for each in names])[::-1]
    return f"{begin}*{end[end.index('.') :] if '.' in end else ''}"
