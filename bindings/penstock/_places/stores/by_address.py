"""Addresses of buckets, servers and filesystems: the adapter that each is read through."""

from __future__ import annotations

import re
import threading
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from penstock import _native
from penstock._base.errors import InvalidArgumentError
from penstock._base.extras import install
from penstock._places import buckets as _buckets
from penstock._places.hub import is_hub
from penstock._places.remote import HTTP, scheme_of
from penstock._places.storage import Storage
from penstock._places.stores.adapter import Adapter
from penstock._places.stores.of_fsspec import OfFsspec
from penstock._places.stores.of_hub import OfHub
from penstock._places.stores.of_obstore import OfObstore
from penstock._places.stores.words import harmless

_HUB = "hub"  # its repositories, apart from its buckets
# Of a run that reads from the Hub and writes into a bucket; "anonymous" is for both.
_OF_BUCKETS = ("endpoint", "region", "profile", "anonymous", "requester_pays", "credentials")
_QUERY = re.compile(r"\?[^/?*\[\]]*=")  # a glob's ? is not followed by a name and its value


class ByAddress:
    """Addresses of buckets, servers and filesystems, each through the store that it lies in."""

    def __init__(self, paths: Sequence[str], storage: Storage) -> None:
        self._storage = storage
        self._made: dict[str, Adapter] = {}
        self._mutex = threading.Lock()
        made = [self._find(path)[0] for path in paths]  # refuses in the caller's thread
        self.ranges_a_call = max(each.ranges_a_call for each in made)
        self.has_whole = all(each.has_whole for each in made)
        self.credentials = made[0].credentials
        self.listing_right = made[0].listing_right

    def _find(self, path: str) -> tuple[Adapter, str]:
        scheme = scheme_of(path)
        if scheme in (*_buckets.SCHEMES, *HTTP):
            host, _, key = path[len(scheme) + 3 :].partition("/")
            root = f"{scheme}://{host}"
        else:
            host, root, key = "", _HUB if is_hub(path) else scheme, path
        with self._mutex:
            if root not in self._made:
                self._made[root] = _made_for(scheme, host, path, self._storage)
            return self._made[root], key.rstrip("/")

    def size(self, path: str) -> int:
        """Bytes of the file."""
        adapter, key = self._find(path)
        return adapter.size(key)

    def read(self, path: str, offsets: list[int], sizes: list[int]) -> Sequence[Any]:
        """A buffer of each range."""
        adapter, key = self._find(path)
        return adapter.read(key, offsets, sizes)

    def secrets(self) -> Sequence[str]:
        """Those of all the stores."""
        with self._mutex:
            return [each for adapter in self._made.values() for each in adapter.secrets()]

    def etags(self) -> dict[str, str]:
        """Of addresses."""
        with self._mutex:
            made = list(self._made.items())
        # A filesystem's keys are addresses already.
        return {
            f"{root}/{key}" if "://" in root else key: etag
            for root, adapter in made
            for key, etag in adapter.etags().items()
        }

    def whole(self, path: str) -> Any:
        """All of a file."""
        adapter, key = self._find(path)
        return adapter.whole(key)

    def refusal(self) -> str:
        """Of the first store that got none."""
        with self._mutex:
            return next(filter(None, (adapter.refusal() for adapter in self._made.values())), "")

    def region(self, path: str) -> str | None:
        """Where the bucket of an address lies, where anything says it."""
        adapter, key = self._find(path)
        return adapter.region(key)

    def folder(self, path: str) -> tuple[dict[str, int], list[str]]:
        """Bytes of each file in it, and the names of folders. Raises InvalidArgumentError for servers of HTTP."""
        if scheme_of(path) in HTTP:
            raise InvalidArgumentError("HTTP lists no folders: name a dataset's folder, or each file")
        adapter, key = self._find(path)
        return adapter.folder(key)


