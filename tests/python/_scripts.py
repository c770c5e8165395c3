"""Programs that tests start in processes of their own: their lines, and their end."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

Process = subprocess.Popen[str]


@contextmanager
def started(command: Sequence[str | Path], env: Mapping[str, str] | None = None) -> Iterator[Process]:
    """In a group of its own, which is killed at the end."""
    process = subprocess.Popen(
        command, text=True, bufsize=1, env=env, start_new_session=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    try:
        yield process
    finally:
        end(process)
        process.communicate()


def end(process: Process) -> None:
    """Kills it and its children."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def line(process: Process) -> str:
    """What it says next; it is killed where that takes longer than any of them should."""
    assert process.stdout is not None
    hangs = threading.Timer(60, end, [process])
    hangs.start()
    try:
        return process.stdout.readline().strip()
    finally:
        hangs.cancel()


def assert_ends(process: Process, code: int = 0) -> None:
    _, errors = process.communicate(timeout=30)
    assert (process.returncode, errors) == (code, "")


def assert_interrupted(process: Process, first: str, last: str) -> None:
    """It says `first`; within a second after a Ctrl-C a little later it says `last`; it ends well."""
    assert line(process) == first
    time.sleep(0.4)
    begun = time.monotonic()
    process.send_signal(signal.SIGINT)
    assert line(process) == last
    assert time.monotonic() - begun < 1
    assert_ends(process)


def assert_clean(
    command: Sequence[str | Path], env: Mapping[str, str] | None = None, code: int = 0, output: str = ""
) -> None:
    """It ends well, in time, and says nothing else."""
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout, done.stderr[-2000:]) == (code, output, ""), done.stderr[-2000:]
