"""Balance: rows go to ranks by what they cost; which ones, tests/model and the tests in C++ compare with the rule."""

from __future__ import annotations

import numpy as np
import penstock
import pytest
from _datasets import compact, ids, opaque, raw_tokens

WINDOW = 2048
RANKS, ROWS = 64, 8


def step(costs: list[int], parts: list[list[list[int]]]) -> float:
    """The sum over parts of the slowest rank's cost, over the mean."""
    table = np.array([[sum(costs[row] for row in part) for part in rank] for rank in parts], float)
    return float(table.max(0).sum() / (table.sum() / len(parts)))


@pytest.mark.parametrize("micro", [None, 4, 8])
def test_64_ranks_wait_less(tmp_path, micro):
    random = np.random.default_rng(0)
    lengths = random.lognormal(7.0 - np.log(16), 1.6, 8000).astype(np.uint64) + 1
    with penstock.Writer(tmp_path / "d", {"token": "u1"}, "boundaries") as writer:
        writer.append_batch(lengths, token=random.integers(0, 200, int(lengths.sum())).astype("u1"))
    view = penstock.open(tmp_path / "d").packed(WINDOW)
    total, balance = RANKS * ROWS, penstock.Balance(micro_batches=micro)
    job = penstock.Job(view, global_batch_size=total, seed=4)
    located = job.locate(0, world_size=RANKS, balance=balance)
    own = [[row for row in located if row.rank == rank] for rank in range(RANKS)]
    costs = [0] * total  # attention
    for row in located:
        costs[row.position] = sum(2 * (s.stop - s.start) ** 2 + WINDOW * (s.stop - s.start) for s in row.spans)
    size = ROWS // (micro or 1)
    parts = [[[row.position for row in rows if row.row // size == part] for part in range(micro or 1)] for rows in own]
    turns = [[list(range(rank, total, RANKS))[at : at + size] for at in range(0, ROWS, size)] for rank in range(RANKS)]
    assert step(costs, parts) <= 1.1
    assert step(costs, parts) < step(costs, turns)
    if micro == ROWS:
        assert step(costs, turns) > 1.5
    for rank in (0, 63):  # each alone finds the same
        with penstock.Loader(view, ROWS, seed=4, rank=rank, world_size=RANKS, balance=balance) as loader:
            assert sorted(next(loader).positions.tolist()) == sorted(row.position for row in own[rank])


def test_what_has_no_lengths_is_refused_unless_costs_are_given(tmp_path):
    stream, _ = raw_tokens(tmp_path / "tokens.bin", 500)
    data, _ = compact(tmp_path, [[5, 9, 30, 12, 7]])
    balance = penstock.Balance()
    for view, words in [
        (stream.windows(10), "it has no spans"),
        (ids(tmp_path, [[0, 0, 1, 1, 2, 2, 3, 3]])[0].windows(2), "its spans stand in the records"),
        (data.windows(4, end_of_document=7), "a token bounds its documents"),
        (opaque(tmp_path, 9)[0].documents(), "opaque documents have no lengths"),
    ]:
        with pytest.raises(penstock.InvalidArgumentError) as caught:
            penstock.Loader(view, 2, balance=balance)
        assert words in str(caught.value) and "Balance(cost=array)" in str(caught.value)
        penstock.Loader(view, 2, balance=penstock.Balance(np.arange(len(view))))
    view = stream.windows(10)
    for cost, words in [
        ("flops", "cost='flops'"), (np.zeros(3, int), "integers [50] wanted"), (np.zeros(50), "float64"),
        (np.full(50, -1), "from 0 on"),
    ]:  # fmt: skip
        with pytest.raises(penstock.InvalidArgumentError) as caught:
            penstock.Loader(view, 2, balance=penstock.Balance(cost))
        assert words in str(caught.value)
    tokens = penstock.Balance("tokens", micro_batches=3)
    with pytest.raises(penstock.InvalidArgumentError, match="micro_batches=3 does not divide the 4 rows"):
        penstock.Loader(view, 4, balance=tokens)
    with penstock.Loader(view, 6, balance=tokens) as loader, pytest.raises(penstock.InvalidArgumentError):
        loader.set_batch_size(5)
    with pytest.raises(penstock.InvalidArgumentError, match=r"must be a penstock\.Balance"):
        penstock.Loader(view, 2, balance="attention")  # type: ignore[arg-type]


def test_lengths_are_read_by_threads_and_counted(tmp_path):
    with penstock.Writer(tmp_path / "d", fields={"token": "u2"}, metadata="boundaries") as writer:
        writer.append_batch(np.arange(1, 400, dtype="u8"), token=np.zeros(399 * 200, "u2"))
    read = []
    for balance in (None, penstock.Balance("attention")):
        view = penstock.open(tmp_path / "d", checks="none").windows(64, metadata=False)
        options = {"epochs": 1, "framework": "numpy", "rank": 0, "world_size": 2, "balance": balance}
        with penstock.Loader(view, 4, **options) as loader:
            rows = sum(int(batch.valid.sum()) for batch in loader)
            read.append((loader.metrics().bytes_read, rows))
    (plain, rows), (balanced, same) = read
    assert plain == rows * 64 * 2 and rows == same
    assert balanced > plain  # the index of all ranks' rows, too
