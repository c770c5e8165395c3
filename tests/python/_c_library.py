"""Libraries of C that tests build: for LD_PRELOAD, or to be called."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path


def built(library: Path, *sources: Path) -> Path | None:
    """Builds `library` of its sources, and returns it; None without a compiler of C."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        return None
    command = [compiler, "-O1", "-w", "-shared", "-fPIC", *sources, "-o", library, "-ldl", "-lpthread"]
    subprocess.run(command, check=True)
    return library
