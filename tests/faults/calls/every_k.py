"""Lets each call of the system that a verb makes fail once; looks at what is said, what lies there, what comes next.

For each verb, k = 1, 2, … of the calls that reach its files: opening, reading, writing, syncing, renaming, removing,
looking, listing, locking, mapping, allotting, and reads of io_uring. The k-th gets an error that its kind may have, by
the draw of (verb, k, --turn), or is short; a disk that is full with it stays full. What must hold is in trial.py. A
trial is repeated alone by `--only VERB --first K --trials 1 --turn T`.
"""

from __future__ import annotations

import argparse
import errno
import json
import os
import queue
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

import injector  # noqa: E402 - of the folder beside this file

OUTCOMES = ("error", "harmless", "not reached", "bad", "crashed", "hung")
BAD = ("bad", "crashed", "hung")


@dataclass
class Results:
    """Outcomes, by verb and by error."""

    calls: dict[str, int] = field(default_factory=dict)
    by_verb: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    by_error: Counter[str] = field(default_factory=Counter)
    by_call: Counter[str] = field(default_factory=Counter)
    bad: list[dict[str, Any]] = field(default_factory=list)
    answers: list[dict[str, Any]] = field(default_factory=list)

    def add(self, request: dict[str, Any], answer: dict[str, Any]) -> None:
        self.by_verb[request["verb"]][answer["outcome"]] += 1
        if answer.get("call"):
            self.by_error[name_of(answer["error"])] += 1
            self.by_call[answer["call"]] += 1
        if answer["outcome"] in BAD:
            self.bad.append({**request, **answer})
        self.answers.append({**request, **answer})


def name_of(error: int) -> str:
    return "short" if error < 0 else errno.errorcode.get(error, str(error))


