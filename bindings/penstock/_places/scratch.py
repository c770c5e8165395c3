"""Scratch folders: where shards are written before they are uploaded."""

from __future__ import annotations

import fcntl
import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType

from penstock._base.errors import Error, IoError
from penstock._places.paths import PathLike, local_path

_PREFIX = "penstock-scratch-"
_LOCK = "lock"  # held while the owner lives
_KEPT = "kept"  # there: the owner left a shard on purpose


class Scratch:
    """A folder of this process, in `parent` or in the folder of temporary files. Those of killed processes are removed.

    Attributes:
        path: of the folder.
    """

    def __init__(self, parent: PathLike | None = None) -> None:
        """Makes it.

        Raises:
            IoError: It cannot be made.
        """
        above = _above(parent)
        self._owner = os.getpid()
        try:
            above.mkdir(parents=True, exist_ok=True)
            remove_dead(parent)
            while not self._make(above):
                pass
        except OSError as error:
            raise IoError(error.errno, f"scratch folder {above}: {error.strerror}", str(above)) from None

    def _make(self, above: Path) -> bool:
        """False: another process took it for one of a dead one before it was locked."""
        self.path = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=above))
        lock = self.path / _LOCK
        try:
            self._lock = _open_lock(self.path)
        except FileNotFoundError:
            return False
        with suppress(OSError):  # where nothing locks, nothing of others is removed
            fcntl.flock(self._lock, fcntl.LOCK_SH)
        if lock.exists():
            return True
        os.close(self._lock)
        return False

    def keep(self) -> None:
        """Lets the folder stay, with what is in it."""
        (self.path / _KEPT).touch()

    def close(self) -> None:
        """Removes it. May be called twice; does nothing in a forked child."""
        if os.getpid() != self._owner or self._lock < 0:
            return
        if not (self.path / _KEPT).exists():
            remove_tree(self.path)
        os.close(self._lock)
        self._lock = -1

    def __enter__(self) -> Path:
        return self.path

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


def _open_lock(folder: Path) -> int:
    return os.open(folder / _LOCK, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)


def _above(parent: PathLike | None) -> Path:
    return Path(tempfile.gettempdir() if parent is None else local_path(parent))


def remove_dead(parent: PathLike | None) -> None:
    """Removes the scratch folders of processes that ended, in `parent` or in the folder of temporary files."""
    for folder in _above(parent).glob(f"{_PREFIX}*"):
        with suppress(OSError):
            # Others may put links of such a name into the folder of temporary files.
            if folder.is_symlink() or folder.stat().st_uid != os.getuid() or (folder / _KEPT).exists():
                continue
            lock = _open_lock(folder)  # its owner may have been killed before it made one
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                remove_tree(folder)
            finally:
                os.close(lock)


@contextmanager
def beside_shards(out: str, run: str, what: str) -> Iterator[Path]:
    """A folder in the dataset's, while no shard is removed or published: that removes it.

    Each has a name of its own: one that could not be removed is in nobody's way.
    """
    folder = Path(out) / f".partial-{what}@{this_boot()}@{run}@{os.getpid()}-{secrets.token_hex(4)}"
    try:
        with telling_of(folder):
            folder.mkdir(parents=True)
        yield folder
    finally:
        remove_tree(folder)


def remove_tree(folder: Path) -> None:
    """Removes a folder as far as that can be: what stays is removed by a next run. Raises nothing."""
    with suppress(OSError):  # of a look at the folder itself, which ignore_errors lets through
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def telling_of(folder: Path) -> Iterator[None]:
    """Says of what Python cannot write in a folder what the native writer says."""
    try:
        yield
    except OSError as error:
        if isinstance(error, Error):
            raise
        raise IoError(error.errno, f"{error.filename or folder}: {error.strerror or error}", str(folder)) from error


def this_boot() -> str:
    """As a writer's unfinished folders have it, so that the next run removes what a killed one left."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text()[:8]
    except OSError:
        return "unknown"
