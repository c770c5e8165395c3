"""Paths as users type them."""

from __future__ import annotations

import os
from typing import Any

from penstock._errors import InvalidArgumentError

PathLike = str | os.PathLike[str]


def local_path(path: Any) -> str:
    """The path as text, `~` replaced by the home folder.

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
    scheme, separator, _ = text.partition("://")
    if separator:
        raise InvalidArgumentError(f"{text}: {scheme} is not supported yet: paths are those of this machine")
    check_name(text)
    return os.path.expanduser(text)  # noqa: PTH111 - a Path would change how the name is written


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
