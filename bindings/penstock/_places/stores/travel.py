"""Which stores of a user's travel to another process: those that pickle and hold no secrets."""

from __future__ import annotations

import inspect
import pickle
import re
from collections.abc import Iterable, Mapping
from typing import Any

from penstock._base.errors import InvalidArgumentError
from penstock._places.stores.of_fsspec import is_filesystem

_SECRET_NAMES = re.compile(
    r"secret|token|passw|passphrase|pwd|sas|signature|credential|private|api_?key|account_?key|access_?key$|"
    r"service_account|headers|cookie|auth|^key$|key_id$"
)
_PUBLIC_VALUES = frozenset({"", "true", "false", "anon", "google_default", "cloud"})  # the last three are gcsfs' tokens
# Of an address: a password, and a query with a value.
_SECRET_ADDRESS = re.compile(r"://[^/\s]*@|://[^?\s]*\?[^\s]*=")
_COLLECTIONS = (Mapping, list, tuple, set)
_DEPTH = 8  # of what holds what


def check_travels(store: Any) -> None:
    """Raises InvalidArgumentError for a store that may not be pickled, or cannot be."""
    what = f"store={type(store).__name__}"
    if any(_holds_secret(name, value, _DEPTH) for name, value in _options_of(store)):
        raise InvalidArgumentError(
            f"{what} holds secrets and is not pickled: make it, and what is opened in it, in the process that reads"
        )
    try:
        pickle.dumps(store)
    except Exception as error:  # whatever its parts raise
        raise InvalidArgumentError(
            f"{what} is not pickled ({type(error).__name__}): make it, and what is opened in it, in the process "
            "that reads"
        ) from None


def _options_of(store: Any) -> Iterable[tuple[str, Any]]:
    """What a store of obstore's or a filesystem of fsspec's was made with: names and values."""
    for name in ("config", "client_options", "storage_options"):
        given = getattr(store, name, None)
        if isinstance(given, Mapping):
            yield from given.items()
    if isinstance(getattr(store, "url", None), str):  # of obstore's HTTPStore
        yield "url", store.url
    given = getattr(store, "storage_args", None)
    if isinstance(given, tuple) and given:
        names = [name for name in inspect.signature(type(store).__init__).parameters if name != "self"]
        yield from zip([*names, *[""] * len(given)], given, strict=False)


def _holds_secret(name: Any, value: Any, depth: int) -> bool:
    """Whether an option is named as secrets are, or has one somewhere in it."""
    is_empty = value is None or isinstance(value, bool) or (isinstance(value, _COLLECTIONS) and not value)
    if is_empty or depth == 0 or (isinstance(value, str) and value in _PUBLIC_VALUES):
        return False
    if _SECRET_NAMES.search(str(name).lower()):
        return True
    if isinstance(value, str):
        return _SECRET_ADDRESS.search(value) is not None
    inside: Iterable[tuple[Any, Any]] = ()
    if isinstance(value, Mapping):
        inside = value.items()
    elif isinstance(value, _COLLECTIONS):
        inside = (("", each) for each in value)
    elif is_filesystem(value):
        inside = _options_of(value)
    return any(_holds_secret(each, its, depth - 1) for each, its in inside)
