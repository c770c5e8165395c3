"""The folder list is the architecture diagram: checks that every #include keeps the table of docs/architecture.md.

Also that no file that git tracks names a package registry's host or a path of the machine it was written on.
"""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MAY_INCLUDE = {
    "core": {"core"},
    "shuffle": {"shuffle", "core"},
    "layout": {"layout", "core"},
    "writer": {"writer", "layout", "core"},
    "bindings": {"bindings", "writer", "layout", "shuffle", "core"},
}
PYTHON = re.compile(r"pybind11/|Python\.h")
FILES_AND_THREADS = re.compile(r"thread|mutex|fstream|filesystem|condition_variable|fcntl\.h|unistd\.h|sys/")
THREADS = re.compile(r"thread|mutex|condition_variable|pthread\.h")
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
# Written in two parts, so that this file does not name them itself.
FORBIDDEN = re.compile(
    "|".join(["pypi" + r"\.org", "pythonhosted" + r"\.org", "download\\.pytorch" + r"\.org", "index-" + "url"])
    + "|/"
    + "work/|/"
    + r"root/|/home/[a-z]+/"
)


def layer_problems(folder: str, path: Path) -> list[str]:
    """The includes of one file that its layer may not have."""
    problems = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        match = INCLUDE.match(line)
        if not match:
            continue
        quoted, name = match.group(1) == '"', match.group(2)
        top = name.split("/")[0]
        wrong = (
            (quoted and "/" not in name)
            or (top in MAY_INCLUDE and top not in MAY_INCLUDE[folder])
            or (folder != "bindings" and PYTHON.match(name))
            or (folder == "shuffle" and FILES_AND_THREADS.match(name))
            or (folder == "layout" and not quoted and THREADS.fullmatch(name) and name == "thread")
        )
        if wrong:
            problems.append(f"{path.relative_to(ROOT)}:{number}: {folder} must not include {name}")
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
    for folder in MAY_INCLUDE:
        for path in sorted((ROOT / folder).glob("*.[hc]*")):
            problems += layer_problems(folder, path)
    print("\n".join(problems), end="\n" if problems else "")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
