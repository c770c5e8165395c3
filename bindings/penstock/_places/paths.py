"""Paths as users type them."""

from __future__ import annotations

import errno
import glob
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any
from urllib.parse import unquote_to_bytes

from penstock import _native
from penstock._base.errors import Error, InvalidArgumentError, IoError, NotFoundError

_GLOB = frozenset("*?[")
_ODD_PERCENT = re.compile("%(?![0-9A-Fa-f]{2})|%00")

PathLike = str | os.PathLike[str]


def local_path(path: Any) -> str:
    """The path as text, `~` replaced by the home folder; file:///path is the path, percent-decoded.

    Raises:
        InvalidArgumentError: It is no path: a list of them, bytes, None, an object storage's URL, no UTF-8.
    """
    if isinstance(path, (list, tuple, set)):
        raise InvalidArgumentError(f"a {type(path).__name__} of paths: give them one by one, as in open(*paths)")
    try:
        text = os.fspath(path)
    except TypeError:
        raise _no_path(path) from None
    if not isinstance(text, str):
        raise InvalidArgumentError(f"{path!r:.80} is no path: a str is wanted, not {type(text).__name__}")
    scheme, separator, rest = text.partition("://")
    if separator and scheme.lower() == "file":
        text = _path_of_file_url(text, rest)
    elif separator:
        address = _native.shown_address(text.encode(errors="replace").decode())
        raise InvalidArgumentError(f"{address}: an address: this works on paths of this machine alone")
    check_name(text)
    return os.path.expanduser(text)  # noqa: PTH111 - a Path would change how the name is written


def as_paths(given: Any) -> list[Any]:
    """One path, or several, as a list.

    Raises:
        InvalidArgumentError: It is neither a path nor a list of them.
    """
    if isinstance(given, (str, bytes, os.PathLike)):
        return [given]
    if not isinstance(given, Iterable) or hasattr(given, "write_h5ad"):  # AnnData gives its cells one by one
        raise _no_path(given)
    return list(given)


def _no_path(given: Any) -> InvalidArgumentError:
    wanted = "a str or os.PathLike is wanted"
    if hasattr(given, "write_h5ad"):
        wanted = "a path is wanted: adata.write_h5ad(path) makes a file of AnnData in memory"
    return InvalidArgumentError(f"{given!r:.80} is no path: {wanted}")


def _path_of_file_url(url: str, rest: str) -> str:
    """As RFC 8089 and core/io/open_store.cpp have it. `rest` is what follows file://."""
    host, slash, path = rest.partition("/")
    if not slash or host.lower() not in ("", "localhost"):
        raise InvalidArgumentError(f"{url!a}: a file URL of another host: file:///path is a path of this machine")
    if _ODD_PERCENT.search(path):
        raise InvalidArgumentError(f"{url!a}: a % that no two hexadecimal digits of a character follow")
    return os.fsdecode(b"/" + unquote_to_bytes(path.encode(errors="surrogateescape")))


def check_name(path: str) -> None:
    """Refuses names that penstock cannot have: in messages and manifests they are text.

    Raises:
        InvalidArgumentError: The file's name is no UTF-8, or it has a NUL.
    """
    try:
        path.encode()
    except UnicodeEncodeError:
        raise InvalidArgumentError(f"{path!a}: a name that is not UTF-8: rename it, or reach it by a link") from None
    if "\0" in path:
        raise InvalidArgumentError(f"{path!a}: a name with a NUL")


def expand(path: str) -> list[str]:
    """What a glob matches, sorted; the path itself where it is none, or is there.

    Raises:
        NotFoundError: nothing matches.
    """
    if not _GLOB & set(path) or is_there(path):
        return [path]
    found = sorted(glob.glob(path, recursive=True))  # noqa: PTH207 - patterns may be absolute
    if not found:
        raise NotFoundError(errno.ENOENT, f"{path}: no file matches", path)
    for each in found:
        check_name(each)
    return found


def is_there(path: str) -> bool:
    """True if something has this name, a link to nothing too.

    Raises:
        IoError: It cannot be known; os.path.lexists() would answer False.
    """
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return False
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:  # a pattern may be
            return False
        raise IoError(error.errno, f"{path}: {error.strerror or error}", path) from error
    return True


@contextmanager
def looking_at(path: str) -> Iterator[None]:
    """Makes errors of the operating system penstock's inside, where files are looked for.

    Raises:
        IoError: It says neither that the path is there nor that it is not: no permission, too long, a loop of links.
        NotFoundError: A file is not there.
    """
    try:
        with suppress(FileNotFoundError, NotADirectoryError):
            os.stat(path)  # noqa: PTH116 - Path.exists() answers False of a loop
        yield
    except Error:
        raise
    except OSError as error:
        kind = NotFoundError if isinstance(error, FileNotFoundError) else IoError
        where = str(error.filename or path)
        raise kind(error.errno, f"{where}: {error.strerror or error}", where) from error
