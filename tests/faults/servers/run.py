"""Lies of servers against all that asks them: `make faults`.

Each trial is a lie, an operation and whether it passes; the server is honest before, and afterwards again. It is
  exact     the data are those of an honest server, in time
  error     a penstock.Error in time, with the address and no secret
  not told  the operation asks for nothing that the lie is about
  wrong     anything else: other data, another exception, too late, a connection that is left, a cache that is poisoned
`--only LIE --operation NAME --skip K` does some of them again.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from servers import cuts, trials
from servers.cuts import Cut
from servers.trials import OUTCOMES, Result, Trial

HANGS = "it hangs"
_AGAIN_AT_ONCE = 3
LIMIT_S = 120.0  # in which a trial ends: else those under way hang


def run(planned: Sequence[Trial], workers: int, tell: Callable[[Result], None] = lambda result: None) -> list[Result]:
    """Several at once, since they wait; those that hang are told and left."""
    done: list[Result] = []
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        trials.environment(Path(folder))
        for name in sorted({each.operation for each in planned}):
            trials.honest(name)
        pool = ThreadPoolExecutor(workers, "trial")
        left = {pool.submit(trials.run, each, Path(folder)): each for each in planned}
        while left:
            ended = wait(left, LIMIT_S, return_when=FIRST_COMPLETED).done
            if not ended:  # for so long none of them
                done += [Result(each, "wrong", HANGS, LIMIT_S) for future, each in left.items() if future.running()]
                break
            for future in ended:
                del left[future]
                done.append(future.result())
                tell(done[-1])
        pool.shutdown(wait=False, cancel_futures=True)
        with ThreadPoolExecutor(_AGAIN_AT_ONCE, "again") as few:
            return list(few.map(lambda each: _again(each, Path(folder)), done))


def _again(result: Result, folder: Path) -> Result:
    """Trials that went wrong on a busy machine are tried once more, beside few others and with more time."""
    if result.outcome != "wrong" or result.what == HANGS:
        return result
    return trials.run(replace(result.trial, patience=10.0), folder)


def left_behind(before: tuple[int, int]) -> str:
    """Descriptors and threads that were not there before; empty: none."""
    end = time.monotonic() + 40
    while time.monotonic() < end:
        now = resources()
        if now[0] <= before[0] and now[1] <= before[1]:
            return ""
        time.sleep(0.2)
    names = Counter(each.name.rstrip("0123456789-_") for each in threading.enumerate())
    return f"descriptors, threads: {before} before, {now} afterwards; {dict(names)}"


def run_cuts(planned: Sequence[Cut], workers: int) -> list[str]:
    """Faults that were found where connections ended at a byte of a reply."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        trials.environment(Path(folder))
        with ThreadPoolExecutor(workers, "cut") as pool:
            return [each for each in pool.map(lambda cut: cuts.run(cut, Path(folder)), planned) if each]


def resources() -> tuple[int, int]:
    """Descriptors that are open, and threads of Python's."""
    return len(list(Path("/proc/self/fd").iterdir())), threading.active_count()


def table(done: Sequence[Result]) -> str:
    """Markdown: a line for each operation."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    slowest: Counter[str] = Counter()
    for each in done:
        counts[each.trial.operation][each.outcome] += 1
        slowest[each.trial.operation] = max(slowest[each.trial.operation], round(each.seconds * 10))
    lines = [
        "| operation | trials | exact | error | not told | wrong | the slowest |",
        "| --- | --: | --: | --: | --: | --: | --: |",
    ]
    for name, counted in counts.items():
        cells = " | ".join(f"{counted[each]:,}" for each in OUTCOMES)
        lines.append(f"| {name} | {counted.total():,} | {cells} | {slowest[name] / 10:.1f} s |")
    total = sum(counts.values(), Counter())
    cells = " | ".join(f"{total[each]:,}" for each in OUTCOMES)
    return "\n".join([*lines, f"| all | {total.total():,} | {cells} | {max(slowest.values()) / 10:.1f} s |"]) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", help="this lie alone")
    parser.add_argument("--operation", help="this operation alone")
    parser.add_argument("--skip", type=int, help="requests that are answered honestly first; default: 0, and 1 to 5")
    parser.add_argument("--trials", type=int, help="so many of them alone")
    parser.add_argument("--first", type=int, default=0, help="from this one on")
    parser.add_argument("--cuts", type=int, default=1, help="one byte in so many at which replies are cut; 0: none")
    parser.add_argument("--workers", type=int, default=8, help="at once")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--markdown", type=Path)
    given = parser.parse_args()
    skips = range(6) if given.skip is None else [given.skip]
    planned = [Trial(each.lie, each.operation, each.passes, skip) for skip in skips for each in trials.plan()]
    planned = [t for t in planned if given.only in (None, t.lie) and given.operation in (None, t.operation)]
    planned = planned[given.first :][: given.trials]
    from rich.console import Console
    from rich.progress import Progress

    begin = time.monotonic()
    with Progress(console=Console(stderr=True)) as bar:
        task = bar.add_task("trials", total=len(planned))
        done = run(planned, given.workers, lambda result: bar.advance(task)) if planned else []
    cut = list(cuts.plan(given.cuts)) if given.cuts and given.only is None and given.operation is None else []
    problems = run_cuts(cut, given.workers)
    text = table(done) if done else ""
    bad = [each for each in done if each.outcome == "wrong"]
    print(text)
    print(f"{len(done):,} trials in {time.monotonic() - begin:.0f} s; {len(bad):,} wrong")
    print(f"{len(cut):,} replies cut; {len(problems):,} wrong", *problems[:20], sep="\n")
    for each in bad[:50]:
        print(f"{each.trial}: {each.what}")
    if given.markdown:
        given.markdown.write_text(text)
    if given.json:
        rows = [
            {**vars(each.trial), "outcome": each.outcome, "what": each.what, "seconds": each.seconds} for each in done
        ]
        given.json.write_text(json.dumps(rows, indent=1))
    sys.stdout.flush()
    os._exit(1 if bad or problems else 0)  # threads that hang are left


if __name__ == "__main__":
    main()
