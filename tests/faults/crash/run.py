"""Crashes at every call of runs that make or change something: `make faults`; tests/python has the short form.

Each run is recorded call by call. For every number of calls, what was not synced by then is kept, dropped, torn or
reordered in ten ways (states.py), and each distinct state that this leaves is made and checked (check.py).
A state is told by its scenario and number: `--record FILE --state N` checks one again, of the record that a run which
found something leaves in build/crash.
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

from crash.replay import Found, Record, memory, record, replay, without
from crash.scenarios import SCENARIOS

KEPT = Path("build/crash")


def one(name: str, given: argparse.Namespace) -> tuple[Found, float]:
    """Records a scenario and checks its states."""
    begin = time.monotonic()
    if given.record:
        made: Record = pickle.loads(given.record.read_bytes())
    else:
        with tempfile.TemporaryDirectory(prefix="penstock-crash-", dir=memory()) as folder:
            made = record([name], Path(folder))[0]
    entries = without(made.entries, given.without) if given.without else made.entries

    def chosen(count: int, number: int) -> bool:
        if given.state is not None:
            return number == given.state
        past = count - given.first
        return past >= 0 and past % given.every == 0 and (given.trials is None or past // given.every < given.trials)

    found = replay(made, chosen, entries)
    if found.problems and not given.record:
        KEPT.mkdir(parents=True, exist_ok=True)
        (KEPT / f"{name}.record").write_bytes(pickle.dumps(made))
    return found, time.monotonic() - begin


def table(founds: list[Found]) -> str:
    """Markdown."""
    lines = ["| run | calls | states | no dataset | old | new | other | wrong |", "| --- |" + " --: |" * 7]
    columns = ("none", "old", "new")
    for each in founds:
        counts = [each.outcomes.get(name, 0) for name in columns]
        counts.append(sum(count for name, count in each.outcomes.items() if name not in columns))
        cells = " | ".join(f"{count:,}" for count in counts)
        lines.append(f"| {each.name} | {each.entries:,} | {each.checked:,} | {cells} | {len(each.problems):,} |")
    total = [sum(each.outcomes.get(name, 0) for each in founds) for name in columns]
    total.append(sum(sum(each.outcomes.values()) for each in founds) - sum(total))
    cells = " | ".join(f"{count:,}" for count in total)
    calls, states = sum(each.entries for each in founds), sum(each.checked for each in founds)
    wrong = sum(len(each.problems) for each in founds)
    return "\n".join([*lines, f"| all | {calls:,} | {states:,} | {cells} | {wrong:,} |"]) + "\n"


def tell(founds: list[Found], seconds: float, given: argparse.Namespace) -> None:
    """Writes what is found so far."""
    if given.markdown:
        given.markdown.parent.mkdir(parents=True, exist_ok=True)
        given.markdown.write_text(table(founds))
    if given.json:
        given.json.parent.mkdir(parents=True, exist_ok=True)
        given.json.write_text(json.dumps({"seconds": seconds, "runs": [vars(each) for each in founds]}, indent=1))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", choices=SCENARIOS, help="these runs alone; may be repeated")
    parser.add_argument("--first", type=int, default=0, help="of each run's states, the first that is checked")
    parser.add_argument("--every", type=int, default=1, help="of each run's states, one in so many")
    parser.add_argument("--trials", type=int, help="so many of each run's states")
    parser.add_argument("--record", type=Path, help="a record that is kept, instead of a new one")
    parser.add_argument("--state", type=int, help="the state of this number alone")
    parser.add_argument("--without", choices=["files", "folders"], help="as if the runs did not sync these")
    parser.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--json", type=Path, help="all counts, and what was wrong")
    parser.add_argument("--markdown", type=Path, help="the table")
    given = parser.parse_args()
    names = [pickle.loads(given.record.read_bytes()).name] if given.record else given.only or list(SCENARIOS)
    begin, founds = time.monotonic(), []
    with ProcessPoolExecutor(given.workers, get_context("spawn")) as pool:
        for found, seconds in pool.map(one, names, [given] * len(names)):
            founds.append(found)
            print(f"{found.name}: {found.checked:,} states in {seconds:.0f} s, {found.outcomes}", file=sys.stderr)
            for number, text in found.problems:
                print(f"  state {number}: {text}", file=sys.stderr)
            tell(founds, time.monotonic() - begin, given)
    print(table(founds))
    print(f"{sum(each.checked for each in founds):,} states in {time.monotonic() - begin:.0f} s")
    return 1 if any(each.problems for each in founds) else 0


if __name__ == "__main__":
    sys.exit(main())
