"""Eight processes of one node, each with a loader, read one warm corpus, with LOCAL_WORLD_SIZE and without.

Run by itself, this file is one of those processes. One argument, JSON: path, rank, world_size, seconds. It prints a
line when it has read its first batches, begins at a line of its standard input, and prints what it read as JSON.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import penstock
from results import Result, alternate, ratios, warm
from workloads import BATCH, TOKEN_BYTES, WINDOW, Corpora

LOADERS, QUICK_LOADERS = 8, 2
FIRST_BATCHES = 4  # until then files are opened and threads started
CACHE = "warm"


def measure(corpora: Corpora) -> list[Result]:
    path = corpora.tokens()
    warm([path])
    loaders = QUICK_LOADERS if corpora.quick else LOADERS
    run = partial(node, path, seconds=corpora.size.seconds)
    ways = {
        "1 loader": partial(run, 1, None),
        f"{loaders} loaders, LOCAL_WORLD_SIZE={loaders}": partial(run, loaders, loaders),
        f"{loaders} loaders, LOCAL_WORLD_SIZE unset": partial(run, loaders, None),
    }
    cpu: dict[str, list[float]] = {what: [] for what in ways}

    def speed(what: str) -> float:
        windows_per_second, cpu_us = ways[what]()
        cpu[what].append(cpu_us)
        return windows_per_second

    found = dict(zip(ways, alternate(corpora.size.repeats, [partial(speed, what) for what in ways]), strict=True))
    one, told, untold = found.values()
    window_bytes = WINDOW * TOKEN_BYTES
    return [
        *(
            Result("node", f"{what}, together", "windows/s", values, CACHE, window_bytes)
            for what, values in found.items()
        ),
        *(
            Result("node", f"{what}: processor time a window", "µs", tuple(values), CACHE, window_bytes)
            for what, values in cpu.items()
        ),
        Result("node", f"{loaders} loaders that share / 1 loader", "ratio", ratios(told, one), CACHE, window_bytes),
        Result("node", f"{loaders} loaders, shared / unset", "ratio", ratios(told, untold), CACHE, window_bytes),
    ]


def node(path: Path, loaders: int, local_world_size: int | None, *, seconds: float) -> tuple[float, float]:
    """Windows per second of all loaders together, and their processor time in µs for each window."""
    found = side_by_side(path, loaders, local_world_size, seconds)
    windows = sum(one["windows"] for one in found)
    cpu_us = 1e6 * sum(one["cpu_seconds"] for one in found)
    return sum(one["windows"] / one["seconds"] for one in found), cpu_us / windows


def side_by_side(path: Path, loaders: int, local_world_size: int | None, seconds: float) -> list[dict[str, float]]:
    """What each of the processes says, which begin to read at the same time."""
    environment = {name: value for name, value in os.environ.items() if name != "LOCAL_WORLD_SIZE"}
    if local_world_size is not None:
        environment["LOCAL_WORLD_SIZE"] = str(local_world_size)
    running = []
    try:
        for rank in range(loaders):
            asked = {"path": str(path), "rank": rank, "world_size": loaders, "seconds": seconds}
            command = [sys.executable, __file__, json.dumps(asked)]
            running.append(
                subprocess.Popen(
                    command,
                    env=environment,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    text=True,
                )
            )
        for process in running:
            assert process.stdout is not None
            if process.stdout.readline() != "ready\n":
                assert process.stderr is not None
                raise RuntimeError(f"loaders_on_a_node.py failed:\n{process.stderr.read()}")
        for process in running:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        return [answer(process) for process in running]
    finally:
        for process in running:
            process.kill()  # nothing where it has ended
            process.communicate()


def answer(process: subprocess.Popen[str]) -> dict[str, float]:
    """What one process read."""
    out, error = process.communicate()
    if process.returncode != 0:
        raise RuntimeError(f"loaders_on_a_node.py failed:\n{error}")
    said: dict[str, float] = json.loads(out)
    return said


def load(asked: dict[str, Any]) -> dict[str, float]:
    """One rank's windows in the uniform order, without end, until the time is over."""
    view = penstock.open(asked["path"], dtype="u4").windows(WINDOW)
    ranks = {"rank": asked["rank"], "world_size": asked["world_size"]}
    with penstock.Loader(view, batch_size=BATCH, framework="numpy", **ranks) as loader:
        batches = iter(loader)
        for _ in range(FIRST_BATCHES):
            next(batches)
        print("ready", flush=True)
        sys.stdin.readline()
        begin = now = time.perf_counter()
        cpu = time.process_time()
        count = 0
        while now - begin < asked["seconds"]:
            next(batches)
            count += 1
            now = time.perf_counter()
        cpu = time.process_time() - cpu
        return {"windows": count * BATCH, "seconds": now - begin, "cpu_seconds": cpu, "threads": loader.threads}


if __name__ == "__main__":
    print(json.dumps(load(json.loads(sys.argv[1]))))
