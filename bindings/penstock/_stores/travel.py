"""Which stores of a user's travel to another process: those that pickle and hold no secrets."""

from __future__ import annotations

import pickle
import re
from typing import Any

from penstock._errors import InvalidArgumentError

_SECRET_NAMES = re.compile(
    r"secret|token|passw|sas|signature|credential|private|account_key|access_key$|service_account"
)


def check_travels(store: Any) -> None:
    """Raises InvalidArgumentError for a store that may not be pickled, or cannot be."""
    what = f"store={type(store).__name__}"
    config = {**(getattr(store, "config", None) or {}), **(getattr(store, "storage_options", None) or {})}
    client = getattr(store, "client_options", None) or {}
    if client.get("default_headers") or any(_SECRET_NAMES.search(str(name)) for name in config):
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
