"""annbatch's samplers with penstock's orders, for annbatch's own tests; a plugin of pytest.

`RandomSampler` and `SequentialSampler` keep their arguments and checks. What they draw is what a
`penstock.CollectionLoader` asks its collection for: a fetch is a request, its runs of observations are the chunks, its
batches the splits. annbatch's Loader then reads by them. Samplers of classes draw by `orders.Weighted`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import penstock
from annbatch.samplers import _chunk_sampler
from annbatch.samplers._class_samplers import _class_sampler
from penstock import orders

used = 0


def _order(sampler: Any, count: int, samples: int, ranks: int) -> Any:
    fetch = sampler._in_memory_size
    if sampler._replacement:
        return orders.Weighted(np.ones(count), size=samples, block=sampler._chunk_size, fetch=fetch)
    return orders.Blocks(sampler._chunk_size, fetch, lanes=ranks) if sampler.shuffle else "sequential"


def _batches(sampler: Any, n_obs: int, share: tuple[int, int]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """What each fetch asks for, ascending, and the places of a batch in it."""
    global used
    used += 1
    start, stop = sampler._resolve_start_stop(n_obs)
    order = _order(sampler, stop - start, sampler._resolve_num_samples(n_obs), share[1])
    with penstock.CollectionLoader(
        np.arange(start, stop),
        sampler.batch_size,
        order=order,
        fetch_factor=max(1, sampler._in_memory_size // sampler.batch_size),
        seed=int(sampler._rng.integers(1 << 63)),
        rank=share[0],
        world_size=share[1],
        epochs=1,
        tail="drop" if sampler._drop_last else "short",
        threads=0,
        fetch_callback=lambda numbers, places: numbers[places],
        batch_callback=lambda fetched, places: (fetched, places),
    ) as loader:
        for batch in loader:
            if loader.info.valid.any():
                yield batch


def _chunks(indices: np.ndarray, start: int, size: int) -> list[slice]:
    """Runs of observations; those of neighbouring chunks are one request each, as annbatch has them."""
    cuts = np.flatnonzero((np.diff(indices) != 1) | ((indices[1:] - start) % size == 0)) + 1
    return [slice(int(run[0]), int(run[-1]) + 1) for run in np.split(indices, cuts)]


def _sample(self: Any, n_obs: int) -> Iterator[dict[str, Any]]:
    worker = _chunk_sampler.get_torch_worker_info()
    self._validate_worker_mode(worker)
    share = (0, 1) if worker is None else (worker.id, worker.num_workers)
    batches = itertools.islice(_batches(self, n_obs, share), self.n_batches(n_obs))
    for _, group in itertools.groupby(batches, key=lambda batch: id(batch[0])):
        found = list(group)
        yield {
            "requests": _chunks(found[0][0], self._resolve_start_stop(n_obs)[0], self._chunk_size),
            "splits": [places for _, places in found],
        }


_chunk_sampler._ChunkSampler._sample = _sample


class _Draws(np.random.Generator):
    """The generator of a sampler of classes, whose draws of classes and of chunks in them are `orders.Weighted`'s."""

    def choice(self, a: Any, size: Any = None, replace: bool = True, p: Any = None, **more: Any) -> Any:
        return np.asarray(a)[self._drawn(p, size)]

    def integers(self, low: Any, *more: Any, **options: Any) -> Any:
        if np.ndim(low) == 0:
            return super().integers(low, *more, **options)
        found = np.zeros(len(low), np.int64)
        for each in np.unique(low):
            found[low == each] = self._drawn(np.ones(each), int((low == each).sum()))
        return found

    def _drawn(self, weights: Any, count: int) -> np.ndarray:
        """Places among the weights, each drawn for itself."""
        global used
        used += 1
        order = orders.Weighted(weights, size=count, draws="independent")
        seed = int(super().integers(1 << 63))
        with penstock.CollectionLoader(
            np.arange(len(weights)), min(count, 1024), order=order, seed=seed, epochs=1, tail="short", threads=0
        ) as loader:
            return np.concatenate(list(loader))[:count]


def _set(self: Any, rng: np.random.Generator) -> None:
    vars(self)["_drawn"] = _Draws(rng.bit_generator)


_class_sampler.ClassSampler._rng = property(lambda self: vars(self)["_drawn"], _set)
