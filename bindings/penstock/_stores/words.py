"""Errors of stores in words: what is tried again, what is refused, and what no message may hold."""

from __future__ import annotations

import contextlib
import re
from typing import Any, Protocol

from penstock._errors import InvalidArgumentError
from penstock._stores.adapter import Adapter, Changed

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
# obstore gives a status only in words, and the answer's body after them.
_STATUS = re.compile(r"status code: (\d{3})\b[^:<\n]*")
_CODE = re.compile(r"<Code>(\w{1,64})</Code>")
_REGION = re.compile(r"<Region>([a-z0-9-]{1,32})</Region>")


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
    text = str(error)
    said = f"{type(error).__name__}: {_answer_of(text) or harmless(text, files.secrets())}"
    status = _status_of(error)
    if isinstance(error, FileNotFoundError) or type(error).__name__ == "NotFoundError" or status == 404:
        call.refuse("missing", "there is no such file" if call.kind != "names" else "there is no such folder")
    elif "without LOCATION" in text or _REGION.search(text):
        call.refuse("refused", _of_region(_REGION.search(text), adapter, call.path))
    elif (
        isinstance(error, PermissionError)
        or type(error).__name__ in ("PermissionDeniedError", "UnauthenticatedError")
        or status in (401, 403)
    ):
        call.refuse("refused", _of_access(call.kind, adapter, _answer_of(text) or said))
    elif isinstance(error, _MISTAKES):
        call.refuse("refused", f"it cannot be read: {said}")
    else:
        if call.kind == "ranges":
            compare_size(call, adapter)
        call.again(said, _is_unreachable(error))


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


def _of_region(found: re.Match[str] | None, adapter: Adapter, path: str) -> str:
    region = found.group(1) if found else adapter.region(path)
    if not region:
        return "the bucket lies in another region than was asked: Storage(region=…) names its own"
    return f'the bucket is in the region {region}: give Storage(region="{region}")'


def _answer_of(text: str) -> str:
    """What a server answered: its status, and the code of the error; empty where that is not told."""
    status, code = _STATUS.search(text), _CODE.search(text)
    if status is None:
        return ""
    return status.group().removeprefix("status code: ").strip() + (f" ({code.group(1)})" if code else "")


def _status_of(error: BaseException) -> int | None:
    for holder in (error, getattr(error, "response", None)):
        for name in ("status_code", "status", "code"):
            found = getattr(holder, name, None)
            if isinstance(found, int):
                return found
    if type(error).__module__.partition(".")[0] != "obstore":
        return None
    status = _STATUS.search(str(error))
    return int(status.group(1)) if status else None


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
