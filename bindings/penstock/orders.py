"""Orders: which observation stands at which position.

An order here is a small description, made before the dataset's size and the seed are known; the loader makes the native
order from it. Every order is a pure function of (seed, position): nothing is shuffled, buffered or communicated.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass

from penstock import _native
from penstock._errors import InvalidArgumentError

__all__ = ["Blocks", "Order", "Sequential", "Uniform", "resolve"]


@dataclass(frozen=True)
class Uniform:
    """Global shuffle without replacement: each observation once an epoch, every epoch in an order of its own.

    Example:
        >>> import penstock.orders
        >>> order = penstock.orders.resolve("uniform", n=5, seed=0)
        >>> sorted(order.pick(0, 1, 5)[0].tolist())
        [0, 1, 2, 3, 4]
    """

    def _native(self, n: int, seed: int) -> _native.Order:
        return _native.UniformOrder(n, seed)


@dataclass(frozen=True)
class Sequential:
    """The observations as they stand in the dataset, epoch after epoch; the seed does not matter.

    Example:
        >>> import penstock.orders
        >>> penstock.orders.resolve("sequential", n=3, seed=0).pick(0, 1, 5)[0].tolist()
        [0, 1, 2, 0, 1]
    """

    def _native(self, n: int, seed: int) -> _native.Order:
        return _native.SequentialOrder(n)


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

    Example:
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
            given = getattr(self, name)
            try:
                value = operator.index(given)
            except TypeError:
                raise InvalidArgumentError(f"orders.Blocks: {name} {given!r}: wanted an integer") from None
            if not 1 <= value < 1 << 64:
                raise InvalidArgumentError(f"orders.Blocks: {name} {value}: wanted at least 1, below 2**64")
            object.__setattr__(self, name, value)
        if self.fetch % self.block:
            raise InvalidArgumentError(
                f"orders.Blocks: a fetch of {self.fetch}: wanted a multiple of the block, {self.block}"
            )

    def _native(self, n: int, seed: int) -> _native.Order:
        return _native.BlocksOrder(n, seed, self.block, self.fetch, self.lanes)


Order = Uniform | Sequential | Blocks

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

    Example:
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
    if not isinstance(order, (Uniform, Sequential, Blocks)):
        raise InvalidArgumentError(f"order {order!r}: wanted 'uniform', 'sequential' or an object of penstock.orders")
    return order._native(n, seed)
