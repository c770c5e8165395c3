"""Checks that no modules of the Python package import each other in a circle.

Imports inside functions and under TYPE_CHECKING count too: a circle that a late import hides is still a circle.
"""

import ast
import sys
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

BINDINGS = Path(__file__).resolve().parent.parent / "bindings"


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


def main() -> int:
    """Prints a circle if there is one; returns the exit status."""
    found = circle(Path(sys.argv[1]) if len(sys.argv) > 1 else BINDINGS)
    if found:
        print(f"modules import each other in a circle: {', which imports '.join(reversed(found))}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
