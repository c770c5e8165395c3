"""Puts faults into datasets and files in the hands of the package, and counts what becomes of each: `make faults`.

Each trial opens, reads and uses one damaged or hostile dataset in a process that is watched. It is
  found     a penstock.Error says what is wrong
  harmless  what was read is what was written; of hostile files, which say other things, that all was read
  lost      a step read something else, and nothing said; `not promised` where docs/reliability.md promises no more
  stray     an exception that is no penstock.Error, or a message without end
  crashed   the process ended
  hung      no answer within the time limit
A trial is its kind, dataset, checks= and seed: `--only KIND --dataset NAME --first SEED --trials 1` does one again.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import queue
import select
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import corpora
import damage
import hostile
import writers

HERE = Path(__file__).parent
LIMIT_S = 120.0
OUTCOMES = ("found", "harmless", "not promised", "lost", "stray", "crashed", "hung")
BAD = ("lost", "stray", "crashed", "hung")
# Of one trial beside the size of the manifest: max_bytes of the loaders, of their kept metadata, and of the tools.
MEMORY = 3 * (64 << 20)


@dataclass(frozen=True)
class Trial:
    kind: str
    name: str
    checks: str
    seed: int
    size: int


@dataclass
class Results:
    counts: dict[tuple[str, str], Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    memory: Counter[str] = field(default_factory=Counter)
    slowest: dict[str, Any] = field(default_factory=dict)
    bad: list[dict[str, Any]] = field(default_factory=list)

    def add(self, trial: Trial, answer: dict[str, Any]) -> None:
        group = (trial.kind, trial.checks if trial.kind in damage.KINDS and trial.name in corpora.OURS else "")
        outcome = answer["outcome"]
        self.counts[group][outcome] += 1
        self.memory[trial.kind] = max(self.memory[trial.kind], answer.get("memory", 0))
        if answer["seconds"] > self.slowest.get("seconds", 0):
            self.slowest = {**vars(trial), **answer}
        too_much = answer.get("memory", 0) > MEMORY + 5 * trial.size
        if outcome in BAD or too_much:
            self.bad.append({**vars(trial), "too much memory": too_much, **answer})


class Worker:
    """One process, made again when it ends."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._process: subprocess.Popen[bytes] | None = None

    def run(self, trial: Trial) -> dict[str, Any]:
        process = self._process or self._start()
        assert process.stdin and process.stdout
        with contextlib.suppress(BrokenPipeError):  # then there is no answer
            process.stdin.write(json.dumps(vars(trial)).encode() + b"\n")
            process.stdin.flush()
        if not select.select([process.stdout], [], [], LIMIT_S)[0]:
            process.kill()
            return {"outcome": "hung", "what": self._end()}
        line = process.stdout.readline()
        if not line.endswith(b"\n"):
            return {"outcome": "crashed", "what": self._end()}
        answer: dict[str, Any] = json.loads(line)
        return {"outcome": outcome_of(answer), **answer}

    def _start(self) -> subprocess.Popen[bytes]:
        self._root.mkdir(exist_ok=True)
        self._log = (self._root / "log").open("w+b")
        command, pipe = [sys.executable, HERE / "worker.py", self._root], subprocess.PIPE
        self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=self._log)
        return self._process

    def _end(self) -> str:
        """What the process left."""
        process, self._process = self._process, None
        assert process
        code = process.wait()
        self._log.seek(0)
        return f"exit code {code}: {self._log.read()[-600:].decode(errors='replace')}"

    def close(self) -> None:
        if self._process:
            assert self._process.stdin
            self._process.stdin.close()
            self._process.wait()


def outcome_of(answer: dict[str, Any]) -> str:
    if answer["strays"]:
        return "stray"
    if answer["lost"]:  # in one step; another may have told
        return "lost" if answer["promised"] else "not promised"
    return "found" if answer["errors"] else "harmless"


