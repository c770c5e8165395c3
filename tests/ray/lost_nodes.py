"""Kills nodes of a Ray cluster at many moments of what penstock does there: `make ray-nodes`, about an hour.

A run ends with the bytes of one without Ray, or with a clear error. Nothing wrong is published, nothing is left that
`penstock info` does not name, and the next run gives the same bytes. `--only shuffle --how asleep --moment 7` repeats
one trial.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "python")]
os.environ.update(RAY_USAGE_STATS_ENABLED="0", RAY_DEDUP_LOGS="0")
# A worker that is stopped keeps its connections. Ray asks after 5 minutes if its machine is still there.
os.environ.update(RAY_grpc_client_keepalive_time_ms="20000", RAY_grpc_client_keepalive_timeout_ms="20000")

import lost_verbs  # noqa: E402
import penstock  # noqa: E402
from lost_cluster import HOWS, Nodes, title  # noqa: E402
from lost_verbs import NAMED, Verb  # noqa: E402

MOMENTS = 12
#: The moments of each HOW that are tried.
TRIED = {"node": range(MOMENTS), "raylet": (2, 6, 9, 11), "asleep": (2, 5, 8, 11), "all": (3, 8)}
_SECONDS = 240.0
_NOTE = ".import-inputs"  # beside shards that are kept: --resume reads it and removes it


class WrongError(AssertionError):
    """A result that a trial may not have."""


@dataclass
class Seen:
    """A trial.

    Attributes:
        killed: a node was, before the run ended.
        done: pieces of work that were finished when the node was killed, of `total`.
        in_work: what the worker that was killed was called, and whether it had a file unfinished; "": it was idle.
        ended: "done" or the error's line.
    """

    verb: str
    how: str
    moment: int
    killed: bool = False
    done: int = 0
    total: int = 0
    in_work: str = ""
    has_file: bool = False
    woken: int = 0
    ended: str = ""
    seconds: float = 0.0
    wrong: str = ""


def tree(folder: Path) -> dict[str, bytes]:
    return {each.relative_to(folder).as_posix(): each.read_bytes() for each in folder.rglob("*") if each.is_file()}


def done_of(out: Path) -> int:
    """Finished pieces of work: batches that were read; shards, and parts that a shuffle put aside."""
    try:
        if out.is_file():
            return len(out.read_bytes().splitlines())
        names = [each.name for each in (*out.glob("0*"), *out.glob(".partial-shuffle@*/0*"))]
    except OSError:  # removed meanwhile
        return 0
    return sum(name.isdigit() for name in names)


def unfinished_of(out: Path, pid: int) -> bool:
    """True if the process has a shard or a part unfinished there; names say whose they are (docs/format.md)."""
    found = [each.name for each in (*out.glob(".partial-0*"), *out.glob(".partial-shuffle@*/0*.*-*"))]
    return any(name.rpartition("@")[2].rpartition(".")[2].partition("-")[0] == str(pid) for name in found)


class Killer(threading.Thread):
    """Kills a node once: at moment 0 at once, at the last one when all pieces are done, else when a share of them is.

    In between the killed node is one that works, every other time in the middle of a file.
    """

    def __init__(self, nodes: Nodes, seen: Seen, out: Path) -> None:
        super().__init__(daemon=True)
        self._nodes, self._seen, self._out = nodes, seen, out
        self._over = threading.Event()
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            node, worker = self._found()
            if node is not None:
                self._nodes.kill(node, self._seen.how, worker)
                self._seen.killed = True
        except BaseException as error:
            self.error = error

    def _found(self) -> tuple[Any, int | None]:
        seen = self._seen
        last = MOMENTS - 1
        wanted = seen.total if seen.moment == last else max(0, seen.moment - 1) * seen.total // (last - 1)
        while not self._over.wait(0.002):
            is_published = (self._out / "dataset.json").exists()
            seen.done = seen.total if is_published else done_of(self._out)
            if seen.done < wanted:
                continue
            if seen.moment in (0, last):
                return self._nodes.any_node(), None
            for node, pid in self._nodes.busy():
                seen.in_work = title(pid).partition("(")[0].removeprefix("ray::")
                seen.has_file = seen.verb != "read" and unfinished_of(self._out, pid)
                if seen.has_file or seen.moment % 2 or seen.verb == "read":
                    time.sleep(0.02 * (seen.moment % 3))
                    return node, pid
            seen.in_work = ""
            if seen.verb == "read" and seen.done:
                return self._nodes.any_node(), None  # idle, and it has rows that were not given out yet
        return None, None

    def stop(self) -> None:
        self._over.set()
        self.join()
        if self.error is not None:
            raise self.error


class Trials:
    """Inputs, what runs without Ray make of them, and trials."""

    def __init__(self, root: Path) -> None:
        self.root, self.data = root, root / "data"
        subprocess.run([sys.executable, lost_verbs.__file__, "put", str(self.data)], check=True)
        self.nodes = Nodes()
        self._whole: dict[str, Any] = {}
        self._total: dict[str, int] = {}

    def _refer(self, verb: Verb) -> None:
        """The expected files, and how many pieces of work there are."""
        out = self.root / "whole" / verb.name
        out.parent.mkdir(exist_ok=True)
        if verb.name == "read":
            self._whole[verb.name] = lost_verbs.read_digest(self.data / "in")
        elif verb.is_command:
            subprocess.run(verb.command(self.data, out), check=True, capture_output=True)
            self._whole[verb.name] = tree(out)
        seen = Seen(verb.name, "none", 0)
        on_ray = self.root / "reference" / verb.name / "out"
        on_ray.parent.mkdir(parents=True, exist_ok=True)
        done = self._run(verb, on_ray, None, seen)
        if verb.name == "rows":
            plain = lost_verbs.rows_fingerprint(self.root / "whole" / "rows")
            if plain != penstock.open(on_ray).fingerprint:
                raise WrongError("rows have another fingerprint than those that were written without Ray")
            self._whole[verb.name] = tree(on_ray)
        self._check_done(verb, on_ray, done)
        parts = len(list((self.data / "in").glob("0*"))) if verb.name == "shuffle" else 0
        self._total[verb.name] = done_of(on_ray) + parts
        print(f"{verb.name}: {self._total[verb.name]} pieces, {seen.seconds:.0f} s undisturbed", flush=True)

    def one(self, verb: Verb, how: str, moment: int) -> Seen:
        """One trial."""
        if verb.name not in self._total:
            self._refer(verb)
        seen = Seen(verb.name, how, moment, total=self._total[verb.name])
        place = Path(tempfile.mkdtemp(dir=self.root, prefix=f"{verb.name}-{how}-{moment}-"))
        try:
            self._try(verb, place / "out", seen)
        except (WrongError, AssertionError) as error:
            seen.wrong = str(error)[-2000:]
        finally:
            self.nodes.fill()
            shutil.rmtree(place)
        return seen

    def _try(self, verb: Verb, out: Path, seen: Seen) -> None:
        killer = Killer(self.nodes, seen, out)
        ended = self._run(verb, out, killer, seen)
        seen.woken = self.nodes.wake()
        if not seen.killed:
            raise WrongError(f"it ended before a node was killed: {ended.stderr[-500:]}")
        if ended.returncode == 0:
            seen.ended = "done"
            self._check_done(verb, out, ended)
            return
        seen.ended = self._check_error(verb, out, ended, seen)
        self.nodes.fill()
        again = subprocess.run(
            verb.command(self.data, out, self.nodes.address, again=True), capture_output=True, text=True, check=False
        )
        self._check_done(verb, out, again)

    def _run(self, verb: Verb, out: Path, killer: Killer | None, seen: Seen) -> subprocess.CompletedProcess[str]:
        begin = time.monotonic()
        command = verb.command(self.data, out, self.nodes.address)
        pipe = subprocess.PIPE
        process = subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True)
        if killer is not None:
            killer.start()
        try:
            if killer is not None and seen.how == "all":
                killer.join(_SECONDS)
                time.sleep(3)
                self.nodes.fill()  # by this thread: Ray sets handlers of signals
            said, told = process.communicate(timeout=_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            raise WrongError(f"no end after {_SECONDS:.0f} s: {process.communicate()[1][-1000:]}") from None
        finally:
            seen.seconds = time.monotonic() - begin
            if killer is not None:
                killer.stop()
        return subprocess.CompletedProcess(command, process.returncode, said, told)

    def _check_done(self, verb: Verb, out: Path, ended: subprocess.CompletedProcess[str]) -> None:
        """All is there, and nothing else."""
        if ended.returncode != 0:
            raise WrongError(f"ended with {ended.returncode}: {ended.stderr[-1500:]}")
        if verb.name == "read":
            if ended.stdout.split()[-1:] != [self._whole["read"]]:
                raise WrongError(f"other rows were read: {ended.stdout[-200:]}")
            return
        check_same(out, self._whole[verb.name])

    def _check_error(self, verb: Verb, out: Path, ended: subprocess.CompletedProcess[str], seen: Seen) -> str:
        lines = [line for line in ended.stderr.splitlines() if line and not line.startswith("note: ")] or [""]
        if verb.is_command and (len(lines) != 1 or not lines[0].startswith("penstock: ")):
            raise WrongError(f"ended with {ended.returncode}, not one line: {ended.stderr[-1500:]}")
        if verb.name != "read":
            check_unpublished(out, is_tidy=seen.how in ("node", "all"))
        return lines[-1][:300]


def check_same(out: Path, whole: dict[str, bytes]) -> None:
    """The dataset is published and whole, and beside it nothing lies.

    Raises:
        WrongError: It is not so.
    """
    report = penstock.verify(out)
    if not report.ok or report.notices:
        raise WrongError(f"published, and does not verify: {report.problems[:3]} {report.notices[:3]}")
    found = tree(out)
    if found != whole:
        names = sorted(name for name in {*found, *whole} if found.get(name) != whole.get(name))
        raise WrongError(f"other files than those without Ray: {names[:6]}")
    folders = {each.name for each in out.iterdir()} - {name.partition("/")[0] for name in whole}
    if folders or [each.name for each in out.parent.iterdir()] != [out.name]:
        raise WrongError(f"left over: {sorted(folders)}, {sorted(each.name for each in out.parent.iterdir())}")


def check_unpublished(out: Path, is_tidy: bool = True) -> None:
    """Nothing is published, and `penstock info` names what is left: finished shards, and of workers that lived longer
    than the run what these left unfinished, else nothing.

    Raises:
        WrongError: It is not so.
    """
    if (out / "dataset.json").exists():
        raise WrongError("an error, and a dataset is published")
    left = [each.name for each in out.iterdir()] if out.exists() else []
    finished = [name for name in left if name.isdigit()]
    left = [name for name in left if not (finished and name == _NOTE)]
    unfinished = [name for name in left if name not in finished and name != ".partial-run"]
    if is_tidy and len(left) != len(finished):
        raise WrongError(f"an error left {sorted({*left} - {*finished})[:5]}")
    if left:
        penstock.finished_shards(out)
        told = subprocess.run(
            [sys.executable, "-m", "penstock", "info", str(out)], capture_output=True, text=True, check=False
        )
        counts = f"{len(finished)} finished shard{'' if len(finished) == 1 else 's'}, {len(unfinished)} unfinished"
        if (
            told.returncode == 0
            or counts not in told.stderr
            or (".partial-run" in left) != (".partial-run" in told.stderr)
        ):
            raise WrongError(f"info does not name {sorted(left)}: {told.stderr[-500:]}")


def record(trials: list[Seen]) -> str:
    """The table of docs/reliability.md."""
    rows = [
        "| run | killed | tried | in work | in mid-file | done | error | wrong |",
        "| --- | --- | --: | --: | --: | --: | --: | --: |",
    ]
    for (verb, how), count in Counter((each.verb, each.how) for each in trials).items():
        of = [each for each in trials if (each.verb, each.how) == (verb, how)]
        numbers = [
            count,
            sum(bool(each.in_work) for each in of),
            sum(each.has_file for each in of),
            sum(each.ended == "done" and not each.wrong for each in of),
            sum(each.ended not in ("", "done") and not each.wrong for each in of),
            sum(bool(each.wrong) for each in of),
        ]
        rows.append(f"| {verb} | {how} | " + " | ".join(map(str, numbers)) + " |")
    return "\n".join(rows) + "\n"


def trials_of(options: argparse.Namespace) -> list[tuple[str, str, int]]:
    """Run, what is killed, moment."""
    if options.trial:
        return [(verb, how, int(moment)) for verb, how, moment in (each.split(":") for each in options.trial)]
    return [
        (verb, how, moment)
        for how in options.how or HOWS
        for verb in options.only or NAMED
        for moment in options.moment or TRIED[how]
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", action="append", choices=list(NAMED), help="a run; else all")
    parser.add_argument("--how", action="append", choices=list(HOWS), help="what is killed; else all")
    parser.add_argument("--moment", action="append", type=int, help=f"0 to {MOMENTS - 1}; else those of the record")
    parser.add_argument("--trial", action="append", help="one alone, such as shuffle:asleep:8")
    parser.add_argument("--json", type=Path, help="file for the trials; those that it holds already are not done again")
    parser.add_argument("--markdown", type=Path, help="file for the table")
    options = parser.parse_args()
    kept = json.loads(options.json.read_text()) if options.json and options.json.exists() else []
    trials = [Seen(**each) for each in kept]
    had = {(each.verb, each.how, each.moment) for each in trials}
    wanted = [each for each in trials_of(options) if each not in had]
    with tempfile.TemporaryDirectory(prefix="penstock-lost-") as root:
        tried = Trials(Path(root))
        try:
            for each in wanted:
                seen = tried.one(NAMED[each[0]], *each[1:])
                trials.append(seen)
                print(json.dumps(asdict(seen)), flush=True)
                if options.json:
                    options.json.write_text(json.dumps([asdict(seen) for seen in trials], indent=1) + "\n")
        finally:
            tried.nodes.close()
    print(record(trials))
    if options.markdown:
        options.markdown.write_text(record(trials), encoding="utf-8")
    return int(any(each.wrong for each in trials))


if __name__ == "__main__":
    sys.exit(main())
