"""A disk that turns read-only in the middle of a run, as ext4 does after an error.

A mount turns so only while nothing is open for writing there, so it is tried again and again from a moment on.
"""

from __future__ import annotations

import contextlib
import time
from typing import Any

from bench import Bench, is_over
from matter import MS_RDONLY, MS_REMOUNT, Tried, check_mounts, mount, unmount
from verbs import Verb

MOMENTS = 24
_STEP_MS = 12


class ReadOnly:
    """Milliseconds after its begin."""

    name = "a read-only mount"

    def verbs(self, bench: Bench) -> list[Verb]:
        check_mounts(bench)
        return bench.verbs

    def trials(self, bench: Bench, verb: Verb, is_short: bool) -> list[Any]:
        return [2 * _STEP_MS] if is_short else [number * _STEP_MS for number in range(MOMENTS)]

    def run(self, bench: Bench, verb: Verb, limit: int) -> Tried:
        place = bench.root / "read-only"
        place.mkdir(exist_ok=True)
        mount("tmpfs", place, "size=1g")

        def turn(child: int) -> None:
            time.sleep(limit / 1000)
            until = time.monotonic() + 10
            while not is_over(child) and time.monotonic() < until:
                with contextlib.suppress(OSError):  # busy
                    mount("tmpfs", place, "", MS_REMOUNT | MS_RDONLY)
                    return
                time.sleep(0.001)

        try:
            out = bench.begin(verb, place)
            ended = bench.run(verb, out, meanwhile=turn)
            outcome = bench.judge(verb, out, ended, "Read-only file system", is_tidy=False)
            mount("tmpfs", place, "", MS_REMOUNT)
            bench.go_on(verb, out)
        finally:
            unmount(place)
        return Tried(f"after {limit} ms", outcome)
