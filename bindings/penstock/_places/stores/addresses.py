"""Addresses and keys that Python reads, and the native stores that they lie in."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from penstock import _native
from penstock._base.errors import InvalidArgumentError
from penstock._places import remote as _remote
from penstock._places.paths import expand, local_path
from penstock._places.remote import HTTP, NATIVE, Address, is_address, scheme_of
from penstock._places.storage import Storage
from penstock._places.stores.adapter import Adapter
from penstock._places.stores.by_address import ByAddress, checked
from penstock._places.stores.globs import has_glob, matches
from penstock._places.stores.of_fsspec import OfFsspec, is_filesystem
from penstock._places.stores.of_obstore import OfObstore
from penstock._places.stores.own import METHODS, Own
from penstock._places.stores.threads import store_through
from penstock._places.stores.travel import check_travels


@dataclass(frozen=True, repr=False)
class StoreAddress(Address):
    """A file or folder that Python reads.

    Args:
        path: an address, or a key in `store`.
        store: what it lies in, where the user gave it.
        opened: the native store, where it was made already. Does not travel.
    """

    store: Any = None
    opened: _native.Store | None = field(default=None, compare=False)

    def __reduce__(self) -> tuple[Any, ...]:
        if self.store is not None:
            check_travels(self.store)
        return StoreAddress, (self.path, "", "", self.storage, self.store)


def is_in_store(address: Address) -> bool:
    """Whether it is a key in a store that the user gave."""
    return isinstance(address, StoreAddress) and address.store is not None


def addresses_of(path_or_url: str | os.PathLike[str], storage: Storage | None, store: Any = None) -> list[Address]:
    """What an address, or a key in `store`, names: globs are expanded where the store lists.

    Raises:
        InvalidArgumentError: an address that cannot be; a package that is not installed.
        NotFoundError: nothing matches.
    """
    url = os.fspath(path_or_url)
    scheme = scheme_of(url)
    if store is None and scheme in NATIVE and not _native.curl_refusal():
        native = Address.parse(url, storage)
        if not has_glob(native.path):
            return [native]
        _refuse_glob_of_http(scheme, native.path)
        listing = _python_store([native], native.storage)
        return [replace(native, path=each) for each in matches(listing, native.path)]
    storage = storage or Storage()
    path = url.rstrip("/") if store is not None else checked(url, scheme)
    address = StoreAddress(path, "", "", storage, store)
    opened = _python_store([address], storage, store)
    if not has_glob(path):
        return [StoreAddress(path, "", "", storage, store, opened)]
    _refuse_glob_of_http(scheme, path)
    return [StoreAddress(each, "", "", storage, store, opened) for each in matches(opened, path)]


def places_of(
    given: Iterable[str | os.PathLike[str]], storage: Storage | None, store: Any = None
) -> list[str | Address]:
    """Files and folders that paths, addresses and globs of both name, or keys in `store`, in the order given.

    Raises:
        InvalidArgumentError, NotFoundError: As addresses_of(); no path.
    """
    places: list[str | Address] = []
    for each in given:
        far = isinstance(each, (str, os.PathLike)) and (store is not None or is_address(each))
        places += addresses_of(each, storage, store) if far else expand(local_path(each))
    return places


def _refuse_glob_of_http(scheme: str, path: str) -> None:
    if scheme in HTTP:
        raise InvalidArgumentError(f"{path}: HTTP lists no files: name each, without *, ? and [")


def stores_of(paths: Sequence[Any]) -> list[_native.Store | None]:
    """Of each path or Address the native store that it lies in; None for this machine's."""
    mine = [each for each in paths if isinstance(each, StoreAddress)]
    native = _remote.stores_of([None if isinstance(each, StoreAddress) else each for each in paths])
    if not mine:
        return native
    store = mine[0].opened or _python_store(mine, mine[0].storage, mine[0].store)
    return [store if isinstance(each, StoreAddress) else its for each, its in zip(paths, native, strict=True)]


def far_reader(datasets: Sequence[Any]) -> _native.Store:
    """What reads through Python all that these datasets have elsewhere, however they were opened.

    Raises:
        InvalidArgumentError: their addresses hold secrets, or have several Storages.
    """
    addresses = list(_addresses_in([each._reopen for each in datasets]))
    if any(each.storage != addresses[0].storage for each in addresses):
        raise InvalidArgumentError("reader='python': the datasets were opened with several Storages: give them one")
    native = [each for each in addresses if not isinstance(each, StoreAddress)]
    return _python_store(native, native[0].storage)


def _addresses_in(held: Any) -> Iterable[Address]:
    if isinstance(held, Address):
        yield held
    elif isinstance(held, tuple | list):
        for each in held:
            yield from _addresses_in(each)
    elif hasattr(held, "_reopen"):
        yield from _addresses_in(held._reopen)


def _python_store(addresses: Sequence[Address], storage: Storage, store: Any = None) -> _native.Store:
    """A store of what lies at these addresses, or in a `store` that the user gave."""
    for each in addresses:
        if each.userinfo or each.query:
            raise InvalidArgumentError(
                f"{each.path}: its address holds a password or a signature, which is read natively alone: reader='http'"
            )
    adapter = (
        _adapter_of(store, storage) if store is not None else ByAddress([each.path for each in addresses], storage)
    )
    return store_through(adapter, storage)


def _adapter_of(store: Any, storage: Storage) -> Adapter:
    if type(store).__module__.partition(".")[0] == "obstore":
        return OfObstore(store, "with those of store=", check_etag=storage.check_etag)
    if is_filesystem(store):
        return OfFsspec(store)
    missing = [name for name in METHODS if not callable(getattr(store, name, None))]
    if missing or isinstance(store, type):
        raise InvalidArgumentError(
            f"store: {type(store).__name__}: an obstore store, an fsspec filesystem, or an object with size(path), "
            "list(prefix) and read(path, offsets, sizes) is wanted"
        )
    return Own(store)
