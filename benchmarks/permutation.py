"""What an index of the permutation costs on one core, called from Python; permutation.cpp measures each form."""

from __future__ import annotations

import time

import numpy as np
import penstock
from results import Result, alternate, vector_form
from workloads import Corpora

N = (1 << 28) + 1  # about the windows of 1.1 T tokens
AT_ONCE = 8192  # indices a call: they and their images stay in the core's cache
TARGETS = {"AVX-512": 12.0, "AVX2": 16.0}


def measure(corpora: Corpora) -> list[Result]:
    permutation = penstock.Permutation(N, seed=0x0123456789ABCDEF, epoch=3)
    indices = np.random.default_rng(1).integers(0, N, AT_ONCE, dtype=np.uint64)
    calls = 8 if corpora.quick else 256

    def once() -> float:
        begin = time.perf_counter_ns()
        for _ in range(calls):
            permutation(indices)
        return (time.perf_counter_ns() - begin) / (calls * AT_ONCE)

    once()
    (values,) = alternate(corpora.size.repeats, [once])
    form = vector_form()
    what = f"an index, batched, one core, {form}"
    return [Result("permutation", what, "ns", values, "in the core's cache", 8, at_most=TARGETS.get(form))]
