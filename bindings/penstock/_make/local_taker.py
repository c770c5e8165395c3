"""Shards that were finished elsewhere on this machine, on their way into a dataset's folder."""

from __future__ import annotations

import errno
import fcntl
import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from penstock._base.errors import InvalidArgumentError
from penstock._make.bucket_look import MANIFEST, SHARD_MANIFEST, generation_of, parsed
from penstock._make.folder import Taker
from penstock._places.paths import PathLike
from penstock._places.scratch import Scratch, remove_tree, telling_of, this_boot

#: Of a file system that has none: the native writer goes on without, too.
_NO_LOCKS = (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL)


class LocalTaker(Taker):
    """Renames what is finished in `path` into the dataset's folder. One thread."""

    keeps_files = True

    def __init__(self, out: str, run: str, scratch: PathLike | None = None) -> None:
        """Makes the scratch folder: in `out`, so that shards are renamed, or where `scratch` says.

        Raises:
            IoError: It cannot be made.
        """
        self._out = Path(out)
        self._scratch = None if scratch is None else Scratch(scratch)
        if self._scratch is None:
            with telling_of(self._out):
                prefix = f".partial-shards@{this_boot()}@{run}@{os.getpid()}-"
                self.scratch = Path(tempfile.mkdtemp(prefix=prefix, dir=self._out))
        else:
            self.scratch = self._scratch.path
        self.path = str(self.scratch / "dataset")
        self._generation = _names(self._out)[1]

    def begin(self, number: int) -> None:
        finished = Path(self.path) / f"{number:05}"
        name = f"{number:05}{f'.{self._generation}' if self._generation else ''}"
        with telling_of(self._out), self._shared() as folder:
            if self._scratch is not None:  # of another file system, maybe
                # A link to a folder at a name that can be guessed would take the shard there.
                partial = f".partial-{name}@{this_boot()}@-@{os.getpid()}-{secrets.token_hex(8)}"
                finished = self._moved(finished, self._out / partial)
            for file in finished.iterdir():
                _sync(file)
            _sync(finished)
            if self._is_there(name, finished):  # an earlier attempt was killed before it could say so
                shutil.rmtree(finished)
                return
            if (self._out / name).exists():
                raise InvalidArgumentError(f"{self._out}: shard {name} is there already; it stays as it is")
            finished.rename(self._out / name)
            os.fsync(folder)

    def _moved(self, finished: Path, to: Path) -> Path:
        try:
            return Path(shutil.move(finished, to))
        except BaseException:  # a copy that did not end
            remove_tree(to)
            raise

    def _is_there(self, name: str, finished: Path) -> bool:
        with suppress(FileNotFoundError):
            return (self._out / name / SHARD_MANIFEST).read_bytes() == (finished / SHARD_MANIFEST).read_bytes()
        return False

    @contextmanager
    def _shared(self) -> Iterator[int]:
        """Holds the folder together with other writers of shards."""
        folder = os.open(self._out, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            try:
                fcntl.flock(folder, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                raise InvalidArgumentError(f"{self._out}: another writer is at work in this folder") from None
            except OSError as error:
                if error.errno not in _NO_LOCKS:
                    raise
            yield folder
        finally:
            os.close(folder)

    def copy(self, number: int, at: str, name: str, text: bytes, files: Sequence[tuple[str, int]]) -> bool:
        """False: there is no server."""
        return False

    def wait(self) -> None:
        """Nothing: what was begun is taken."""

    def abort(self, keep: bool = False) -> None:
        """Nothing: what was taken stays, for a run that goes on."""

    def close(self) -> None:
        if self._scratch is not None:
            self._scratch.close()
        else:
            remove_tree(self.scratch)


def shard_texts(path: str, overwrite: bool) -> dict[int, bytes]:
    """The shard.json of each finished shard by number: as _native.finished_shards says which there are."""
    folder = Path(path)
    named, generation = _names(folder)
    if named is not None and not overwrite:
        names = dict(enumerate(named))
    else:
        shards = [parsed(each.name, is_finished=True) for each in folder.iterdir()] if folder.is_dir() else []
        names = {each.number: each.name for each in shards if each is not None and each.generation == generation}
    texts = {}
    for number, name in names.items():
        with suppress(FileNotFoundError):
            texts[number] = (folder / name / SHARD_MANIFEST).read_bytes()
    return texts


def _names(folder: Path) -> tuple[list[str] | None, int]:
    """Folders that the published manifest names, None: there is none; and the generation of shards not published."""
    manifest = None
    with suppress(FileNotFoundError):
        manifest = (folder / MANIFEST).read_bytes()
    shards = [parsed(each.name, is_finished=True) for each in folder.iterdir()] if folder.is_dir() else []
    return generation_of(manifest, [each for each in shards if each is not None])


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
