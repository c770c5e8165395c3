"""What a draw of `orders.Weighted` costs, as it is made now and systematic, beside a position of the uniform order."""

from __future__ import annotations

import time
from functools import partial
from typing import Any

import numpy as np
from penstock import orders
from results import Result, alternate, ratios
from workloads import Corpora

SIZES, QUICK_SIZES = (1_000, 5_000_000), (1_000,)
AT_ONCE, CALLS = 256, 400
MOST = {1_000: 3.0, 5_000_000: 2.0}  # times a systematic draw


def measure(corpora: Corpora) -> list[Result]:
    results = []
    for size in QUICK_SIZES if corpora.quick else SIZES:
        weights = np.random.default_rng(0).integers(1, 1000, size)
        ways: dict[str, Any] = {
            "a draw, rounded": orders.Weighted(weights),
            "a draw, systematic": orders.Weighted(weights, draws="systematic"),
            "a position, uniform": "uniform",
        }
        natives = [orders.resolve(way, size, seed=1) for way in ways.values()]
        found = alternate(corpora.size.repeats, [partial(ns, native) for native in natives])
        cache = f"{size:,} weights, {AT_ONCE} at once"
        results += [Result("draws", what, "ns", values, cache) for what, values in zip(ways, found, strict=True)]
        quotient = ratios(found[0], found[1])
        results.append(Result("draws", "rounded / systematic", "ratio", quotient, cache, at_most=MOST[size]))
    return results


def ns(order: Any) -> float:
    begin = time.thread_time_ns()
    for call in range(CALLS):
        order.pick(call * AT_ONCE, 1, AT_ONCE)
    return (time.thread_time_ns() - begin) / CALLS / AT_ONCE
