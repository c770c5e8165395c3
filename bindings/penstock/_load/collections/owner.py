"""Who may use a loader of a collection: the process that made it, one thread at a time."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from penstock._base.errors import InvalidArgumentError
from penstock._base.ranks import refuse_worker


class Owner:
    """The process that makes it, and whether its loader was closed."""

    def __init__(self) -> None:
        """This process."""
        self.closed = False
        self._pid = os.getpid()
        self._busy = threading.Lock()

    @property
    def is_here(self) -> bool:
        """False in a forked child."""
        return os.getpid() == self._pid

    @contextmanager
    def alone(self, closed: bool = False) -> Iterator[None]:
        """Refuses a forked child, a second thread, and unless `closed` a loader that was closed.

        Raises:
            InvalidArgumentError: it is refused.
        """
        if not self.is_here:
            check_worker()
            raise InvalidArgumentError(
                f"this loader was made in process {self._pid}, not in its forked child {os.getpid()}: make one there"
            )
        if self.closed and not closed:
            raise InvalidArgumentError("this loader is closed: make another one")
        if not self._busy.acquire(blocking=False):
            raise InvalidArgumentError("another thread is in next() of this loader: one at a time")
        try:
            yield
        finally:
            self._busy.release()


def check_worker() -> None:
    """Refuses a DataLoader's worker.

    Raises:
        InvalidArgumentError: this process is one.
    """
    refuse_worker(
        "a CollectionLoader",
        "Iterate it itself, without a DataLoader: processes= read for it. Of penstock's own views "
        "penstock.adapters.torch.BatchDataset divides the rows among workers",
    )


def end_here(end: Callable[[], None], owner: Owner) -> None:
    """Ends readers, unless this is a forked child, whose they are not."""
    if owner.is_here:
        end()
