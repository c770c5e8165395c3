"""Addresses: which store opens them, and what of them may be shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from penstock import _native
from penstock._errors import InvalidArgumentError
from penstock._storage import Storage

_HTTP = ("http", "https")


def scheme_of(path: str) -> str:
    """In lower case; empty: a path of this machine."""
    scheme, separator, _ = path.partition("://")
    return scheme.lower() if separator and scheme.isascii() and scheme.replace("+", "a").isalnum() else ""


def is_address(path: str) -> bool:
    return scheme_of(path) not in ("", "file")


@dataclass(frozen=True)
class Address:
    """A file or folder of a server, and what opens it.

    Args:
        path: what may be shown of it.
        userinfo: name:password, as the address has it.
        query: what follows its question mark.
        storage: how it is opened.
    """

    path: str
    userinfo: str
    query: str
    storage: Storage

    @classmethod
    def parse(cls, url: str, storage: Storage | None) -> Address:
        scheme = scheme_of(url)
        if scheme not in _HTTP:
            raise InvalidArgumentError(
                f"{_native.shown_address(url)}: {scheme} is not supported yet: paths of this machine, file://, http:// and "
                "https:// open"
            )
        return cls(*_native.parse_address(url), storage or Storage())

    def __repr__(self) -> str:
        return repr(self.path)

    def __reduce__(self) -> tuple[Any, ...]:
        if self.userinfo or self.query:
            raise InvalidArgumentError(
                f"{self.path}: its address holds a password or a signature and is not pickled: open it in the process that "
                "reads"
            )
        return Address, (self.path, "", "", self.storage)


def http_store(addresses: Sequence[Address]) -> _native.Store:
    """One for all of them, which have one storage. Raises InvalidArgumentError where this machine has no libcurl."""
    storage = addresses[0].storage
    return _native.HttpStore(
        headers=[f"{name}: {value}" for name, value in (storage.headers or {}).items()],
        ca_file=str(storage.ca_file or ""),
        connections=storage.connections,
        deadline=storage.deadline,
        check_etag=storage.check_etag,
        hidden=[(each.path, each.userinfo, each.query) for each in addresses if each.userinfo or each.query],
    )
