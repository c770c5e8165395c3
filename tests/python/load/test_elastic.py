"""A run of R ranks, stopped anywhere and resumed on R' ranks, delivers what the never-stopped run does.

Ranks never talk, so all of them run here in one process. tests/model compares jobs of every kind on few ranks.
"""

from __future__ import annotations

from typing import Any

import penstock
import pytest
from _datasets import raw_tokens

SIZE, WINDOW = 1501, 4
TOTAL = 840  # of a global batch: a multiple of 1 to 8


@pytest.fixture(scope="module")
def view(tmp_path_factory):
    path = tmp_path_factory.mktemp("elastic") / "tokens.bin"
    return raw_tokens(path, SIZE * WINDOW + 1)[0].windows(WINDOW)


def steps_of(view: penstock.View, ranks: int, state: dict[str, Any] | None = None, most: int = 100) -> list[Any]:
    """(position, rows in the order of positions, state afterwards) of each global batch."""
    options = {"global_batch_size": TOTAL, "epochs": 2, "seed": 5, "threads": 1, "framework": "numpy"}
    loaders = [penstock.Loader(view, rank=rank, world_size=ranks, **options) for rank in range(ranks)]
    found: list[Any] = []
    for loader in loaders if state is not None else ():
        loader.load_state_dict(state)
    while len(found) < most:
        batches = [next(loader, None) for loader in loaders]
        if batches[0] is None:
            assert batches == [None] * ranks, "a rank has more batches than another"
            break
        rows: list[Any] = [None] * TOTAL
        for rank, batch in enumerate(batches):
            given = zip(batch.indices.tolist(), batch.epochs.tolist(), batch["token"].tolist(), strict=True)
            rows[rank::ranks] = [row if valid else None for row, valid in zip(given, batch.valid, strict=True)]
        valid = [row for row in rows if row is not None]
        assert rows == valid + [None] * (TOTAL - len(valid)), "padding is not at the end"
        states = [loader.state_dict() for loader in loaders]
        assert all(each == states[0] for each in states), "ranks have different states"
        assert {batch.position for batch in batches} == {states[0]["position"] - len(valid)}
        found.append((batches[0].position, valid, states[0]))
    for loader in loaders:
        loader.close()
    return found


def test_any_number_of_ranks_takes_the_same_steps_from_any_state_on(view):
    expected = steps_of(view, 1)
    assert [len(rows) for _, rows, _ in expected] == [840, 840, 840, 482]
    for epoch in range(2):
        assert sorted(row[0] for _, rows, _ in expected for row in rows if row[1] == epoch) == list(range(SIZE))
    for ranks in range(2, 9):
        stopped = ranks % 4
        begun = steps_of(view, 9 - ranks, most=stopped)
        state = begun[-1][2] if begun else None
        assert begun + steps_of(view, ranks, state) == expected
