"""How often draws give what: exact counts for small tables, and no label that shows in the draws of many epochs."""

from __future__ import annotations

from collections import Counter, defaultdict
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from penstock.orders import Balanced, Weighted, resolve

N, SIZE, EPOCHS = 3000, 300, 2000
PERIODS = [*range(2, 26), 30, 37, 48, 50, 64, 75, 97, 100, 128, 150, 250, 300, 333, 500, 750, 1000]
CLASSES = np.arange(N) % 7 % 4  # 0, 1 and 2 twice as often as 3
ORDERS: dict[str, Any] = {
    "equal": Weighted(np.ones(N), size=SIZE),
    "unequal": Weighted(np.random.default_rng(0).gamma(0.5, size=N), size=SIZE),
    "above one": Weighted(np.where(np.arange(N) % 30 == 0, 30, 1), size=SIZE),
    "in blocks": Weighted(np.ones(N), size=SIZE, block=2, fetch=50, lanes=3),
    "in turn": Balanced(CLASSES, size=SIZE),
    "by shares": Balanced(CLASSES, weights=[1, 2, 3, 4], size=SIZE),
}


def drawn(order: Any, n: int, size: int, epochs: int, seed: int = 3) -> np.ndarray:
    """Observations [epochs, size]."""
    return resolve(order, n, seed).pick(0, 1, size * epochs)[0].reshape(epochs, size)


@pytest.mark.parametrize("name", ORDERS)
def test_no_label_varies_more_than_with_independent_draws(name):
    draws = drawn(ORDERS[name], N, SIZE, EPOCHS)
    random = np.random.default_rng(1)
    labels = [np.arange(N) % period == period // 2 for period in PERIODS]
    labels += [random.random(N) < share for share in random.uniform(0.01, 0.99, 12)]
    labels.append(CLASSES == 3)
    expected = np.bincount(draws.ravel(), minlength=N) / draws.size
    for number, label in enumerate(labels):
        share = expected[label].sum()
        ratio = label[draws].sum(1).var() / (SIZE * share * (1 - share))
        assert ratio <= 1.1, (number, ratio)


def test_epochs_draw_sets_of_their_own():
    sets = {tuple(sorted(each)) for each in drawn(Weighted(np.ones(1000), size=100), 1000, 100, 400).tolist()}
    assert len(sets) >= 390


def rounded(expected: list[Fraction], is_up: bool = False) -> dict[tuple[int, ...], Fraction]:
    """Counts of the observations of a node and their probabilities, by the rule in shuffle/draw_tree.h."""
    if len(expected) == 1:
        return {(expected[0].__floor__() + is_up,): Fraction(1)}
    halves = expected[: len(expected) // 2], expected[len(expected) // 2 :]
    first, second = (sum(half, Fraction(0)) % 1 for half in halves)
    ways = {(is_up, is_up): Fraction(1)}
    if first + second < 1 and is_up:
        chance = first / (first + second)
        ways = {(True, False): chance, (False, True): 1 - chance}
    elif first + second >= 1 and not is_up:
        chance = (1 - second) / (2 - first - second)
        ways = {(True, False): chance, (False, True): 1 - chance}
    found: dict[tuple[int, ...], Fraction] = defaultdict(Fraction)
    for ups, probability in ways.items():
        parts = [rounded(half, up) if probability else {} for half, up in zip(halves, ups, strict=True)]
        for left, of_left in parts[0].items():
            for right, of_right in parts[1].items():
                found[left + right] += probability * of_left * of_right
    return found


@pytest.mark.parametrize(
    ("weights", "size"),
    [([7], 3), ([1, 2, 3], 2), ([3, 0, 1, 1, 5], 4), ([1] * 6, 3), ([1] * 7, 4), ([5, 1, 1], 6), ([1, 2] * 3, 11)],
)
def test_counts_have_the_probabilities_of_dependent_rounding(weights, size):
    expected = [Fraction(weight * size, sum(weights)) for weight in weights]
    exact = rounded(expected)
    assert sum(exact.values()) == 1
    for number, one in enumerate(expected):  # the rule itself gives every observation its expectation
        assert sum(probability * counts[number] for counts, probability in exact.items()) == one
    epochs = 20_000
    draws = drawn(Weighted(weights, size=size), len(weights), size, epochs)
    counts = (draws[:, :, None] == np.arange(len(weights))).sum(1)
    seen = Counter(map(tuple, counts.tolist()))
    assert seen.keys() <= {key for key, probability in exact.items() if probability}
    for key, probability in exact.items():
        p = float(probability)
        assert abs(seen[key] - epochs * p) <= 4.5 * (epochs * p * (1 - p)) ** 0.5 + 1e-6, key
