"""Environments of their own for what adapters/run.py and ray/run.py run: exactly pinned packages, and this penstock."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def environment(folder: Path, requirements: Path, first: str = "") -> Path:
    """The interpreter of a virtual environment with exactly the pinned packages, made when they change.

    `first` names a package that is installed before the others: what depends on it then asks for no other build.
    """
    stamp = folder / "installed"
    wanted = hashlib.sha256(requirements.read_bytes() + sys.version.encode()).hexdigest()
    python = folder / "bin" / "python"
    if not (stamp.exists() and stamp.read_text() == wanted):
        say(f"installing {requirements.relative_to(ROOT)} into {folder}")
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
        pip = [str(python), "-m", "pip", "install", "-q", "--no-compile", "--disable-pip-version-check"]
        lines = requirements.read_text().splitlines()
        pins = [line for line in lines if first and line.startswith(f"{first}==")]
        for what in ([pins] if pins else []) + [["-r", str(requirements)]]:
            subprocess.run([*pip, *what], check=True)
        stamp.write_text(wanted)
    return python


def penstock_alone(folder: Path) -> Path:
    """A folder that has the penstock of this environment and nothing else of it, for PYTHONPATH."""
    import penstock

    folder.mkdir(parents=True, exist_ok=True)
    link = folder / "penstock"
    link.unlink(missing_ok=True)
    link.symlink_to(Path(penstock.__file__).parent)
    return folder
