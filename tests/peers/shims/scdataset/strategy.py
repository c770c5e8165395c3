"""Strategies as orders of penstock; their arguments are checked by scDataset's own classes."""

from __future__ import annotations

from typing import Any

import numpy as np
import penstock
from penstock import orders

import scdataset

_theirs = scdataset.theirs("strategy")
SamplingStrategy = _theirs.SamplingStrategy


class _Ordered:
    """`order` is that of a loader; `get_indices` gives what it reads, fetch by fetch, ascending in each."""

    def order(self, count: int, fetch: int) -> Any:
        raise NotImplementedError

    def size(self, count: int) -> int:
        return count

    def chosen(self, collection: Any) -> np.ndarray | None:
        """The observations that are sampled from; None: all."""
        return None if self._indices is None else np.asarray(self._indices)  # type: ignore[attr-defined]

    def get_len(self, collection: Any) -> int:
        return self.size(len(collection) if self._indices is None else len(self._indices))  # type: ignore[attr-defined]

    def get_indices(self, collection: Any, seed: int | None = None, rng: Any = None) -> np.ndarray:
        scdataset.count()
        chosen = self.chosen(collection)
        count = len(collection) if chosen is None else len(chosen)
        if count == 0:
            return np.zeros(0, np.int64)
        block = getattr(self, "block_size", 1)
        order = penstock.orders.resolve(self.order_of(collection, block), count, seed or 0)
        drawn = order.pick(0, 1, order.epoch_size)[0].astype(np.int64)
        if self._shuffle_before_yield:  # type: ignore[attr-defined]
            drawn = np.concatenate([np.sort(drawn[at : at + block]) for at in range(0, len(drawn), block)])
        return drawn if chosen is None else chosen[drawn]

    def order_of(self, collection: Any, fetch: int) -> Any:
        chosen = self.chosen(collection)
        return self.order(len(collection) if chosen is None else len(chosen), fetch)


class Streaming(_Ordered, _theirs.Streaming):
    def order(self, count: int, fetch: int) -> Any:
        return orders.Sequential(fetch=fetch) if self._shuffle_before_yield and fetch > 1 else "sequential"


class BlockShuffling(_Ordered, _theirs.BlockShuffling):
    def order(self, count: int, fetch: int) -> Any:
        return orders.Blocks(self.block_size, _multiple(fetch, self.block_size))


class BlockWeightedSampling(_Ordered, _theirs.BlockWeightedSampling):
    def size(self, count: int) -> int:
        return count if self.total_size is None else self.total_size

    def order_of(self, collection: Any, fetch: int) -> Any:
        chosen = self.chosen(collection)
        count = len(collection) if chosen is None else len(chosen)
        weights = np.ones(count) if self.weights is None else self.weights
        if chosen is not None and len(weights) == len(collection) != count:
            weights = weights[chosen]
        options = {"size": self.total_size, "block": self.block_size, "fetch": _multiple(fetch, self.block_size)}
        return orders.Weighted(weights, replace=self.replace, **options)


class ClassBalancedSampling(BlockWeightedSampling, _theirs.ClassBalancedSampling):
    def order_of(self, collection: Any, fetch: int) -> Any:
        chosen = self.chosen(collection)
        if chosen is not None and len(self.labels) != len(chosen):  # weights of the whole, of a part of it
            return super().order_of(collection, fetch)
        options = {"size": self.total_size, "block": self.block_size, "fetch": _multiple(fetch, self.block_size)}
        return orders.Balanced(self.labels, **options)


def _multiple(fetch: int, block: int) -> int:
    return -(-fetch // block) * block
