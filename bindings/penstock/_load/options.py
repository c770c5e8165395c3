"""The words that loaders take, and their arguments as a type, for checkers: what they do is said in `Loader`."""

from __future__ import annotations

import difflib
import functools
import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypedDict, TypeVar, cast

from penstock._base.words import excerpt
from penstock._load.mixture_stages import Tokens

if TYPE_CHECKING:
    from penstock._base.ranks import Mesh
    from penstock._data.column_kinds import Column
    from penstock._data.fields import DtypeChoice
    from penstock._load.mixture import SourceOrder
    from penstock._load.parallel import Balance, ContextParallel

BatchSize = int | Tokens | Sequence[tuple[int, int | Tokens]]
Tail = Literal["pad", "drop", "short"]
Uneven = Literal["refuse", "pad"]
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
    uneven: Uneven


# What options of torch's DataLoader and DistributedSampler are called here.
_OTHERS = {
    "batch_sampler": "order=, or view.select(…)",
    "collate_fn": "transform=, a function of a batch",
    "drop_last": 'tail="drop"',
    "generator": "seed=",
    "num_replicas": "world_size=",
    "num_workers": "threads=, which are native ones",
    "persistent_workers": "nothing: its threads live as long as it does",
    "prefetch_factor": "prefetch=, in batches",
    "sampler": "order=, or view.select(…)",
    "shuffle": 'order="uniform", which is the default, or "sequential"',
}
_Init = TypeVar("_Init", bound=Callable[..., None])


def told_of_options(init: _Init) -> _Init:
    """`init`, whose error for an argument that it does not have says which one is meant."""
    names = list(inspect.signature(init).parameters)

    @functools.wraps(init)
    def checked(self: Any, *args: Any, **given: Any) -> None:
        for name in given.keys() - set(names):
            near = difflib.get_close_matches(name, names, 1, 0.8)
            meant = _OTHERS.get(name) or (f"{near[0]}=" if near else "")
            hint = f": use {meant}" if meant else f"; it has {', '.join(names[1:])}"
            raise TypeError(f"{type(self).__name__} has no argument {excerpt(name)}={hint}")
        init(self, *args, **given)

    return cast(_Init, checked)
