"""A clock that jumps by hours, and clocks that began long ago or just now: all is done, and nothing takes longer.

`python clock.py changed FOLDER SECONDS` writes to a file that a loader has open, and says whether it was told.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import verbs
from bench import HUNG, Bench, Ended, NotHereError, WrongError
from matter import Tried
from verbs import TESTS, Verb

sys.path.insert(0, str(TESTS / "python"))

import _c_library

HERE = Path(__file__).resolve().parent
HOUR = 3600
JUMPS = {
    "5 h forwards": f"0,{5 * HOUR}",
    "7 h backwards": f"0,{-7 * HOUR}",
    "to and fro": f"0,{9 * HOUR},{-30 * HOUR},{24 * 365 * HOUR},{-24 * 3650 * HOUR}",
}
BEGINS = {"since a second": None, "since 95 years": 3_000_000_000}
CHANGES = {"a file that changes 6 h ago": -6 * HOUR, "a file that changes in 6 h": 6 * HOUR}
_EVERY_MS = 40
_SECONDS = 300.0


class Clock:
    """A jump's name, or the begin of the clock that counts."""

    name = "a clock that jumps"

    def verbs(self, bench: Bench) -> list[Verb]:
        self._shim = _built(bench.root)
        self._namespaces = _namespaces()
        return bench.verbs

    def trials(self, bench: Bench, verb: Verb, is_short: bool) -> list[Any]:
        if is_short:
            return ["to and fro"]
        changes = CHANGES if verb.name.startswith("loader") and verb.name != "loader, cache" else {}
        return [*JUMPS, *(BEGINS if self._namespaces else {}), *changes]

    def run(self, bench: Bench, verb: Verb, limit: str) -> Tried:
        if limit in CHANGES:
            return Tried(limit, self._changed(bench, verb, CHANGES[limit]))
        place = bench.root / "clock"
        out = bench.begin(verb, place)
        try:
            command = verb.command(bench.data, out)
            if limit in BEGINS:
                begin = BEGINS[limit] or 1 - int(time.clock_gettime(time.CLOCK_MONOTONIC))
                command = ["unshare", "-T", "--monotonic", str(begin), "--boottime", str(begin), *command]
            ended = self._ended(command, limit)
            if ended.code != 0:
                raise WrongError(f"{limit}: ended with {ended.code}: {ended.said[-800:]}")
            outcome = bench.judge(verb, out, ended, "")
            bench.check_alone(verb, out)
        finally:
            shutil.rmtree(place)
        return Tried(limit, outcome)

    def _changed(self, bench: Bench, verb: Verb, seconds: int) -> str:
        place = bench.root / "clock"
        out = bench.begin(verb, place)
        try:
            reader = verb.line.split()[1]
            command = [sys.executable, __file__, "changed", str(out), str(seconds), reader]
            ended = self._ended(command, "to and fro")
        finally:
            shutil.rmtree(place)
        if ended.said.strip() != "told":
            raise WrongError(f"{verb.name}: {ended.code}: {ended.said[-800:]}")
        return "error"

    def _ended(self, command: list[str], limit: str) -> Ended:
        jumps = {"LD_PRELOAD": str(self._shim), "CLOCK_JUMPS": JUMPS.get(limit, ""), "CLOCK_EVERY_MS": str(_EVERY_MS)}
        given = {**os.environ, **(jumps if limit in JUMPS else {})}
        try:
            done = subprocess.run(command, env=given, capture_output=True, text=True, timeout=_SECONDS, check=False)
        except subprocess.TimeoutExpired:
            return Ended(HUNG, "")
        return Ended(done.returncode, done.stdout + done.stderr)


def _built(root: Path) -> Path:
    library = root / "clock.so"
    if not library.exists() and _c_library.built(library, HERE / "clock.c") is None:
        raise NotHereError("no compiler of C for the shim")
    return library


def _namespaces() -> bool:
    tried = ["unshare", "-T", "--monotonic", "1", "true"]
    return bool(shutil.which("unshare")) and subprocess.run(tried, capture_output=True, check=False).returncode == 0


def changed(path: Path, seconds: int, reader: str) -> str:
    """Writes other bytes to the file that a loader reads, and sets its time; "told" where the loader says so, then."""
    view = penstock.open(path).windows(64)
    with penstock.Loader(view, 4, seed=1, reader=reader, framework="numpy") as loader:
        until = time.monotonic() + 2.5
        while time.monotonic() < until:
            next(loader)
        for stream in path.glob("*/stream.bin"):
            with stream.open("r+b") as file:
                file.write(np.full(2048, 7, "u1").tobytes())
            os.utime(stream, (time.time() + seconds,) * 2)
        until = time.monotonic() + 5
        try:
            while time.monotonic() < until:
                next(loader)
        except penstock.CorruptionError as error:
            return "told" if "changed since it was opened" in str(error) else str(error)
    return "not told"


if __name__ == "__main__":
    assert verbs.NAMED
    print(changed(Path(sys.argv[2]), int(sys.argv[3]), sys.argv[4]))
