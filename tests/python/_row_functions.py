"""Functions of rows in a module, which processes import."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np


def masked(row: Any, generator: np.random.Generator) -> np.ndarray:
    """A token for each of the first eight, or 0."""
    return np.where(generator.random(8) < 0.5, row["token"][:8], 0)


def facts(row: Any, generator: np.random.Generator) -> dict[str, Any]:
    return {
        "sum": int(row["token"].sum()),
        "where": [row.index, row.epoch],
        "drawn": generator.random(),
        "pieces": len(row.spans),
    }


def slow(row: Any, generator: np.random.Generator) -> float:
    time.sleep(0.002)
    return float(row["token"][0])


def dies(row: Any, generator: np.random.Generator) -> float:
    died = Path(os.environ["PENSTOCK_TEST_DIED"])
    if row.index == 7 and not died.exists():
        died.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return float(row.index)


def sevens_fail(row: Any, generator: np.random.Generator) -> float:
    if row.index == 7:
        raise KeyError("seven")
    return float(row.index)


class LocalError(Exception):
    """An error that no other process can make."""

    def __reduce__(self):
        return made_in, (os.getpid(),)


def made_in(pid: int) -> LocalError:
    if pid != os.getpid():
        raise ImportError("it is not known here")
    return LocalError("seven")


def sevens_fail_locally(row: Any, generator: np.random.Generator) -> float:
    if row.index == 7:
        raise LocalError("seven")
    return float(row.index)


def process_of(row: Any, generator: np.random.Generator) -> int:
    return os.getpid()
