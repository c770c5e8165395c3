"""Files and folders that have a name of their own until they are whole, so that nobody takes them for what they become.

The writer holds a lock on each. What is left where it cannot be removed is named by the error, and removed by the next
run that makes the same.
"""

from __future__ import annotations

import fcntl
import glob
import os
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from penstock._base.errors import IoError
from penstock._places.scratch import remove_tree

_DIGITS = 16


def unfinished(path: str) -> str:
    """The name of a file or folder until it is whole and gets its own; nobody can guess it, and lay a link there."""
    return f"{path}.partial-{secrets.token_hex(_DIGITS // 2)}"


def hold(descriptor: int, name: str) -> bool:
    """Locks a new unfinished file or folder for as long as it is open. False: make another, by another name.

    Before it is locked, another run may take it for a dead one and remove it.
    """
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # where nothing locks, nothing of others is removed
        return True
    with suppress(OSError):  # others do not say that it is gone
        try:
            os.lstat(name)
        except FileNotFoundError:
            return False
    return True


def remove_dead(path: str) -> None:
    """Removes what is unfinished of `path`, and which no writer holds. Raises nothing."""
    for name in glob.glob(glob.escape(path) + ".partial-" + "[0-9a-f]" * _DIGITS):  # noqa: PTH207 - a Path has no escape
        with suppress(OSError):
            descriptor = _opened(name)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                removed(name)
            finally:
                os.close(descriptor)


def _opened(name: str) -> int:
    flags = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        return os.open(name, os.O_RDWR | flags)  # over NFS only a file that is open for writing can be locked: flock(2)
    except (IsADirectoryError, PermissionError):
        return os.open(name, os.O_RDONLY | flags)


def removed(name: str) -> bool:
    """Removes a file or folder; False: something of it stays. Raises nothing, and takes little memory."""
    try:
        os.unlink(name)  # noqa: PTH108 - a Path takes more memory
    except FileNotFoundError:
        return True
    except IsADirectoryError:
        remove_tree(Path(name))
        return not os.path.lexists(name)
    except (OSError, MemoryError):
        return False
    return True


def naming_left(error: OSError, names: Sequence[str]) -> OSError:
    """Removes them. The error to raise: where some stay, it names them too."""
    left = [name for name in names if not removed(name)]
    if not left:
        return error
    return IoError(error.errno, f"{error}; {', '.join(left)} cannot be removed", error.filename)


def take_back(paths: Sequence[str], error: BaseException) -> None:
    """Removes what got its name, where what follows failed.

    Raises:
        IoError: some cannot be removed: `error`, and that they are there.
    """
    left = [path for path in paths if not removed(path)]
    if left and isinstance(error, OSError):
        words = f"{', '.join(left)} was written, but may not outlast a loss of power: {error.strerror or error}"
        raise IoError(error.errno, words, left[0]) from error


@contextmanager
def removing(names: Sequence[str]) -> Iterator[None]:
    """Removes them after the block, however it ends; an error of the system names those that stay."""
    try:
        yield
    except OSError as error:
        raise naming_left(error, names) from error.__cause__
    finally:
        for name in names:
            removed(name)
