"""What metrics cost: reads that are counted beside reads that are not (counting.cpp)."""

from __future__ import annotations

import json
import statistics
import subprocess
from pathlib import Path

from results import Result, SkippedError, ratios, warm
from workloads import TOKEN_BYTES, WINDOW, Corpora

PROGRAM = Path(__file__).parents[1] / "build" / "release" / "benchmarks" / "penstock_counting"
PAIRS = 1000  # of each repeat: 256 windows with and 256 without, one after the other
AT_LEAST = 0.99


def measure(corpora: Corpora) -> list[Result]:
    if not PROGRAM.exists():
        raise SkippedError(f"no {PROGRAM.name}: build with -DPENSTOCK_BUILD_BENCHMARKS=ON (make build)")
    path = corpora.tokens()
    warm([path])
    pairs = 4 if corpora.quick else PAIRS
    found = [medians(path, pairs) for _ in range(corpora.size.repeats)]
    plain, counted = (tuple(column) for column in zip(*found, strict=True))
    target = None if corpora.quick else AT_LEAST
    size = WINDOW * TOKEN_BYTES
    return [
        Result("metrics", "a window's reading, not counted", "ns", plain, "warm", size),
        Result("metrics", "a window's reading, counted", "ns", counted, "warm", size),
        Result("metrics", "not counted / counted", "ratio", ratios(plain, counted), "warm", size, at_least=target),
    ]


def medians(path: Path, pairs: int) -> tuple[float, float]:
    """ns of processor time a window without and with counting, the median over pairs each."""
    command = [PROGRAM, str(path), str(WINDOW), str(pairs)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"penstock_counting failed: {done.stderr}")
    found = [json.loads(line) for line in done.stdout.splitlines()]
    return statistics.median(each["plain"] for each in found), statistics.median(each["counted"] for each in found)
