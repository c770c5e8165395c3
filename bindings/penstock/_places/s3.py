"""Buckets of Amazon S3 and of servers that speak its language: obstore signs, the native side reads."""

from __future__ import annotations

import atexit
import threading
import weakref
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote

from penstock import _native
from penstock._base.errors import InvalidArgumentError
from penstock._places import buckets as _buckets
from penstock._places.storage import Storage

_LONGEST = timedelta(hours=1)
_AT_ONCE = 256  # paths signed by one call
_PATIENCE = 1.0  # seconds between two looks whether anybody still wants addresses
_running: weakref.WeakSet[Any] = weakref.WeakSet()


def split(path: str) -> tuple[str, str]:
    """(bucket, key) of s3://bucket/key."""
    bucket, _, key = path.removeprefix("s3://").partition("/")
    return bucket, key


def checked(url: str) -> str:
    """An address s3://bucket/key as it is used and shown: a key holds any characters, but for a slash at its end.

    Raises:
        InvalidArgumentError: it names no bucket, or more than a bucket and a key.
    """
    bucket, key = split("s3" + url[url.index("://") :])
    if "@" in bucket:
        raise InvalidArgumentError(
            "s3://…@…: an address of a bucket holds no credentials: give Storage(credentials=…), or a profile"
        )
    if not bucket:
        raise InvalidArgumentError(f"s3:///{key}: no bucket: s3://BUCKET/KEY is an address")
    return f"s3://{bucket}/{key.rstrip('/')}".rstrip("/")


def store(storage: Storage) -> _native.Store:
    """Where buckets are read natively, at addresses that obstore signs."""
    signer = Signer(storage)
    made = _native.HttpStore(
        server=signer.server,
        headers=[],
        ca_file=str(storage.ca_file or ""),
        connections=storage.connections,
        deadline=storage.deadline,
        check_etag=storage.check_etag,
        hidden=[],
        signed_addresses=signer.addresses,
    )
    signer.start()
    return made


class Signer:
    """Signs what a store of buckets asks for, on a thread of its own that start() begins; one for each store.

    Args:
        storage: how the buckets are reached, and with which credentials.

    Raises:
        InvalidArgumentError: obstore or boto3 is not installed; an endpoint of the environment that cannot be.
    """

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._credentials = _buckets.credentials_of("s3", storage)
        self._endpoint = _buckets.endpoint_of("s3", storage)
        self._stores: dict[str, Any] = {}
        self.addresses: Any = _native.SignedAddresses(credentials=self._credentials.words)

    def start(self) -> None:
        """From now on signs, until the store is gone."""
        _running.add(self.addresses)
        threading.Thread(target=self._run, name="penstock-signer", daemon=True).start()

    @property
    def server(self) -> str:
        """An address of what answers for these buckets."""
        return self._endpoint or "https://s3.amazonaws.com"

    def _bucket(self, name: str) -> Any:
        if name not in self._stores:
            self._stores[name], _ = _buckets.bucket_of("s3", name, self._storage, self._credentials)
        return self._stores[name]

    def _lifetime(self) -> timedelta:
        """How long an address holds that is signed now: no longer than the credentials that obstore was given last."""
        provider = self._credentials.provider
        ends = provider.ends if provider is not None else None
        return _LONGEST if ends is None else max(min(_LONGEST, ends - datetime.now(UTC)), timedelta(seconds=1))

    def _plain(self, bucket: str, key: str) -> str:
        endpoint = self._endpoint or f"https://s3.{_buckets.region_of(self._storage) or 'us-east-1'}.amazonaws.com"
        return f"{endpoint.rstrip('/')}/{bucket}/{quote(key)}"

    def _addresses_of(self, bucket: str, keys: list[str], lifetime: timedelta) -> list[str]:
        if self._storage.anonymous:  # signing would ask the machine for credentials
            return [self._plain(bucket, key) for key in keys]
        import obstore

        return list(obstore.sign(self._bucket(bucket), "GET", keys, lifetime))

    def _run(self) -> None:
        addresses = self.addresses
        while not addresses.is_stopped:
            by_bucket: dict[str, list[str]] = {}
            for path in addresses.take(_AT_ONCE, _PATIENCE):
                by_bucket.setdefault(split(path)[0], []).append(path)
            for bucket, paths in by_bucket.items():
                self._sign_some(bucket, paths)

    def _sign_some(self, bucket: str, paths: list[str]) -> None:
        try:
            signed = self._addresses_of(bucket, [split(path)[1] for path in paths], self._lifetime())
            # While it signed, obstore may have asked for credentials of another lifetime.
            self.addresses.give(list(zip(paths, signed, strict=True)), self._lifetime().total_seconds())
        except Exception as error:  # whatever a provider of credentials raises: who asked is told
            provider = self._credentials.provider
            why = (provider is not None and provider.failure) or _buckets.in_words(error)
            self.addresses.refuse(paths, f"s3://{bucket}: nothing could be signed {self._credentials.words}: {why}")


@atexit.register
def _stop_all() -> None:
    for each in list(_running):
        each.stop()
