"""A file system that is slow, hangs, loses its connection, answers ESTALE as NFS does, or turns read-only in a run."""

from __future__ import annotations

import os
import shutil
import signal
from typing import Any

import passed_on
from bench import SECONDS, Bench, NotHereError
from matter import Tried, check_mounts
from passed_on import Served
from verbs import Verb

HANGS_S = 60.0
_SLOW_S = 0.002
_SHARES = 8  # of a run's calls: where the fault begins
_CAUSES = {
    passed_on.LOST: "not connected|connection abort|Input/output error",
    # Linux asks again for what was stale: a new file is there then.
    passed_on.STALE: "Stale file handle|changed since it was opened|File exists",
    passed_on.READ_ONLY: "Read-only file system",
}
_WORDS = {
    passed_on.SLOW: "slow",
    passed_on.HANG: "hangs",
    passed_on.LOST: "connection lost",
    passed_on.STALE: "ESTALE",
    passed_on.READ_ONLY: "EROFS",
}


class Far:
    """What it does, and after which share of the calls of a run."""

    name = "a far file system"

    def __init__(self, hangs_s: float = HANGS_S) -> None:
        self._hangs_s = hangs_s
        self._calls: dict[str, int] = {}

    def verbs(self, bench: Bench) -> list[Verb]:
        check_mounts(bench)
        if not os.access("/dev/fuse", os.R_OK | os.W_OK):
            raise NotHereError("no /dev/fuse")
        return bench.verbs

    def trials(self, bench: Bench, verb: Verb, is_short: bool) -> list[Any]:
        if is_short:
            return [(passed_on.STALE, 4)]
        once = [(passed_on.SLOW, 0), (passed_on.HANG, 3)]
        return once + [(what, share) for what in _CAUSES for share in range(_SHARES)]

    def run(self, bench: Bench, verb: Verb, limit: tuple[int, int]) -> Tried:
        what, share = limit
        ends = {signal.SIGBUS} if verb.name == "loader, mmap" else ()  # which is all that a mapped file can say
        behind, place = bench.root / "behind", bench.root / "far"
        behind.mkdir()
        place.mkdir(exist_ok=True)
        if verb.name not in self._calls:
            self._calls[verb.name] = self._counted(bench, verb)
        try:
            with Served(behind, place) as served:
                out = bench.begin(verb, place)
                seconds = self._hangs_s if what == passed_on.HANG else _SLOW_S
                served.tell(what, self._calls[verb.name] * share // _SHARES, seconds)
                ended = bench.run(verb, out, seconds=SECONDS + self._hangs_s)
                served.tell(0, 0)
                if what in (passed_on.SLOW, passed_on.HANG):
                    outcome = bench.judge(verb, out, ended, "$^")  # no error is right
                if what in (passed_on.STALE, passed_on.READ_ONLY):
                    outcome = bench.judge(verb, out, ended, _CAUSES[what], ends, is_tidy=False)
            with Served(behind, place):
                if what == passed_on.LOST:
                    outcome = bench.judge(verb, out, ended, _CAUSES[what], ends, is_tidy=False)
                bench.go_on(verb, out, may_leave=what in _CAUSES)
        finally:
            shutil.rmtree(behind)
        return Tried(f"{_WORDS[what]} at call {share}/{_SHARES}", outcome)

    def _counted(self, bench: Bench, verb: Verb) -> int:
        """Calls of a run that nothing disturbs."""
        behind, place = bench.root / "counted", bench.root / "far"
        behind.mkdir()
        try:
            with Served(behind, place) as served:
                out = bench.begin(verb, place)
                served.tell(0, 0)
                bench.judge(verb, out, bench.run(verb, out), "$^")
                return served.calls
        finally:
            shutil.rmtree(behind)
