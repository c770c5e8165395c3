"""What stands at a position never changes: tests/golden/orders.json holds it for each order.

`python tests/python/load/test_golden_orders.py` adds orders that are not in it yet; what is in it is not written again.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from penstock.orders import Balanced, Blocks, Custom, Sequential, Weighted, resolve

GOLDEN = Path(__file__).parents[2] / "golden" / "orders.json"
N, SEED = 1009, 12345
WEIGHTS = np.arange(N) % 7
LABELS = np.where(np.arange(N) % 11 == 0, -1, np.arange(N) % 11 % 4)
ORDERS: dict[str, Any] = {
    "uniform": "uniform",
    "sequential": "sequential",
    "sequential, fetch 100": Sequential(fetch=100),
    "blocks 4, 64": Blocks(4, 64),
    "blocks 4, 64, 3 lanes": Blocks(4, 64, lanes=3),
    "weighted": Weighted(WEIGHTS, draws="systematic"),
    "weighted by thirds, 500 draws": Weighted(WEIGHTS / 3, size=500, draws="systematic"),
    "weighted in blocks": Weighted(WEIGHTS, size=2000, block=4, fetch=64, lanes=2, draws="systematic"),
    "balanced": Balanced(LABELS),
    "balanced, shares": Balanced(LABELS, weights=[1, 2, 3, 0.5], block=4, fetch=64, draws="systematic"),
    "weighted, rounded": Weighted(WEIGHTS),
    "weighted by thirds, 500 rounded draws": Weighted(WEIGHTS / 3, size=500),
    "weighted in blocks, rounded": Weighted(WEIGHTS, size=2000, block=4, fetch=64, lanes=2),
    "custom": Custom(np.arange(2000) * 7 % N),
    "custom function": Custom(lambda epoch, positions: (positions * 3 + epoch) % N, name="mine", version=2, length=700),
    "weighted, independent": Weighted(WEIGHTS, draws="independent"),
    "balanced by thirds, independent": Balanced(LABELS, weights=[1, 2, 3, 0.5], size=500, draws="independent", fetch=8),
    "balanced, missing as a class": Balanced(LABELS, missing="own class"),
    "balanced, shares, rounded": Balanced(LABELS, weights=[1, 2, 3, 0.5], block=4, fetch=64),
}
POSITIONS = [0, 1, 2, 3, 500, 1007, 1008, 1009, 1010, 5000, 10**6, 10**9]


def found(order: Any) -> dict[str, Any]:
    native = resolve(order, N, SEED)
    return {
        "identity": json.loads(native.identity((1 << 64) - 1)),
        "indices": [int(native.pick(position, 1, 1)[0][0]) for position in POSITIONS],
    }


@pytest.mark.parametrize("name", ORDERS)
def test_what_stands_at_a_position_never_changes(name):
    golden = json.loads(GOLDEN.read_text())
    assert (golden["n"], golden["seed"], golden["positions"]) == (N, SEED, POSITIONS)
    assert found(ORDERS[name]) == golden["orders"][name]


if __name__ == "__main__":
    kept = json.loads(GOLDEN.read_text())["orders"] if GOLDEN.exists() else {}
    orders = {name: kept.get(name) or found(order) for name, order in ORDERS.items()}
    GOLDEN.write_text(json.dumps({"n": N, "seed": SEED, "positions": POSITIONS, "orders": orders}, indent=1) + "\n")
