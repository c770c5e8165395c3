"""Memory as torch's allocator of pinned memory gives it, on a machine without an accelerator."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import torch


class Lender:
    """What `pinned_allocator` gives, with memory that is not pinned."""

    def __init__(self) -> None:
        self.lent: list[weakref.ref[torch.Tensor]] = []
        self.fail: bool | type[BaseException] = False

    def __call__(self, _: Any) -> Any:
        return self.allocate

    def allocate(self, size_bytes: int) -> tuple[torch.Tensor, int]:
        if self.fail:
            raise MemoryError("no pinned memory") if self.fail is True else self.fail
        tensor = torch.full((size_bytes,), 0xA5, dtype=torch.uint8)
        self.lent.append(weakref.ref(tensor))
        return tensor, tensor.data_ptr()

    def alive(self) -> int:
        gc.collect()
        return sum(each() is not None for each in self.lent)
