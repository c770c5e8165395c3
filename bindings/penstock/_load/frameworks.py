"""The framework whose arrays batches are, and the memory that it lends."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import Any

from penstock._base.errors import InvalidArgumentError
from penstock._base.words import excerpt


def import_torch(framework: str, pin_memory: bool) -> Any:
    """The module torch; None for NumPy.

    Raises:
        InvalidArgumentError: torch is asked for, and is not there; pinned memory without it.
    """
    if framework == "auto":
        framework = "torch" if importlib.util.find_spec("torch") is not None else "numpy"
    if framework == "numpy":
        if pin_memory:
            raise InvalidArgumentError("pin_memory=True needs framework='torch': torch owns pinned memory")
        return None
    try:
        import torch
    except (ImportError, OSError) as error:  # OSError: a library that it loads
        if importlib.util.find_spec("torch") is None:
            raise InvalidArgumentError("framework='torch', but torch is not installed") from None
        raise InvalidArgumentError(
            f"torch is installed, but cannot be imported: {excerpt(error)}: mend it, or give framework='numpy'"
        ) from error
    return torch


def pinned_allocator(torch: Any) -> Callable[[int], tuple[Any, int]]:
    """Lends torch's pinned memory, so that its allocator keeps it until every copy from it has finished."""
    if not torch.accelerator.is_available():
        raise InvalidArgumentError("pin_memory=True needs an accelerator: use pin_memory=torch.cuda.is_available()")

    def allocate(size_bytes: int) -> tuple[Any, int]:
        tensor = torch.empty(size_bytes, dtype=torch.uint8, pin_memory=True)
        return tensor, tensor.data_ptr()

    return allocate
