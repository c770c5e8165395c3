"""Checks the rooms of the Python package: who imports whom, what lies at its top, and that no modules make a circle.

Imports inside functions and under TYPE_CHECKING count too: a circle that a late import hides is still a circle.
"""

import ast
import sys
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

BINDINGS = Path(__file__).resolve().parent.parent / "bindings"
PACKAGE = "penstock"
ROOMS = {
    "_base": (),
    "_places": ("_base",),
    "_data": ("_base", "_places"),
    "_load": ("_base", "_places", "_data"),
    "_make": ("_base", "_places", "_data"),
    "_from": ("_base", "_places", "_data", "_make"),
    "_view": ("_base", "_places", "_data", "_load", "_from"),
    "_cli": ("_base", "_places", "_data", "_load", "_make", "_from", "_view", "public"),
    "adapters": ("_base", "_places", "_data", "_load", "public"),
    "public": ("_base", "_places", "_data", "_load", "_make", "_from", "_cli", "adapters"),
}
"""Rooms, and those that each may import besides itself and `_native`; "public": the words at the top."""


def modules(folder: Path) -> dict[str, Path]:
    """The modules below `folder` by their dotted names, extension modules (by their stubs) included."""
    found = {}
    for path in sorted([*folder.rglob("*.py"), *folder.rglob("*.pyi")]):
        parts = path.relative_to(folder).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports(name: str, path: Path, known: dict[str, Path]) -> Iterator[str]:
    """The known modules that module `name` imports, wherever in its file."""
    package = name if path.stem == "__init__" else name.rpartition(".")[0]
    for node in ast.walk(ast.parse(path.read_text(), str(path))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            for alias in node.names:
                target = f"{base}.{alias.name}"
                if target in known:
                    yield target
                elif base in known:
                    yield base


def circle(folder: Path) -> list[str]:
    """The modules of one circle, each imported by the next, the first again at the end; empty if there is none."""
    known = modules(folder)
    graph = {name: set(imports(name, path, known)) for name, path in known.items()}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        found: list[str] = error.args[1]
        return found
    return []


def room_of(name: str, known: dict[str, Path]) -> str:
    """The room of a module: the first folder below the package, or "public"."""
    parts = name.split(".")
    is_folder = len(parts) > 1 and f"{PACKAGE}/{parts[1]}/" in known[name].as_posix()
    return parts[1] if is_folder else "public"


def forbidden(folder: Path) -> Iterator[str]:
    """Imports that the table of rooms does not allow, and private modules at the top."""
    known = modules(folder)
    for name, path in known.items():
        room = room_of(name, known)
        if room not in ROOMS:
            yield f"{name}: a room that ROOMS of {Path(__file__).name} does not name"
            continue
        if room == "public" and path.stem.startswith("_") and path.stem not in ("__init__", "__main__", "_native"):
            yield f"{name}: at the top are public words; modules lie in rooms"
        for target in sorted(set(imports(name, path, known))):
            to = room_of(target, known)
            if target != f"{PACKAGE}._native" and to not in (room, *ROOMS[room]):
                yield f"{name} imports {target}: {room} may import {', '.join(ROOMS[room]) or 'no other room'}"


def mutual(folder: Path) -> Iterator[str]:
    """Pairs of folders whose modules import each other; the top, which all of the package is below, is none."""
    known = modules(folder)
    pairs = {
        (path.parent, known[target].parent)
        for name, path in known.items()
        for target in imports(name, path, known)
        if folder / PACKAGE not in (path.parent, known[target].parent)
    }
    for one, other in sorted(pairs):
        if one < other and (other, one) in pairs:
            yield f"{one.relative_to(folder)} and {other.relative_to(folder)} import each other"


def main() -> int:
    """Prints what is wrong; returns the exit status."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else BINDINGS
    found = [*forbidden(folder), *mutual(folder)]
    if one := circle(folder):
        found.append(f"modules import each other in a circle: {', which imports '.join(reversed(one))}")
    for each in found:
        print(each)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
