"""Disks of every size from nothing to enough, in steps of 64 KiB: a tmpfs for each trial."""

from __future__ import annotations

from typing import Any

from bench import Bench
from matter import MS_REMOUNT, Tried, check_mounts, mount, unmount
from verbs import Verb

STEP = 64 << 10
MOST = 64  # steps, in which everything fits


class Space:
    """The number of steps; 0 is one page, since a tmpfs of 0 bytes has no limit."""

    name = "space"

    def __init__(self) -> None:
        self._enough: dict[str, int] = {}

    def verbs(self, bench: Bench) -> list[Verb]:
        check_mounts(bench)
        return [verb for verb in bench.verbs if verb.makes or verb.name == "loader, cache"]

    def trials(self, bench: Bench, verb: Verb, is_short: bool) -> list[Any]:
        return [1, 5] if is_short else list(range(MOST))

    def run(self, bench: Bench, verb: Verb, limit: int) -> Tried:
        words = f"{limit * STEP >> 10} KiB"
        if limit > self._enough.get(verb.name, MOST) + 1:  # more than enough
            return Tried(words, "left out")
        place = bench.root / "space"
        place.mkdir(exist_ok=True)
        mount("tmpfs", place, f"size={limit * STEP or 4096}")
        try:
            try:
                out = bench.begin(verb, place)
            except OSError:
                return Tried(words, "no room to begin")
            ended = bench.run(verb, out)
            outcome = bench.judge(verb, out, ended, "No space left on device")
            if outcome == "done":
                self._enough.setdefault(verb.name, limit)
            mount("tmpfs", place, "size=1g", MS_REMOUNT)
            bench.go_on(verb, out)
            return Tried(words, outcome)
        finally:
            unmount(place)
