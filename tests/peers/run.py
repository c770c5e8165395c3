"""Runs other packages' own tests over penstock: `make peers-tests`, or `python tests/peers/run.py --help`.

The tests are those of the package's source distribution. They import the package's names from tests/peers/shims, where
these are a few lines over penstock. A test that fails there, and not with the reason that `differences.py` has for it,
is an error; so is one that passes although it has a reason.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from differences import DIFFERENCES

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BUILD = ROOT / "build" / "peers-tests"
sys.path.insert(0, str(ROOT / "benchmarks" / "peers"))

import environment  # noqa: E402


@dataclass(frozen=True)
class Peer:
    """A package, and those of its test files that are of what penstock has too.

    Attributes:
        name: of the package.
        version: of it.
        files: of its tests.
        plugin: the module of shims/ that counts how often penstock was used; imported by pytest first.
        python: the version that it wants, where it is another one than this; penstock is built for it then.
        requirements: what its environment has besides.
    """

    name: str
    version: str
    files: tuple[str, ...]
    plugin: str
    python: str | None = None
    requirements: tuple[str, ...] = ()


PEERS = (
    Peer(
        "scdataset", "0.3.0", ("test_scdataset.py", "test_strategy.py", "test_ddp_real.py", "test_auto_config.py"),
        "scdataset",
    ),
    Peer(
        "annbatch", "0.3.1", ("test_dataset.py", "test_sampler.py", "test_class_sampler.py"), "annbatch_over_penstock",
        "3.12", ("zarrs==0.2.3", "torch==2.13.0", "numba", "pytest", "pytest-subtests"),
    ),
)  # fmt: skip


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def fetched(peer: Peer, build: Path) -> tuple[Path, Path]:
    """The folder of the package, and that of its tests: of its source distribution, which is fetched once."""
    folder = build / f"{peer.name}-{peer.version}"
    packages, tests = folder / "packages", folder / "tests"
    if not (folder / "done").exists():
        say(f"fetching {peer.name} {peer.version}")
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        pip = [sys.executable, "-m", "pip", "-q", "--disable-pip-version-check"]
        wanted = [f"{peer.name}=={peer.version}", "--no-deps"]
        wanted += ["--python-version", peer.python] if peer.python is not None else []
        subprocess.run([*pip, "download", *wanted, "--no-binary", ":all:", "-d", str(folder)], check=True)
        [archive] = folder.glob("*.tar.gz")
        with tarfile.open(archive) as opened:
            opened.extractall(folder, filter="data")
        [source] = (each for each in folder.iterdir() if each.is_dir())
        source.joinpath("tests").rename(tests)
        source.joinpath("src").rename(packages)  # the tests of some put it before all others
        (folder / "done").touch()
    return packages, tests


def interpreter(peer: Peer, build: Path) -> str:
    """The Python that runs the tests: this one, or that of an environment with penstock built for it.

    Raises:
        NotInstalled: there is no Python of this version, or pip failed.
    """
    if peer.python is None:
        return sys.executable
    place = build / f"{peer.name}-environment"
    python = str(place / "bin" / "python")
    if not (place / "made").exists():
        say(f"making an environment of Python {peer.python}, and penstock for it (15 minutes)")
        environment.run([environment.found(peer.python), "-m", "venv", "--clear", str(place)])
        pip = [python, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
        environment.run([*pip, f"{peer.name}=={peer.version}", *peer.requirements])
        environment.run([*pip, str(ROOT), f"--config-settings=build-dir={place}-build"])
        (place / "made").touch()
    return python


def run(peer: Peer, build: Path) -> list[dict[str, Any]]:
    """What became of each test. Those that fail for no known reason run again: some meet at a port of their own."""
    python = interpreter(peer, build)
    found = called(peer, python, build, [])
    again = [
        each for each in found if each["outcome"] == "failed" and each["test"] not in DIFFERENCES.get(peer.name, {})
    ]
    if not again:
        return found
    later = {each["test"]: each for each in called(peer, python, build, [each["test"] for each in again])}
    return [later.get(each["test"], each) for each in found]


def called(peer: Peer, python: str, build: Path, only: list[str]) -> list[dict[str, Any]]:
    """What became of these tests; of none, all of them."""
    packages, tests = fetched(peer, build)
    report = build / f"{peer.name}.jsonl"
    report.unlink(missing_ok=True)
    settings = {
        "PENSTOCK_PEER": str(packages),
        "PENSTOCK_PEER_NAME": peer.plugin,
        "PENSTOCK_PEER_REPORT": str(report),
        "PENSTOCK_PEER_TESTS": json.dumps(only),
        "PYTHONPATH": f"{HERE / 'shims'}{os.pathsep}{tests.parent}",  # before the package, also in processes of tests
    }
    command = [python, "-m", "pytest", "-q", "-p", peer.plugin, "-p", "peers_report", "-p", "no:cacheprovider"]
    files = [str(tests / each) for each in peer.files]
    with (build / f"{peer.name}.log").open("a" if only else "w", encoding="utf-8") as log:
        subprocess.run(
            [*command, "--tb=line", "-c", "/dev/null", "--rootdir", str(tests), *files],
            env={**os.environ, **settings}, stdout=log, stderr=subprocess.STDOUT, timeout=3600, check=False, cwd=tests,
        )  # fmt: skip
    return [json.loads(line) for line in report.read_text(encoding="utf-8").splitlines()]


def surprises(peer: Peer, found: list[dict[str, Any]]) -> list[str]:
    """Tests that fail for no known reason, or pass although there is one."""
    known = DIFFERENCES.get(peer.name, {})
    out = [
        f"{each['file']}::{each['test']}: {each['message']}"
        for each in found
        if each["outcome"] == "failed" and each["test"] not in known
    ]
    passed = {each["test"] for each in found if each["outcome"] == "passed"}
    return out + [f"{test} passes, and differences.py has it" for test in sorted(passed & known.keys())]


def table(peer: Peer, found: list[dict[str, Any]]) -> list[str]:
    rows = []
    for file in peer.files:
        own = [each for each in found if each["file"] == file]
        counts = {name: sum(each["outcome"] == name for each in own) for name in ("passed", "failed", "skipped")}
        used = sum(each["used"] and each["outcome"] == "passed" for each in own)
        rows.append(
            f"| {peer.name} {peer.version} | `{file}` | {counts['passed']} of {len(own)} | {used} | "
            f"{counts['failed']} | {counts['skipped']} |"
        )
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", action="append", help="packages; may be repeated")
    parser.add_argument("--build", type=Path, default=BUILD, help="where packages and reports are kept")
    parser.add_argument("--markdown", type=Path, help="file for the table")
    options = parser.parse_args()
    rows = [
        "| package | tests | pass | of them over penstock | differ | skipped |",
        "| --- | --- | --: | --: | --: | --: |",
    ]
    wrong: list[str] = []
    options.build.mkdir(parents=True, exist_ok=True)
    for peer in PEERS:
        if options.only and peer.name not in options.only:
            continue
        try:
            found = run(peer, options.build.absolute())
        except environment.NotInstalled as error:
            say(f"{peer.name}: left out: {error}")
            continue
        wrong += surprises(peer, found)
        rows += table(peer, found)
    print("\n".join(rows))
    if options.markdown:
        options.markdown.write_text("\n".join(rows) + "\n", encoding="utf-8")
    for each in wrong:
        say(each)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
