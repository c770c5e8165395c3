"""Runs a verb where something is short, judges what came of it, and runs it again where nothing is.

A trial ends as "done" (the bytes are those of a run without limits), "error" (one line that names cause and place) or
"killed". Never is anything wrong published, and the next run gives the same bytes and leaves nothing beside them.
"""

from __future__ import annotations

import atexit
import contextlib
import importlib
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import time
import traceback
import weakref
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path

import penstock
import penstock.__main__
import verbs
from verbs import Verb

sys.path.insert(0, str(verbs.TESTS / "python" / "crash"))

from driver import content, named, nothing_else, tree

HUNG = -1000
SECONDS = 300.0  # a busy machine takes its time
_OF_GLIBC = "cannot allocate memory for thread-local data"  # with which it ends a process, whatever this one would say
# "…: dataset.json does not name 00000, 00001, 00002, 00003 and 12 more: …"
_UNNAMED = re.compile(r": dataset\.json does not name (?P<names>.+?)(?: and (?P<more>[\d,]+) more)?: ")
_CRASHED = 99  # an exception that the command does not know


class WrongError(AssertionError):
    """What a trial may not come to."""


class NotHereError(Exception):
    """A limit that cannot be set on this machine, or a verb that does not run here: why."""


@dataclass(frozen=True)
class Ended:
    """A process: its exit code, as subprocess has it, or HUNG, and all that it said."""

    code: int
    said: str


