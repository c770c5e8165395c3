"""Runs checks.py beside tiledbsoma in an environment of its own: `make soma`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from pinned import environment, penstock_alone  # noqa: E402

BUILD = HERE.parents[1] / "build" / "soma"


def main() -> int:
    """The exit status of the checks."""
    python = environment(BUILD / "venv", HERE / "requirements.txt")
    alone = penstock_alone(BUILD / "penstock")
    return subprocess.run(
        [str(python), "-W", "ignore", str(HERE / "checks.py")],
        env={**os.environ, "PYTHONPATH": str(alone)},
        check=False,
    ).returncode


if __name__ == "__main__":
    sys.exit(main())
