"""The table of README.md, its first row: 10,007 samples on 4 ranks, stopped near half of an epoch, resumed on 2.

And so for any number of ranks: a run that is stopped anywhere and resumed on others delivers what the never-stopped run
does. Ranks never talk, so all of them run here in one process. tests/model compares jobs of every kind on few ranks.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import penstock
import pytest
from _datasets import raw_tokens

SAMPLES, WINDOW = 10_007, 2
State = dict[str, Any]


@pytest.fixture(scope="module")
def view(tmp_path_factory):
    path = tmp_path_factory.mktemp("resume") / "tokens.bin"
    return raw_tokens(path, SAMPLES * WINDOW + 1)[0].windows(WINDOW)


def take(view: penstock.View, ranks: int, total: int, state: State | None = None, most: int = 1 << 30) -> list[Any]:
    """(position, rows in the order of positions, state afterwards) of each global batch, of `total` rows."""
    options = {"global_batch_size": total, "epochs": 2, "seed": 5, "threads": 1, "framework": "numpy"}
    loaders = [penstock.Loader(view, rank=rank, world_size=ranks, **options) for rank in range(ranks)]
    found: list[Any] = []
    for loader in loaders if state is not None else ():
        loader.load_state_dict(state)
    while len(found) < most:
        batches = [next(loader, None) for loader in loaders]
        if batches[0] is None:
            assert batches == [None] * ranks, "a rank has more batches than another"
            break
        rows: list[Any] = [None] * total
        for rank, batch in enumerate(batches):
            given = zip(batch.indices.tolist(), batch.epochs.tolist(), batch["token"].tolist(), strict=True)
            rows[rank::ranks] = [row if valid else None for row, valid in zip(given, batch.valid, strict=True)]
        valid = [row for row in rows if row is not None]
        assert rows == valid + [None] * (total - len(valid)), "padding is not at the end"
        states = [loader.state_dict() for loader in loaders]
        assert all(each == states[0] for each in states), "ranks have different states"
        assert {batch.position for batch in batches} == {states[0]["position"] - len(valid)}
        found.append((batches[0].position, valid, states[0]))
    for loader in loaders:
        loader.close()
    return found


def test_nothing_is_missed_extra_or_seen_twice(view):
    first = take(view, 4, 16, most=SAMPLES // 16 // 2)
    seen = [row for _, rows, _ in first + take(view, 2, 8, first[-1][2]) for row in rows]
    for epoch in range(2):
        counts = Counter(row[0] for row in seen if row[1] == epoch)
        missed, extra = SAMPLES - len(counts), sum(counts.values()) - len(counts)
        assert (missed, extra) == (0, 0)


def test_any_number_of_ranks_takes_the_same_steps_from_any_state_on(view):
    total = 3 * 840  # a multiple of 1 to 8
    expected = take(view, 1, total)
    assert [len(rows) for _, rows, _ in expected] == [total] * 7 + [2 * SAMPLES - 7 * total]
    for ranks in range(2, 9):
        begun = take(view, 9 - ranks, total, most=ranks % 5)
        state = begun[-1][2] if begun else None
        assert begun + take(view, ranks, total, state) == expected
