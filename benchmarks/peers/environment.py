"""One virtual environment a peer, made when it is first needed, with exactly the pinned packages."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

REQUIREMENTS = Path(__file__).with_name("requirements")


class NotInstalled(Exception):
    """A peer's packages cannot be had here."""


def python(name: str | None, folder: Path) -> Path:
    """The interpreter of an environment; None is the project's own, where penstock is.

    Raises:
        NotInstalled: pip failed; the message is the end of what it said.
    """
    if name is None:
        return Path(sys.executable)
    requirements = REQUIREMENTS / f"{name}.txt"
    place = folder / name
    stamp = place / "installed"
    wanted = hashlib.sha256(requirements.read_bytes() + sys.version.encode()).hexdigest()
    if not (stamp.exists() and stamp.read_text() == wanted):
        print(f"installing {requirements.name}", file=sys.stderr, flush=True)
        run([sys.executable, "-m", "venv", "--clear", str(place)])
        # torch is among the pins wherever it is needed: nothing else then asks for another build of it.
        run([str(place / "bin" / "python"), "-m", "pip", "install", "-q", "-r", str(requirements)])
        stamp.write_text(wanted)
    return place / "bin" / "python"


def run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=outside())
    if done.returncode != 0:
        raise NotInstalled("\n".join(done.stderr.strip().splitlines()[-3:]))


def outside() -> dict[str, str]:
    """This process's variables, but for those that would lend this project's packages to another environment."""
    return {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")}
