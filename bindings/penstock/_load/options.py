"""The words that loaders take, and their arguments as a type, for checkers: what they do is said in `Loader`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Literal, TypedDict

from penstock._base.unknown_arguments import tells_unknown
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

# The error for an argument that a loader does not have says which one is meant.
told_of_options = tells_unknown(_OTHERS)
