"""One version everywhere, and workflows that a runner would accept."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import penstock
import yaml

ROOT = Path(__file__).parents[3]


def test_the_version_is_one():
    found = {
        name: re.search(pattern, (ROOT / name).read_text(), re.MULTILINE)[1]
        for name, pattern in {
            "pyproject.toml": r'^version = "(.*)"',
            "CMakeLists.txt": r"^project\(penstock VERSION (\S+) ",
            "CHANGELOG.md": r"^## (\S+)",
        }.items()
    }
    assert set(found.values()) == {penstock.__version__}, found


def test_the_workflow_has_the_form_that_github_asks_for():
    workflow = ROOT / ".github" / "workflows" / "wheels.yml"
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.github-workflows", str(workflow)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    runners = yaml.safe_load(workflow.read_text())["jobs"]["wheels"]["strategy"]["matrix"]["runner"]
    assert runners == ["ubuntu-24.04", "ubuntu-24.04-arm"]  # x86-64 and aarch64


def test_wheels_are_built_for_all_supported_pythons():
    command = [sys.executable, "-m", "cibuildwheel", "--platform", "linux", "--print-build-identifiers", str(ROOT)]
    done = subprocess.run([*command, "--archs", "x86_64,aarch64"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    pythons = [f"cp3{minor}" for minor in range(10, 15)]
    assert sorted(done.stdout.split()) == sorted(
        f"{each}-manylinux_{arch}" for each in pythons for arch in ("x86_64", "aarch64")
    )
