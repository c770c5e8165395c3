"""Small file systems that tests fill."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest


@contextlib.contextmanager
def small_file_system(at: Path, size: str) -> Iterator[None]:
    """A file system of its own, of `size`; skips where there may be none."""
    at.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", at], capture_output=True)
    if mounted.returncode:
        pytest.skip("no file system may be mounted here")
    try:
        yield
    finally:
        subprocess.run(["umount", at], check=True)


def grow(at: Path, size: str) -> None:
    """Gives it another size, which no file of it may be beyond."""
    subprocess.run(["mount", "-o", f"remount,size={size}", at], check=True)
