"""Addresses: which store opens them, and what of them may be shown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeGuard

from penstock import _native
from penstock._base.errors import InvalidArgumentError
from penstock._places import s3 as _s3
from penstock._places.storage import Storage

_APART = "another password or query: open them apart and join them with penstock.concatenate"
HTTP = ("http", "https")
NATIVE = (*HTTP, "s3")


def scheme_of(path: str) -> str:
    """In lower case; empty: a path of this machine."""
    scheme, separator, _ = path.partition("://")
    return scheme.lower() if separator and scheme.isascii() and scheme.replace("+", "a").isalnum() else ""


def is_address(path: Any) -> TypeGuard[str]:
    return isinstance(path, str) and scheme_of(path) not in ("", "file")


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
        if scheme not in NATIVE:
            raise InvalidArgumentError(
                f"{_native.shown_address(url)}: {scheme}:// is not read natively: http://, https:// and s3:// are"
            )
        if scheme == "s3":
            return cls(_s3.checked(url), "", "", storage or Storage())
        return cls(*_native.parse_address(url), storage or Storage())

    def __repr__(self) -> str:
        return repr(self.path)

    def __reduce__(self) -> tuple[Any, ...]:
        if self.userinfo or self.query:
            raise InvalidArgumentError(
                f"{self.path}: its address holds a password or a signature and is not pickled: open it in the "
                "process that reads"
            )
        return Address, (self.path, "", "", self.storage)


def name_of(path: str | Address) -> str:
    """As messages name it."""
    return path.path if isinstance(path, Address) else path


def absolute(path: str | Address) -> str | Address:
    """As a process in another working directory opens it."""
    return path if isinstance(path, Address) or "://" in path else str(Path(path).absolute())


def far_of(paths: Iterable[Any]) -> list[Any]:
    """The addresses among paths, as they are typed or parsed."""
    return [each for each in paths if isinstance(each, Address) or is_address(each)]


def stores_of(paths: Sequence[Any]) -> list[_native.Store | None]:
    """Of each path or Address the store that it lies in, None for this machine's. One for all that are opened alike.

    Raises:
        InvalidArgumentError: this machine has no libcurl; what signs is not installed; one address lies in another and
            has another password or query.
    """
    made: dict[bool, _native.Store] = {}

    def store_of(path: Any) -> _native.Store | None:
        if not isinstance(path, Address):
            return None
        is_bucket = path.path.startswith("s3://")
        if is_bucket not in made:
            alike = [each for each in far_of(paths) if each.path.startswith("s3://") == is_bucket]
            made[is_bucket] = _s3.store(path.storage) if is_bucket else _http_store(alike)
        return made[is_bucket]

    return [store_of(each) for each in paths]


def _http_store(addresses: Sequence[Address]) -> _native.Store:
    _refuse_ambiguous(addresses)
    storage = addresses[0].storage
    return _native.HttpStore(
        server=addresses[0].path,
        headers=[f"{name}: {value}" for name, value in (storage.headers or {}).items()],
        ca_file=str(storage.ca_file or ""),
        connections=storage.connections,
        deadline=storage.deadline,
        check_etag=storage.check_etag,
        hidden=[(each.path, each.userinfo, each.query) for each in addresses if each.userinfo or each.query],
        signed_addresses=None,
    )


def _refuse_ambiguous(addresses: Sequence[Address]) -> None:
    """A file's password and query are found by its path, so a path may not have two."""
    secrets: dict[str, tuple[str, str]] = {}
    for each in addresses:
        if secrets.setdefault(each.path, (each.userinfo, each.query)) != (each.userinfo, each.query):
            raise InvalidArgumentError(f"{each.path}: given twice, with {_APART}")
    for path, own in secrets.items():
        above = path
        while "/" in above:
            above = above.rpartition("/")[0]
            if secrets.get(above, own) != own:
                raise InvalidArgumentError(f"{path}: lies in {above}, with {_APART}")


def shown(*data: str) -> str:
    """Paths as they may be printed: addresses without passwords and signatures."""
    return " ".join(_native.shown_address(each) if is_address(each) else each for each in data)