def _ended(child: int, log: Path, seconds: float) -> Ended:
    """Waits for it, and ends it when it takes longer."""
    handle = os.pidfd_open(child)
    try:
        in_time = bool(select.select([handle], [], [], seconds)[0])
    finally:
        os.close(handle)
    if not in_time:
        os.kill(child, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return Ended(code if in_time else HUNG, log.read_text(errors="replace"))


def forked(
    action: Callable[[], int], log: Path, seconds: float = SECONDS, meanwhile: Callable[[int], None] | None = None
) -> Ended:
    """Does it in a child, which has all modules already; `meanwhile` is called with its number."""
    child = os.fork()
    if child == 0:
        code = _CRASHED
        try:
            out = os.open(log, os.O_CREAT | os.O_TRUNC | os.O_WRONLY | os.O_APPEND)
            os.dup2(out, 1)
            os.dup2(out, 2)
            os.closerange(3, 256)
            atexit._clear()  # the parent's, such as the end of its temporary folder
            vars(weakref.finalize)["_registry"].clear()
            sys.modules["__main__"] = penstock.__main__  # which its workers import
            code = action()
            atexit._run_exitfuncs()
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    if meanwhile is not None:
        meanwhile(child)
    return _ended(child, log, seconds)


def is_over(child: int) -> bool:
    """Without taking its exit code."""
    return os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


class Bench:
    """The inputs, and what each verb makes of them without limits. One thread, and none of penstock's."""

    def __init__(self, root: Path, wanted: list[Verb]) -> None:
        self.root, self.data, self.log = root, root / "data", root / "log"
        self._made: dict[str, dict[str, bytes]] = {}
        self._said: dict[str, str] = {}
        self._before: dict[str, dict[str, bytes]] = {}
        self.left_out: dict[str, str] = {}
        self.seconds_of_run = 0.0  # of the last one, without what the trial does before it and after
        self.data.mkdir(parents=True)
        subprocess.run([sys.executable, verbs.__file__, "put", self.data], check=True)
        self.verbs = [verb for verb in wanted if self._refer(verb)]

    def _refer(self, verb: Verb) -> bool:
        out = self.begin(verb, self.root / "reference")
        names = self.root / "modules"

        def action() -> int:
            code = verbs.run(verb.arguments(self.data, out))
            names.write_text("\n".join(sys.modules))
            return code

        ended = forked(action, self.log)
        # Limits are for what it does, not for what it imports.
        for name in names.read_text().splitlines() if ended.code == 0 else ():
            with contextlib.suppress(ImportError):
                importlib.import_module(name)
        if ended.code == 0:
            self._made[verb.name] = _made(verb, out)
            self._said[verb.name] = ended.said if verb.line.startswith("read") else ""
        else:
            self.left_out[verb.name] = ended.said.strip()[-300:]
        shutil.rmtree(out.parent)
        return ended.code == 0

    def begin(self, verb: Verb, place: Path) -> Path:
        """Puts into a folder what lies there before.

        Raises:
            OSError: There is no room for it.
        """
        place.mkdir(exist_ok=True)
        out = place / "out"
        if verb.before:
            shutil.copytree(self.data / verb.before, out)
            self._before.setdefault(verb.name, _made(verb, out) if verb.changes else {})
        return out

    def run(
        self,
        verb: Verb,
        out: Path,
        limit: Callable[[], None] = lambda: None,
        seconds: float = SECONDS,
        meanwhile: Callable[[int], None] | None = None,
    ) -> Ended:
        """In a child that calls `limit` first."""

        def action() -> int:
            limit()
            return verbs.run(verb.arguments(self.data, out))

        begin = time.monotonic()
        try:
            return forked(action, self.log, seconds, meanwhile)
        finally:
            self.seconds_of_run = time.monotonic() - begin

    def try_under(
        self, verb: Verb, place: Path, limit: Callable[[], None], cause: str, ends: Collection[int] = ()
    ) -> str:
        """One trial of a limit that the process has: what lies there before, the run, its judgement, the next run."""
        out = self.begin(verb, place)
        try:
            outcome = self.judge(verb, out, self.run(verb, out, limit), cause, ends)
            self.go_on(verb, out, may_leave=outcome == "killed")
        finally:
            shutil.rmtree(place)
        return outcome

    def judge(
        self, verb: Verb, out: Path, ended: Ended, cause: str, ends: Collection[int] = (), is_tidy: bool = True
    ) -> str:
        """How it ended, in one word.

        Args:
            cause: a pattern of the messages that are expected.
            ends: signals that may end it.
            is_tidy: an error leaves no temporary files; where they cannot be removed it may.

        Raises:
            WrongError: It should not have ended so, or something wrong is published.
        """
        if ended.code == HUNG:
            raise WrongError(f"it did not end: {ended.said[-500:]}")
        if ended.code == 0:
            self._check_whole(verb, out, ended)
            return "done"
        self.check_published(verb, out)
        if ended.code in (-signal.SIGABRT, 127) and _OF_GLIBC in ended.said:
            return "killed"
        if ended.code < 0:
            if -ended.code not in ends:
                raise WrongError(f"ended by {signal.Signals(-ended.code).name}: {ended.said[-500:]}")
            return "killed"
        if verb.name == "verify" and ended.code == 1 and re.search(cause, ended.said):
            return "error"  # a line for each problem
        lines = ended.said.strip().splitlines() or [""]
        is_memory = "emory" in cause  # then a library may say a line too, and no file is to blame
        if ended.code not in (1, 2) or (len(lines) != 1 and not is_memory) or not lines[-1].startswith("penstock: "):
            raise WrongError(f"exit code {ended.code}, not one line: {ended.said[-1500:]}")
        if not re.search(cause, lines[-1]) or "unexpected" in lines[-1]:
            raise WrongError(f"the message does not name the cause, {cause}: {lines[-1]}")
        if not is_memory and not any(str(each) in lines[-1] for each in (self.root, "http://", "worker")):
            raise WrongError(f"the message names no place: {lines[-1]}")
        left = [name for name in tree(out.parent) if ".partial" in name] if is_tidy and verb.makes else []
        if left:
            raise WrongError(f"an error left {left[:5]}: {lines[0]}")
        return "error"

    def go_on(self, verb: Verb, out: Path, may_leave: bool = False) -> None:
        """The next run, without limits.

        Args:
            may_leave: behind its publishing the last one could not remove what it replaced, or its lock, as it was
                killed or its disk was gone.

        Raises:
            WrongError: It ends with an error, makes other bytes, or something is left beside them; or verify does not
                name what the last one left.
        """
        is_there = bool(verb.makes) and _made(verb, out) == self._made[verb.name]
        if may_leave and verb.makes == "files" and not is_there:
            self._remove_named(out)
        left = _left_in(out) if verb.makes == "dataset" and (out / "dataset.json").exists() else set()
        if left:
            self._check_named(out, left)
        if is_there and not (left and may_leave):
            again = Ended(0, "")
        else:
            line = verb.over(self.data, out) if is_there else verb.next(self.data, out)
            again = forked(lambda: verbs.run(line), self.log)
        if again.code != 0:
            raise WrongError(f"the next run ended with {again.code}: {again.said[-1500:]}")
        self._check_whole(verb, out, again)
        self.check_alone(verb, out)

    def _check_named(self, out: Path, left: set[str]) -> None:
        """Each is in a notice of verify, of which one names four and counts the others; and nothing else is."""
        notices = penstock.verify(out).notices
        names: set[str] = set()
        more = 0
        for found in filter(None, map(_UNNAMED.search, notices)):
            names |= set(found["names"].split(", "))
            more += int((found["more"] or "0").replace(",", ""))
        if names - left or len(left - names) != more:
            raise WrongError(f"left over: {sorted(left)}; named by verify: {notices}")

    def _remove_named(self, out: Path) -> None:
        """As a user does whose export said that it could not take one of two files back."""
        said = self.log.read_text(errors="replace")
        for each in out.parent.glob(f"{out.name}*"):
            if f"{each} was written" in said:
                each.unlink()

    def check_alone(self, verb: Verb, out: Path) -> None:
        """Nothing else lies there.

        Raises:
            WrongError: Something does.
        """
        if verb.makes == "dataset":
            names = {each.name for each in out.parent.iterdir()}
            if names != {"out"} or not nothing_else(out):
                raise WrongError(f"left over: {sorted(names)}, {sorted(each.name for each in out.iterdir())}")

    def _check_whole(self, verb: Verb, out: Path, ended: Ended) -> None:
        if verb.makes and _made(verb, out) != self._made[verb.name]:
            raise WrongError("other bytes than those of a run without limits")
        if verb.line.startswith("read") and ended.said and ended.said != self._said[verb.name]:
            raise WrongError(f"other batches than those of a run without limits: {ended.said[-500:]}")

    def check_published(self, verb: Verb, out: Path) -> None:
        """The old dataset, the new one, or none, and it is whole."""
        if verb.makes == "files":
            there = _made(verb, out)
            wrong = [name for name, data in there.items() if self._made[verb.name].get(name) not in (data, None)]
            if wrong:
                raise WrongError(f"half a file by its final name: {wrong}")
        elif verb.makes == "dataset" and (verb.changes or (out / "dataset.json").exists()):
            report = penstock.verify(out)
            if not report.ok:
                raise WrongError(f"published, and does not verify: {report.problems[:3]}")
            if content(out) not in (self._made[verb.name], self._before.get(verb.name)):
                raise WrongError("published is neither the old dataset nor the new one")


def _left_in(out: Path) -> set[str]:
    """Names in a published dataset's folder that are no part of it."""
    return {each.name for each in out.iterdir()} - {"dataset.json", *named(out)}


def _made(verb: Verb, out: Path) -> dict[str, bytes]:
    """What a verb made; {} where nothing is published. Files that a killed process had not named stay."""
    if verb.makes == "files":
        files = tree(out.parent) if out.parent.exists() else {}
        return {name: data for name, data in files.items() if ".partial" not in name}
    if verb.makes == "dataset" and (out / "dataset.json").exists():
        return content(out)
    return {}
