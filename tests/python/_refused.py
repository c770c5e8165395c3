"""Calls that must be refused in words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import penstock
import pytest


def refused(
    words: str, call: Callable[..., Any], *arguments: Any, error: Any = penstock.InvalidArgumentError, **options: Any
) -> None:
    """`words` is a pattern of what the error of `call(*arguments, **options)` says; `error` is a type, or several."""
    with pytest.raises(error, match=words):
        call(*arguments, **options)
