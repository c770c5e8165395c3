"""Errors of stores in words: what is tried again, what is refused, and what no message may hold."""

from __future__ import annotations

import contextlib
import re
from typing import Any, Protocol

from penstock._errors import InvalidArgumentError
from penstock._stores.adapter import Adapter

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


class Told(Protocol):
    """What must be known to tell an error: the adapter that raised it, and secrets."""

    adapter: Adapter

    def secrets(self) -> list[str]:
        """What no message may hold."""
        ...


def tell(call: Any, files: Told, error: BaseException) -> None:
    """Answers a call by the error that it ended with."""
    said = f"{type(error).__name__}: {harmless(str(error), files.secrets())}"
    status = _status_of(error)
    if isinstance(error, FileNotFoundError) or type(error).__name__ == "NotFoundError" or status == 404:
        call.refuse("missing", "there is no such file" if call.kind != "names" else "there is no such folder")
    elif (
        isinstance(error, PermissionError)
        or type(error).__name__ in ("PermissionDeniedError", "UnauthenticatedError")
        or status in (401, 403)
    ):
        what = "listing is not allowed" if call.kind == "names" else "access is refused"
        call.refuse("refused", f"{what}: it was asked for {files.adapter.credentials}: {said}")
    elif isinstance(error, _MISTAKES):
        call.refuse("refused", f"it cannot be read: {said}")
    elif "without LOCATION" in str(error):
        call.refuse("refused", "the bucket lies in another region than was asked: Storage(region=…) names its own")
    else:
        if call.kind == "ranges":
            compare_size(call, files.adapter)
        call.again(said, _is_unreachable(error))


def compare_size(call: Any, adapter: Adapter) -> None:
    """Refuses ranges of a file that has not the bytes that it is to have."""
    with contextlib.suppress(Exception):
        call.compare_size(int(adapter.size(call.path)))


def _status_of(error: BaseException) -> int | None:
    for holder in (error, getattr(error, "response", None)):
        for name in ("status_code", "status", "code"):
            found = getattr(holder, name, None)
            if isinstance(found, int):
                return found
    return None


def _is_unreachable(error: BaseException) -> bool:
    words = ("error sending request", "error trying to connect", "Connection refused", "dns error", "Cannot connect")
    return isinstance(error, ConnectionRefusedError) or any(each in str(error) for each in words)


def harmless(text: str, secrets: list[str]) -> str:
    """The first line of what a store says, without what may be a key or a signature."""
    line = next(iter(text.strip().splitlines()), "it says nothing")
    for secret in secrets:
        line = line.replace(secret, "…")
    line = re.sub(r"(\w://)[^/\s@]*@", r"\1", line)
    line = re.sub(r"\?[^\s)\"'>]*=[^\s)\"'>]*", "", line)
    return re.sub(r"[A-Za-z0-9+/=_-]{32,}", "…", line)[:300]
