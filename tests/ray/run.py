"""Runs penstock on Ray: `make ray`, or `python tests/ray/run.py --help`.

Makes an environment with the packages of requirements.txt, and runs the tests beside this file in it with the penstock
of this environment. docs/ray.md shows the record.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from pinned import environment, penstock_alone  # noqa: E402

BUILD = HERE.parents[1] / "build" / "ray"
SHOWN = ("ray", "datatrove", "anndata", "pyarrow")


def surroundings(build: Path) -> dict[str, str]:
    """Variables of a process in the environment."""
    outside = {key: value for key, value in os.environ.items() if key not in ("PYTHONHOME", "VIRTUAL_ENV")}
    return {**outside, "PYTHONPATH": str(penstock_alone(build / "path")), "RAY_USAGE_STATS_ENABLED": "0"}


def run_tests(python: Path, build: Path, chosen: list[str]) -> list[dict[str, Any]]:
    """What came of each test: file, name, seconds, and whether it passed."""
    report = build / "report.xml"
    report.unlink(missing_ok=True)
    command = [str(python), "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", os.devnull, "--rootdir", str(HERE)]
    command += ["--show-capture=stderr", "-W", "ignore", f"--junitxml={report}", f"--timeout={300}"]
    subprocess.run([*command, *(chosen or [str(HERE)])], env=surroundings(build), check=False)
    found = []
    for case in ElementTree.parse(report).iter("testcase"):
        passed = not any(case.find(kind) is not None for kind in ("failure", "error", "skipped"))
        file, name = case.get("classname", "").rpartition(".")[2], case.get("name", "")
        found.append({"file": file, "test": name, "seconds": float(case.get("time", 0)), "passed": passed})
    return found


def versions(python: Path) -> dict[str, str]:
    script = "import importlib.metadata as m, sys; print(*map(m.version, sys.argv[1:]))"
    said = subprocess.run([str(python), "-c", script, *SHOWN], check=True, capture_output=True, text=True).stdout
    return dict(zip(SHOWN, said.split(), strict=True))


def markdown(found: list[dict[str, Any]], packages: dict[str, str]) -> str:
    """The record that docs/ray.md shows."""
    tested = ", ".join(f"{name} {number}" for name, number in packages.items())
    rows = [f"{tested}:", "", "| test | what it says | seconds | passed |", "| --- | --- | --: | --- |"]
    for each in found:
        name, _, case = each["test"].removeprefix("test_").partition("[")
        said = name.replace("_s_", "'s ").replace("_", " ") + (f" ({case[:40].rstrip(']')})" if case else "")
        rows.append(f"| {each['file']} | {said} | {each['seconds']:.0f} | {'yes' if each['passed'] else 'no'} |")
    return "\n".join(rows) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tests", nargs="*", help="files of tests; else all")
    parser.add_argument("--build", type=Path, default=BUILD, help="where the environment is kept: 1 GB")
    parser.add_argument("--json", type=Path, help="file for the results")
    parser.add_argument("--markdown", type=Path, help="file for the record")
    parser.add_argument(
        "--nodes", nargs=argparse.REMAINDER, help="lost_nodes.py with the options that follow, no tests"
    )
    options = parser.parse_args()
    build = options.build.absolute()
    python = environment(build / "environment", HERE / "requirements.txt")
    if options.nodes is not None:
        command = [str(python), str(HERE / "lost_nodes.py"), *options.nodes]
        return subprocess.run(command, env=surroundings(build), check=False).returncode
    found, packages = run_tests(python, build, options.tests), versions(python)
    record = markdown(found, packages)
    print(record)
    if options.markdown:
        options.markdown.write_text(record, encoding="utf-8")
    if options.json:
        results = {"penstock": version("penstock"), "packages": packages, "tests": found}
        options.json.write_text(json.dumps(results, indent=1) + "\n")
    return int(not found or not all(each["passed"] for each in found))


if __name__ == "__main__":
    sys.exit(main())
