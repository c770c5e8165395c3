"""Writers that are killed at each of their system calls, or whose calls fail: tests/python/crash at its full size."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "calls"))

from injector import built, preloaded

CRASH = Path(__file__).parents[1] / "python" / "crash"
KILLED = ("kill-whole", "kill-shards", "kill-replace", "kill-replace-shards")
FAILING = ("fail", "fail-replace")


def drive(library: Path, program: str, *arguments: str | Path) -> dict[str, int]:
    """What a program of crash/ prints.

    Raises:
        RuntimeError: It found a half-written dataset, or that a whole one was lost.
    """
    command = [sys.executable, CRASH / program, *arguments]
    done = subprocess.run(command, env=preloaded(library), capture_output=True, text=True, timeout=300)
    if done.returncode != 0:
        raise RuntimeError(f"{arguments}: {done.stderr[-3000:]}")
    said: dict[str, int] = json.loads(done.stdout)
    return said


def run() -> dict[str, int]:
    """How many writers were killed, and how many of those whose calls failed said so."""
    memory = Path("/dev/shm")
    totals = {"killed": 0, "failed": 0}
    for scenario in (*KILLED, *FAILING):
        with tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None) as folder:
            library = built(Path(folder))
            if library is None:
                return {}
            said = drive(library, "driver.py", scenario, folder)
        totals["killed" if scenario in KILLED else "failed"] += said.get("raised", said["calls"])
    return totals
