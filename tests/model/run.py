"""Random jobs over all that a loader takes, beside a plain model of the documentation: `make model`.

python tests/model/run.py                    all pairs once, and every refusal: what `make test` runs
python tests/model/run.py --random 20000     and as many random cases
python tests/model/run.py --case 'pair 17'   one case again
python tests/model/run.py --case 'random 5'  likewise; --shrink takes away what it does not need to fail
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "python"))

import choice
from dimensions import DEFAULTS, DIMENSIONS, REFUSALS, Case, broken
from running import run_case
from sources import Library

_LIMIT_S = 300
_REPORT_AFTER = 1000  # cases


@contextlib.contextmanager
def library() -> Iterator[Library]:
    """Datasets in a temporary folder, served on loopback."""
    from _servers import nginx

    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=memory) as name:
        root = Path(name)
        (root / "data").mkdir()
        with nginx(root / "data", root / "nginx") as address:
            yield Library(root, address)


def named(kinds: set[str], first: int, count: int) -> Iterator[tuple[str, int, Case]]:
    """(name, seed, case): the same name is the same case."""
    for kind, cases in (("pair", choice.covering), ("refusal", choice.refused)):
        if kind in kinds:
            yield from ((f"{kind} {number}", number, case) for number, case in enumerate(cases()))
    if "random" in kinds:
        yield from ((f"random {number}", number, case) for number, case in choice.at_random(first, count))


def trouble(books: Library, case: Case, seed: int, legs: int = 2) -> tuple[int, str]:
    """Batches that were compared, and what was wrong, in words; "" where nothing was."""
    signal.signal(signal.SIGALRM, _hung)
    signal.setitimer(signal.ITIMER_REAL, _LIMIT_S)
    try:
        return run_case(books, case, seed, legs), ""
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        return 0, f"{type(error).__name__}: {error} ({Path(where.filename).name}:{where.lineno})"
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def _hung(*_: object) -> None:
    raise TimeoutError(f"no end within {_LIMIT_S} s")


def shrunk(books: Library, case: Case, seed: int) -> Case:
    """The case with every dimension at its default that it does not need to fail."""
    for name in DIMENSIONS:
        simpler = {**case, name: DEFAULTS[name]}
        fewer = len(broken(simpler)) <= len(broken(case))
        if simpler != case and fewer and trouble(books, simpler, seed)[1]:
            case = simpler
    return case


def said(case: Case) -> str:
    return ", ".join(f"{name}={value}" for name, value in case.items() if value != DEFAULTS[name])


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--random", type=int, default=0, metavar="N", help="random cases beside those of all pairs")
    parser.add_argument("--first", type=int, default=0, metavar="K", help="number of the first random case")
    parser.add_argument("--only", choices=("pair", "refusal", "random"), help="these alone")
    parser.add_argument("--case", metavar="NAME", help="one case, such as 'pair 17'")
    parser.add_argument("--legs", type=int, default=2, help="runs of each case, the later ones resumed")
    parser.add_argument("--shrink", action="store_true", help="failing cases with as few dimensions as fail")
    parser.add_argument("--most", type=int, default=20, help="failing cases after which it stops")
    parser.add_argument("--json", type=Path, help="counts, for scripts")
    given = parser.parse_args(arguments)
    kinds = {given.only} if given.only else {"pair", "refusal", "random"}
    cases: Iterator[tuple[str, int, Case]] = named(kinds, given.first, given.random)
    if given.case:
        kind, number = given.case.split()
        found = named({kind}, int(number), 1)
        cases = (each for each in found if each[0] == given.case)
    counts: Counter[str] = Counter()
    bad: list[str] = []
    reported: list[str] = []
    begun = time.monotonic()
    with library() as books:
        for name, seed, case in cases:
            batches, wrong = trouble(books, case, seed, given.legs)
            counts[name.split()[0]] += 1
            counts["batches"] += batches
            if wrong:
                small = shrunk(books, case, seed) if given.shrink else case
                bad.append(name)
                print(f"python tests/model/run.py --case '{name}'  # {wrong}\n    {said(small)}", flush=True)
            if len(bad) >= given.most:
                break
            if sum(counts.values()) - counts["batches"] == _REPORT_AFTER * (len(reported) + 1):
                reported.append(name)
                print(f"{name}: {time.monotonic() - begun:.0f} s, {counts['batches']:,} batches", flush=True)
    took = time.monotonic() - begun
    total = counts["pair"] + counts["refusal"] + counts["random"]
    print(f"{total:,} cases ({counts['pair']:,} for all pairs, {counts['refusal']:,} refusals), {counts['batches']:,} "
          f"batches in {took:.0f} s; {len(bad)} differ")  # fmt: skip
    if given.json:
        given.json.write_text(json.dumps({**counts, "bad": bad, "seconds": took, "rules": len(REFUSALS)}))
    return 1 if bad else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
