"""Entries of documents that come from other formats, as the codec "json" has them."""

from __future__ import annotations

import datetime
import decimal
import json
from typing import Any

import numpy as np

from penstock._base.errors import InvalidArgumentError
from penstock._base.words import excerpt


def encode(entry: dict[str, Any]) -> bytes:
    """An entry as the codec "json" has it; dates, times and decimals are text.

    Raises:
        InvalidArgumentError: it has what JSON has not.
    """
    try:
        return json.dumps(entry, ensure_ascii=False, separators=(",", ":"), allow_nan=False, default=_plain).encode()
    except (TypeError, ValueError, RecursionError) as error:
        if len(entry) > 1:
            for name, value in entry.items():  # which names the one that is none
                encode({name: value})
        raise InvalidArgumentError(f"metadata {excerpt(entry)} is no JSON: {error}: leave it out") from None


def _plain(value: Any) -> Any:
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, decimal.Decimal):
        return str(value)
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} is none of its types")