def checked(url: str, scheme: str) -> str:
    """An address as it is used and shown. Raises InvalidArgumentError for one that cannot be, or holds secrets."""
    shown = _native.shown_address(url)
    if scheme in HTTP:
        parts = _native.parse_address(url)
        if parts[1] or parts[2]:
            raise InvalidArgumentError(
                f"{shown}: its address holds a password or a signature, which needs libcurl: {_native.curl_refusal()}"
            )
        return str(parts[0])
    rest = url[len(scheme) + 3 :]
    host = rest.partition("/")[0]
    if scheme in _buckets.SCHEMES and "@" in host:
        raise InvalidArgumentError(
            f"{scheme}://…@…: an address of a bucket holds no credentials: Storage(credentials=…)"
        )
    if "@" in host:
        raise InvalidArgumentError(
            f"{scheme}://…@…: what stands before an @ may be a password: give store=fsspec.filesystem({scheme!r}, …)"
        )
    query = _QUERY.search(rest)
    if scheme != "s3" and query:
        raise InvalidArgumentError(
            f"{scheme}://{rest[: query.start()]}?…: what stands after a ? may be a secret, and the address is shown: "
            "give its credentials in Storage(…) or in store="
        )
    if scheme in _buckets.SCHEMES and not host:
        raise InvalidArgumentError(f"{scheme}:///…: no bucket: {scheme}://BUCKET/KEY is an address")
    return f"{scheme}://{rest.rstrip('/')}"


def _made_for(scheme: str, host: str, path: str, storage: Storage) -> Adapter:
    if is_hub(path):
        _buckets.refuse_fields(storage, scheme, _OF_BUCKETS)
        return OfHub(storage)
    if scheme not in (*_buckets.SCHEMES, *HTTP):
        return _filesystem_for(scheme, path, storage)
    retries: Any = {
        "max_retries": 2,  # the rest, until the deadline, is tried again range by range
        "retry_timeout": timedelta(seconds=storage.deadline),
        "backoff": {"init_backoff": timedelta(milliseconds=100), "max_backoff": timedelta(seconds=1), "base": 2},
    }
    if scheme in _buckets.SCHEMES:
        credentials = _buckets.credentials_of(scheme, storage)
        made, words = _buckets.bucket_of(scheme, host, storage, credentials, retries)
        return OfObstore(made, words, credentials.provider, check_etag=storage.check_etag)
    stores = _buckets.obstore_for(scheme)
    _buckets.refuse_fields(storage, scheme)
    root = f"{scheme}://{host}"
    if storage.headers:
        way = _native.curl_refusal() or "reader='http'"
        raise InvalidArgumentError(
            f"{root}: Storage(headers={{{', '.join(map(repr, storage.headers))}}}): obstore sends headers wherever a "
            f"server redirects, so they are sent natively alone: {way}"
        )
    options = _buckets.client_options(storage, root)  # obstore follows redirects, but none from https to http
    made = stores.HTTPStore.from_url(root, client_options=options, retry_config=retries)
    return OfObstore(made, "without headers", check_etag=storage.check_etag)


def _filesystem_for(scheme: str, path: str, storage: Storage) -> Adapter:
    try:
        import fsspec
    except ModuleNotFoundError:
        raise InvalidArgumentError(
            f"{path}: {scheme}:// is read through fsspec, which is not installed: {install('fsspec')}"
        ) from None
    try:
        filesystem = fsspec.filesystem(scheme)
    except ValueError:
        raise InvalidArgumentError(
            f"{path}: {scheme}:// is not known: paths of this machine, http://, https://, s3://, gs://, az:// and what "
            "fsspec reads open"
        ) from None
    except TypeError:  # its constructor wants a host, a repository, …
        raise InvalidArgumentError(
            f"{path}: {scheme}:// wants more than an address: give store=fsspec.filesystem({scheme!r}, …)"
        ) from None
    except ImportError as error:
        raise InvalidArgumentError(f"{path}: {harmless(str(error), [])}") from None
    _buckets.refuse_fields(storage, scheme, ())
    return OfFsspec(filesystem)