def plan(trials: int, first: int, size: int, only: str | None, dataset: str | None) -> Iterator[Trial]:
    """`trials` of each kind, dataset and checks=; fewer of what takes long."""
    seeds = range(first, first + trials)
    for kind in damage.KINDS:
        for name in corpora.NAMES:
            for checks in ("index", "all", "none") if name in corpora.OURS else ("index",):
                yield from (Trial(kind, name, checks, seed, size) for seed in seeds)
    for kind, (_, names) in hostile.KINDS.items():
        for name in names:
            share = 4 if kind != "manifest: 100 MB" else 0.15
            for seed in range(first, first + max(1, int(trials * share))):
                # What the check values would tell is looked at without them too.
                yield Trial(kind, name, ("index", "none")[seed % 2], seed, size)


def run(trials: list[Trial], workers: int, tell: Callable[[], None]) -> Results:
    todo: queue.SimpleQueue[Trial] = queue.SimpleQueue()
    for trial in trials:
        todo.put(trial)
    results, lock = Results(), threading.Lock()
    memory = Path("/dev/shm")
    where = memory if os.access(memory, os.W_OK) else None

    def work(root: Path) -> None:
        worker = Worker(root)
        while True:
            try:
                trial = todo.get_nowait()
            except queue.Empty:
                worker.close()
                return
            begin = time.monotonic()
            answer = worker.run(trial)
            answer["seconds"] = time.monotonic() - begin
            with lock:
                results.add(trial, answer)
                tell()

    with tempfile.TemporaryDirectory(prefix="penstock-faults-", dir=where) as folder:
        threads = [threading.Thread(target=work, args=(Path(folder) / str(i),)) for i in range(workers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    return results


def table(results: Results) -> str:
    """Markdown."""
    lines = [
        "| fault | `checks=` | tried | found | harmless | not promised | lost | stray | crashed | hung | most memory |",
        "| --- | --- | --: | --: | --: | --: | --: | --: | --: | --: | --: |",
    ]
    for (kind, checks), counts in results.counts.items():
        asked = [each for each in OUTCOMES if each != "lost" or kind in damage.KINDS]
        cells = " | ".join(f"{counts[each]:,}" if each in asked else "–" for each in OUTCOMES)
        memory = f"{results.memory[kind] / (1 << 20):,.0f} MiB"
        where = f"`{checks}`" if checks else "other formats" if kind in damage.KINDS else ""
        lines.append(f"| {kind} | {where} | {counts.total():,} | {cells} | {memory} |")
    total = sum((counts for counts in results.counts.values()), Counter())
    cells = " | ".join(f"{total[each]:,}" for each in OUTCOMES)
    most = max(results.memory.values(), default=0) / (1 << 20)
    return "\n".join([*lines, f"| all | | {total.total():,} | {cells} | {most:,.0f} MiB |"]) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=40, help="of each kind, dataset and checks=")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--megabytes", type=int, default=100, help="of the manifests that are large")
    parser.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--only", help="this kind alone")
    parser.add_argument("--dataset", help="this dataset alone")
    parser.add_argument("--writers", action="store_true", help="kill writers too")
    parser.add_argument("--json", type=Path, help="all counts, and what was bad")
    parser.add_argument("--markdown", type=Path, help="the table")
    given = parser.parse_args()
    trials = list(plan(given.trials, given.first, given.megabytes << 20, given.only, given.dataset))
    trials = [t for t in trials if given.only in (None, t.kind) and given.dataset in (None, t.name)]
    begin = time.monotonic()

    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True)) as bar:
        task = bar.add_task("trials", total=len(trials))
        results = run(trials, given.workers, lambda: bar.advance(task))
    seconds = time.monotonic() - begin
    killed = writers.run() if given.writers else {}
    text = table(results)
    print(text)
    print(f"{len(trials):,} trials in {seconds:.0f} s; {len(results.bad):,} bad")
    if killed:
        print(f"{killed['killed']:,} writers killed, {killed['failed']:,} whose calls failed: none left half a dataset")
    print(f"the slowest: {json.dumps(results.slowest)[:500]}")
    for each in results.bad[:20]:
        print(json.dumps(each))
    if given.markdown:
        given.markdown.write_text(text)
    if given.json:
        counts = [{"kind": kind, "checks": checks, **counted} for (kind, checks), counted in results.counts.items()]
        said = {"trials": len(trials), "seconds": seconds, "counts": counts, "memory": results.memory}
        given.json.write_text(json.dumps({**said, "bad": results.bad, "writers": killed}, indent=1))
    return 1 if results.bad else 0


if __name__ == "__main__":
    sys.exit(main())
