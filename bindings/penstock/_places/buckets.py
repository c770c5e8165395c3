"""Buckets of object stores: the store of obstore's that an address and a Storage name, and with which credentials."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import Request, urlopen

from penstock import _native
from penstock._base.errors import InvalidArgumentError, IoError
from penstock._base.extras import install
from penstock._places.storage import Storage, check_endpoint

SCHEMES = ("s3", "gs", "az")
_PATIENCE = 5.0  # seconds for a server that is to say where a bucket lies
_LOOK_AGAIN = timedelta(minutes=10)  # for credentials of boto3, which does not say when they end
_ENDPOINTS = {
    "s3": ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"),
    "gs": ("GOOGLE_BASE_URL",),
    "az": ("AZURE_STORAGE_ENDPOINT", "AZURE_ENDPOINT"),
}
_ALWAYS = ("connections", "deadline", "check_etag")
_FIELDS = {
    "s3": ("endpoint", "region", "profile", "anonymous", "requester_pays", "credentials", "ca_file"),
    "gs": ("endpoint", "anonymous", "credentials", "ca_file"),
    "az": ("endpoint", "anonymous", "credentials", "ca_file"),
    "http": ("headers", "ca_file"),
    "https": ("headers", "ca_file"),
}
_OWN_CHAIN = {
    "s3": "with credentials of the environment or the machine",
    "gs": "with Google's application default credentials",
    "az": "with credentials of the environment (AZURE_…) or the machine",
}
# (keys that credentials have, others that they may have), with texts; beside expires_at
_KEYS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "s3": (("access_key_id", "secret_access_key"), ("token",)),
    "gs": (("token",), ()),
    "az": ((), ("token", "access_key")),
}
_in_use = False  # in this process or the one that it was forked from
_was_in_use = False  # in the one that it was forked from


@dataclass(frozen=True)
class Credentials:
    """With what a store is asked.

    Args:
        words: for messages: "with …", or "anonymously".
        provider: what obstore asks for them; None: obstore looks itself, or there are none.
    """

    words: str
    provider: Watched | None


class Watched:
    """A provider of credentials, with what must be known of those that it gave last."""

    def __init__(self, provider: Callable[[], Any], scheme: str) -> None:
        self._provider = provider
        self._scheme = scheme
        self.ends: datetime | None = None  # None: never
        self.failure = ""  # why the provider gave none; obstore says only that it failed
        self.is_mistaken = False  # what it gave cannot be used, however often it is asked
        self.secrets: tuple[str, ...] = ()  # which no message may hold

    def __call__(self) -> Any:
        given: Any = None
        self.failure, self.is_mistaken = "", False
        try:
            given = self._provider()
        except Exception as error:
            self.failure = in_words(error)
        if self.failure:
            raise RuntimeError(self.failure)  # not the error itself: obstore would quote it
        self.failure = _refusal(given, self._scheme)
        if self.failure:
            self.is_mistaken = True
            raise InvalidArgumentError(f"Storage(credentials=…): {self.failure}")
        self.ends = given.get("expires_at")
        self.secrets = tuple(each for each in given.values() if isinstance(each, str) and len(each) > 3)
        return {"expires_at": None, **given}


def _refusal(given: Any, scheme: str) -> str:
    """What is wrong with what a function of credentials returned, and what would be right; empty: nothing."""
    wanted, more = _KEYS[scheme]
    if not isinstance(given, dict):
        names = ", ".join(f"{name}: …" for name in wanted or more)
        return f"it returned {type(given).__name__}, not a dict {{{names}, expires_at: …}}"
    for name in (*wanted, *more):
        value = given.get(name)
        if not isinstance(value, str) and (name in wanted or value is not None):
            there = f"is {_a(value)}" if name in given else "is missing"
            return f"{name} {there}: a str is wanted" + ("" if name in wanted else ", or None")
    ends = given.get("expires_at")
    if ends is None or (isinstance(ends, datetime) and ends.utcoffset() is not None):
        return ""
    found = "a datetime without time zone" if isinstance(ends, datetime) else _a(ends)
    return (
        f"expires_at is {found}: a datetime with time zone is wanted, as datetime.now(timezone.utc) + "
        "timedelta(hours=1) gives, or None for credentials that do not end"
    )


def _a(value: Any) -> str:
    return "None" if value is None else f"of type {type(value).__name__}"


def in_words(error: Exception) -> str:
    """What a provider raised. Texts that botocore makes name no secrets; what it and others quote is not known."""
    name = type(error).__name__
    if not type(error).__module__.startswith("botocore"):
        return name
    quoted = getattr(error, "kwargs", {})
    if "error_msg" in quoted and name != "InvalidConfigError":  # what a process or a server said
        of = f" of {quoted['provider']}" if quoted.get("provider") else ""
        return f"{name}{of}, whose own words are not shown: they may hold secrets"
    return f"{name}: {error!s:.200}"


def bucket_of(
    scheme: str,
    bucket: str,
    storage: Storage,
    credentials: Credentials | None = None,
    retries: Any = None,
    timeout: timedelta | None = None,
) -> tuple[Any, str]:
    """The store of obstore's of a bucket, and with which credentials it asks.

    Args:
        scheme: "s3", "gs" or "az".
        bucket: its name; of Azure the container's.
        storage: how it is reached.
        credentials: what credentials_of() gave, for several buckets of one Storage.
        retries: obstore's `retry_config`; None is its own.
        timeout: of one request; None is obstore's.

    Returns:
        (store, words for its credentials: "with …", or "anonymously").

    Raises:
        InvalidArgumentError: a package that is not installed; a Storage that does not fit; no credentials; a process
            that was forked from one that uses obstore.
    """
    if credentials is None:
        credentials = credentials_of(scheme, storage)
    stores = obstore_for(scheme)
    config: dict[str, Any] = {}
    endpoint = endpoint_of(scheme, storage)
    if endpoint:
        config["base_url" if scheme == "gs" else "endpoint"] = endpoint
    if scheme == "s3":
        config["region"] = region_of(storage) or "us-east-1"
    if storage.anonymous:
        config["skip_signature"] = True
    if storage.requester_pays:
        config["request_payer"] = True
    options = client_options(storage, endpoint or "")
    if timeout is not None:
        options["timeout"] = timeout
    make = {"s3": stores.S3Store, "gs": stores.GCSStore, "az": stores.AzureStore}[scheme]
    config |= {"client_options": options, "credential_provider": credentials.provider, "retry_config": retries}
    if not (endpoint and scheme == "s3" and "AWS_ENDPOINT_URL_S3" in os.environ):
        return make(bucket, **config), credentials.words
    from obstore.exceptions import UnknownConfigurationKeyError

    try:  # by the name of the variable, which obstore would prefer to `endpoint`
        made = make(bucket, **config, aws_endpoint_url_s3=endpoint)
    except UnknownConfigurationKeyError:  # one that does not look at it
        made = make(bucket, **config)
    return made, credentials.words


def credentials_of(scheme: str, storage: Storage) -> Credentials:
    """With what the buckets of a Storage are asked.

    Raises:
        InvalidArgumentError: a package that is not installed; a Storage that does not fit; there are none.
    """
    obstore_for(scheme)
    refuse_fields(storage, scheme)
    if storage.anonymous:
        return Credentials("anonymously", None)
    if storage.credentials is not None:
        return Credentials("with credentials of a function", Watched(storage.credentials, scheme))
    return _of_boto3(storage) if scheme == "s3" else Credentials(_OWN_CHAIN[scheme], None)


def _of_boto3(storage: Storage) -> Credentials:
    try:
        import boto3
        from botocore.exceptions import BotoCoreError
        from obstore.auth.boto3 import Boto3CredentialProvider
    except ModuleNotFoundError:
        if storage.profile or os.environ.get("AWS_PROFILE"):
            raise InvalidArgumentError(f"profiles are read by boto3, which is not installed: {install('s3')}") from None
        return Credentials(_OWN_CHAIN["s3"], None)  # keys in the environment, web identity, containers, instances
    failure, found = "", None
    try:
        session = boto3.Session(profile_name=storage.profile, region_name=region_of(storage))
        found = session.get_credentials()
    except BotoCoreError as error:
        failure = in_words(error)
    if failure:
        of = f"Storage(profile={storage.profile!r})" if storage.profile else "s3://: no credentials"
        raise InvalidArgumentError(f"{of}: {failure}")
    if found is None:
        raise InvalidArgumentError(
            "s3://: no credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY or a profile, give "
            "Storage(credentials=…), or Storage(anonymous=True) for a public bucket"
        )
    of = f"the profile {storage.profile}" if storage.profile else "boto3's chain"
    return Credentials(f"with credentials of {of}", Watched(Boto3CredentialProvider(session, ttl=_LOOK_AGAIN), "s3"))


def region_of(storage: Storage) -> str | None:
    """Where buckets of S3 lie, if anything says it."""
    return storage.region or os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")


def told_region(bucket: str, endpoint: str | None) -> str | None:
    """Where a server of S3 says that a bucket lies, asked without credentials; None where it does not say it."""
    address = f"{(endpoint or 'https://s3.us-east-1.amazonaws.com').rstrip('/')}/{quote(bucket)}"
    try:
        try:
            reply: Any = urlopen(Request(address, method="HEAD"), timeout=_PATIENCE)
        except HTTPError as refusal:  # a refusal says it as well
            reply = refusal
        with reply:
            region = reply.headers.get("x-amz-bucket-region") or ""
    except (OSError, ValueError, HTTPException):
        return None
    return region if re.fullmatch(r"[a-z0-9-]{1,32}", region) else None


def endpoint_of(scheme: str, storage: Storage) -> str | None:
    """The address of a server that is not the vendor's. Raises InvalidArgumentError for one that cannot be."""
    if storage.endpoint:
        return storage.endpoint
    for name in _ENDPOINTS[scheme]:
        if given := os.environ.get(name):
            check_endpoint(name, given)
            return given
    return None


