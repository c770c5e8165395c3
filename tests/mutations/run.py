"""Makes the bugs of mutations.toml one after the other and says which the tests find: `make mutations`.

The code is copied to build/mutations/tree, and only the copy is changed. C++ is built there, as `make build` builds it;
the Python package is used as it lies there, with the extension that `make build` installed. Each mutation meets the
tests of its own room alone. Results are kept as they are made, in build/mutations/results.json, and hold as long as
code and tests are the same: a run that was stopped goes on. At the end they are compared with before.json: what was
found there must be found now.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import tomllib  # Python 3.11

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
WORK = ROOT / "build" / "mutations"
TREE = WORK / "tree"
BUILD = TREE / "build" / "release"  # as deep as `make build` has it, so that the compiler cache knows the files
BEFORE = HERE / "before.json"
CODE = ("bindings/", "cmake/", "core/", "layout/", "shuffle/", "tests/", "writer/", "CMakeLists.txt", "pyproject.toml")
MOST_SECONDS = 400  # of a mutation's tests; what hangs is found


class NotPossible(Exception):
    """Nothing can be said of a mutation, or of a room: why."""


@dataclass(frozen=True)
class Mutation:
    """`new` stands in place of `old`, which occurs once in `path`."""

    id: str
    room: str
    path: str
    promise: str
    old: str
    new: str
    tests: tuple[str, ...]


@dataclass(frozen=True)
class Room:
    """Its tests are executables of gtest, or arguments of pytest."""

    name: str
    kind: str  # "native" or "python"
    mutations: tuple[Mutation, ...]


@dataclass(frozen=True)
class Result:
    """How a mutation fared. "broken": it says nothing, as it was not found in the code or does not compile."""

    outcome: str  # "found", "missed" or "broken"
    by: str  # the test that found it, or why it is broken
    seconds: float
    of: str  # digest of code, tests and mutation


@dataclass(frozen=True)
class Failure:
    """The first test that failed; "": it is not known."""

    test: str
    end: str = ""  # how it ended, where it did not say so itself
    is_late: bool = False

    def __str__(self) -> str:
        name = self.test or "a test"
        return f"{name} ({self.end})" if self.end else name


# A run of some tests: of this one alone, or of all but these.
Trial = Callable[[str, Sequence[str]], Failure | None]


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


# ---- what there is


def read_rooms() -> list[Room]:
    root = tomllib.loads((HERE / "mutations.toml").read_text(encoding="utf-8"))
    rooms = []
    for name, said in root["rooms"].items():
        own = [each for each in root["mutation"] if each["room"] == name]
        mutations = tuple(
            Mutation(**{**each, "tests": tuple(each.get("tests", said.get("tests", ())))}) for each in own
        )
        rooms.append(Room(name, said["kind"], mutations))
    return rooms


def tracked_files() -> list[str]:
    """Files of the working tree that git tracks or would track."""
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listed, cwd=ROOT, capture_output=True, check=True).stdout.decode().split("\0")
    return sorted(name for name in names if name and (ROOT / name).is_file())


def copy_code() -> str:
    """Makes the copy like the working tree; returns the digest of code and tests. What is the same keeps its time."""
    names = tracked_files()
    digest = hashlib.sha256()
    for name in names:
        copy, text = TREE / name, (ROOT / name).read_bytes()
        if name.startswith(CODE) and not name.startswith("tests/mutations/"):
            digest.update(f"{name} {len(text)}\n".encode() + text)
        if not (copy.is_file() and copy.read_bytes() == text):
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, copy)
            copy.chmod((ROOT / name).stat().st_mode)
    remove_others(set(names))
    return digest.hexdigest()


def remove_others(names: set[str]) -> None:
    """Files of the copy that are gone from the working tree: a test or a module that was moved must not stay."""
    for folder in {name.split("/")[0] for name in names}:
        for path in (TREE / folder).rglob("*"):
            if path.is_file() and path.suffix in (".py", ".cpp", ".h") and str(path.relative_to(TREE)) not in names:
                path.unlink()


def digest_of(mutation: Mutation, code: str) -> str:
    said = [code, mutation.path, mutation.old, mutation.new, mutation.tests]
    return hashlib.sha256(json.dumps(said).encode()).hexdigest()[:16]


# ---- one mutation


def mutated(mutation: Mutation) -> str:
    path = TREE / mutation.path
    if not path.is_file():
        raise NotPossible(f"{mutation.path}: no such file: was it moved? Update `path` in mutations.toml")
    text = path.read_text(encoding="utf-8")
    count = text.count(mutation.old)
    if count == 1:
        return text.replace(mutation.old, mutation.new)
    many = "is not found" if count == 0 else f"is found {count} times"
    raise NotPossible(f"{mutation.path}: the text of `old` {many}, once is wanted: update it in mutations.toml")


def run(command: list[str], **options: Any) -> tuple[int, str]:
    """Exit status and output; 124 where it took too long. Ends with all that it started."""
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True, **options
    ) as process:
        try:
            output, _ = process.communicate(timeout=MOST_SECONDS)
            return process.returncode, output
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return 124, process.communicate()[0]
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)


def try_out(room: Room, mutation: Mutation, jobs: int) -> tuple[str, str]:
    """Outcome, and the test that found it or why it is broken. The copy is as before afterwards."""
    path = TREE / mutation.path
    try:
        text = mutated(mutation)
        before = path.read_text(encoding="utf-8")
        try:
            path.write_text(text, encoding="utf-8")
            failure = tests_of(room, mutation.tests, jobs)
        finally:
            path.write_text(before, encoding="utf-8")
    except NotPossible as why:
        return "broken", str(why)
    return ("found", str(failure)) if failure else ("missed", "")


def tests_of(room: Room, tests: Sequence[str], jobs: int) -> Failure | None:
    return native(tests, jobs) if room.kind == "native" else python(tests)


def confirmed(trial: Trial) -> Failure | None:
    """A failure that happens again when its test runs alone: one that the machine's load made finds nothing."""
    passing: list[str] = []
    while failure := trial("", passing):
        if failure.is_late or failure.test in ("", *passing) or trial(failure.test, ()):
            return failure
        say(f"{failure} failed once, and does not count")
        passing.append(failure.test)
    return None


