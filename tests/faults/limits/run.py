"""Runs every verb where something is short or fails for real: disks, memory, descriptors, mounts, clocks, servers.

Part of `make faults`. A trial is its limit, verb and number:
`--only 'descriptors' --verb 'append' --first 7 --trials 1` does one again. What this machine does not allow is left
out, and said.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import verbs
from bench import Bench, NotHereError, WrongError
from clock import Clock
from descriptors import Descriptors
from far import HANGS_S, Far
from matter import Matter
from memory import AddressSpace, Group
from read_only import ReadOnly
from space import Space

OUTCOMES = ("done", "error", "killed", "no room to begin", "wrong")
#: What `make test` tries: one or two trials of each.
SHORT = {
    "space": "append",
    "descriptors": "write, 1 worker",
    "memory of RLIMIT_AS": "import, 2 workers",
    "a read-only mount": "write, 1 worker",
    "a far file system": "loader, auto",
}
_INSIDE = "PENSTOCK_LIMITS_INSIDE"


@dataclass
class Results:
    counts: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    tried: list[dict[str, Any]] = field(default_factory=list)
    bad: list[dict[str, Any]] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)


def run(bench: Bench, matters: list[Matter], given: argparse.Namespace, tell: Callable[[str], None]) -> Results:
    results = Results(left_out=dict(bench.left_out))
    for matter in matters:
        try:
            tried_on = matter.verbs(bench)
        except NotHereError as error:
            results.left_out[matter.name] = str(error)
            continue
        for verb in tried_on:
            if given.short and SHORT[matter.name] != verb.name:
                continue
            limits = list(enumerate(matter.trials(bench, verb, given.short)))
            for number, limit in limits[given.first :][: given.trials]:
                _one(bench, matter, verb, number, limit, results)
            tell(f"{matter.name}: {verb.name}")
    return results


def _one(bench: Bench, matter: Matter, verb: verbs.Verb, number: int, limit: Any, results: Results) -> None:
    begin, where = time.monotonic(), {"matter": matter.name, "verb": verb.name, "number": number}
    try:
        tried = matter.run(bench, verb, limit)
        outcome, words = tried.outcome, tried.limit
    except NotHereError as error:
        results.left_out[f"{matter.name}: {verb.name}"] = str(error)
        return
    except Exception as error:  # of the driver, too
        outcome, words = "wrong", str(limit)
        what = str(error) if isinstance(error, WrongError) else f"{type(error).__name__}: {error}"
        results.bad.append({**where, "limit": words, "what": what})
        print(f"--only '{matter.name}' --verb '{verb.name}' --first {number} --trials 1  # {what}", flush=True)
    if outcome == "left out":
        return
    results.counts[matter.name][outcome] += 1
    seconds = round(time.monotonic() - begin, 2)
    run = round(bench.seconds_of_run, 2)
    results.tried.append({**where, "limit": words, "outcome": outcome, "seconds": seconds, "seconds_of_run": run})


def table(results: Results) -> str:
    """Markdown."""
    lines = [f"| limit | tried | {' | '.join(OUTCOMES)} |", "| --- " + "| --: " * (len(OUTCOMES) + 1) + "|"]
    for name, counts in [*results.counts.items(), ("all", sum(results.counts.values(), Counter()))]:
        lines.append(f"| {name} | {counts.total():,} | {' | '.join(f'{counts[each]:,}' for each in OUTCOMES)} |")
    return "\n".join(lines) + "\n"


@contextlib.contextmanager
def _served(folder: Path, root: Path) -> Iterator[None]:
    """An HTTP server of the inputs, where nginx is."""
    sys.path.insert(0, str(verbs.TESTS / "python"))
    with contextlib.ExitStack() as stack:
        if shutil.which("nginx") or Path("/usr/sbin/nginx").exists():
            from _servers import nginx

            os.environ["LIMITS_ADDRESS"] = stack.enter_context(nginx(folder, root / "nginx"))
        yield


def _inside() -> None:
    """Goes on in a mount namespace of its own where that may be had, so that no mount outlives this."""
    if _INSIDE in os.environ or not shutil.which("unshare"):
        return
    if subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False).returncode == 0:
        os.environ[_INSIDE] = "1"
        os.execvp("unshare", ["unshare", "-m", sys.executable, *sys.argv])


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", help="this limit alone; may be repeated")
    parser.add_argument("--verb", action="append", help="this verb alone; may be repeated")
    parser.add_argument("--first", type=int, default=0, help="number of the first trial of each verb")
    parser.add_argument("--trials", type=int, default=1000, help="of each limit and verb")
    parser.add_argument("--short", action="store_true", help="one or two of each, on one verb")
    parser.add_argument("--hang", type=float, default=HANGS_S, help="seconds that a file system hangs")
    parser.add_argument("--json", type=Path, help="all trials")
    parser.add_argument("--markdown", type=Path, help="the table")
    given = parser.parse_args(arguments)
    _inside()
    matters: list[Matter] = [Space(), Descriptors(), AddressSpace(), Group(), ReadOnly(), Far(given.hang), Clock()]
    names = given.only or (list(SHORT) if given.short else [each.name for each in matters])
    chosen = [each for each in matters if each.name in names]
    tried = given.verb or ([SHORT[name] for name in names] if given.short else list(verbs.NAMED))
    wanted = [verb for verb in verbs.VERBS if verb.name in tried]
    if not chosen or not wanted:
        parser.error(f"limits are {[each.name for each in matters]}, verbs are {[*verbs.NAMED]}")
    begin = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="penstock-limits-", dir=_disk()) as folder:
        (Path(folder) / "bench").mkdir()
        with _served(Path(folder) / "bench" / "data", Path(folder)):
            bench = Bench(Path(folder) / "bench", wanted)
            results = run(bench, chosen, given, lambda words: print(words, file=sys.stderr, flush=True))
    seconds = time.monotonic() - begin
    print(table(results))
    print(
        f"{sum(each.total() for each in results.counts.values()):,} trials in {seconds:.0f} s; {len(results.bad)} wrong"
    )
    for name, why in results.left_out.items():
        print(f"left out: {name}: {why}")
    if given.markdown:
        given.markdown.write_text(table(results))
    if given.json:
        given.json.write_text(json.dumps({"seconds": seconds, **vars(results)}, indent=1))
    return 1 if results.bad else 0


def _disk() -> Path:
    """Files in memory would count as the memory of a control group."""
    build = verbs.TESTS.parent / "build"
    build.mkdir(exist_ok=True)
    return build


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
