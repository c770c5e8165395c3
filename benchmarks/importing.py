"""`import penstock` in a fresh process, beyond what NumPy takes; torch is installed and must not be imported."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from results import Result, alternate
from workloads import Corpora

FRESH = Path(__file__).with_name("fresh.py")


def fresh(*arguments: str) -> dict[str, float]:
    """What fresh.py says, run by this interpreter in a process of its own."""
    command = [sys.executable, str(FRESH), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"fresh.py failed:\n{done.stderr}")
    answer: dict[str, float] = json.loads(done.stdout)
    return answer


def measure(corpora: Corpora) -> list[Result]:
    fresh()  # modules are in the page cache and compiled
    found: list[dict[str, float]] = []

    def once() -> float:
        found.append(fresh())
        return found[-1]["penstock_ms"]

    (own,) = alternate(corpora.size.processes, [once])
    numpy = tuple(one["numpy_ms"] for one in found)
    cache = "modules read before"
    return [
        Result("import", "import penstock, after NumPy", "ms", own, cache, at_most=50),
        Result("import", "import numpy, beside it", "ms", numpy, cache),
    ]
