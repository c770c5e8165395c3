"""What a job is made of, and the native job of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import get_args

from penstock import _native
from penstock._base.arguments import index, one_of, ranges
from penstock._data.loadable import Loadable
from penstock._load.mixture import SourceOrder
from penstock._load.options import Tail, Uneven
from penstock._load.orders import resolve_for


@dataclass(frozen=True)
class JobArguments:
    """What a job is made of, as a user gives it, but for batch sizes, which are resolved."""

    view: Loadable
    schedule: list[tuple[int, int]]
    seed: int
    order: SourceOrder
    epochs: int | None
    per_epoch: bool
    tail: str
    skip: list[tuple[int, int]]
    uneven: str = "refuse"

    def native(self) -> _native.Job:
        """The native job.

        Raises:
            InvalidArgumentError: an argument that cannot be.
        """
        return self.native_with(self.native_order())

    def native_order(self) -> _native.Order:
        """The order over the view."""
        return self.view._order(self.order, self.seed, resolve_for)

    def native_with(self, order: _native.Order) -> _native.Job:
        """The native job with this order over the view."""
        epochs, per_epoch = self.view._ends(self.epochs, self.per_epoch)
        ends = (epochs, per_epoch, self.tail, self.skip, self.uneven)
        return job_of(self.view._identities(), order, self.schedule, *ends)


def job_of(
    sources: _native.SourceIdentity | list[_native.SourceIdentity],
    order: _native.Order,
    schedule: list[tuple[int, int]],
    epochs: int | None,
    per_epoch: bool,
    tail: str,
    skip: Iterable[tuple[int, int]],
    uneven: str,
) -> _native.Job:
    """The native job of an order of one source, or of several by their numbers.

    Raises:
        InvalidArgumentError: an argument that cannot be.
    """
    one_of("tail", tail, get_args(Tail))
    one_of("uneven", uneven, get_args(Uneven))
    return _native.Job(
        sources=sources if isinstance(sources, list) else [sources],
        order=order,
        epochs=None if epochs is None else index("epochs", epochs, 1),
        per_epoch=bool(per_epoch),
        tail=tail,
        skip=ranges(skip),
        schedule=schedule,
        uneven=uneven,
    )
