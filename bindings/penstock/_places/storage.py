"""How files that are not on this machine are reached."""

from __future__ import annotations

import math
import os
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from penstock._base.arguments import index
from penstock._base.errors import InvalidArgumentError

# RFC 9110, 5.1 and 5.5: a token, and a value without control characters.
_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]*")
_ENDPOINT = re.compile(
    r"https?://([^\s/?#@:\[\]]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?(/[^\s?#@]*)?", re.IGNORECASE | re.ASCII
)
_OURS = frozenset({"range", "accept-encoding", "host", "content-length", "transfer-encoding", "connection"})


@dataclass(frozen=True, kw_only=True)
class Storage:
    """How addresses are opened: servers of HTTP and object stores. Every field may be left out.

    Args:
        endpoint: the address of a server that speaks the store's language, where it is not the vendor's own.
        region: where a bucket lies.
        profile: of the vendor's configuration files.
        anonymous: ask without credentials.
        requester_pays: the asking account is billed.
        credentials: a function without arguments that returns the store's credentials, called again before they end.
        headers: sent with each request to a server of HTTP. Their values are secrets: in no message, and not
            pickled.
        ca_file: certificates to trust instead of the system's.
        connections: requests under way at most, 1 to 1,024.
        deadline: seconds that an operation may go on failing, over all that it asks for: opening, a read, a batch, a
            look at a bucket, a commit, the upload of a shard.
        check_etag: refuse a file whose ETag changes while it is read. False for mirrors that each have their own.

    Raises:
        InvalidArgumentError: what cannot be.

    Examples:
        >>> import penstock
        >>> penstock.Storage(headers={"Authorization": "Bearer 1234"}, deadline=10)
        Storage(headers={'Authorization': ...}, deadline=10.0)
    """

    endpoint: str | None = None
    region: str | None = None
    profile: str | None = None
    anonymous: bool = False
    requester_pays: bool = False
    credentials: Callable[[], Any] | None = None
    headers: Mapping[str, str] | None = field(default=None)
    ca_file: str | os.PathLike[str] | None = None
    connections: int = 64
    deadline: float = 60.0
    check_etag: bool = True

    def __post_init__(self) -> None:
        for name in ("endpoint", "region", "profile"):
            given = getattr(self, name)
            if given is not None and (not isinstance(given, str) or not given):
                raise InvalidArgumentError(f"Storage({name}=…): a str is wanted, not {type(given).__name__}")
        if self.endpoint is not None:
            check_endpoint("Storage(endpoint=…)", self.endpoint)
        if self.credentials is not None and not callable(self.credentials):
            raise InvalidArgumentError("Storage(credentials=…): a function that returns them is wanted")
        connections = index("connections", self.connections, 1)
        if connections > 1024:
            raise InvalidArgumentError(f"connections={connections}: at most 1,024")
        object.__setattr__(self, "connections", connections)
        if isinstance(self.deadline, bool) or not isinstance(self.deadline, int | float):
            raise InvalidArgumentError(f"deadline={self.deadline!r:.80}: seconds are wanted")
        if not 0 < self.deadline <= 86_400 or math.isnan(self.deadline):
            raise InvalidArgumentError(
                f"deadline={self.deadline!r}: seconds are wanted, more than 0 and at most 86,400"
            )
        object.__setattr__(self, "deadline", float(self.deadline))
        object.__setattr__(self, "headers", _checked_headers(self.headers))
        if self.ca_file is not None:
            object.__setattr__(self, "ca_file", os.fspath(self.ca_file))

    def __repr__(self) -> str:
        shown = []
        for each in fields(self):
            value = getattr(self, each.name)
            if value == each.default:
                continue
            if each.name == "headers":
                shown.append("headers={" + ", ".join(f"{name!r}: ..." for name in value) + "}")
            elif each.name == "credentials":
                shown.append("credentials=...")
            else:
                shown.append(f"{each.name}={value!r}")
        return f"Storage({', '.join(shown)})"

    def __reduce__(self) -> tuple[Any, ...]:
        if self.headers:
            raise InvalidArgumentError(
                f"Storage(headers={{{', '.join(map(repr, self.headers))}}}) holds secrets and is not pickled: make it, "
                "and what is opened by it, in the process that reads"
            )
        if self.credentials is not None and not _has_name(self.credentials):
            raise InvalidArgumentError(
                f"Storage(credentials={type(self.credentials).__name__}) is not pickled: a function that a module has "
                "by its name travels, no lambda and no function within another"
            )
        return _made, ({each.name: getattr(self, each.name) for each in fields(self)},)


def check_endpoint(name: str, endpoint: str) -> None:
    """Refuses what is no address of a server, and what would hold secrets; `name` says where it was given.

    Raises:
        InvalidArgumentError: it does not say what the endpoint is, which may hold a password.
    """
    if not _ENDPOINT.fullmatch(endpoint):
        raise InvalidArgumentError(
            f"{name}: http://HOST:PORT or https://HOST is wanted, without user:password@, ?query and #fragment"
        )


def _has_name(function: Any) -> bool:
    """Whether pickle finds it again by its module and name."""
    found = sys.modules.get(getattr(function, "__module__", None) or "")
    for part in getattr(function, "__qualname__", "<none>").split("."):
        found = getattr(found, part, None)
    return found is function


def _made(given: dict[str, Any]) -> Storage:
    return Storage(**given)


def _checked_headers(given: Any) -> dict[str, str] | None:
    if given is None:
        return None
    if not isinstance(given, Mapping):
        raise InvalidArgumentError(f"Storage(headers=…): {{name: value}} is wanted, not {type(given).__name__}")
    for name, value in given.items():
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise InvalidArgumentError(f"Storage(headers=…): {name!r:.80} is no name of a header")
        if name.lower() in _OURS:
            raise InvalidArgumentError(f"Storage(headers=…): {name} is set by penstock itself")
        if not isinstance(value, str) or not _VALUE.fullmatch(value):
            raise InvalidArgumentError(f"Storage(headers=…): the value of {name} is no text of one line")
    return dict(given) or None
