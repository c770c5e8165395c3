"""Globs in stores: which paths a pattern matches, by one listing a folder."""

from __future__ import annotations

import errno
import fnmatch
from collections.abc import Iterable
from typing import Protocol

from penstock._base.errors import NotFoundError
from penstock._places import buckets as _buckets
from penstock._places.remote import HTTP

_GLOB = frozenset("*?[")


class Lists(Protocol):
    """What lists folders."""

    def list(self, path: str, /) -> list[str]:
        """Names in a folder; those of folders end with a slash."""


def has_glob(path: str) -> bool:
    """Whether an address or a key is a pattern."""
    scheme, separator, rest = path.partition("://")
    # A host in brackets is no glob; in the other schemes what follows is a key from its beginning on.
    named = (
        rest.partition("/")[2] if separator and scheme in (*HTTP, *_buckets.SCHEMES) else rest if separator else path
    )
    return bool(_GLOB & set(named))


def matches(store: Lists, pattern: str) -> list[str]:
    """Paths of a store that a glob matches, sorted; `**` is any folders. One listing a folder.

    Raises:
        NotFoundError: there are none.
    """
    scheme, separator, rest = pattern.partition("://")
    root, rest = (scheme + separator, rest) if separator else ("", pattern)
    parts = rest.split("/")
    first = next(i for i, part in enumerate(parts) if _GLOB & set(part))
    found = sorted(set(_walk(store, root + "/".join(parts[:first]), parts[first:])))
    if not found:
        raise NotFoundError(errno.ENOENT, f"{pattern}: no file matches", pattern)
    return found


def _walk(store: Lists, folder: str, parts: list[str]) -> Iterable[str]:
    names = store.list(folder)
    head, rest = parts[0], parts[1:]
    prefix = folder + "/" if folder and not folder.endswith("://") else folder
    if head == "**":
        yield from _walk_names(store, prefix, names, rest or ["*"])
        for name in names:
            if name.endswith("/"):
                yield from _walk(store, prefix + name.rstrip("/"), parts)
        return
    yield from _walk_names(store, prefix, names, parts)


def _walk_names(store: Lists, prefix: str, names: list[str], parts: list[str]) -> Iterable[str]:
    head, rest = parts[0], parts[1:]
    for name in names:
        bare = name.rstrip("/")
        if bare != head and not fnmatch.fnmatchcase(bare, head):
            continue
        if rest and name.endswith("/"):
            yield from _walk(store, prefix + bare, rest)
        elif not rest:  # folders too: they may be datasets
            yield prefix + bare