def place_of(scheme: str, storage: Storage) -> str:
    """What tells a bucket from one of the same name elsewhere; empty: its name does."""
    if scheme not in SCHEMES:
        return ""
    account = os.environ.get("AZURE_STORAGE_ACCOUNT_NAME", "") if scheme == "az" else ""
    return f"{endpoint_of(scheme, storage) or ''} {account}".strip()


def client_options(storage: Storage, address: str) -> dict[str, Any]:
    """obstore's `client_options` for a server at `address`."""
    options: dict[str, Any] = {}
    if address.lower().startswith("http://"):
        options["allow_http"] = True
    if storage.ca_file:
        options["root_certificate"] = Path(storage.ca_file).read_bytes()
    return options


def checked(url: str) -> str:
    """gs:// and az://, as _s3.checked()."""
    scheme, _, rest = url.partition("://")
    bucket, _, key = rest.partition("/")
    if "@" in bucket or not bucket:
        raise InvalidArgumentError(
            f"{scheme}://…: an address of a bucket is {scheme}://BUCKET/KEY, without credentials"
        )
    return f"{scheme.lower()}://{bucket}/{key.rstrip('/')}".rstrip("/")


def refuse_fields(storage: Storage, scheme: str, allowed: Sequence[str] | None = None) -> None:
    """Refuses what a Storage says and this kind of store has no use for."""
    for each in fields(storage):
        if each.name in (*_ALWAYS, *(_FIELDS[scheme] if allowed is None else allowed)):
            continue
        if getattr(storage, each.name) == each.default:
            continue
        if each.name == "headers":
            names = ", ".join(map(repr, storage.headers or {}))
            raise InvalidArgumentError(
                f"Storage(headers={{{names}}}): headers go to servers of http:// and https:// alone, not with what is "
                f"signed; this is {scheme}://"
            )
        raise InvalidArgumentError(f"Storage({each.name}=…) is not for {scheme}://")


def obstore_for(scheme: str) -> Any:
    """The module obstore.store, for addresses of this scheme.

    Raises:
        InvalidArgumentError: it is not installed; this process was forked from one that uses it.
        IoError: it cannot be loaded.
    """
    global _in_use
    try:
        import obstore.store
    except ModuleNotFoundError as error:
        extra = scheme if scheme in SCHEMES else "s3"
        without = f". {_native.curl_refusal()}" if scheme in ("http", "https") else ""
        raise InvalidArgumentError(
            f"{scheme}:// is opened by obstore, and {error.name} is not installed: {install(extra)}{without}"
        ) from None
    except ImportError as error:  # there is no memory to map its library
        raise IoError(
            errno.ELIBACC, f"{scheme}:// is opened by obstore, which cannot be loaded: {error}", error.path
        ) from error
    if _was_in_use:
        raise InvalidArgumentError(
            f"{scheme}://: obstore was used before this process was forked, and its threads are not here: start "
            "processes by spawn"
        )
    _in_use = True
    return obstore.store


def _after_fork() -> None:
    global _was_in_use
    _was_in_use = _was_in_use or _in_use


os.register_at_fork(after_in_child=_after_fork)
