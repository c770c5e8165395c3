"""SIGINT, SIGTERM and SIGKILL at many moments of every command: what it says, what lies on the disk, the next run."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "faults" / "limits"))

from bench import Bench, Ended, WrongError, tree
from verbs import VERBS, Verb

MOMENTS = 200
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)
_SECONDS = 300.0
_REST = 0.5  # of an undisturbed run, in which a command may end that its signal found done: Python's own end takes time
_FILES = re.compile(r"/penstock/([\w/]+\.py)")
_FIRST = {"__init__.py", "_base/__init__.py", "_base/start.py"}  # that set the handlers


def _looks(name: str, line: str) -> Verb:
    return Verb(name, line, "a" if "{out}" in line else "", "", "")


COMMANDS = (
    *(verb for verb in VERBS if not verb.name.startswith("loader")),
    _looks("info", "info {out}"),
    _looks("show", "show {out} 0 3 --window 64"),
    _looks("trace", "trace {out} --step 2 --global-batch-size 8 --window 64"),
    _looks("bench", "bench {out} --window 64 --batch-size 4 --seconds 0.5"),
    _looks("ranks", "ranks 4096"),
    _looks("doctor", "doctor"),
    _looks("completion", "completion bash"),
    _looks("help", "help write"),
)


class Signals:
    """Moments of commands, numbered; the same number is the same signal and the same share of the run."""

    def __init__(self, root: Path, wanted: list[str]) -> None:
        self.bench = Bench(root, [verb for verb in COMMANDS if verb.name in wanted])
        self.names = [verb.name for verb in self.bench.verbs]
        self._verbs = {verb.name: verb for verb in self.bench.verbs}
        self._took: dict[str, float] = {}
        self._after = 0.0  # seconds from the last one's signal to its end
        self._is_early = False  # the last one had not imported penstock's extension when it was sent its signal
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background ignores it, and so would they

    def one(self, name: str, number: int) -> str:
        """One moment; in words, how the command ended.

        Raises:
            WrongError: It should not have ended so.
        """
        verb, sent = self._verbs[name], SIGNALS[number % len(SIGNALS)]
        if name not in self._took:
            self._took[name] = self._run(verb, None)[1]
        ended, _ = self._run(verb, (sent, self._took[name] * number / MOMENTS))
        if ended == "done" and (after := self._after) > _REST * self._took[name]:
            took = self._run(verb, None)[1]  # the machine may be slower by now
            if after > _REST * took:
                raise WrongError(f"{sent.name} did not end it: it went on for {after:.2f} s, and takes {took:.2f} s")
        return f"{sent.name}: {ended}"

    def _run(self, verb: Verb, sent: tuple[signal.Signals, float] | None) -> tuple[str, float]:
        place = self.bench.root / "signals"
        shutil.rmtree(place, ignore_errors=True)
        out, scratch = self.bench.begin(verb, place), self.bench.root / "scratch"
        scratch.mkdir()
        begin = time.monotonic()
        try:
            ended = self._ended(verb.command(self.bench.data, out), scratch, sent)
            took = time.monotonic() - begin
            outcome = self._judge(verb, out, ended, sent and sent[0], scratch)
            if verb.makes:
                self.bench.go_on(verb, out, may_leave=outcome == "killed")
        finally:
            shutil.rmtree(place)
            shutil.rmtree(scratch)
        return outcome, took

    def _ended(self, command: list[str], scratch: Path, sent: tuple[signal.Signals, float] | None) -> Ended:
        pipe = subprocess.PIPE
        surroundings = {**os.environ, "TMPDIR": str(scratch)}
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=pipe, text=True, env=surroundings)
        if sent is not None:
            with_time = time.monotonic() + sent[1]
            while process.poll() is None and time.monotonic() < with_time:
                time.sleep(0.002)
            self._is_early = process.poll() is None and "_native" not in maps_of(process.pid)
            process.send_signal(sent[0])
        begin = time.monotonic()
        try:
            said = process.communicate(timeout=_SECONDS)[1]
        except subprocess.TimeoutExpired:
            process.kill()
            raise WrongError(f"no end {_SECONDS:.0f} s after {sent[0].name if sent else 'its begin'}") from None
        self._after = time.monotonic() - begin
        return Ended(process.returncode, said)

    def _judge(self, verb: Verb, out: Path, ended: Ended, sent: signal.Signals | None, scratch: Path) -> str:
        if ended.code == 0:
            return self.bench.judge(verb, out, ended, "$^")
        self.bench.check_published(verb, out)
        if sent is None:
            raise WrongError(f"ended with {ended.code} without a signal: {ended.said[-800:]}")
        if sent == signal.SIGINT and ended.code in (1, -2) and "KeyboardInterrupt" in ended.said:
            if self._is_early and not {*_FILES.findall(ended.said)} - _FIRST:
                return "before it could say so"
            raise WrongError(f"a traceback: {ended.said[-1500:]}")
        if ended.code == -sent:
            if sent == signal.SIGKILL:
                return "killed"
            if ended.said or not self._is_early:
                raise WrongError(f"ended by {sent.name} itself: {ended.said[-800:]}")
            return "before it could say so"
        lines = ended.said.strip().splitlines()
        if ended.code != 128 + sent or len(lines) != 1 or "interrupted" not in lines[0]:
            raise WrongError(f"{sent.name}: ended with {ended.code}: {ended.said[-1500:]}")
        left = [str(each) for each in scratch.iterdir()]
        left += [name for name in tree(out.parent) if ".partial" in name] if verb.makes else []
        if left:
            raise WrongError(f"{sent.name} left {left[:5]}: {lines[0]}")
        return "said"


def maps_of(process: int) -> str:
    """The files that it has mapped; nothing of one that has ended."""
    try:
        return Path(f"/proc/{process}/maps").read_text()
    except OSError:
        return ""
