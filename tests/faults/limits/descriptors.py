"""From 18 to 64 descriptors."""

from __future__ import annotations

import resource
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
        def bound() -> None:
            resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))

        return Tried(f"{limit}", bench.try_under(verb, bench.root / "descriptors", bound, "Too many open files"))
