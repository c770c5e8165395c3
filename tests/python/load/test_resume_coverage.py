"""The table of README.md: 10,007 samples on 4 ranks, stopped near half of the epoch, resumed on 2."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import penstock

SAMPLES = 10_007


def take(loaders: list[penstock.Loader], batches: int | None) -> list[int]:
    """Observations that the ranks deliver, round by round."""
    seen: list[int] = []
    while batches is None or batches > 0:
        rounds = [next(loader, None) for loader in loaders]
        if rounds[0] is None:
            assert all(batch is None for batch in rounds)  # every rank ends at the same step
            return seen
        for batch in rounds:
            seen += [int(index) for index in batch.indices if index >= 0]
        batches = None if batches is None else batches - 1
    return seen


def test_nothing_is_missed_extra_or_seen_twice(tmp_path: Path) -> None:
    np.arange(SAMPLES * 2, dtype=np.uint16).tofile(tmp_path / "tokens.bin")
    view = penstock.open(tmp_path / "tokens.bin", dtype="u2").windows(2)

    def ranks(count: int) -> list[penstock.Loader]:
        return [penstock.Loader(view, batch_size=4, epochs=1, rank=r, world_size=count) for r in range(count)]

    four = ranks(4)
    first = take(four, SAMPLES // (4 * 4) // 2)
    states = [loader.state_dict() for loader in four]
    assert all(state == states[0] for state in states)
    two = ranks(2)
    for loader in two:
        loader.load_state_dict(states[0])
    second = take(two, None)
    counts = Counter(first + second)
    missed = SAMPLES - len(counts)
    extra = sum(counts.values()) - len(counts)
    twice = sum(1 for index in first if index in set(second))
    assert (missed, extra, twice) == (0, 0, 0)
