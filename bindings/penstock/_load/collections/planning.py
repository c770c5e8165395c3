"""Which batches come next, and which of them are read together: arithmetic on the job."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from penstock import _native
from penstock._base.errors import InvalidArgumentError
from penstock._load.collections.reading import Indices
from penstock._load.orders import Order, Sequential

_MOST_ROWS = 1 << 31  # of a fetch
_BATCHES = 16  # of a fetch, where neither the user nor the order says it


@dataclass(frozen=True)
class PlannedBatch:
    """A batch of this rank that is to come.

    Attributes:
        position: the job's position before it.
        end: the position after it.
        indices: int64 [rows]; padded rows have the last observation of the global batch, or where hooks do not see
            them that of the row before, if there is one.
        epochs: int64 [rows].
        valid: bool [rows], false where padded.
        global_rows: valid rows of all ranks together.
        given: rows that hooks get, the first ones; the others are padded afterwards.
    """

    position: int
    end: int
    indices: Indices
    epochs: npt.NDArray[np.int64]
    valid: npt.NDArray[np.bool_]
    global_rows: int
    given: int


@dataclass(frozen=True)
class Fetch:
    """Observations that are read by one call.

    Attributes:
        indices: int64, ascending, each once.
        batches: those that are taken from it, one after the other.
        places: for each batch, int64 [given]: where its rows lie in `indices`.
    """

    indices: Indices
    batches: list[PlannedBatch]
    places: list[Indices]


class Planner:
    """The fetches of one rank. They are a grid of the job's steps, so a resume within one reads what is left of it.

    With an order that has fetches of its own, a fetch ends where the order's does. Immutable; any thread.
    """

    def __init__(
        self,
        job: _native.Job,
        order: _native.Order,
        share: tuple[int, int],
        factor: int | None,
        per_epoch: bool,
        fetches: bool = True,
        hides_padding: bool = False,
    ) -> None:
        """Plans nothing yet.

        Args:
            job: the job.
            order: its order.
            share: rank and world size.
            factor: batches of a fetch; None: the order's fetch, else 16.
            per_epoch: whether no fetch goes on after an epoch's end.
            fetches: whether fetches of the order, where it has any, are those of the job.
            hides_padding: whether hooks get no padded rows.
        """
        self._job = job
        self._order = order
        self._share = share
        self._factor = factor
        self._per_epoch = per_epoch
        self._hides_padding = hides_padding
        self._has_fetches = fetches and order.fetch_end(0) > 1

    def fetch(self, position: int) -> Fetch | None:
        """The fetch of the batch that begins at `position`, from that one on; None at the end of the run."""
        first = self._batch(position)
        if first is None:
            return None
        batches = [first]
        most, end = self._bounds(first.position)
        while len(batches) < most and batches[-1].end < end:
            following = self._batch(batches[-1].end)
            if following is None or following.position >= end:
                break
            batches.append(following)
        wanted = [batch.indices[: batch.given] for batch in batches]
        indices, places = np.unique(np.concatenate(wanted), return_inverse=True)
        cuts = np.cumsum([batch.given for batch in batches])[:-1]
        return Fetch(indices, batches, np.split(places.reshape(-1), cuts))

    def _bounds(self, position: int) -> tuple[int, int]:
        """How many batches its fetch has from `position` on, and where the fetch ends at the latest."""
        begin, end = 0, sys.maxsize
        if self._per_epoch:
            begin = position - position % self._order.epoch_size
            end = begin + self._order.epoch_size
        if self._has_fetches:
            end = min(end, self._order.fetch_end(position))
            begin = max(begin, self._fetch_begin(position))
            if self._factor is None:
                return sys.maxsize, end
        factor = self._factor or _BATCHES
        steps = self._job.steps_before(position) - self._job.steps_before(begin)
        return factor - steps % factor, end

    def _fetch_begin(self, position: int) -> int:
        """The first position whose fetches end where those of `position` do: they never end earlier later on."""
        end = self._order.fetch_end(position)
        low, high = 0, position
        while low < high:
            middle = (low + high) // 2
            if self._order.fetch_end(middle) < end:
                low = middle + 1
            else:
                high = middle
        return low

    def _batch(self, position: int) -> PlannedBatch | None:
        planned = self._job.plan(position, *self._share)
        if planned is None:
            return None
        begin, end, picks, count, of_all = planned
        indices, epochs = picks["index"].astype(np.int64), picks["epoch"].astype(np.int64)
        hides = self._hides_padding
        if count < len(picks):
            last = picks[count - 1] if hides and count > 0 else self._last(begin, of_all)
            indices[count:], epochs[count:] = last["index"], last["epoch"]
        given = max(count, 1) if hides else len(picks)
        return PlannedBatch(begin, end, indices, epochs, np.arange(len(picks)) < count, of_all, given)

    def _last(self, position: int, of_all: int) -> Any:
        """The last pick of all ranks' batch at `position`: some rank's last row."""
        world_size = self._share[1]
        _, _, picks, count, _ = self._job.plan(position, (of_all - 1) % world_size, world_size)
        return picks[count - 1]


def check_block(order: str | Order, factor: int | None, batch_size: int) -> None:
    """Refuses fetches that are smaller than a block: they would read parts of blocks.

    Raises:
        InvalidArgumentError: these are.
    """
    block = int(getattr(getattr(order, "_draws", order), "block", 1))
    if factor is not None and block > factor * batch_size:
        raise InvalidArgumentError(
            f"a fetch of {factor * batch_size:,} observations (fetch_factor={factor}, batches of {batch_size:,}) is "
            f"smaller than a block of the order, {block:,}: fetch_factor must be at least {-(-block // batch_size)}"
        )


def check_fetch(factor: int | None, batch_size: int) -> None:
    """Refuses fetches that no memory holds: their batches are planned one by one.

    Raises:
        InvalidArgumentError: one of 2^31 observations or more.
    """
    if factor is not None and factor * batch_size >= _MOST_ROWS:
        raise InvalidArgumentError(
            f"a fetch of {factor * batch_size:,} observations (fetch_factor={factor}, batches of {batch_size:,}): must "
            "be fewer than 2^31: use a smaller fetch_factor"
        )


def is_read_straight(order: str | Order) -> bool:
    """True if it gives the observations as they stand: how many are read at once is then no part of the order."""
    return order == "sequential" or (isinstance(order, Sequential) and order.fetch is None)
