"""Which observation stands at which position, as users ask for it: `penstock.orders`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from penstock import _native
from penstock._base.errors import InvalidArgumentError
from penstock._data.document_view import DocumentView
from penstock._load.custom_order import Custom
from penstock._load.drawn_orders import Balanced, Weighted
from penstock._load.order_checks import at_least_one, check_fetch, check_length

__all__ = ["Balanced", "Blocks", "Bucketed", "Custom", "Order", "Sequential", "Uniform", "Weighted", "resolve"]


@dataclass(frozen=True)
class Uniform:
    """Global shuffle without replacement: each observation once an epoch, every epoch in an order of its own.

    Examples:
        >>> import penstock.orders
        >>> order = penstock.orders.resolve("uniform", n=5, seed=0)
        >>> sorted(order.pick(0, 1, 5)[0].tolist())
        [0, 1, 2, 3, 4]
    """

    def _native(self, n: int, seed: int) -> _native.Order:
        return _native.UniformOrder(n, seed)


@dataclass(frozen=True)
class Sequential:
    """The observations as they stand in the dataset, epoch after epoch; with a fetch, mixed within each.

    Args:
        fetch: None, and the seed does not matter. Else this many observations that follow one another are read together
            and given in an order of (seed, epoch): as a shuffle buffer mixes, and as little.

    Raises:
        InvalidArgumentError: a fetch that is no integer from 1 on.

    Examples:
        >>> import penstock.orders
        >>> penstock.orders.resolve("sequential", n=3, seed=0).pick(0, 1, 5)[0].tolist()
        [0, 1, 2, 0, 1]
        >>> order = penstock.orders.resolve(penstock.orders.Sequential(fetch=2), n=6, seed=0)
        >>> [sorted(order.pick(p, 1, 2)[0].tolist()) for p in (0, 2, 4)]
        [[0, 1], [2, 3], [4, 5]]
    """

    fetch: int | None = None

    def __post_init__(self) -> None:
        """Checks the number."""
        if self.fetch is not None:
            object.__setattr__(self, "fetch", at_least_one("Sequential", "fetch", self.fetch))

    def _native(self, n: int, seed: int) -> _native.Order:
        return _native.SequentialOrder(n) if self.fetch is None else _native.SequentialOrder(n, seed, self.fetch)


@dataclass(frozen=True)
class Blocks:
    """Shuffle that reads runs of adjacent observations, for storage where small reads are slow.

    Blocks of `block` adjacent observations are permuted; each lane takes them side by side and walks them in fetches of
    `fetch`, which are permuted again. Position p belongs to lane p mod `lanes`: where the number of ranks divides
    `lanes`, every rank reads whole blocks; with other numbers the order is the same, and only less local.

    A loader reads the fetches of its lanes whole, a block by one request, and the next ones ahead: up to twice
    `fetch * lanes / world_size` rows in memory, within its `max_bytes`.

    Args:
        block: Adjacent observations that stay together on disk; at least 1.
        fetch: Observations of a lane that are mixed with one another; a multiple of `block`.
        lanes: At least 1. Part of the job: never derived from the number of ranks.

    Raises:
        InvalidArgumentError: If one of them is no integer or below 1, or `fetch` is no multiple of `block`.

    Examples:
        >>> import penstock.orders
        >>> order = penstock.orders.resolve(penstock.orders.Blocks(block=2, fetch=4), n=10, seed=0)
        >>> sorted(order.pick(0, 1, 10)[0].tolist())
        [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
    """

    block: int
    fetch: int
    lanes: int = 1

    def __post_init__(self) -> None:
        """Checks the numbers, so that the mistake is reported where it was made."""
        for name in ("block", "fetch", "lanes"):
            object.__setattr__(self, name, at_least_one("Blocks", name, getattr(self, name)))
        check_fetch("Blocks", self.fetch, self.block)

    def _native(self, n: int, seed: int) -> _native.Order:
        return _native.BlocksOrder(n, seed, self.block, self.fetch, self.lanes)


class Bucketed:
    """The uniform order, in which observations of like length stand together, so that batches need little padding.

    The uniform order is cut into pools of `pool`; each is sorted by length, cut into buckets of `bucket`, and the
    buckets are permuted (a last one that is not full stays last). Each observation comes once an epoch. Buckets are no
    batches: the order is the same for every batch size and number of ranks. 4 bytes an observation are kept.

    Args:
        lengths: Of the view's observations: integers [n] from 0 to 2**32 - 1, as `view.lengths()` gives them.
        pool: Observations that are sorted together, 1 to 2**24: larger ones waste less and mix less.
        bucket: Observations of like length that stay together, 1 to `pool`.

    Raises:
        InvalidArgumentError: Lengths or numbers that cannot be.

    Examples:
        >>> import numpy as np, penstock.orders
        >>> lengths = np.arange(100) % 10
        >>> order = penstock.orders.resolve(penstock.orders.Bucketed(lengths, pool=50, bucket=5), n=100, seed=0)
        >>> drawn = order.pick(0, 1, 100)[0]
        >>> sorted(drawn.tolist()) == list(range(100))
        True
        >>> max(len(set(lengths[part])) for part in drawn.reshape(20, 5)) <= 2  # one length, or two neighbours
        True
    """

    def __init__(self, lengths: npt.ArrayLike, pool: int = 4096, bucket: int = 64) -> None:
        """Checks what can be checked without the view."""
        array = np.asanyarray(lengths)
        if array.ndim != 1 or array.dtype.kind not in "iu":
            raise InvalidArgumentError(
                f"orders.Bucketed: lengths of shape {list(array.shape)} and type {array.dtype}: integers [n] wanted"
            )
        if array.size and not 0 <= int(array.min()) <= int(array.max()) < 1 << 32:
            raise InvalidArgumentError(
                f"orders.Bucketed: lengths from {array.min()} to {array.max()}: wanted from 0 to 2**32 - 1"
            )
        self.lengths = np.ascontiguousarray(array, np.uint32)
        self.pool = at_least_one("Bucketed", "pool", pool)
        self.bucket = at_least_one("Bucketed", "bucket", bucket)
        if self.pool > 1 << 24:
            raise InvalidArgumentError(f"orders.Bucketed: pool {self.pool:,}: wanted at most 2**24")
        if self.bucket > self.pool:
            raise InvalidArgumentError(
                f"orders.Bucketed: bucket {self.bucket:,}: wanted at most the pool, {self.pool:,}"
            )

    def _native(self, n: int, seed: int) -> _native.Order:
        check_length("Bucketed", "lengths", self.lengths, n)
        return _native.BucketedOrder(self.lengths, seed, self.pool, self.bucket)

    def __repr__(self) -> str:
        """How it sorts."""
        return f"Bucketed(<{len(self.lengths):,} lengths>, pool={self.pool}, bucket={self.bucket})"


Order = Uniform | Sequential | Blocks | Bucketed | Weighted | Balanced | Custom

_BY_NAME: dict[str, Order] = {"uniform": Uniform(), "sequential": Sequential()}


def resolve(order: str | Order, n: int, seed: int) -> _native.Order:
    """The native order of `n` observations that `order` describes.

    Args:
        order: "uniform", "sequential", or one of this module's classes.
        n: Observations in one epoch, 1 to 2**52.
        seed: 0 to 2**64 - 1.

    Returns:
        An object with `pick(first, stride, count)` -> (index uint64, source uint32, epoch uint32) arrays of [count].

    Raises:
        InvalidArgumentError: For an unknown name, what is neither a name nor an order, or numbers outside these ranges.

    Examples:
        >>> import penstock.orders
        >>> penstock.orders.resolve("uniform", n=1000, seed=7).identity(0)
        '{"algorithm":1,"name":"uniform","seed":7,"size":1000}'
    """
    if isinstance(order, str):
        if order not in _BY_NAME:
            raise InvalidArgumentError(
                f"order {order!r}: wanted 'uniform', 'sequential' or an object such as orders.Blocks(block, fetch)"
            )
        return _BY_NAME[order]._native(n, seed)
    if not isinstance(order, Order):
        if (callable(order) and not isinstance(order, type)) or hasattr(order, "__array__"):
            raise InvalidArgumentError(f"order {order!r:.80}: give an array or a function as penstock.orders.Custom(…)")
        raise InvalidArgumentError(f"order {order!r}: wanted 'uniform', 'sequential' or an object of penstock.orders")
    return order._native(n, seed)


def resolve_for(order: str | Order, view: Any, seed: int) -> _native.Order:
    """The same over a view, of whose documents labels by a column of the dataset are taken.

    Raises:
        InvalidArgumentError: as `resolve`; labels or weights of all documents for a view of some.
    """
    if isinstance(order, (Balanced, Weighted)) and isinstance(view, DocumentView):
        count = view.dataset.spans
        if isinstance(order, Balanced):
            order = order.of_documents(view, count)
        given = order.labels if isinstance(order, Balanced) else order.weights
        if len(view) < len(given) == count:
            what = "labels" if isinstance(order, Balanced) else "weights"
            raise InvalidArgumentError(
                f"orders.{type(order).__name__}: {count:,} {what} for a view of {len(view):,} observations: give "
                f"{what}[view.base_indices(range(len(view)))]"
                + (", or the dataset's column itself" if what == "labels" else "")
            )
    return resolve(order, len(view), seed)
