"""Paths as users type them."""

from __future__ import annotations

import os
from typing import Any

from penstock._errors import InvalidArgumentError

PathLike = str | os.PathLike[str]


def local_path(path: Any) -> str:
    """The path as text, `~` replaced by the home folder.

    Raises:
        InvalidArgumentError: It is no path: a list of them, bytes, None, an object storage's URL.
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
    return os.path.expanduser(text)  # noqa: PTH111 - a Path would change how the name is written
