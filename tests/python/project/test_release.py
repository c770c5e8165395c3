"""One version everywhere, workflows that a runner would accept, types that checkers know, and the fault suite."""

from __future__ import annotations

import inspect
import json
import re
import subprocess
import sys
from importlib.metadata import metadata
from pathlib import Path

import penstock
import yaml
from penstock._load.options import LoaderOptions

ROOT = Path(__file__).parents[3]


def run(*command: object, codes: tuple[int, ...] = (0,)) -> str:
    """Of a module of this Python: what it prints."""
    done = subprocess.run([sys.executable, *map(str, command)], capture_output=True, text=True, timeout=280)
    assert done.returncode in codes, done.stdout + done.stderr
    return done.stdout


def test_the_version_is_one():
    patterns = {
        "pyproject.toml": r'^version = "(.*)"',
        "CMakeLists.txt": r"^project\(penstock VERSION (\S+) ",
        "CHANGELOG.md": r"^## (\S+)",
    }
    found = {name: re.search(each, (ROOT / name).read_text(), re.MULTILINE)[1] for name, each in patterns.items()}
    assert set(found.values()) == {penstock.__version__}, found


def test_the_package_says_its_licence():
    said = metadata("penstock")
    assert said["License-Expression"] == "Apache-2.0"
    assert said.get_all("License-File") == ["LICENSE"]
    assert "Apache License" in (ROOT / "LICENSE").read_text()


def test_the_workflows_have_the_form_that_github_asks_for():
    workflow = ROOT / ".github" / "workflows" / "wheels.yml"
    run("-m", "check_jsonschema", "--builtin-schema", "vendor.github-workflows", *workflow.parent.glob("*.yml"))
    runners = yaml.safe_load(workflow.read_text())["jobs"]["wheels"]["strategy"]["matrix"]["runner"]
    assert runners == ["ubuntu-24.04", "ubuntu-24.04-arm"]  # x86-64 and aarch64


def test_wheels_are_built_for_all_supported_pythons():
    command = ("--platform", "linux", "--print-build-identifiers", ROOT, "--archs", "x86_64,aarch64")
    pythons = [f"cp3{minor}" for minor in range(10, 15)]
    assert sorted(run("-m", "cibuildwheel", *command).split()) == sorted(
        f"{each}-manylinux_{arch}" for each in pythons for arch in ("x86_64", "aarch64")
    )


def test_pyright_knows_what_next_gives_and_refuses_wrong_words(tmp_path):
    """`make types` has mypy read the same files. It may take over 5 seconds: it reads the whole package.

    It is pyright's fork basedpyright, whose wheel has all that it needs, with pyright's own rules. What is refused is
    marked, and a mark that is not needed is an error.
    """
    settings = {
        "typeCheckingMode": "standard",
        "reportUnnecessaryTypeIgnoreComment": "error",
        "include": [str(ROOT / "tests" / "typed")],
        "pythonVersion": "3.12",
    }
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings))
    command = ("--outputjson", "--pythonpath", sys.executable, "-p", tmp_path)
    report = json.loads(run("-m", "basedpyright", *command, codes=(0, 1)))
    assert report["summary"]["filesAnalyzed"] == 2
    assert [(each["file"], each["range"]["start"]["line"] + 1, each["message"])
            for each in report["generalDiagnostics"] if each["severity"] == "error"] == []  # fmt: skip


def test_the_options_of_a_checker_are_those_of_a_loader():
    taken = set(inspect.signature(penstock.Loader.__init__).parameters) - {"self", "view", "batch_size", "transform"}
    assert set(LoaderOptions.__annotations__) == taken


def test_damaged_and_hostile_files_are_found_or_harmless(tmp_path):
    """`make faults` runs the suite in full, and docs/reliability.md has its figures. Over 5 seconds: each file of each
    kind of dataset is damaged in each way, 200 times in all, and read and verified each time.
    """
    found = tmp_path / "faults.json"
    run(ROOT / "tests" / "faults" / "run.py", "--trials", "1", "--megabytes", "4", "--json", found)
    said = json.loads(found.read_text())
    assert said["bad"] == []
    assert said["trials"] > 200
    assert sum(each.get("found", 0) for each in said["counts"]) > 100
