"""What a job is made of, and the native job of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, get_args

from penstock import _native
from penstock._base.arguments import index, one_of, ranges
from penstock._base.errors import InvalidArgumentError
from penstock._load.mixture import Mixture, SourceOrder
from penstock._load.options import Tail
from penstock._load.orders import resolve


@dataclass(frozen=True)
class JobArguments:
    """What a job is made of, as a user gives it, but for batch sizes, which are resolved."""

    view: Any
    schedule: list[tuple[int, int]]
    seed: int
    order: SourceOrder
    epochs: int | None
    per_epoch: bool
    tail: str
    skip: list[tuple[int, int]]

    def native(self) -> _native.Job:
        """The native job.

        Raises:
            InvalidArgumentError: an argument that cannot be.
        """
        if not isinstance(self.view, Mixture):
            return self.native_with(self.native_order())
        if self.epochs is not None or self.per_epoch:
            given = "per_epoch=True" if self.epochs is None else f"epochs={self.epochs!r}"
            raise InvalidArgumentError(
                f"{given}: a mixture's sources have epochs of their own; say how long it runs by Mixture(end=…), and "
                "how often a source comes by Mixture(epochs={name: …})"
            )
        ends = None if self.view.run_end is None else 1
        order = self.view._order(self.order, self.seed)
        return job_of(self.view._identities(), order, self.schedule, ends, False, self.tail, self.skip)

    def native_order(self) -> _native.Order:
        """The order over the view, which is no mixture."""
        if isinstance(self.order, Mapping):
            raise InvalidArgumentError(f"order={self.order!r:.80}: orders by name are of a mixture's sources: give one")
        return resolve(self.order, len(self.view), index("seed", self.seed))

    def native_with(self, order: _native.Order) -> _native.Job:
        """The native job with this order over the view, which is no mixture."""
        identity = self.view._source.identity
        return job_of(identity, order, self.schedule, self.epochs, self.per_epoch, self.tail, self.skip)


def job_of(
    sources: _native.SourceIdentity | list[_native.SourceIdentity],
    order: _native.Order,
    schedule: list[tuple[int, int]],
    epochs: int | None,
    per_epoch: bool,
    tail: str,
    skip: Iterable[tuple[int, int]],
) -> _native.Job:
    """The native job of an order of one source, or of several by their numbers.

    Raises:
        InvalidArgumentError: an argument that cannot be.
    """
    one_of("tail", tail, get_args(Tail))
    return _native.Job(
        sources=sources if isinstance(sources, list) else [sources],
        order=order,
        epochs=None if epochs is None else index("epochs", epochs, 1),
        per_epoch=bool(per_epoch),
        tail=tail,
        skip=ranges(skip),
        schedule=schedule,
    )
