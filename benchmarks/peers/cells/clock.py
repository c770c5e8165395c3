"""What every script of a peer does: takes batches for some seconds and says how many cells came, as one line of JSON.

Run as: python <peer>.py PATH ROWS SECONDS [SETTING]; SECONDS of 0 is one whole epoch. It imports nothing of penstock.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any


def anonymous_bytes() -> int:
    """Anonymous memory of this process."""
    with open("/proc/self/status") as status:  # noqa: PTH123
        return next(int(line.split()[1]) << 10 for line in status if line.startswith("RssAnon"))


def epochs(make: Callable[[], Iterable[Any]]) -> Iterator[Any]:
    """One epoch after the other."""
    while True:
        yield from make()


def run(make: Callable[[str, int, str], Iterator[Any]], look: Callable[[Any], int]) -> None:
    """`make` gives batches of (path, rows, setting) for ever; `look` takes a batch's arrays and says its cells."""
    path, rows, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
    setting = sys.argv[4] if len(sys.argv) > 4 else ""
    before = anonymous_bytes()
    peak = before
    whole = seconds == 0
    batches = make(path, rows, setting)
    begin = time.perf_counter()
    if not whole:  # a fetch at least, which others spread over all of its batches
        warm_up = begin + max(2.0, seconds)
        while time.perf_counter() < warm_up:
            look(next(batches))
        begin = time.perf_counter()
    cells, now = 0, begin
    limit = int(sys.argv[5]) if len(sys.argv) > 5 else sys.maxsize
    while cells < limit if whole else now - begin < seconds:
        cells += look(next(batches))
        now = time.perf_counter()
        peak = max(peak, anonymous_bytes()) if cells % (rows * 16) == 0 else peak
    print(json.dumps({"cells": cells, "seconds": now - begin, "anonymous": max(peak, anonymous_bytes()) - before}))
