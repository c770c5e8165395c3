"""What a command and all its processes take: processor time, time by the clock, memory.

`usage.py REPORT COMMAND...` runs a command, and is the parent of what it leaves behind: so nothing is missing.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import resource
import subprocess
import sys
import tempfile
import threading
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

EVERY = 0.2  # seconds between two looks at the memory, which take as long as a process has pages
HELD = ("Pss_Anon:", "Pss_Shmem:")
PR_SET_CHILD_SUBREAPER = 36


@dataclass(frozen=True)
class Usage:
    """Of one command with all its processes."""

    cpu: float  # seconds, user and system
    wall: float  # seconds
    held_mib: float  # anonymous and shared memory of all processes at once, at most, by samples; no mapped files
    said: str  # stdout


def usage(command: list[str], environment: dict[str, str] | None = None) -> Usage:
    """Runs a command to its end.

    Args:
        environment: its variables; None: those of this process.

    Raises:
        RuntimeError: it failed; the message is the end of its stderr.
    """
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        measured = [sys.executable, __file__, str(report), *command]
        done = subprocess.run(measured, capture_output=True, text=True, errors="replace", env=environment, check=False)
        if done.returncode != 0:
            last = "\n".join(done.stderr.strip().splitlines()[-5:])
            raise RuntimeError(f"{' '.join(command[:4])} … ended with {done.returncode}:\n{last}")
        return Usage(**json.loads(report.read_text()), said=done.stdout)


def run(command: list[str]) -> tuple[int, dict[str, Any]]:
    """Runs the command and waits for all that it began.

    Returns:
        Its exit status and what was measured.
    """
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    sampler = Sampler()
    begin = perf_counter()
    status = subprocess.run(command, check=False).returncode
    wall = perf_counter() - begin
    with contextlib.suppress(ChildProcessError):
        while True:
            os.wait()
    held = sampler.stop()
    taken = resource.getrusage(resource.RUSAGE_CHILDREN)
    return status, {"cpu": taken.ru_utime + taken.ru_stime, "wall": wall, "held_mib": held}


class Sampler:
    """A thread that looks at the memory of all that comes from this process."""

    def __init__(self) -> None:
        self._most = 0.0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()

    def stop(self) -> float:
        """Ends the thread.

        Returns:
            The most that was seen, in MiB.
        """
        self._ended.set()
        self._thread.join()
        return self._most

    def _look(self) -> None:
        while not self._ended.wait(EVERY):
            self._most = max(self._most, sum(map(held_mib, family(os.getpid()))))


def family(pid: int) -> list[int]:
    """The processes that come from this one, it left out."""
    found = [pid]
    for each in found:
        with contextlib.suppress(OSError):
            for children in Path(f"/proc/{each}/task").glob("*/children"):
                found += map(int, children.read_text().split())
    return found[1:]


def held_mib(pid: int) -> float:
    with contextlib.suppress(OSError):
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        return sum(int(line.split()[1]) for line in lines if line.startswith(HELD)) / 1024
    return 0.0


if __name__ == "__main__":
    exit_status, found = run(sys.argv[2:])
    Path(sys.argv[1]).write_text(json.dumps(found))
    sys.exit(exit_status if exit_status >= 0 else 128 - exit_status)
