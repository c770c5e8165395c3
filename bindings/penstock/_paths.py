"""Paths as users type them."""

from __future__ import annotations

import os
import re
from typing import Any
from urllib.parse import unquote_to_bytes

from penstock import _native
from penstock._errors import InvalidArgumentError

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
        raise InvalidArgumentError(f"{path!r:.80} is no path: a str or os.PathLike is wanted") from None
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
