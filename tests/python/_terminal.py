"""The command line on a terminal."""

from __future__ import annotations

import contextlib
import os
import pty
import re
import select
import subprocess
import sys
import threading
import time
from typing import Any


def on_a_terminal(
    arguments: list[str],
    command: str = "write",
    *,
    columns: int = 160,
    codes: bool = False,
    variables: dict[str, str] | None = None,
    **options: Any,
) -> tuple[str, str]:
    """A command's standard error where that is a terminal, with `codes` as it is sent, and its standard output."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": str(columns), **(variables or {})}
    shown: list[bytes] = []
    # Read meanwhile: a terminal that nobody reads is full after some KiB, and then it waits.
    reader = threading.Thread(target=_read_terminal, args=(ours, shown))
    reader.start()
    try:
        done = subprocess.run(
            [sys.executable, "-m", "penstock", command, *arguments],
            check=True,
            stdout=subprocess.PIPE,
            stderr=theirs,
            env=environment,
            timeout=120,
            **options,
        )
    finally:
        os.close(theirs)
        reader.join()
        os.close(ours)
    text = b"".join(shown).decode()
    if codes:
        return text, done.stdout.decode()
    return _without_codes(text), done.stdout.decode()


def typed(command: list[str], keys: list[tuple[str, str]], folder: str, variables: dict[str, str]) -> None:
    """Types into an interactive program, and after each of `keys` waits until its words are shown.

    Raises:
        AssertionError: they are not, within 20 seconds.
    """
    ours, theirs = pty.openpty()
    program = subprocess.Popen(
        command, stdin=theirs, stdout=theirs, stderr=theirs, cwd=folder, env=variables, start_new_session=True
    )
    os.close(theirs)
    try:
        for each, words in keys:
            os.write(ours, each.encode())
            shown, end = b"", time.monotonic() + 20
            while words not in _without_codes(shown.decode(errors="replace")):
                ready, _, _ = select.select([ours], [], [], max(0.0, end - time.monotonic()))
                assert ready, f"after {each!r} not {words!r}, but {shown.decode(errors='replace')!r}"
                shown += os.read(ours, 1 << 16)
    finally:
        program.kill()
        program.wait()
        os.close(ours)


def _without_codes(text: str) -> str:
    return re.sub(r"\x07|\x1b\[[0-9;?]*[A-Za-z]", "", text)


def _read_terminal(ours: int, shown: list[bytes]) -> None:
    # An OSError is how a pseudo-terminal says that its other end is closed.
    with contextlib.suppress(OSError):
        while data := os.read(ours, 1 << 16):
            shown.append(data)
