"""One virtual environment a peer, made when it is first needed, with exactly the pinned packages."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

REQUIREMENTS = Path(__file__).with_name("requirements")


class NotInstalled(Exception):
    """A peer's packages cannot be had here."""


def python(name: str | None, folder: Path, version: str | None = None) -> Path:
    """The interpreter of an environment; None is the project's own, where penstock is.

    Args:
        name: of the environment, and of its requirements.
        folder: where environments are kept.
        version: of Python, where the peer wants another one than this.

    Raises:
        NotInstalled: pip failed, and the message is the end of what it said; there is no Python of this version.
    """
    if name is None:
        return Path(sys.executable)
    requirements = REQUIREMENTS / f"{name}.txt"
    place = folder / name
    stamp = place / "installed"
    interpreter = sys.executable if version is None else found(version)
    alone = REQUIREMENTS / f"{name}.alone.txt"  # packages of which a part is used, without what the others need
    said = requirements.read_bytes() + (alone.read_bytes() if alone.exists() else b"")
    wanted = hashlib.sha256(said + sys.version.encode()).hexdigest()
    if not (stamp.exists() and stamp.read_text() == wanted):
        print(f"installing {requirements.name}", file=sys.stderr, flush=True)
        run([interpreter, "-m", "venv", "--clear", str(place)])
        # torch is among the pins wherever it is needed: nothing else then asks for another build of it.
        install = [str(place / "bin" / "python"), "-m", "pip", "install", "-q"]
        run([*install, "-r", str(requirements)])
        if alone.exists():
            run([*install, "--no-deps", "-r", str(alone)])
        stamp.write_text(wanted)
    return place / "bin" / "python"


def found(version: str) -> str:
    """An interpreter of this version: on PATH, or one that pyenv has."""
    on_path = shutil.which(f"python{version}")
    kept = sorted((Path.home() / ".pyenv" / "versions").glob(f"{version}.*/bin/python3"))
    for interpreter in [*map(str, reversed(kept)), *([on_path] if on_path else [])]:
        # pyenv puts a python of each version on PATH, of which only the chosen one runs.
        if subprocess.run([interpreter, "--version"], capture_output=True, check=False).returncode == 0:
            return interpreter
    raise NotInstalled(f"it wants Python {version}, which is not here")


def run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=outside())
    if done.returncode != 0:
        raise NotInstalled("\n".join(done.stderr.strip().splitlines()[-3:]))


def outside() -> dict[str, str]:
    """This process's variables, but for those that would lend this project's packages to another environment."""
    return {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")}
