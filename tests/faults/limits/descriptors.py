"""From 18 to 64 descriptors."""

from __future__ import annotations

import resource
import shutil
from typing import Any

from bench import Bench
from matter import Tried
from verbs import Verb

FEWEST, MOST = 18, 64


class Descriptors:
    """How many a process may have."""

    name = "descriptors"

    def verbs(self, bench: Bench) -> list[Verb]:
        return bench.verbs

    def trials(self, bench: Bench, verb: Verb, is_short: bool) -> list[Any]:
        return [FEWEST] if is_short else list(range(FEWEST, MOST + 1))

    def run(self, bench: Bench, verb: Verb, limit: int) -> Tried:
        place = bench.root / "descriptors"
        out = bench.begin(verb, place)
        try:
            ended = bench.run(verb, out, lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit)))
            outcome = bench.judge(verb, out, ended, "Too many open files")
            bench.go_on(verb, out)
        finally:
            shutil.rmtree(place)
        return Tried(f"{limit}", outcome)
