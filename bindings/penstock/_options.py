"""The words that loaders take, and their arguments as a type, for checkers: what they do is said in `Loader`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Literal, TypedDict

from penstock._mixture_stages import Tokens

if TYPE_CHECKING:
    from penstock._layout import DtypeChoice
    from penstock._mixture import SourceOrder
    from penstock._parallel import Balance, ContextParallel
    from penstock._ranks import Mesh
    from penstock.columns import Column

BatchSize = int | Tokens | Sequence[tuple[int, int | Tokens]]
Tail = Literal["pad", "drop"]
Reader = Literal["auto", "pread", "uring", "direct", "mmap", "http", "python"]
Framework = Literal["auto", "torch", "numpy"]
OnMismatch = Literal["refuse", "restart", "keep_position", "grown"]


class LoaderOptions(TypedDict, total=False):
    """What `Loader` takes by name, beside `transform`."""

    global_batch_size: BatchSize | None
    seed: int
    order: SourceOrder
    rank: int | str | None
    world_size: int | None
    mesh: Mesh | None
    epochs: int | None
    per_epoch: bool
    tail: Tail
    skip: Iterable[tuple[int, int]]
    dtype: DtypeChoice
    pin_memory: bool
    reader: Reader
    threads: int | None
    prefetch: int | None
    max_bytes: int | None
    on_mismatch: OnMismatch
    framework: Framework
    columns: Iterable[str | Column]
    max_documents: int | None
    context_parallel: ContextParallel | None
    balance: Balance | None
