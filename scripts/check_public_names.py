"""Checks that code outside of the package uses public names of penstock only: what is private may go at any time.

Benchmarks, examples, scripts, tests, and the Python of the documentation; `tests/python` alone may use private names.
Seen are imports, attributes of what is imported, and attributes of variables that such an expression was assigned to,
that a `with` or a `for` binds, or that are annotated with it; also code in strings, and literal names for `getattr`.
"""

import ast
import re
import sys
import textwrap
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("benchmarks", "examples", "scripts", "tests")
EXEMPT = "tests/python"
PAGES = ("README.md", "CONTRIBUTING.md", "docs")
PACKAGE = "penstock"
BLOCK = re.compile(r"^( *)```(?:python|py)\b[^\n]*\n(.*?)^\1```", re.MULTILINE | re.DOTALL)
IN_STRING = re.compile(rf"\b{PACKAGE}(?:\.\w+)*\._(?!_)\w+")


def is_private(name: str) -> bool:
    """Whether a name of a module or an attribute is private; `__version__` is not."""
    return name.startswith("_") and not name.endswith("__")


def dotted(node: ast.AST) -> str:
    """`self.loader` of that expression; empty where calls or indices are in it."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and (owner := dotted(node.value)):
        return f"{owner}.{node.attr}"
    return ""


def comes_from(node: ast.AST | None, known: set[str]) -> bool:
    """Whether the expression begins at a known name: `penstock.open(path).windows(8)[0]` at `penstock`."""
    while node is not None:
        if dotted(node) in known:
            return True
        if isinstance(node, ast.Call):
            node = node.func
        elif isinstance(node, ast.Attribute | ast.Subscript | ast.Await | ast.Starred | ast.NamedExpr):
            node = node.value
        elif isinstance(node, ast.IfExp):
            return comes_from(node.body, known) or comes_from(node.orelse, known)
        else:
            return False
    return False


def unpacked(target: ast.AST, value: ast.AST | None) -> Iterator[tuple[ast.AST, ast.AST | None]]:
    """The pairs of `a, b = x, y`; of `a, b = x` each with all of it."""
    if not isinstance(target, ast.Tuple | ast.List):
        yield target, value
        return
    parts = value.elts if isinstance(value, ast.Tuple | ast.List) and len(value.elts) == len(target.elts) else None
    for at, each in enumerate(target.elts):
        yield from unpacked(
            each.value if isinstance(each, ast.Starred) else each, value if parts is None else parts[at]
        )


def bindings(tree: ast.AST) -> Iterator[tuple[ast.AST, ast.AST | None]]:
    """Targets, and the expressions that they are bound to or annotated with."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            yield from ((target, node.value) for target in node.targets)
        elif isinstance(node, ast.AnnAssign):
            yield from ((node.target, node.value), (node.target, node.annotation))
        elif isinstance(node, ast.NamedExpr):
            yield node.target, node.value
        elif isinstance(node, ast.withitem) and node.optional_vars is not None:
            yield node.optional_vars, node.context_expr
        elif isinstance(node, ast.For | ast.comprehension):
            yield node.target, node.iter
        elif isinstance(node, ast.arg):
            yield ast.Name(node.arg), node.annotation


def of_package(tree: ast.AST) -> set[str]:
    """Names that hold the package, something imported from it, or an object that came from that."""
    known = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = (each for each in node.names if each.name.split(".")[0] == PACKAGE)
            known |= {each.asname or PACKAGE for each in names}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == PACKAGE and not node.level:
            known |= {each.asname or each.name for each in node.names}
    pairs = [pair for each in bindings(tree) for pair in unpacked(*each)]
    size = -1
    while size != len(known):
        size = len(known)
        known |= {dotted(target) for target, value in pairs if dotted(target) and comes_from(value, known)}
    return known


def got_by_name(node: ast.AST) -> str:
    """The private name that `getattr(x, "_name")` asks for; empty for any other expression."""
    if not (isinstance(node, ast.Call) and dotted(node.func) in ("getattr", "setattr", "hasattr", "delattr")):
        return ""
    name = node.args[1].value if len(node.args) > 1 and isinstance(node.args[1], ast.Constant) else None
    return name if isinstance(name, str) and is_private(name) else ""


def problems(text: str) -> Iterator[tuple[int, str]]:
    """(line, private name) of a program."""
    tree = ast.parse(text)
    known = of_package(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [each.name for each in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names = [f"{node.module}.{each.name}" for each in node.names]
        elif isinstance(node, ast.Attribute) and is_private(node.attr) and comes_from(node.value, known):
            yield node.lineno, ast.unparse(node)
            continue
        elif (name := got_by_name(node)) and comes_from(node.args[0], known):
            yield node.lineno, f"{ast.unparse(node.args[0])}.{name}"
            continue
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and (found := IN_STRING.search(node.value)):
            yield node.lineno, f"{found[0]} in a string"
            continue
        else:
            continue
        parts = [name.split(".") for name in names]
        yield from (
            (node.lineno, ".".join(each)) for each in parts if each[0] == PACKAGE and any(map(is_private, each))
        )


def programs(root: Path) -> Iterator[tuple[str, int, str]]:
    """(file, lines before it, text) of every program that is checked."""
    for path in files(root, FOLDERS, "*.py"):
        if not path.is_relative_to(root / EXEMPT):
            yield path.relative_to(root).as_posix(), 0, path.read_text()
    for path in files(root, PAGES, "*.md"):
        text = path.read_text()
        for block in BLOCK.finditer(text):
            yield path.relative_to(root).as_posix(), text.count("\n", 0, block.start(2)), textwrap.dedent(block[2])


def files(root: Path, places: Iterable[str], pattern: str) -> Iterator[Path]:
    """Files of a pattern in folders, and files that are named themselves."""
    for place in places:
        path = root / place
        yield from sorted(path.rglob(pattern)) if path.is_dir() else [path] if path.exists() else []


def main(root: Path = ROOT) -> int:
    """Prints private names; returns the exit status."""
    found = []
    for name, before, text in programs(root):
        try:
            found += [f"{name}:{before + line}: {what} is private to the package" for line, what in problems(text)]
        except SyntaxError as error:
            found.append(f"{name}:{before + (error.lineno or 0)}: {error.msg}")
    print("\n".join(found), end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(*map(Path, sys.argv[1:])))
