"""Errors of stores in words: what is tried again, what is refused, and what no message may hold."""

from __future__ import annotations

import contextlib
import re
import socket
from typing import Any, Protocol

from penstock._base.errors import InvalidArgumentError
from penstock._places.obstore_errors import Said, of_region, without
from penstock._places.stores.adapter import Adapter, Changed, Refused

# Faults of the program, which no other attempt will mend.
_MISTAKES = (
    InvalidArgumentError,
    IsADirectoryError,
    TypeError,
    AttributeError,
    NameError,
    NotImplementedError,
    ImportError,
    SyntaxError,
)
_UNREACHABLE = ("ClientConnectorError", "ClientConnectorDNSError", "EndpointConnectionError")  # aiohttp's, botocore's


class Told(Protocol):
    """What must be known to tell an error: the adapter that raised it, and secrets."""

    adapter: Adapter

    def secrets(self) -> list[str]:
        """What no message may hold."""
        ...


def tell(call: Any, files: Told, error: BaseException) -> None:
    """Answers a call by the error that it ended with."""
    adapter = files.adapter
    if isinstance(error, Changed):
        call.refuse("changed", str(error))
        return
    if isinstance(error, Refused):
        call.refuse("refused", str(error))
        return
    told = Said.of(error)
    told_back = told.answer and without(told.answer, files.secrets())
    said = f"{type(error).__name__}: {told_back or harmless(str(error), files.secrets())}"
    status = _status_of(error, told)
    if isinstance(error, FileNotFoundError) or type(error).__name__ == "NotFoundError" or status == 404:
        call.refuse("missing", "there is no such file" if call.kind != "names" else "there is no such folder")
    elif status is None and adapter.refusal():
        call.refuse("refused", f"nothing could be signed {adapter.credentials}: {adapter.refusal()}")
    elif told.certificate:
        call.refuse("refused", told.certificate)
    elif told.is_of_region:
        call.refuse("refused", of_region(told.region or adapter.region(call.path)))
    elif (
        isinstance(error, PermissionError)
        or type(error).__name__ in ("PermissionDeniedError", "UnauthenticatedError")
        or status in (401, 403)
    ):
        call.refuse("refused", _of_access(call.kind, adapter, told_back or said))
    elif isinstance(error, _MISTAKES):
        call.refuse("refused", f"it cannot be read: {said}")
    else:
        if call.kind == "ranges":
            compare_size(call, adapter)
        call.again(said, _is_unreachable(error, told))


def compare_size(call: Any, adapter: Adapter) -> None:
    """Refuses ranges of a file that has not the bytes that it is to have."""
    with contextlib.suppress(Exception):
        call.compare_size(int(adapter.size(call.path)))


def _of_access(kind: str, adapter: Adapter, said: str) -> str:
    if kind != "names":
        return f"access is refused: it was asked for {adapter.credentials}: {said}"
    return (
        f"listing is not allowed: it was asked for {adapter.credentials} and needs the right {adapter.listing_right}: "
        f"{said}. Without it, name the dataset's folder or each file, without *, ? and ["
    )


def _status_of(error: BaseException, told: Said) -> int | None:
    for holder in (error, getattr(error, "response", None)):
        for name in ("status_code", "status", "code"):
            found = getattr(holder, name, None)
            if isinstance(found, int):
                return found
    return told.status


def _is_unreachable(error: BaseException, told: Said) -> bool:
    """Whether no server took the request, which may be of a wrong address."""
    if told.kind:
        return told.kind in ("Connect", "Request")
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ConnectionRefusedError | socket.gaierror) or type(cause).__name__ in _UNREACHABLE:
            return True
        cause = cause.__cause__ or cause.__context__
    return False


def harmless(text: str, secrets: list[str]) -> str:
    """The first line of what a store says, without what may be a key or a signature."""
    line = next(iter(text.strip().splitlines()), "it says nothing")
    line = without(line, secrets)
    line = re.sub(r"(\w://)[^/\s@]*@", r"\1", line)
    line = re.sub(r"\?[^\s)\"'>]*=[^\s)\"'>]*", "", line)
    return re.sub(r"[A-Za-z0-9+/=_-]{32,}", "…", line)[:300]
