"""The folder list is the architecture diagram: checks that every #include keeps the table of docs/architecture.md.

Also that modules, a header and its source together, include each other in no circle; that each file includes, itself or
by our headers, the standard headers of what it uses: a file of a unity build sees those of its neighbours; and that no
file that git tracks names a package registry's host or a path of the machine it was written on.
"""

import re
import subprocess
import sys
from functools import cache
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
    "core/rows": {"core/io", "core/job"},
    "core/columns": {"core/rows"},
    "core/columns/cells": {"core/columns", "core/rows"},
    "core/batch": {"core/columns", "core/rows", "core/job"},
    "core/engine": {"core/batch", "core/columns", "core/rows", "core/io", "core/job"},
    "shuffle": {"core/job"},
    "layout": {"core/rows", "core/io", "core/io/local", "core/job"},
    "text": set(),
    "writer": {"layout", "core/rows", "core/io", "core/io/local", "core/job"},
    "bindings": {
        "writer",
        "layout",
        "shuffle",
        "text",
        "core/engine",
        "core/batch",
        "core/columns",
        "core/columns/cells",
        "core/rows",
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
# What is used of a standard header; `std::` is before each name.
STANDARD = {
    "algorithm": r"(?:ranges::)?(?:sort|min|max|clamp|fill|fill_n|copy_n|all_of|any_of|none_of|find_if|reverse|unique|"
    r"(?:lower|upper)_bound|(?:min|max)_element)\(",
    "array": "array<",
    "atomic": "atomic",
    "bit": r"bit_cast|countr_zero|popcount|bit_ceil|has_single_bit",
    "chrono": "chrono::",
    "condition_variable": "condition_variable",
    "cstdint": r"u?int(?:8|16|32|64)_t",
    "cstring": r"mem(?:cpy|cmp|set|move)\b",
    "deque": "deque<",
    "filesystem": "filesystem::",
    "fstream": "[io]?fstream",
    "functional": r"(?:function|less|greater|hash)<",
    "limits": "numeric_limits<",
    "map": "map<",
    "memory": r"(?:unique_ptr|shared_ptr|weak_ptr|make_unique|make_shared)<",
    "mutex": r"mutex|unique_lock|lock_guard|scoped_lock",
    "numeric": r"(?:iota|accumulate|gcd|reduce)\(",
    "optional": r"optional<|nullopt",
    "random": "mt19937",
    "set": "set<",
    "span": r"span\b",
    "string": r"string\b|to_string",
    "string_view": "string_view",
    "thread": r"j?thread\b|this_thread",
    "tuple": r"tuple<|tie\(",
    "unordered_map": "unordered_map<",
    "unordered_set": "unordered_set<",
    "utility": r"(?:move|exchange|swap)\(|pair<",
    "variant": r"variant<|visit\(",
    "vector": "vector<",
}
USES = {name: re.compile(rf"\bstd::(?:{words})") for name, words in STANDARD.items()}
# Written in two parts, so that this file does not name them itself.
FORBIDDEN = re.compile(
    "|".join(["pypi" + r"\.org", "pythonhosted" + r"\.org", "download\\.pytorch" + r"\.org", "index-" + "url"])
    + "|/"
    + "work/|/"
    + r"root/|/home/[a-z]+/"
)


def room_of(path: str) -> str | None:
    """The innermost room that holds `path`, None where there is none: layout/foreign is in layout."""
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
            or (room in ("layout", "core/rows", "core/columns", "core/batch") and not quoted and name == "thread")
        )
        if wrong:
            problems.append(f"{path.relative_to(ROOT)}:{number}: {room} must not include {name}")
    return problems


@cache
def included_by(path: Path) -> frozenset[str]:
    """What a file includes, itself and by our headers."""
    names = {match.group(2) for line in path.read_text().splitlines() if (match := INCLUDE.match(line))}
    ours = [ROOT / name for name in names if name.split("/")[0] in TOP]
    return frozenset(names).union(*(included_by(header) for header in ours))


def standard_problems(path: Path) -> list[str]:
    """The standard headers whose names this file uses without including them."""
    code = re.sub("//.*", "", path.read_text())
    missing = [name for name, use in USES.items() if use.search(code) and name not in included_by(path)]
    return [f"{path.relative_to(ROOT)}: uses <{name}> without including it" for name in missing]


def module_of(path: str) -> str:
    """The name that a header and its source share."""
    return path.rpartition(".")[0]


def module_graph(paths: list[Path]) -> dict[str, set[str]]:
    """Which of our modules each module includes, by its header or its source."""
    graph: dict[str, set[str]] = {}
    for path in paths:
        module = module_of(path.relative_to(ROOT).as_posix())
        names = {match.group(2) for line in path.read_text().splitlines() if (match := INCLUDE.match(line))}
        ours = {module_of(name) for name in names if name.split("/")[0] in TOP}
        graph.setdefault(module, set()).update(ours - {module})
    return graph


def circle_problems(graph: dict[str, set[str]]) -> list[str]:
    """The circles of modules: strongly connected ones, after Tarjan."""
    index: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    problems = []

    def visit(module: str) -> None:
        index[module] = lowest[module] = len(index)
        stack.append(module)
        for other in sorted(graph.get(module, ())):
            if other not in index:
                visit(other)
            if other in stack:
                lowest[module] = min(lowest[module], lowest[other])
        if lowest[module] < index[module]:
            return
        at = stack.index(module)
        circle = sorted(stack[at:])
        del stack[at:]
        if len(circle) > 1:
            problems.append(f"modules that include each other in a circle: {', '.join(circle)}")

    for module in sorted(graph):
        if module not in index:
            visit(module)
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
    sources = (path for top in TOP for path in sorted((ROOT / top).rglob("*.[hic]*")))
    paths = [path for path in sources if path.suffix in (".h", ".cpp", ".inl", ".c")]
    for path in paths:
        room = room_of(path.relative_to(ROOT).as_posix())
        problems += standard_problems(path)
        problems += layer_problems(room, path) if room else [f"{path.relative_to(ROOT)}: lies in no room"]
    problems += circle_problems(module_graph(paths))
    print("\n".join(problems), end="\n" if problems else "")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
