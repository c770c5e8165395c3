"""A dataset's folder on this machine, while shards are made in it: over the native writer's lock and look."""

from __future__ import annotations

import os
import secrets
from collections.abc import Hashable, Iterable, Sequence
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Any

from penstock import _native
from penstock._base.errors import Error, IoError
from penstock._data.open import open as open_dataset
from penstock._make.errors import UsageError
from penstock._make.folder import Folder, Publication, ShardInfo, shard_infos
from penstock._make.local_taker import LocalTaker, shard_texts
from penstock._places.paths import looking_at
from penstock._places.scratch import Scratch, beside_shards, remove_dead, telling_of, this_boot


class LocalFolder(Folder):
    """A folder of this machine."""

    is_here = is_live = True

    def __init__(self, path: str, scratch: str | None = None) -> None:
        """Looks at nothing yet; `scratch` is where runs put aside what they do; None: beside the shards."""
        self.path = path
        self._scratch = scratch
        self._held: _native.Run | None = None

    @property
    def beside(self) -> Path:
        return Path(self.path).absolute().parent

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_held": None}

    def hold(self, run: str) -> None:
        refuse_file(self.path)
        self._held = _native.Run(self.path, run)

    def close(self) -> None:
        if self._held is not None:
            self._held.close()

    @property
    def is_published(self) -> bool:
        return self.version() is not None

    def version(self) -> Hashable | None:
        with suppress(FileNotFoundError, NotADirectoryError), looking_at(self.path):
            found = (Path(self.path) / "dataset.json").stat()
            return found.st_ino, found.st_mtime_ns
        return None

    def finished(self, overwrite: bool, *, now: bool = False, is_impatient: bool = False) -> list[ShardInfo]:
        return shard_infos(_native.finished_shards(self.path, overwrite))

    def remove(self, numbers: Iterable[int], overwrite: bool, run: str | None) -> None:
        _native.remove_shards(self.path, list(numbers), overwrite, run)

    def clean(self, run: str) -> None:
        _native.clean(self.path, True, run)

    def clean_after(self, run: str, replaces: bool) -> None:
        with suppress(Error):  # what ended the run is the error to tell
            _native.clean(self.path, replaces, run)

    def publish(self, publication: Publication) -> str:
        shards = publication.shards
        count, numbers = (shards, None) if shards is None or isinstance(shards, int) else (None, list(shards))
        return _native.commit(
            self.path,
            publication.tokenizer,
            count,
            publication.overwrite,
            publication.tasks,
            publication.run,
            publication.features,
            numbers,
        )

    def read_note(self, name: str) -> bytes | None:
        file = Path(self.path) / name
        with telling_of(file):
            return file.read_bytes() if file.exists() else None

    def write_note(self, name: str, data: bytes) -> None:
        path = Path(self.path) / name
        # As the native writer's: the next run finds one that stays, and nobody can guess it, and lay a link there.
        partial = path.with_name(f".partial-{name}@{this_boot()}@-@{os.getpid()}-{secrets.token_hex(8)}")
        try:
            with partial.open("xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            partial.replace(path)
        except BaseException as error:
            with suppress(OSError):
                partial.unlink(missing_ok=True)
            if not isinstance(error, OSError):
                raise
            raise IoError(error.errno, f"{path}: {error.strerror}", str(path)) from error

    def remove_notes(self, names: Sequence[str]) -> None:
        for name in names:
            file = Path(self.path) / name
            with telling_of(file):
                file.unlink(missing_ok=True)

    def notes(self) -> set[str]:
        with telling_of(Path(self.path)), suppress(FileNotFoundError), os.scandir(self.path) as there:
            return {each.name for each in there if each.is_file()}
        return set()

    def absolute(self) -> LocalFolder:
        scratch = None if self._scratch is None else str(Path(self._scratch).absolute())
        return LocalFolder(str(Path(self.path).absolute()), scratch)

    def make(self) -> None:
        with telling_of(Path(self.path)):
            Path(self.path).mkdir(parents=True, exist_ok=True)

    def is_there(self) -> bool:
        return Path(self.path).is_dir()

    def aside(self, run: str, what: str) -> AbstractContextManager[Path]:
        return beside_shards(self.path, run, what) if self._scratch is None else Scratch(self._scratch)

    def remove_dead(self) -> None:
        if self._scratch is not None:
            remove_dead(self._scratch)

    def uploads(self, shard: int | None, overwrite: bool) -> None:
        return None

    def shard_uploads(self) -> None:
        return None

    def taker(self, run: str, overwrite: bool) -> LocalTaker:
        return LocalTaker(self.path, run, self._scratch)

    def texts(self, overwrite: bool) -> dict[int, bytes]:
        return shard_texts(self.path, overwrite)

    def fingerprint(self) -> str:
        return open_dataset(self.path).fingerprint

    def size_bytes(self) -> int:
        with telling_of(Path(self.path)):
            return sum(path.stat().st_size for path in Path(self.path).rglob("*") if path.is_file())


def refuse_file(out: str) -> None:
    """Says that a file is where a new dataset is to be made, or above it.

    Raises:
        UsageError: One is.
        penstock.IoError: What is there cannot be looked at.
    """
    with looking_at(out):
        for path in (Path(out), *Path(out).parents):
            if path.exists():
                if not path.is_dir():
                    raise UsageError(f"{path} is a file: choose another --out")
                return
