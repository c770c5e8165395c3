"""suggest: which block and fetch factor a store reads fastest, measured."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from penstock._base.arguments import index
from penstock._base.errors import Error, InvalidArgumentError
from penstock._base.resources import default_max_bytes
from penstock._data.view import View
from penstock._load.collections.fetching import FailedError, Fetcher, Hooks
from penstock._load.collections.identity import is_opener, length_of
from penstock._load.collections.reading import bytes_of
from penstock._load.loader import Loader
from penstock._load.orders import Blocks

_STEPS = (1, 4, 16, 64, 256)
_FETCHES = 2  # in memory: the one that is consumed and the one that is read


@dataclass(frozen=True)
class Measured:
    """One row of a suggestion's table.

    Attributes:
        block: adjacent observations that are read together.
        fetch_factor: batches of a fetch.
        observations_per_s: read.
        bytes: of the two fetches that are in memory.
        fits: whether that is within the memory.
    """

    block: int
    fetch_factor: int
    observations_per_s: float
    bytes: int
    fits: bool


@dataclass(frozen=True)
class Suggestion:
    """The measurements of `suggest`; its repr is the table.

    Attributes:
        block: for `orders.Blocks`.
        fetch_factor: for `CollectionLoader`.
        batch_size: of which that holds.
        order: `orders.Blocks(block, fetch_factor * batch_size)`, for one rank.
        table: all that was measured.
    """

    block: int
    fetch_factor: int
    batch_size: int
    table: list[Measured]

    @property
    def order(self) -> Blocks:
        """The order of this block and fetch, for one rank; W of them want `lanes=W`."""
        return Blocks(self.block, self.fetch_factor * self.batch_size)

    def __repr__(self) -> str:
        """The choice, and a line for each measurement."""
        lines = [
            f"block={self.block}, fetch_factor={self.fetch_factor} for batches of {self.batch_size:,}",
            f"{'block':>6} {'fetch_factor':>12} {'observations/s':>14} {'MiB':>9}",
        ]
        for row in self.table:
            chosen = " <" if (row.block, row.fetch_factor) == (self.block, self.fetch_factor) else ""
            note = "" if row.fits else " more than the memory"
            size = row.bytes / 2**20
            lines.append(
                f"{row.block:>6} {row.fetch_factor:>12} {row.observations_per_s:>14,.0f} {size:>9,.1f}{chosen}{note}"
            )
        return "\n".join(lines)


def suggest(
    collection: Any,
    batch_size: int,
    memory: int | None = None,
    *,
    fetch_callback: Callable[[Any, Any], Any] | None = None,
    fetch_transform: Callable[[Any], Any] | None = None,
    seconds: float = 10.0,
    seed: int = 0,
) -> Suggestion:
    """Measures which block and fetch factor read fastest, of those whose fetches fit into the memory.

    Blocks and fetch factors of 1, 4, 16, 64 and 256 are tried, blocks no larger than the fetch factor: a batch then
    draws from as many blocks as it has observations, or more, and is mixed nearly as well as one of single ones. What
    is measured is this machine at this moment: what lies in the page cache is read faster than from the disk.

    Args:
        collection: as for `CollectionLoader`, or a view of penstock's own, read as `Loader` reads it.
        batch_size: of one rank.
        memory: bytes for two fetches, the one that is consumed and the one that is read ahead; None: a quarter of this
            process's memory.
        fetch_callback: as for `CollectionLoader`.
        fetch_transform: as for `CollectionLoader`; what it returns is what takes the memory.
        seconds: about how long to measure, all together. What there is no time for is not in the table, as far as what
            was measured before says so, nor is what by that would not fit.
        seed: of the blocks that are read.

    Returns:
        The choice with its table.

    Raises:
        InvalidArgumentError: no collection; not even one batch fits.
        Error: the collection or a hook raised: the cause.

    Examples:
        >>> import numpy as np, penstock
        >>> found = penstock.suggest(np.zeros((4096, 8), "f4"), batch_size=16, seconds=0.5)
        >>> found.block <= found.fetch_factor and len(found.table) > 3
        True
        >>> loader = penstock.CollectionLoader(np.zeros(4096), 16, order=found.order, fetch_factor=found.fetch_factor)
    """
    size = index("batch_size", batch_size, 1, 1 << 40)
    if not (isinstance(seconds, int | float) and math.isfinite(seconds)):
        raise InvalidArgumentError(f"seconds={seconds!r:.80}: must be a finite number")
    limit = default_max_bytes() if memory is None else index("memory", memory, 1)
    hooks = Hooks(fetch_callback=fetch_callback, fetch_transform=fetch_transform)
    read: Callable[[int, int, float], tuple[int, float, int]]
    if isinstance(collection, View):
        if fetch_callback is not None or fetch_transform is not None:
            raise InvalidArgumentError("a view of penstock's own has no fetch_callback and no fetch_transform")
        count, read = len(collection), _View(collection, size, seed).read
    else:
        opened = collection() if is_opener(collection) else collection
        count = length_of(opened, fetch_callback is not None)
        read = _Collection(Fetcher(opened, count, hooks), count, size, seed).read
    if count < size:
        raise InvalidArgumentError(f"{count:,} observations, fewer than a batch of {size:,}")

    try:
        table = _measured(read, size, count, limit, seconds)
    except FailedError as error:
        raise Error(str(error)) from error.__cause__
    fitting = [row for row in table if row.fits]
    if not fitting:
        raise InvalidArgumentError(
            f"two fetches of one batch of {size:,} take {table[0].bytes:,} bytes, more than memory={limit:,}"
        )
    best = max(fitting, key=lambda row: row.observations_per_s)
    return Suggestion(best.block, best.fetch_factor, size, table)


def _measured(
    read: Callable[[int, int, float], tuple[int, float, int]], size: int, count: int, limit: int, seconds: float
) -> list[Measured]:
    """A row for each block and fetch factor that there is time and memory for, the larger blocks of a factor first."""
    table: list[Measured] = []
    pairs = [
        (block, factor) for factor in _STEPS if factor * size <= count for block in reversed(_STEPS) if block <= factor
    ]
    read(1, 1, 0.0)  # opens files, imports, fills caches of the library
    end = time.perf_counter() + seconds
    for number, (block, factor) in enumerate(pairs):
        left = end - time.perf_counter()
        if table and not (_ends(table, block, factor * size, left) and _bytes(table, factor) <= limit):
            continue
        observations, spent, held = read(block, factor, left / (len(pairs) - number))
        held *= _FETCHES
        table.append(Measured(block, factor, observations / max(spent, 1e-9), held, held <= limit))
    return sorted(table, key=lambda row: (row.fetch_factor, row.block))


def _ends(table: list[Measured], block: int, observations: int, left: float) -> bool:
    """True if a fetch ends in the time that is left, by what was measured of blocks that are no larger.

    One of smaller blocks than were measured before ends in a part of it: there is more to come.
    """
    nearest = max((row for row in table if row.block <= block), key=lambda row: (row.block, row.fetch_factor))
    is_new = block > max(row.block for row in table)
    return observations / nearest.observations_per_s <= (left if is_new else left / 4)


def _bytes(table: list[Measured], factor: int) -> float:
    """The bytes that two fetches would take: a part for each fetch, such as names of genes, and one for each batch."""
    most = {
        row.fetch_factor: max(each.bytes for each in table if each.fetch_factor == row.fetch_factor) for row in table
    }
    small, large = min(most), max(most)
    each = (most[large] - most[small]) / (large - small) if large > small else 0
    return most[large] + each * (factor - large)


class _Collection:
    """Reads fetches of a collection."""

    def __init__(self, fetcher: Fetcher, count: int, batch_size: int, seed: int) -> None:
        self._fetcher = fetcher
        self._count = count
        self._batch_size = batch_size
        self._random = np.random.default_rng(seed)

    def read(self, block: int, factor: int, seconds: float) -> tuple[int, float, int]:
        """(observations, seconds, bytes of a fetch) of fetches for about `seconds`, at least of one."""
        observations, spent, held = 0, 0.0, 0
        end = time.perf_counter() + seconds
        for indices in self._fetches(block, factor):
            begin = time.perf_counter()
            fetched = self._fetcher.fetch(indices)
            spent += time.perf_counter() - begin
            observations += len(indices)
            held = held or bytes_of(fetched)
            del fetched
            if time.perf_counter() >= end:
                break
        return observations, spent, held

    def _fetches(self, block: int, factor: int) -> Iterator[Any]:
        while True:
            wanted = max(1, self._batch_size * factor // block)
            blocks = self._random.choice(max(1, self._count // block), min(wanted, self._count // block), replace=False)
            yield np.sort((blocks[:, None] * block + np.arange(block)).ravel())


class _View:
    """Reads fetches of a view by a Loader."""

    def __init__(self, view: Any, batch_size: int, seed: int) -> None:
        self._view = view
        self._batch_size = batch_size
        self._seed = seed

    def read(self, block: int, factor: int, seconds: float) -> tuple[int, float, int]:
        """As `_Collection.read`."""
        size = self._batch_size
        fetch = -(-factor * size // block) * block
        self._seed += 1  # other blocks each time
        with Loader(self._view, size, order=Blocks(block, fetch), seed=self._seed, framework="numpy") as loader:
            begin, batches, held = time.perf_counter(), 0, 0
            for batch in loader:
                batches += 1
                held = max(held, sum(int(batch[name].nbytes) for name in batch))
                spent = time.perf_counter() - begin
                if batches % factor == 0 and spent >= seconds:
                    break
        return batches * size, spent, held * factor
