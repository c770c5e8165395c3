"""Buckets of Amazon S3 and of servers that speak its language: obstore signs, the native side reads."""

from __future__ import annotations

import atexit
import os
import threading
import weakref
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote

from penstock import _native
from penstock._errors import InvalidArgumentError
from penstock._storage import Storage, check_endpoint

_LONGEST = timedelta(hours=1)
_LOOK_AGAIN = timedelta(minutes=10)  # for credentials of boto3, which does not say when they end
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
    if storage.headers:
        raise InvalidArgumentError(
            f"Storage(headers={{{', '.join(map(repr, storage.headers))}}}): headers go to servers of http:// and "
            "https:// alone, not with what is signed"
        )
    signer = Signer(storage)
    made = _native.HttpStore(
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
        try:
            import obstore
            from obstore.store import S3Store
        except ModuleNotFoundError as error:
            raise InvalidArgumentError(
                f"s3:// addresses are signed by obstore, and {error.name} is not installed: pip install 'penstock[s3]'"
            ) from None
        self._sign = obstore.sign
        self._store_of = S3Store
        self._storage = storage
        self._endpoint = _endpoint_of(storage)
        self._stores: dict[str, Any] = {}
        self._provider: Any = None
        self._words = "anonymously" if storage.anonymous else "with credentials of boto3's chain"
        if not storage.anonymous:
            self._provider = self._given() if storage.credentials else self._of_boto3()
        self.addresses: Any = _native.SignedAddresses(credentials=self._words)

    def start(self) -> None:
        """From now on signs, until the store is gone."""
        _running.add(self.addresses)
        threading.Thread(target=self._run, name="penstock-signer", daemon=True).start()

    def _given(self) -> Any:
        self._words = "with credentials of a function"
        return _Watched(self._storage.credentials)

    def _of_boto3(self) -> Any:
        try:
            import boto3
            from botocore.exceptions import BotoCoreError
            from obstore.auth.boto3 import Boto3CredentialProvider
        except ModuleNotFoundError:
            if self._storage.profile or os.environ.get("AWS_PROFILE"):
                raise InvalidArgumentError(
                    "profiles are read by boto3, which is not installed: pip install 'penstock[s3]'"
                ) from None
            self._words = "with credentials of the environment or the machine"
            return None  # obstore's own chain: keys in the environment, web identity, containers, instances
        try:
            session = boto3.Session(profile_name=self._storage.profile, region_name=self._region())
            found = session.get_credentials()
        except BotoCoreError as error:
            of = f"Storage(profile={self._storage.profile!r})" if self._storage.profile else "s3://: no credentials"
            raise InvalidArgumentError(f"{of}: {error!s:.200}") from None
        if self._storage.profile:
            self._words = f"with credentials of the profile {self._storage.profile}"
        if found is None:
            raise InvalidArgumentError(
                "s3://: no credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY or a profile, give "
                "Storage(credentials=…), or Storage(anonymous=True) for a public bucket"
            )
        return _Watched(Boto3CredentialProvider(session, ttl=_LOOK_AGAIN))

    def _region(self) -> str | None:
        return self._storage.region or os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")

    def _bucket(self, name: str) -> Any:
        if name not in self._stores:
            config: dict[str, Any] = {"region": self._region() or "us-east-1"}
            if self._endpoint:
                config["endpoint"] = self._endpoint
            if self._storage.anonymous:
                config["skip_signature"] = True
            if self._storage.requester_pays:
                config["request_payer"] = True
            options: Any = {"allow_http": True} if (self._endpoint or "").lower().startswith("http://") else None
            self._stores[name] = self._store_of(
                name, client_options=options, credential_provider=self._provider, **config
            )
        return self._stores[name]

    def _lifetime(self) -> timedelta:
        """How long an address holds that is signed now: no longer than the credentials that obstore was given last."""
        ends = self._provider.ends if self._provider is not None else None
        return _LONGEST if ends is None else max(min(_LONGEST, ends - datetime.now(UTC)), timedelta(seconds=1))

    def _plain(self, bucket: str, key: str) -> str:
        endpoint = self._endpoint or f"https://s3.{self._region() or 'us-east-1'}.amazonaws.com"
        return f"{endpoint.rstrip('/')}/{bucket}/{quote(key)}"

    def _addresses_of(self, bucket: str, keys: list[str], lifetime: timedelta) -> list[str]:
        if self._storage.anonymous:  # signing would ask the machine for credentials
            return [self._plain(bucket, key) for key in keys]
        return list(self._sign(self._bucket(bucket), "GET", keys, lifetime))

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
            why = (self._provider is not None and self._provider.failure) or _in_words(error)
            self.addresses.refuse(paths, f"s3://{bucket}: nothing could be signed {self._words}: {why}")


def _endpoint_of(storage: Storage) -> str | None:
    if storage.endpoint:
        return storage.endpoint
    for name in ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"):
        if given := os.environ.get(name):
            check_endpoint(name, given)
            return given
    return None


class _Watched:
    """A provider of credentials, with when those that it gave last end: None, never."""

    def __init__(self, provider: Any) -> None:
        self._provider = provider
        self.ends: datetime | None = None
        self.failure = ""  # what the provider raised last; obstore says only that it failed

    def __call__(self) -> Any:
        self.failure = ""
        try:
            given = self._provider()
        except Exception as error:
            self.failure = _in_words(error)
            raise
        self.ends = given.get("expires_at") if isinstance(given, dict) else None
        return given


def _in_words(error: Exception) -> str:
    """What a provider raised. botocore's messages name no secrets; what others quote is not known."""
    name = type(error).__name__
    return f"{name}: {error!s:.200}" if type(error).__module__.startswith("botocore") else name


@atexit.register
def _stop_all() -> None:
    for each in list(_running):
        each.stop()
