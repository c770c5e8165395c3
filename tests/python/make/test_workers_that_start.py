"""Signals while a worker starts: it says nothing of it, and does not stay."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

RUN = """
import os, signal, sys, threading, time
from pathlib import Path
from penstock._make.workers import WorkerPool

class Large:  # more than a pipe holds: its first orders are under way for as long as the worker takes to begin
    def __init__(self):
        self.data = bytes(1 << 24)
    def begin(self):
        return len
    def place(self, item):
        return str(item)

def children():
    return Path(f"/proc/self/task/{threading.main_thread().native_id}/children").read_text().split()

def kill(before, by):
    while children() == before:
        time.sleep(0.001)
    os.kill(os.getpid(), by)

def stop(number, frame):
    raise KeyboardInterrupt

if __name__ == "__main__":
    from multiprocessing import resource_tracker
    resource_tracker.ensure_running()
    by = int(sys.argv[1])
    signal.signal(by, stop)
    threading.Thread(target=kill, args=(children(), by), daemon=True).start()
    pool = WorkerPool(2, Large())
    try:
        pool.submit("one")
    except KeyboardInterrupt:
        print("interrupted", pool.started)
    pool.close()
"""


@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_a_worker_starts_waits_until_it_has_its_orders(tmp_path: Path, by: int) -> None:
    (tmp_path / "run.py").write_text(RUN)
    command = [sys.executable, tmp_path / "run.py", str(int(by))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "interrupted 1\n", "")
