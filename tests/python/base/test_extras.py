"""Messages say how to install packages by names that any index has, and those are the packages of the extras."""

from __future__ import annotations

import ast
import re
import shlex
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import penstock
import pytest
from penstock._base.extras import PACKAGES, install, install_for

PACKAGE = Path(penstock.__file__).parent


def required(extra: str) -> list[str]:
    """Packages that pyproject.toml has for an extra, as the installed package's metadata tell them."""
    found = []
    for each in metadata.requires("penstock") or []:
        requirement, _, marker = each.partition(";")
        if re.search(rf"""extra == ['"]{extra}['"]""", marker):
            found.append(requirement.strip())
    return found


def test_the_packages_of_each_extra_are_those_of_pyproject():
    extras = set(metadata.metadata("penstock").get_all("Provides-Extra") or [])
    assert extras - {"all"} == PACKAGES.keys()
    for extra, packages in PACKAGES.items():
        assert sorted(required(extra)) == sorted(packages), extra


def test_the_extra_all_is_all_but_torch_scvi_and_ray():
    """It names the others; torch, which scvi-tools needs, and Ray are a machine's or a cluster's own."""
    (whole,) = required("all")
    named = re.fullmatch(r"penstock\[(.*)\]", whole)
    assert named and set(named[1].split(",")) == PACKAGES.keys() - {"torch", "scvi", "ray"}


@pytest.mark.parametrize("extra", PACKAGES)
def test_a_command_names_every_package_of_its_extra_and_nothing_else(extra: str):
    assert shlex.split(install(extra, least=True))[2:] == list(PACKAGES[extra])
    assert shlex.split(install(extra))[2:] == [each.partition(">=")[0] for each in PACKAGES[extra]]
    for package in PACKAGES[extra]:
        module = re.match(r"\w+", package)[0]
        assert module in re.findall(r"\w+", install_for(module))


def test_the_extras_that_are_named_exist():
    """`install` of a name that is none would be a KeyError in place of the message."""
    asked = []
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "install":
                asked += [(path.name, each.value) for each in node.args if isinstance(each, ast.Constant)]
    assert len(asked) >= 7
    assert [each for each in asked if each[1] not in PACKAGES] == []


def test_no_message_installs_an_extra_of_penstock():
    """Every command for pip is made by `install` and `install_for`, but for single packages outside of the extras."""
    commands = []
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and path.name != "extras.py":
                commands += re.findall(r"pip install ('?[\w\[\]]+)", node.value)
                assert not re.search(r"penstock\[", node.value), f"{path}:{node.lineno}"
    assert set(commands) <= {"msgpack", "matplotlib"}, commands  # of the extra msgpack; of none


def test_the_command_line_says_what_to_install(tmp_path: Path):
    with penstock.Writer(str(tmp_path / "corpus"), fields={"token": "u2"}, columns={"n": "u4"}) as writer:
        writer.append(token=[1], columns={"n": 1})
    program = "import sys; sys.modules[sys.argv.pop(1)] = None; from penstock._cli.main import main; sys.exit(main())"

    def said(module: str, *arguments: str) -> str:
        command = [sys.executable, "-c", program, module, *arguments]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
        assert done.returncode == 1, done.stderr
        return done.stderr

    assert "needs the package duckdb: pip install duckdb pyarrow" in said("duckdb", "query", "corpus", "select 1")


def test_the_table_of_extras_has_each_with_its_packages():
    page = (Path(__file__).resolve().parents[3] / "docs" / "install.md").read_text()
    found = {}
    for names, packages in re.findall(r"^\| (`[^|]*) \| .* \| *([^|]*?) *\|$", page, re.MULTILINE):
        found |= dict.fromkeys(re.findall(r"`(\w+)`", names), packages)
    assert found.pop("all") == ""
    assert found == {extra: ", ".join(each.partition(">=")[0] for each in PACKAGES[extra]) for extra in PACKAGES}
