"""Writers that are killed at each of their system calls, or whose calls fail: tests/python/crash at its full size."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

CRASH = Path(__file__).parents[1] / "python" / "crash"
KILLED = ("kill-whole", "kill-shards", "kill-replace", "kill-replace-shards")
FAILING = ("fail", "fail-replace")


def run() -> dict[str, int]:
    """How many writers were killed, and how many of those whose calls failed said so.

    Raises:
        RuntimeError: A half-written dataset was published, or a whole one was lost.
    """
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        return {}
    totals = {"killed": 0, "failed": 0}
    with tempfile.TemporaryDirectory() as built:
        shim = Path(built) / "shim.so"
        subprocess.run([compiler, "-O1", "-shared", "-fPIC", CRASH / "shim.c", "-o", shim, "-ldl"], check=True)
        for scenario in (*KILLED, *FAILING):
            said = _drive(shim, scenario)
            totals["killed" if scenario in KILLED else "failed"] += said.get("raised", said["calls"])
    return totals


def _drive(shim: Path, scenario: str) -> dict[str, int]:
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None) as folder:
        command = [sys.executable, CRASH / "driver.py", scenario, folder]
        done = subprocess.run(command, env=dict(os.environ, LD_PRELOAD=str(shim)), capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{scenario}: {done.stderr[-3000:]}")
    said: dict[str, int] = json.loads(done.stdout)
    return said
