"""Resident memory over a million batches with metadata: flat, and what the loader adds is within max_bytes."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from pathlib import Path

from results import Result
from workloads import Corpora

SOAK = Path(__file__).with_name("soak.py")
MAX_BYTES = 16 << 20
FLAT_MIB = 0.5  # between the medians of the second tenth and of the last one
CACHE = "warm after the first batches"


def measure(corpora: Corpora) -> list[Result]:
    batches = corpora.size.soak_batches
    command = [sys.executable, str(SOAK), str(corpora.documents()), str(batches), str(MAX_BYTES)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"soak.py failed:\n{done.stderr}")
    said = json.loads(done.stdout)
    samples: list[float] = said["samples"]
    tenth = len(samples) // 10
    grown = statistics.median(samples[-tenth:]) - statistics.median(samples[tenth : 2 * tenth])
    beyond = max(samples) - said["before"]
    bound = MAX_BYTES / 2**20
    what = f"{batches:,} batches, max_bytes={MAX_BYTES >> 20} MiB"
    at = {"batches": float(batches)}
    return [
        Result("memory", f"{what}: resident memory of the process", "MiB", tuple(samples), CACHE, at=at),
        Result("memory", f"{what}: beyond before the loader", "MiB", (beyond,), CACHE, at_most=bound),
        Result("memory", f"{what}: growth, second to last tenth", "MiB", (grown,), CACHE, at_most=FLAT_MIB),
    ]
