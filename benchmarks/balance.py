"""What ranks wait for each other where rows differ in cost: by turns, and by `penstock.Balance`."""

from __future__ import annotations

import os
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import penstock
from results import Result, SkippedError
from workloads import Corpora

WINDOW = 32_768
MEDIAN, DEVIATION = 7.0, 1.6  # of the logarithm of documents' lengths
SHAPES = {"8 x 4": (8, 4, 16), "64 x 8": (64, 8, 4)}  # ranks x rows of each, steps
LEAST_TOKENS = 1 << 25  # a thousand rows
AT_MOST = 1.1  # of 64 x 8
PROCESSES, ROWS, STEPS, HEADS, WIDTH = 4, 4, 4, 2, 16
QUICK_SHORTER, QUICK_PROCESSES = 32, 2
SHORTER = 4  # windows and documents of the job are a quarter as long, else attention takes minutes on this processor


def measure(corpora: Corpora) -> list[Result]:
    shorter = QUICK_SHORTER if corpora.quick else 1
    dataset = penstock.open(made(corpora.folder, max(corpora.size.metadata_tokens, LEAST_TOKENS // shorter), shorter))
    view = dataset.packed(WINDOW // shorter, metadata="spans")
    line = partial(Result, "balance", cache="warm")
    results = []
    for shape, (ranks, rows, steps) in SHAPES.items():
        if ranks * rows > len(view):
            continue
        found = waits(view, ranks, rows, steps)
        for name, values in found.items():
            limit = AT_MOST if (shape, name) == ("64 x 8", "balanced") else None
            what = f"{shape} rows, {name}: the step's sum of maxima / mean"
            results.append(line(what, "ratio", tuple(values), at_most=limit, at={"ranks": ranks, "rows": rows}))
    for name, balance in kinds(8).items():
        values = tuple(choosing(view, balance) for _ in range(corpora.size.repeats))
        results.append(line(f"batch of 8 rows of 64 ranks, {name}: a batch, 1 thread", "ms", values))
    shorter = max(shorter, SHORTER)
    short = penstock.open(made(corpora.folder, LEAST_TOKENS // shorter, shorter))
    processes = QUICK_PROCESSES if corpora.quick else PROCESSES
    return results + trained(short.packed(WINDOW // shorter, metadata="spans"), processes, line)


def kinds(rows: int) -> dict[str, penstock.Balance | None]:
    return {"by turns": None, "balanced": penstock.Balance(micro_batches=rows)}


def waits(view: penstock.View, ranks: int, rows: int, steps: int) -> dict[str, list[float]]:
    """Of some global batches; each rank's loader says which rows are its own."""
    found: dict[str, list[float]] = {}
    costs = costs_of(view, ranks * rows * steps)
    for name, balance in kinds(rows).items():
        table = np.empty((steps, ranks, rows))
        for rank in range(ranks):
            options: dict[str, Any] = {"seed": 0, "framework": "numpy", "threads": 1, "prefetch": 1}
            with penstock.Loader(view, rows, rank=rank, world_size=ranks, balance=balance, **options) as loader:
                for number in range(steps):
                    table[number, rank] = costs[next(loader).positions]
        found[name] = (table.max(1).sum(1) / (table.sum((1, 2)) / ranks)).tolist()
    return found


def costs_of(view: penstock.View, count: int) -> np.ndarray:
    """Of the rows at the first positions: sum of len^2 / W + len / 2 over their documents."""
    costs = np.zeros(count)
    with penstock.Loader(view, 64, rank=0, world_size=1, seed=0, framework="numpy") as loader:
        for first in range(0, count, 64):
            spans = next(loader).spans
            lengths = (spans.stops - spans.starts).astype(float)
            keep = first + spans.rows < count
            np.add.at(costs, first + spans.rows[keep], (lengths**2 / view.window + lengths / 2)[keep])
    return costs


def choosing(view: penstock.View, balance: penstock.Balance | None) -> float:
    """Milliseconds for a batch, read by one thread, nothing else being done."""
    with penstock.Loader(
        view, 8, rank=3, world_size=64, seed=0, framework="numpy", threads=1, balance=balance
    ) as loader:
        for _ in range(8):
            next(loader)
        begin = time.perf_counter()
        for _ in range(16):
            next(loader)
        return 1e3 * (time.perf_counter() - begin) / 16


def made(folder: Path, tokens: int, shorter: int = 1) -> Path:
    """Documents of log-normal lengths."""
    path = folder / f"balance-{tokens}-{shorter}"
    if (path / "dataset.json").exists():
        return path
    random = np.random.default_rng(0)
    median = MEDIAN - np.log(shorter)
    mean = np.exp(median + DEVIATION**2 / 2)
    lengths = random.lognormal(median, DEVIATION, int(tokens / mean)).astype(np.uint64) + 1
    with penstock.Writer(path, {"token": "u1"}, "boundaries", shard_size=64 << 20) as writer:
        for part in np.array_split(lengths, max(1, tokens >> 20)):
            writer.append_batch(part, token=random.integers(0, 250, int(part.sum())).astype("u1"))
    return path


# --- a real job


def trained(view: penstock.View, processes: int, line: Any) -> list[Result]:
    """DDP of some processes, attention within documents: what each spends on each micro-batch, in its own CPU time.

    Processes share this machine's cores, so the clock would count the others' work too; CPU time is what each would
    take on a core of its own.
    """
    try:
        import torch.multiprocessing as workers
    except ImportError as error:
        raise SkippedError(str(error)) from None
    results = []
    with tempfile.TemporaryDirectory() as folder:
        workers.spawn(process, (processes, folder, view), nprocs=processes)
        for name in kinds(ROWS):
            table = np.stack([np.load(f"{folder}/{name}-{rank}.npy") for rank in range(processes)])
            ratio = table.max(0).sum(1) / (table.sum((0, 2)) / processes)
            what = f"DDP of {processes} processes x {ROWS} rows, {name}: CPU time of the slowest / mean, summed"
            results.append(line(what, "ratio", tuple(ratio.tolist()), at={"ranks": processes, "rows": ROWS}))
    return results


def process(rank: int, processes: int, folder: str, view: penstock.View) -> None:
    import torch

    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    torch.set_num_threads(1)
    for name in kinds(ROWS):
        train(rank, processes, folder, view, name)


def train(rank: int, processes: int, folder: str, view: penstock.View, name: str) -> None:
    """Some steps of one rank; CPU seconds of each micro-batch go to a file in `folder`."""
    import torch
    import torch.distributed as dist

    dist.init_process_group("gloo", init_method=f"file://{folder}/{name}", rank=rank, world_size=processes)
    torch.manual_seed(0)
    embed = torch.nn.Embedding(256, HEADS * WIDTH)
    model = torch.nn.parallel.DistributedDataParallel(Attention(torch, embed))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    taken = np.zeros((STEPS, ROWS))
    balance = kinds(ROWS)[name]
    with penstock.Loader(view, ROWS, rank=rank, world_size=processes, seed=0, balance=balance) as loader:
        for number in range(-1, STEPS):  # the first step pays for what is made once
            batch = next(loader)
            for row in range(ROWS):
                bounds = [(span.start, span.stop) for span in batch.spans.of_row(row)]
                begin = time.thread_time()
                loss = model(batch.inputs[row], batch.labels[row], bounds)
                forward = time.thread_time() - begin
                loss.backward()
                if number >= 0:
                    taken[number, row] = forward
            optimizer.step()
            optimizer.zero_grad()
    np.save(f"{folder}/{name}-{rank}.npy", taken)
    dist.destroy_process_group()


def Attention(torch: Any, embed: Any) -> Any:
    """A layer of causal attention within each document, and a loss."""

    class Model(torch.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.embed = embed
            self.mix = torch.nn.Linear(HEADS * WIDTH, 3 * HEADS * WIDTH)
            self.out = torch.nn.Linear(HEADS * WIDTH, 256)

        def forward(self, inputs: Any, labels: Any, bounds: Any) -> Any:
            total = 0.0
            for start, stop in bounds:
                heads = self.mix(self.embed(inputs[start:stop])).view(-1, 3, HEADS, WIDTH).permute(1, 2, 0, 3)
                mixed = torch.nn.functional.scaled_dot_product_attention(*heads.unsqueeze(1), is_causal=True)
                logits = self.out(mixed[0].transpose(0, 1).flatten(1))
                total = total + torch.nn.functional.cross_entropy(
                    logits, labels[start:stop], ignore_index=-100, reduction="sum"
                )
            return total / len(inputs)

    return Model()