# ---- C++


def configure() -> None:
    if (BUILD / "build.ninja").is_file():
        return
    settings = {"CMAKE_BUILD_TYPE": "Release", "PENSTOCK_BUILD_TESTS": "ON", "PENSTOCK_DEVELOPER": "ON"}
    defined = [f"-D{name}={value}" for name, value in settings.items()]
    built(["cmake", "-G", "Ninja", "-S", str(TREE), "-B", str(BUILD), *defined])


def built(command: list[str]) -> None:
    """With the compiler and the cache of `make build`."""
    script = '. scripts/compiler_cache && exec "$@"'
    environment = {"CXX": "g++", **os.environ}
    status, output = run(["bash", "-c", script, "bash", *command], cwd=TREE, env=environment)
    if status != 0:
        errors = re.findall(r".*error:.*", output) or output.splitlines()[-5:]
        raise NotPossible("does not build: " + "; ".join(errors[:3]))


def native(tests: Sequence[str], jobs: int) -> Failure | None:
    configure()
    built(["ninja", "-C", str(BUILD), "-j", str(jobs), *tests])
    for name in tests:
        executable = next(path for path in (BUILD / "tests" / "native").rglob(name) if path.is_file())
        if failure := confirmed(partial(run_native, executable)):
            return failure
    return None


def run_native(executable: Path, only: str, without: Sequence[str]) -> Failure | None:
    chosen = f"--gtest_filter={only or '*'}{'-' if without else ''}{':'.join(without)}"
    status, output = run([str(executable), "--gtest_fail_fast", chosen], cwd=executable.parent)
    if status == 0:
        return None
    failed = re.findall(r"^\[  FAILED  \] ([\w/.]+)", output, re.MULTILINE)
    begun = re.findall(r"^\[ RUN      \] ([\w/.]+)", output, re.MULTILINE)
    return Failure((failed or begun[-1:] or [""])[0], *how_it_ended(status))


def how_it_ended(status: int) -> tuple[str, bool]:
    if status == 124:
        return f"not done in {MOST_SECONDS} s", True
    return (signal.Signals(-status).name if status < 0 else ""), False


# ---- Python


def put_extension() -> None:
    """Links the installed extension into the copy's package."""
    package = importlib.util.find_spec("penstock")
    where = Path(package.origin).parent if package is not None and package.origin is not None else None
    found = list(where.glob("_native*.so")) if where is not None else []
    if len(found) != 1:
        raise NotPossible("the extension of penstock is not installed: `make build`")
    link = TREE / "bindings" / "penstock" / found[0].name
    link.unlink(missing_ok=True)
    link.symlink_to(found[0].resolve())


def python(tests: Sequence[str]) -> Failure | None:
    put_extension()
    environment = {**os.environ, "PYTHONPATH": str(TREE / "bindings"), "PYTHONDONTWRITEBYTECODE": "1"}
    where = [sys.executable, "-c", "import penstock; print(penstock.__file__)"]
    status, output = run(where, cwd=TREE, env=environment)
    if status != 0 or not output.startswith(str(TREE)):
        raise NotPossible(f"the package of the copy cannot be imported: {output.strip().splitlines()[-1]}")
    return confirmed(lambda only, without: run_python([only] if only else tests, without, environment))


def run_python(tests: Sequence[str], without: Sequence[str], environment: dict[str, str]) -> Failure | None:
    options = ["-x", "-q", "-p", "no:cacheprovider", "--tb=line", "--timeout=150"]
    left_out = [f"--deselect={test}" for test in without]
    status, output = run([sys.executable, "-m", "pytest", *options, *left_out, *tests], cwd=TREE, env=environment)
    if status == 0:
        return None
    failed = re.findall(r"^(?:FAILED|ERROR) (\S+::.+?)(?: - .*)?$", output, re.MULTILINE)
    if status in (2, 3, 4, 5) and not failed:
        raise NotPossible(f"pytest cannot run the tests: {' '.join(output.split())[-300:]}")
    return Failure((failed or [""])[0], *how_it_ended(status))


