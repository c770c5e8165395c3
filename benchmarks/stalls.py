"""How often a training step waits where reads are slow and their times vary, beside a plain pool of threads.

Reads take 2 ms at the median (log-normal, sigma 1), a step 12 ms; batches of 8 reads, 8 threads, 4 batches ahead. The
loader and the pool (stalls.cpp) run at the same time with the same delays. A stall is a batch that was not ready, and
for which the step waited more than 0.5 ms.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from results import Result, SkippedError, ratios
from workloads import Corpora

PROGRAM = Path(__file__).parents[1] / "build" / "release" / "benchmarks" / "penstock_stalls"
SECTIONS = 10  # consumers of each contender at the same time: they sleep nearly always
STEPS = 50_000  # of all of them together
AT_MOST = 1.2  # times the pool's stalls


def measure(corpora: Corpora) -> list[Result]:
    if not PROGRAM.exists():
        raise SkippedError(f"no {PROGRAM.name}: build with -DPENSTOCK_BUILD_BENCHMARKS=ON (make build)")
    quick = corpora.quick
    repeats = 1 if quick else 3
    steps = 30 if quick else STEPS // SECTIONS
    found = [both(steps, seed=1 + repeat * SECTIONS) for repeat in range(repeats)]
    ours, pools = ([each[who] for each in found] for who in ("loader", "pool"))
    state = f"no disk: {SECTIONS * steps:,} steps, delays of a function"
    results = []
    for what, figure, unit in (
        ("batches that were waited for", "stalls", "stalls"),
        ("time waited", "waited_ms", "ms"),
        ("processor time a step", "cpu_us_a_step", "µs"),
    ):
        for name, those in (("penstock", ours), ("plain pool", pools)):
            results.append(Result("stalls", f"{what}: {name}", unit, column(those, figure), state))
    stalls = column(ours, "stalls"), [max(1.0, each) for each in column(pools, "stalls")]
    target = None if quick else AT_MOST  # so few steps have next to no stalls
    results.append(Result("stalls", "stalls: penstock / plain pool", "ratio", ratios(*stalls), state, at_most=target))
    return results


def column(runs: list[dict[str, Any]], figure: str) -> tuple[float, ...]:
    return tuple(float(run[figure]) for run in runs)


def both(steps: int, seed: int) -> dict[str, dict[str, Any]]:
    """What each contender says of its run, by its name; they run side by side."""
    running = {
        who: subprocess.Popen([PROGRAM, who, str(SECTIONS), str(steps), str(seed)], stdout=subprocess.PIPE, text=True)
        for who in ("loader", "pool")
    }
    said = {who: process.communicate()[0] for who, process in running.items()}
    for who, process in running.items():
        if process.returncode != 0:
            raise RuntimeError(f"penstock_stalls {who} failed")
    return {who: json.loads(line) for who, line in said.items()}
