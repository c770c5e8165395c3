"""The folder list is the architecture diagram: checks that every #include keeps the table of docs/architecture.md.

Also that no file that git tracks names a package registry's host or a path of the machine it was written on.
"""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# Rooms and folders, from the ground up: what a file may include besides its own room. All may include core/base.
MAY_INCLUDE = {
    "core/base": set(),
    "core/job": set(),
    "core/io": set(),
    "core/io/local": {"core/io"},
    "core/io/http": {"core/io"},
    "core/io/cache": {"core/io", "core/io/local"},
    "core/batch": {"core/io", "core/job"},
    "core/engine": {"core/batch", "core/io", "core/job"},
    "shuffle": {"core/job"},
    "layout": {"core/batch", "core/io", "core/io/local", "core/job"},
    "layout/cells": {"core/batch", "core/io", "core/job"},
    "writer": {"layout", "core/batch", "core/io", "core/io/local", "core/job"},
    "bindings": {
        "writer",
        "layout",
        "layout/cells",
        "shuffle",
        "core/engine",
        "core/batch",
        "core/io",
        "core/io/local",
        "core/io/http",
        "core/io/cache",
        "core/job",
    },
}
PYTHON = re.compile(r"pybind11/|Python\.h")
FILES_AND_THREADS = re.compile(r"thread|mutex|fstream|filesystem|condition_variable|fcntl\.h|unistd\.h|sys/")
TOP = sorted({room.split("/")[0] for room in MAY_INCLUDE})
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
# Written in two parts, so that this file does not name them itself.
FORBIDDEN = re.compile(
    "|".join(["pypi" + r"\.org", "pythonhosted" + r"\.org", "download\\.pytorch" + r"\.org", "index-" + "url"])
    + "|/"
    + "work/|/"
    + r"root/|/home/[a-z]+/"
)


def room_of(path: str) -> str | None:
    """The innermost room that holds `path`, None where there is none: layout/cells is in layout until it is listed."""
    folder = path.rpartition("/")[0]
    while folder and folder not in MAY_INCLUDE:
        folder = folder.rpartition("/")[0]
    return folder or None


def layer_problems(room: str, path: Path) -> list[str]:
    """The includes of one file that its room may not have."""
    problems = []
    allowed = MAY_INCLUDE[room] | {room, "core/base"}
    for number, line in enumerate(path.read_text().splitlines(), 1):
        match = INCLUDE.match(line)
        if not match:
            continue
        quoted, name = match.group(1) == '"', match.group(2)
        wrong = (
            (quoted and "/" not in name)
            or (name.split("/")[0] in TOP and room_of(name) not in allowed)
            or (room != "bindings" and PYTHON.match(name))
            or (room in ("shuffle", "core/job") and FILES_AND_THREADS.match(name))
            or (room in ("layout", "core/batch") and not quoted and name == "thread")
        )
        if wrong:
            problems.append(f"{path.relative_to(ROOT)}:{number}: {room} must not include {name}")
    return problems


def text_problems() -> list[str]:
    """Lines of tracked files that name a registry's host or a machine's path."""
    names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    problems = []
    for name in filter(None, names.split("\0")):
        path = ROOT / name
        try:
            lines = path.read_text().splitlines()
        except (UnicodeDecodeError, FileNotFoundError, IsADirectoryError):
            continue
        problems += [
            f"{name}:{number}: names a registry or a path of one machine: {line.strip()[:100]}"
            for number, line in enumerate(lines, 1)
            if FORBIDDEN.search(line)
        ]
    return problems


def main() -> int:
    """Prints what is wrong; returns the exit status."""
    problems = text_problems()
    for top in TOP:
        for path in sorted((ROOT / top).rglob("*.[hic]*")):
            room = room_of(path.relative_to(ROOT).as_posix())
            if path.suffix not in (".h", ".cpp", ".inl", ".c"):
                continue
            problems += layer_problems(room, path) if room else [f"{path.relative_to(ROOT)}: lies in no room"]
    print("\n".join(problems), end="\n" if problems else "")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
