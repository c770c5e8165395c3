"""How often draws give what: no label shows in the draws of many epochs. The rule itself is tested in C++."""

from __future__ import annotations

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


@pytest.mark.parametrize("name", ORDERS)
def test_no_label_varies_more_than_with_independent_draws(name):
    draws = resolve(ORDERS[name], N, 3).pick(0, 1, SIZE * EPOCHS)[0].reshape(EPOCHS, SIZE)
    random = np.random.default_rng(1)
    labels = [np.arange(N) % period == period // 2 for period in PERIODS]
    labels += [random.random(N) < share for share in random.uniform(0.01, 0.99, 12)]
    labels.append(CLASSES == 3)
    expected = np.bincount(draws.ravel(), minlength=N) / draws.size
    for number, label in enumerate(labels):
        share = expected[label].sum()
        ratio = label[draws].sum(1).var() / (SIZE * share * (1 - share))
        assert ratio <= 1.1, (number, ratio)