# ---- a run


def read_results(path: Path) -> dict[str, Result]:
    """By the mutations' names."""
    if not path.is_file():
        return {}
    return {name: Result(**each) for name, each in json.loads(path.read_text(encoding="utf-8")).items()}


def write_results(path: Path, results: dict[str, Result], order: list[str]) -> None:
    """In the order of mutations.toml; those of mutations that are no more are left out."""
    said = {name: asdict(results[name]) for name in order if name in results}
    partial = path.with_suffix(".partial")
    path.parent.mkdir(parents=True, exist_ok=True)
    partial.write_text(json.dumps(said, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    partial.replace(path)


def check_unmutated(room: Room, mutations: Sequence[Mutation], jobs: int) -> None:
    """The tests of these mutations pass on the code as it is: else any mutation would seem to be found."""
    if mutations:
        say(f"{room.name}: its tests, without a mutation")
    for tests in dict.fromkeys(mutation.tests for mutation in mutations):
        if failure := tests_of(room, tests, jobs):
            raise NotPossible(f"{room.name}: {failure} fails without a mutation")


def table(rooms: list[Room], results: dict[str, Result]) -> str:
    lines = ["| mutation | outcome | by | seconds |", "| --- | --- | --- | --: |"]
    for mutation in (each for room in rooms for each in room.mutations):
        if mutation.id in results:
            result = results[mutation.id]
            lines.append(f"| {mutation.id} | {result.outcome} | {result.by} | {result.seconds:.0f} |")
    lines += ["", "| room | found | missed | broken |", "| --- | --: | --: | --: |"]
    for room in rooms:
        outcomes = [results[each.id].outcome for each in room.mutations if each.id in results]
        counts = [str(outcomes.count(outcome)) for outcome in ("found", "missed", "broken")]
        lines.append(f"| {room.name} | {' | '.join(counts)} |")
    return "\n".join(lines)


def lost(results: dict[str, Result], order: list[str]) -> list[str]:
    """Mutations that were found before and are not now, or that are no more."""
    found = [name for name, result in read_results(BEFORE).items() if result.outcome == "found"]
    return [name for name in found if name not in order or (name in results and results[name].outcome != "found")]


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--room", action="append", help="may be repeated")
    parser.add_argument("--only", action="append", metavar="ID", help="a mutation; may be repeated")
    parser.add_argument("--again", action="store_true", help="those too that have a result")
    parser.add_argument(
        "--json", type=Path, default=WORK / "results.json", help="file for the results; before.json: a new record"
    )
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 2, help="compilers at once")
    return parser.parse_args()


def outcomes(room: Room, left: list[Mutation], jobs: int) -> Iterator[tuple[Mutation, str, str, float]]:
    """(mutation, outcome, by, seconds) of those that are left.

    Raises:
        NotPossible: their tests fail without any of them.
    """
    check_unmutated(room, left, jobs)
    for mutation in left:
        begin = time.monotonic()
        outcome, by = try_out(room, mutation, jobs)
        say(f"{mutation.id}: {outcome}{' by ' if outcome == 'found' else ': ' if by else ''}{by}")
        yield mutation, outcome, by, round(time.monotonic() - begin, 1)


def is_chosen(room: Room, mutation: Mutation, options: argparse.Namespace) -> bool:
    return (not options.room or room.name in options.room) and (not options.only or mutation.id in options.only)


def main() -> int:
    options = parse_arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # else tests under way go on
    rooms = read_rooms()
    order = [mutation.id for room in rooms for mutation in room.mutations]
    unknown = [*({*(options.only or ())} - {*order}), *({*(options.room or ())} - {room.name for room in rooms})]
    if unknown:
        say(f"no such mutation or room: {', '.join(unknown)}")
        return 2
    code = copy_code()
    digests = {mutation.id: digest_of(mutation, code) for room in rooms for mutation in room.mutations}
    results = {name: each for name, each in read_results(options.json).items() if each.of == digests.get(name)}
    try:
        for room in rooms:
            chosen = [each for each in room.mutations if is_chosen(room, each, options)]
            left = [each for each in chosen if options.again or each.id not in results]
            for mutation, outcome, by, seconds in outcomes(room, left, options.jobs):
                results[mutation.id] = Result(outcome, by, seconds, digests[mutation.id])
                write_results(options.json, results, order)
    except NotPossible as why:
        say(str(why))
        return 2
    print(table(rooms, results))
    missing = lost(results, order)
    if missing:
        say(f"found before, and not now: {', '.join(missing)}")
    return bool(missing or any(result.outcome == "broken" for result in results.values()))


if __name__ == "__main__":
    sys.exit(main())
