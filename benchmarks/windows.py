"""What a process of its own loads for some seconds: run by cold.py, cold_blocks.py and layouts.py, bound by a memory
cgroup.

One argument, JSON: paths, dtype (or null), window, lookahead, batch, order, loader (its options), seconds, group
(cgroup.procs, or null). An order is "uniform", "sequential", or block and fetch of Blocks. Prints one line of JSON.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import penstock
from workloads import BATCH, WINDOW

FIRST_BATCHES = 4  # until then files are opened and the readers' queues filled


def load(asked: dict[str, Any]) -> dict[str, float]:
    """Windows of one epoch, so none twice, until it or the time is over."""
    hints = {} if asked["dtype"] is None else {"dtype": asked["dtype"]}
    view = penstock.open(*asked["paths"], **hints).windows(asked["window"], lookahead=asked["lookahead"])
    order = asked["order"] if isinstance(asked["order"], str) else penstock.orders.Blocks(*asked["order"])
    options = {"framework": "numpy", "epochs": 1, "rank": 0, "world_size": 1, "order": order} | asked["loader"]
    batches = 0
    with penstock.Loader(view, batch_size=asked["batch"], **options) as loader:
        for _ in range(FIRST_BATCHES):
            next(loader)
        begin = now = time.perf_counter()
        cpu = time.process_time()
        for _ in loader:
            batches += 1
            now = time.perf_counter()
            if now - begin > asked["seconds"]:
                break
    return {"windows": batches * asked["batch"], "seconds": now - begin, "cpu_seconds": time.process_time() - cpu}


def windows_per_second(
    paths: list[Path],
    dtype: str | None,
    lookahead: int,
    loader: dict[str, Any],
    seconds: float,
    group: Path | None,
    **other: Any,
) -> float:
    """The same, in a process of its own; called by the measurements."""
    asked = {"window": WINDOW, "batch": BATCH, "order": "uniform"} | other
    asked |= {
        "paths": list(map(str, paths)),
        "dtype": dtype,
        "lookahead": lookahead,
        "loader": loader,
        "seconds": seconds,
        "group": None if group is None else str(group),
    }
    done = subprocess.run([sys.executable, __file__, json.dumps(asked)], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"windows.py failed:\n{done.stderr}")
    found = json.loads(done.stdout)
    return float(found["windows"] / found["seconds"])


def main() -> None:
    asked = json.loads(sys.argv[1])
    if asked["group"] is not None:
        Path(asked["group"]).write_text(str(os.getpid()), encoding="ascii")
    print(json.dumps(load(asked)))


if __name__ == "__main__":
    main()
