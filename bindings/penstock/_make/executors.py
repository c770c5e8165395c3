"""Who does the work of a run: this process, threads or processes of this machine, or what else was given as `workers=`.

penstock._from.rows.cluster.Cluster has the workers of a Ray cluster.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from penstock._base.arguments import index
from penstock._base.errors import InvalidArgumentError
from penstock._make.pools import Executor, Pool, Work


@dataclass(frozen=True)
class Here:
    """An executor: this process."""

    is_far: ClassVar = False

    def pool(self, work: Work) -> Pool:
        """Begins nothing yet."""
        return _Here(work)


@dataclass(frozen=True)
class Threads:
    """An executor: `count` threads of this process, for work that leaves the GIL to others."""

    count: int
    is_far: ClassVar = False

    def pool(self, work: Work) -> Pool:
        """Starts nothing yet."""
        from penstock._make.threads import ThreadPool

        return ThreadPool(self.count, work)


@dataclass(frozen=True)
class Processes:
    """An executor: `count` processes of this machine."""

    count: int
    is_far: ClassVar = False

    def pool(self, work: Work) -> Pool:
        """Starts nothing yet."""
        from penstock._make.workers import WorkerPool  # which imports multiprocessing

        return WorkerPool(self.count, work)


def executor_of(workers: int | Executor) -> Executor:
    """The executor that `workers=` names: N processes of this machine, this process alone (1), or an executor as given.

    Raises:
        InvalidArgumentError: It is neither a number from 1 on nor an executor.
    """
    if isinstance(workers, int):
        count = index("workers", workers, 1)
        return Here() if count == 1 else Processes(count)
    if not callable(getattr(workers, "pool", None)):
        raise InvalidArgumentError(f"workers={workers!r:.80}: a number, or an executor such as penstock.ray.Cluster()")
    return workers


def is_far(executor: Executor) -> bool:
    """True if its workers may be on other machines, whose working directory differs."""
    return bool(getattr(executor, "is_far", True))


class _Here:
    """The pool of this process: an item is worked on when its result is asked for; errors are as they are raised."""

    started = 1

    def __init__(self, work: Work) -> None:
        self._work = work
        self._call: Callable[[Any], Any] | None = None
        self._items: deque[Any] = deque()

    def has_room(self) -> bool:
        return not self._items

    def submit(self, item: Any) -> None:
        self._items.append(item)

    def next_results(self) -> Iterator[Any]:
        self._call = self._call or self._work.begin()
        while self._items:
            yield self._call(self._items.popleft())

    def pending(self) -> bool:
        return bool(self._items)

    def check(self) -> None:
        """Nothing: this process is alive."""

    def close(self) -> None:
        self._items.clear()
