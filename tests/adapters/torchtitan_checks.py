"""What `torchtitan.DataLoader` promises, beside being resumed: its batches, checkpoints on other ranks, refusals."""

from __future__ import annotations

import importlib.util
import json
import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import job
import numpy as np
import penstock
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
import torch.multiprocessing
from penstock.adapters.torchtitan import DataLoader
from torchtitan.components.loss import IGNORE_INDEX

IS_MAIN = importlib.util.find_spec("torchtitan.components.data") is not None
if IS_MAIN:
    from torchtitan.components.data.loader import BaseDataLoader
else:
    from torchtitan.components.dataloader import BaseDataLoader

TOTAL = 8


def built(folder: Path, rank: int = 0, ranks: int = 1, mixture: str = "mix.json", **config: Any) -> DataLoader:
    chosen = DataLoader.Config(mixture=str(folder / mixture), seed=3, **config)
    rows = -(-TOTAL // ranks)
    main = {"max_context_length": job.WINDOW, "num_tokens_per_batch": rows * job.WINDOW}
    release = {"seq_len": job.WINDOW, "local_batch_size": rows, "snapshot_every_n_steps": 5}
    return chosen.build(dp_world_size=ranks, dp_rank=rank, tokenizer=None, **(main if IS_MAIN else release))


def batches(loader: DataLoader) -> Iterator[tuple[dict[str, torch.Tensor], torch.Tensor]]:
    """Batches by rows; main gets them end to end."""
    for given, labels in loader:
        shape = (labels.numel(),) if IS_MAIN else (labels.numel() // job.WINDOW, job.WINDOW)
        assert given["input"].shape == given["positions"].shape == labels.shape == shape
        yield {name: values.view(-1, job.WINDOW) for name, values in given.items()}, labels.view(-1, job.WINDOW)


def batches_are_the_mixtures(folder: Path) -> None:
    mixture = penstock.Mixture.from_file(folder / "mix.json")
    columns = ["position_ids", penstock.columns.Labels(cross_document=False)]
    plain = penstock.Loader(mixture, TOTAL, seed=3, columns=columns)
    loader = built(folder)
    assert isinstance(loader, BaseDataLoader)
    documents = 0
    for (given, labels), batch in islice(zip(batches(loader), plain, strict=False), 10):
        assert torch.equal(given["input"], batch.inputs) and given["positions"].dtype == torch.int64
        assert torch.equal(given["positions"], batch.position_ids.long()) and torch.equal(labels, batch.labels)
        begins = given["positions"][:, 1:] == 0  # the target of the record before is of another document
        assert (labels[:, :-1][begins] == IGNORE_INDEX).all()
        documents += int(begins.sum())
    assert documents > 20
    given, labels = next(batches(built(folder, positions="rows")))
    assert given["positions"].tolist() == [list(range(job.WINDOW))] * TOTAL and (labels != IGNORE_INDEX).all()


def save(rank: int, ranks: int, folder: Path) -> None:
    join(folder, rank, ranks)
    loader = built(folder, rank, ranks)
    for _ in islice(loader, 5):
        pass
    dcp.save({"dataloader": loader}, checkpoint_id=folder / "checkpoint")
    dist.destroy_process_group()


def load(rank: int, ranks: int, folder: Path) -> None:
    join(folder, rank, ranks)
    loader = built(folder, rank, ranks)
    dcp.load({"dataloader": loader}, checkpoint_id=folder / "checkpoint")
    np.save(folder / f"rest-{rank}.npy", np.stack([given["input"].numpy() for given, _ in islice(batches(loader), 4)]))
    dist.destroy_process_group()


def join(folder: Path, rank: int, ranks: int) -> None:
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    dist.init_process_group("gloo", init_method=f"file://{folder}/rendezvous-{ranks}", rank=rank, world_size=ranks)


def four_ranks_save_and_two_load(folder: Path) -> None:
    torch.multiprocessing.spawn(save, (4, folder), nprocs=4)
    torch.multiprocessing.spawn(load, (2, folder), nprocs=2)
    rest = np.stack([np.load(folder / f"rest-{rank}.npy") for rank in range(2)], axis=2)
    expected = [given["input"].numpy() for given, _ in islice(batches(built(folder)), 9)][5:]
    np.testing.assert_array_equal(rest.reshape(4, TOTAL, job.WINDOW), np.stack(expected))


def a_degree_that_does_not_divide_the_batch_takes_the_same_rows(folder: Path) -> None:
    state = built(folder).loader.state_dict() | {"position": 3 * TOTAL}
    expected, _ = list(islice(batches(built(folder)), 4))[3]
    uneven = {"global_batch_size": TOTAL, "uneven": "pad"}
    parts = []
    for rank in range(3):
        loader = built(folder, rank, 3, **uneven)
        loader.load_state_dict(state)
        parts.append(next(batches(loader)))
    for row in range(TOTAL):
        assert torch.equal(parts[row % 3][0]["input"][row // 3], expected["input"][row])
    assert (parts[2][1][2] == IGNORE_INDEX).all()  # padding
    with job.refused(penstock.InvalidArgumentError, "torchtitan's batches have 3: make its batch size of a rank 4"):
        built(folder, 0, 3, global_batch_size=TOTAL + 2, uneven="pad")
    with job.refused(penstock.InvalidArgumentError, 'give uneven="pad"'):
        built(folder, 0, 3, global_batch_size=TOTAL)


def what_cannot_be_is_refused(folder: Path) -> None:
    mixture = json.loads((folder / "mix.json").read_text())
    changes: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
        "window": ({"window": 16}, {}, '"window": 32'),
        "lookahead": ({"lookahead": 0}, {}, '"lookahead": 1'),
        "end": ({}, {"infinite": False}, "no end, and infinite=False"),
        "finite": ({}, {"repeat": False}, "no end, and repeat=False"),
        "tokens": ({"path": "tokens.bin", "dtype": "u2", "metadata": False}, {}, "positions='rows'"),
        "positions": ({}, {"positions": "words"}, "'rows'"),
    }
    np.arange(5000, dtype=np.uint16).tofile(folder / "tokens.bin")
    for name, (source, config, words) in changes.items():
        changed = {each: {**given, **source} for each, given in mixture["sources"].items()}
        (folder / f"{name}.json").write_text(json.dumps({**mixture, "sources": changed}))
        with job.refused(penstock.InvalidArgumentError, words):
            built(folder, mixture=f"{name}.json", **config)
    built(folder, mixture="tokens.json", positions="rows")
    with job.refused(penstock.InvalidArgumentError, "mixture=''"):
        DataLoader.Config().build(dp_world_size=1, dp_rank=0, seq_len=8, local_batch_size=1)
    config = DataLoader.Config(mixture=str(folder / "mix.json"))
    with job.refused(penstock.InvalidArgumentError, "a multiple of training.max_context_length"):
        config.build(dp_world_size=1, dp_rank=0, max_context_length=job.WINDOW, num_tokens_per_batch=3 * job.WINDOW + 1)
    with job.refused(penstock.InvalidArgumentError, "max_context_length= and num_tokens_per_batch="):
        config.build(dp_world_size=1, dp_rank=0, seq_len=job.WINDOW)


def a_mixture_that_ends_is_read_to_its_end(folder: Path) -> None:
    for config in ({"infinite": False}, {"repeat": False}):
        loader = built(folder, mixture="held_out.json", **config)
        rows = sum(int((labels != IGNORE_INDEX).any(dim=1).sum()) for _, labels in batches(loader))
        assert rows == job.HELD_OUT and job.HELD_OUT % TOTAL != 0


def closing_stops_the_threads(folder: Path) -> None:
    def threads() -> set[str]:
        return {each.name for each in Path("/proc/self/task").iterdir()}

    built(folder)  # whatever the first one starts for good
    before = threads()
    loader = built(folder)
    next(iter(loader))
    assert threads() - before
    state = loader.state_dict()
    loader.close()
    loader.close()
    assert not threads() - before
    assert loader.state_dict() == state and state["position"] == TOTAL
    with job.refused(penstock.InvalidArgumentError, "closed"):
        next(loader)


if __name__ == "__main__":
    with job.corpus() as path:
        batches_are_the_mixtures(path)
        four_ranks_save_and_two_load(path)
        a_degree_that_does_not_divide_the_batch_takes_the_same_rows(path)
        a_mixture_that_ends_is_read_to_its_end(path)
        closing_stops_the_threads(path)
        what_cannot_be_is_refused(path)
