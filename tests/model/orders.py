"""Which observation stands at which position of an epoch, from docs/loading.md ("Which order")."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import penstock
from dimensions import OWN, Case
from penstock import orders
from sources import Source

sys.path.insert(0, str(Path(__file__).parents[1] / "python"))
from permutation_reference import BlocksReference, Reference, independent_draws

FETCH = 5


VARIOUS = ("blocks", "sequential", "uniform")


def own_indices(n: int) -> np.ndarray:
    """More than there are observations, some of them twice."""
    return np.append(np.arange(n)[::-1] * 3 % n, [0, n - 1, 0])


def own_length(n: int) -> int:
    return max(n - 2, 1)


def drawn_weights(n: int) -> np.ndarray:
    """Integers, of which some are 0."""
    weights = (np.arange(n) * 3 % 4).astype(float)
    weights[0] = 1
    return weights


class OwnFunction:
    """A user's function of (epoch, positions)."""

    def __init__(self, n: int) -> None:
        self._n = n

    def __call__(self, epoch: int, positions: np.ndarray) -> np.ndarray:
        return (positions * 5 + epoch * 7 + positions // 3) % self._n


def order_of(case: Case, source: Source, number: int = 0) -> Any:
    """What the loader is given for the source of a number."""
    size = len(source.numbers)
    labels = np.arange(size) * 5 % 7 % 3
    weights = drawn_weights(size)
    return {
        "uniform": "uniform",
        "sequential": "sequential",
        "mixed": orders.Sequential(fetch=FETCH),
        "blocks": orders.Blocks(2, 6),
        "lanes": orders.Blocks(3, 3, lanes=4),
        "bucketed": orders.Bucketed(source.lengths(), pool=9, bucket=2),
        "weighted": orders.Weighted(weights),
        "drawn": orders.Weighted(weights + 0.5, size=max(size - 1, 1), block=2, fetch=4),
        "systematic": orders.Weighted(weights, draws="systematic"),
        "independent": orders.Weighted(weights, size=size + 2, draws="independent", fetch=4, lanes=2),
        "balanced": orders.Balanced(labels),
        "custom": orders.Custom(own_indices(size)),
        "asked": orders.Custom(OwnFunction(size), name="own", version=1, length=own_length(size), fetch=4, lanes=2),
        "classes": orders.Balanced(labels, weights=[2, 1, 1][: labels.max() + 1], block=2, fetch=4, lanes=2),
    }[kind_of(case, number)]


def kind_of(case: Case, number: int) -> str:
    """Sources have the same order, or each its own."""
    return VARIOUS[number] if case["order"] == "various" else case["order"]


class Epochs:
    """The order of a view of one dataset, epoch by epoch."""

    def __init__(self, case: Case, source: Source, seed: int) -> None:
        self._case, self._seed, self._n = case, seed, len(source.numbers)
        self._order = order_of(case, source)
        self.size = {
            "drawn": max(self._n - 1, 1), "independent": self._n + 2,
            "custom": self._n + 3, "asked": own_length(self._n),
        }.get(case["order"], self._n)  # fmt: skip
        self._found: dict[int, list[int]] = {}

    def __call__(self, epoch: int) -> list[int]:
        """Observations of an epoch, position by position."""
        if epoch not in self._found:
            self._found[epoch] = self._of(epoch)
            _check(kind_of(self._case, 0), self._found[epoch], self._n, epoch)
        return self._found[epoch]

    def _of(self, epoch: int) -> list[int]:
        n, seed = self._n, self._seed
        kind = kind_of(self._case, 0)
        if kind == "sequential":
            return list(range(n))
        if kind == "uniform":
            reference = Reference(n, seed, epoch)
            return [reference(each) for each in range(n)]
        if kind in ("blocks", "lanes"):
            blocks = BlocksReference(n, seed, self._order.block, self._order.fetch, self._order.lanes)
            return [blocks(epoch * n + each) for each in range(n)]
        if kind == "custom":
            return [int(each) for each in own_indices(n)]
        if kind == "asked":
            return [int(OwnFunction(n)(epoch, np.array([each]))[0]) for each in range(self.size)]
        if kind == "independent":
            return independent_draws(drawn_weights(n), seed, epoch, self.size)
        # Their choice is documented by what it has to be: see _check.
        picked = penstock.orders.resolve(self._order, n, seed).pick(epoch * self.size, 1, self.size)
        assert (picked[2] == epoch).all() and (picked[1] == 0).all()
        return [int(each) for each in picked[0]]


def _check(kind: str, found: list[int], n: int, epoch: int) -> None:
    """What an order that draws or mixes must give in each epoch."""
    counts = Counter(found)
    if kind in ("weighted", "drawn", "systematic"):
        weights = drawn_weights(n)
        expected = weights + 0.5 if kind == "drawn" else weights
        expected = expected / expected.sum() * len(found)
        assert all(abs(counts[each] - expected[each]) < 1 + 1e-9 for each in range(n)), (kind, counts)
    elif kind == "balanced":
        classes = np.arange(n) * 5 % 7 % 3
        number = len(set(classes.tolist()))
        for first in range(-epoch * len(found) % number, len(found) - number + 1, number):
            assert len({int(classes[each]) for each in found[first : first + number]}) == number
    elif kind not in ("classes", "independent", *OWN):
        assert sorted(found) == list(range(n)), kind
    if kind == "mixed":
        assert all(each // FETCH == at // FETCH for at, each in enumerate(found))
