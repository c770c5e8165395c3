"""Balance: rows go to ranks by what they cost; the global batch and the state stay as they are."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest
from _datasets import compact, ids, opaque, raw_tokens

WINDOW = 2048
RANKS, ROWS = 64, 8


def attention(lengths: Any, window: int) -> int:
    return sum(2 * int(length) ** 2 + window * int(length) for length in lengths)


def shared_out(order: list[int], costs: list[int], rooms: list[int]) -> list[list[int]]:
    """From the definition: each in turn to the one with least so far that has room."""
    given: list[list[int]] = [[] for _ in rooms]
    for number in order:
        free = [i for i, room in enumerate(rooms) if len(given[i]) < room]
        given[min(free, key=lambda i: (sum(costs[n] for n in given[i]), i))].append(number)
    return given


def by_definition(costs: list[int], ranks: int, rows: int, micro: int) -> list[list[list[int]]]:
    """Numbers of the batch's rows: of each rank, of each part."""
    order = sorted(range(len(costs)), key=lambda i: (-costs[i], i))
    rooms = [len(range(rank, len(costs), ranks)) for rank in range(ranks)]
    found = []
    for own in shared_out(order, costs, rooms):
        each = rows // micro
        parts = [max(0, min(each, len(own) - part * each)) for part in range(micro)]
        found.append([sorted(part) for part in shared_out(own, costs, parts)])
    return found


def step(costs: list[int], parts: list[list[list[int]]]) -> float:
    """The sum over parts of the slowest rank's cost, over the mean."""
    table = np.array([[sum(costs[row] for row in part) for part in rank] for rank in parts], float)
    return float(table.max(0).sum() / (table.sum() / len(parts)))


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    """Documents of log-normal lengths, a sixteenth of those of the issue, as is the window."""
    path = tmp_path_factory.mktemp("balance") / "d"
    random = np.random.default_rng(0)
    lengths = random.lognormal(7.0 - np.log(16), 1.6, 8000).astype(np.uint64) + 1
    with penstock.Writer(path, {"token": "u1"}, "boundaries") as writer:
        writer.append_batch(lengths, token=random.integers(0, 200, int(lengths.sum())).astype("u1"))
    return penstock.open(path)


def loaders(view: Any, ranks: int, **options: Any) -> list[penstock.Loader]:
    options = {"framework": "numpy", "threads": 1, "prefetch": 1, "seed": 4, **options}
    return [penstock.Loader(view, rank=rank, world_size=ranks, **options) for rank in range(ranks)]


@pytest.mark.parametrize("micro", [None, 4, 8])
def test_64_ranks_find_the_same_rows_each_alone_and_wait_less(dataset, micro):
    view = dataset.packed(WINDOW)
    total = RANKS * ROWS
    assert len(view) > total
    balance = penstock.Balance(micro_batches=micro)
    with penstock.Loader(view, total, seed=4, framework="numpy", rank=0, world_size=1) as alone:
        batch = next(alone)
        spans = batch.spans
        costs = [0] * total
        for row, start, stop in zip(spans.rows.tolist(), spans.starts.tolist(), spans.stops.tolist(), strict=True):
            costs[row] += attention([stop - start], WINDOW)
        whole, state = batch["token"].copy(), alone.state_dict()
    wanted = by_definition(costs, RANKS, ROWS, micro or 1)
    seen = []
    for rank, loader in enumerate(loaders(view, RANKS, batch_size=ROWS, balance=balance)):
        with loader:
            part = next(loader)
            assert part.positions.tolist() == [row for each in wanted[rank] for row in each]
            np.testing.assert_array_equal(part["token"], whole[part.positions])
            assert loader.state_dict() == state
            seen += part.positions.tolist()
    assert sorted(seen) == list(range(total))
    turns = [[list(range(rank, total, RANKS))[at : at + ROWS // (micro or 1)]
              for at in range(0, ROWS, ROWS // (micro or 1))] for rank in range(RANKS)]  # fmt: skip
    assert step(costs, wanted) <= 1.1
    assert step(costs, wanted) < step(costs, turns)
    if micro == ROWS:
        assert step(costs, turns) > 1.5


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


def test_lengths_are_read_by_threads_and_counted(tmp_path, dataset):
    path = tmp_path / "fresh"  # nothing of its index is kept yet
    with penstock.Writer(path, fields={"token": "u2"}, metadata="boundaries") as writer:
        for length in range(1, 400):
            writer.append(token=np.zeros(length, "u2"))
    options = {"batch_size": 4, "epochs": 1}
    read = []
    for balance in (None, penstock.Balance("attention")):
        view = penstock.open(path, checks="none").windows(64, metadata=False)
        with loaders(view, 2, balance=balance, **options)[0] as loader:
            rows = sum(int(batch.valid.sum()) for batch in loader)
            read.append((loader.metrics().bytes_read, rows))
    (plain, rows), (balanced, same) = read
    assert plain == rows * 64 * 2 and rows == same
    assert balanced > plain  # the index of all ranks' rows, too


# --- a real job


def train(rank: int, folder: str, view: penstock.View, ranks: int) -> None:
    """Steps of DDP over packed rows; every micro-batch is a backward pass."""
    import torch
    import torch.distributed as dist

    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    dist.init_process_group("gloo", init_method=f"file://{folder}/rendezvous-{ranks}", rank=rank, world_size=ranks)
    torch.manual_seed(0)
    torch.set_num_threads(1)
    embed = torch.nn.Embedding(200, 8)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Sequential(embed, torch.nn.Linear(8, 200)))
    optimizer = torch.optim.SGD(model.parameters(), 0.5)
    balance = penstock.Balance(micro_batches=2) if ranks > 1 else None
    loader = penstock.Loader(view, global_batch_size=16, rank=rank, world_size=ranks, seed=1, balance=balance)
    for _, batch in zip(range(4), loader, strict=False):
        for inputs, labels in zip(batch.inputs.chunk(2), batch.labels.chunk(2), strict=True):
            losses = torch.nn.functional.cross_entropy(model(inputs).mT, labels, reduction="sum", ignore_index=-100)
            (losses * ranks / (16 * WINDOW)).backward()  # DDP takes the mean over ranks
        optimizer.step()
        optimizer.zero_grad()
    if rank == 0:
        np.save(f"{folder}/weights-{ranks}.npy", embed.weight.detach().numpy())
    dist.destroy_process_group()


def test_ddp_on_4_processes_takes_the_steps_of_one(tmp_path, dataset):
    import torch.multiprocessing

    view = dataset.packed(WINDOW)
    for ranks in (4, 1):
        torch.multiprocessing.spawn(train, (str(tmp_path), view, ranks), nprocs=ranks)
    four, one = (np.load(Path(tmp_path) / f"weights-{ranks}.npy") for ranks in (4, 1))
    np.testing.assert_allclose(four, one, rtol=1e-4, atol=1e-6)
