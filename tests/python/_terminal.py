"""The command line on a terminal."""

from __future__ import annotations

import contextlib
import os
import pty
import re
import subprocess
import sys
import threading
from typing import Any


def on_a_terminal(arguments: list[str], command: str = "write", **options: Any) -> tuple[str, str]:
    """What a command shows on standard error where that is a terminal, and what it prints."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "160"}
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
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text), done.stdout.decode()


def _read_terminal(ours: int, shown: list[bytes]) -> None:
    # An OSError is how a pseudo-terminal says that its other end is closed.
    with contextlib.suppress(OSError):
        while data := os.read(ours, 1 << 16):
            shown.append(data)