class Server:
    """A fork server (server.py) and the server of files beside it."""

    def __init__(self, root: Path, library: Path) -> None:
        root.mkdir()
        pipe = subprocess.PIPE
        self._files = subprocess.Popen([sys.executable, HERE / "serve.py", root], stdin=pipe, stdout=pipe, text=True)
        assert self._files.stdout
        environment = injector.preloaded(library, root / "control")
        environment["PENSTOCK_SERVER"] = self._files.stdout.readline().strip()
        environment.pop("PENSTOCK_TRACEBACK", None)
        self._log = (root / "log").open("wb")
        command = [sys.executable, HERE / "server.py", root]
        self._trials = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=self._log, text=True, env=environment)
        self._prepared: dict[str, dict[str, Any]] = {}
        self.root = root

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        assert self._trials.stdin and self._trials.stdout
        self._trials.stdin.write(json.dumps(request) + "\n")
        self._trials.stdin.flush()
        line = self._trials.stdout.readline()
        if not line:
            raise RuntimeError(f"the fork server ended: {(self.root / 'log').read_text()[-2000:]}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def prepare(self, verb: str) -> dict[str, Any]:
        """How many calls an undisturbed run makes, and which."""
        if verb not in self._prepared:
            self._prepared[verb] = self.ask({"prepare": verb})
            if "problem" in self._prepared[verb]:
                raise RuntimeError(f"{verb} fails undisturbed: {self._prepared[verb]['problem'][-3000:]}")
        return self._prepared[verb]

    def run(self, request: dict[str, Any]) -> dict[str, Any]:
        self.prepare(request["verb"])
        answer = self.ask(request)
        if answer["outcome"] in ("hung", "crashed"):  # where it was
            answer["problems"].append((self.root / "log").read_text(errors="replace")[-4000:])
        return answer

    def close(self) -> None:
        for each in (self._trials, self._files):
            assert each.stdin
            each.stdin.close()
            each.wait()
        self._log.close()


@contextmanager
def servers(count: int) -> Iterator[list[Server]]:
    """None without a compiler of C."""
    memory = Path("/dev/shm")
    where = memory if os.access(memory, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="penstock-every-k-", dir=where) as folder:
        root = Path(folder).resolve()
        library = injector.built(root)
        started = [] if library is None else [Server(root / str(number), library) for number in range(count)]
        try:
            yield started
        finally:
            for each in started:
                each.close()


def turn_of(verb: str, k: int, turn: int) -> int:
    """The first errors of neighbours differ; with 6 turns each k meets all of its own."""
    return random.Random(f"{verb}/{k}").randrange(60) + turn


def run(servers: list[Server], requests: list[dict[str, Any]], tell: Callable[[], None] = lambda: None) -> Results:
    todo: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
    for each in requests:
        todo.put(each)
    results, lock, failures = Results(), threading.Lock(), list[BaseException]()

    def work(server: Server) -> None:
        while not failures:
            try:
                request = todo.get_nowait()
            except queue.Empty:
                return
            try:
                answer = server.run(request)
            except Exception as error:
                failures.append(error)
                return
            with lock:
                results.calls[request["verb"]] = server.prepare(request["verb"])["calls"]
                results.add(request, answer)
                tell()

    threads = [threading.Thread(target=work, args=(each,)) for each in servers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    return results


def plan(server: Server, verbs: list[str], given: argparse.Namespace) -> list[dict[str, Any]]:
    requests = []
    for verb in verbs:
        calls = server.prepare(verb)["calls"]
        numbers = range(given.first, calls + 1, given.step)[: given.trials]
        requests += [
            {"verb": verb, "k": k, "turn": turn_of(verb, k, given.turn + more)}
            for more in range(given.turns)
            for k in numbers
        ]
    return requests


def table(results: Results) -> str:
    """Markdown."""
    lines = ["| verb | calls | tried | error | harmless | not reached | bad | crashed | hung |"]
    lines.append("| --- |" + " --: |" * 8)
    for verb, counts in results.by_verb.items():
        cells = " | ".join(f"{counts[each]:,}" for each in OUTCOMES)
        lines.append(f"| {verb} | {results.calls[verb]:,} | {counts.total():,} | {cells} |")
    total = sum(results.by_verb.values(), Counter[str]())
    cells = " | ".join(f"{total[each]:,}" for each in OUTCOMES)
    lines.append(f"| all | {sum(results.calls.values()):,} | {total.total():,} | {cells} |")
    return "\n".join(lines) + "\n"


VERBS = (
    "write", "write --resume", "write --overwrite", "Writer", "Writer, overwrite", "commit", "append", "combine",
    "shuffle", "shuffle, windows", "import", "import of cells", "convert", "annotate", "annotate, of metadata", "pack",
    "export to Megatron", "export to MDS", "info", "show", "verify", "read: pread", "read: pread, all checks",
    "read: direct", "read: mmap", "read: uring", "cache, filled", "cache, read", "write, 3 threads",
    "import, 3 threads", "write, 3 processes",
)  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", choices=VERBS, help="this verb alone; may be repeated")
    parser.add_argument("--first", type=int, default=1, metavar="K", help="the first k")
    parser.add_argument("--trials", type=int, default=1 << 30, help="numbers k of each verb, at most")
    parser.add_argument("--step", type=int, default=1, help="between numbers k")
    parser.add_argument("--turn", type=int, default=0, help="the draw of errors")
    parser.add_argument(
        "--turns", type=int, default=1, help=f"errors at each k; {injector.TURNS}: all that it may have"
    )
    parser.add_argument("--servers", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--calls", action="store_true", help="show the calls of an undisturbed run, and end")
    parser.add_argument("--show", action="store_true", help="show what each trial gave")
    parser.add_argument("--json", type=Path, help="all counts, and what was bad")
    parser.add_argument("--markdown", type=Path, help="the table")
    given = parser.parse_args()
    verbs, begin = given.only or list(VERBS), time.monotonic()
    with servers(given.servers) as started:
        if not started:
            print("no C compiler: nothing was tried")
            return 0
        if given.calls:
            for verb in verbs:
                print(
                    "\n".join(
                        [f"{verb}:", *map("{0[0]:6} {0[1]}".format, enumerate(started[0].prepare(verb)["log"], 1))]
                    )
                )
            return 0
        requests = plan(started[0], verbs, given)

        from rich.console import Console
        from rich.progress import Progress

        with Progress(console=Console(stderr=True)) as bar:
            task = bar.add_task("trials", total=len(requests))
            results = run(started, requests, lambda: bar.advance(task))
    return report(results, given, time.monotonic() - begin)


def report(results: Results, given: argparse.Namespace, seconds: float) -> int:
    text = table(results)
    print(text)
    print("errors:", ", ".join(f"{name} {count:,}" for name, count in results.by_error.most_common()))
    print("calls:", ", ".join(f"{name} {count:,}" for name, count in results.by_call.most_common()))
    print(f"{len(results.answers):,} trials in {seconds:.0f} s; {len(results.bad):,} bad")
    for each in results.answers if given.show else results.bad[:40]:
        print(json.dumps(each))
    if given.markdown:
        given.markdown.write_text(text)
    if given.json:
        said = {
            "trials": len(results.answers),
            "seconds": seconds,
            "errors": results.by_error,
            "calls": results.by_call,
        }
        counts = {verb: {"calls": results.calls[verb], **each} for verb, each in results.by_verb.items()}
        given.json.write_text(json.dumps({**said, "verbs": counts, "bad": results.bad}, indent=1))
    return 1 if results.bad else 0


if __name__ == "__main__":
    sys.exit(main())
