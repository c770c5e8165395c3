"""Fetches that were started, and the batches that are taken from them."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

from penstock._base.errors import Error, InvalidArgumentError
from penstock._load.collections.fetching import FailedError
from penstock._load.collections.planning import Fetch, PlannedBatch, Planner
from penstock._load.collections.threads import ThreadReader

if TYPE_CHECKING:
    from penstock._load.collections.processes import ProcessReader


class Ahead:
    """Fetches under way, in their order; batches are taken from the first one. One thread at a time."""

    def __init__(self, planner: Planner, reader: ThreadReader | ProcessReader, depth: int) -> None:
        """Starts nothing yet.

        Args:
            planner: which fetches there are.
            reader: who reads them.
            depth: how many there are at once, with the first; 1: nothing is read ahead.
        """
        self._planner, self._reader, self._depth = planner, reader, depth
        self._started: deque[tuple[Fetch, Any]] = deque()  # the first has batches left
        self._number = 0  # of the next batch of the first of them

    def begin(self, position: int) -> int | None:
        """Where the next batch begins, whose fetch is under way; None: after `position` the run has none.

        Raises:
            InvalidArgumentError: the end of positions.
        """
        if not self._started:
            self._read_ahead(position)
        return self._started[0][0].batches[self._number].position if self._started else None

    def batch(self) -> tuple[PlannedBatch, Any]:
        """The next batch, which stays the next one until `advance`.

        Raises:
            Error: a hook or the collection raised, or a worker process died.
            InvalidArgumentError: a hook or the collection gave what it must not.
        """
        fetch, started = self._started[0]
        planned = fetch.batches[self._number]
        try:
            return planned, self._reader.batch(started, self._number)
        except FailedError as error:
            raise Error(f"the batch at position {planned.position:,}: {error}") from error.__cause__
        except InvalidArgumentError as error:
            raise InvalidArgumentError(f"the batch at position {planned.position:,}: {error}") from error.__cause__

    def advance(self) -> None:
        """Goes to the batch after it; behind the last one of a fetch this is let go, and another one is started."""
        self._number += 1
        batches = self._started[0][0].batches
        if self._number < len(batches):
            return
        self._started.popleft()  # and with it what was read
        self._number = 0
        if self._depth > 1:
            self._read_ahead(batches[-1].end)

    def forget(self) -> None:
        """Drops all that was started."""
        self.clear()
        self._reader.drop()

    def clear(self) -> None:
        """Lets go of what was read; the reader is to be closed."""
        self._started.clear()
        self._number = 0

    def _read_ahead(self, position: int) -> None:
        while len(self._started) < self._depth:
            at = self._started[-1][0].batches[-1].end if self._started else position
            try:
                fetch = self._planner.fetch(at)
            except InvalidArgumentError:  # the end of positions: said when it is the next batch's
                if self._started:
                    return
                raise
            if fetch is None:
                return
            self._started.append((fetch, self._reader.start(fetch)))
