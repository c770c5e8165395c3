"""A checkpoint of torch.distributed.checkpoint, saved by four processes, loads on two; so does a plain torch.save.

Processes that import torch take some seconds: the two that load are of the four that saved, in a group of their own.
"""

from __future__ import annotations

import os
from itertools import islice
from pathlib import Path

import numpy as np
import penstock
import pytest
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
import torch.multiprocessing
from _datasets import raw_tokens

TOTAL = 8  # the global batch size


def loader_of(view: penstock.View, rank: int, ranks: int) -> penstock.Loader:
    return penstock.Loader(view, global_batch_size=TOTAL, rank=rank, world_size=ranks, seed=3, threads=1)


def save_and_load(rank: int, folder: Path, view: penstock.View) -> None:
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    dist.init_process_group("gloo", init_method=f"file://{folder}/rendezvous", rank=rank, world_size=4)
    pair = dist.new_group([0, 1])
    loader = loader_of(view, rank, 4)
    for _ in islice(loader, 5):
        pass
    dcp.save({"loader": loader, "weight": torch.ones(3)}, checkpoint_id=folder / "checkpoint")
    if rank < 2:
        loader, weight = loader_of(view, rank, 2), torch.zeros(3)
        dcp.load({"loader": loader, "weight": weight}, checkpoint_id=folder / "checkpoint", process_group=pair)
        assert weight.tolist() == [1, 1, 1]
        indices = np.stack([batch.indices.numpy() for batch in islice(loader, 4)])
        np.savez(folder / f"rest-{rank}.npz", indices=indices, position=loader.position)
    dist.destroy_process_group()


@pytest.fixture
def view(tmp_path):
    return raw_tokens(tmp_path / "tokens.bin", 530)[0].windows(10)


def never_stopped(view: penstock.View) -> np.ndarray:
    with loader_of(view, 0, 1) as loader:
        return np.stack([batch.indices.numpy() for batch in islice(loader, 9)])


def test_saved_on_four_processes_it_loads_on_two(tmp_path, view):
    torch.multiprocessing.spawn(save_and_load, (tmp_path, view), nprocs=4)
    parts = [np.load(tmp_path / f"rest-{rank}.npz") for rank in range(2)]
    assert [int(part["position"]) for part in parts] == [9 * TOTAL] * 2
    found = np.stack([part["indices"] for part in parts], axis=2).reshape(4, TOTAL)
    np.testing.assert_array_equal(found, never_stopped(view)[5:])


def test_one_process_without_a_group_and_another_job(tmp_path, view):
    with loader_of(view, 0, 1) as loader:
        next(loader)
        dcp.save({"loader": loader}, checkpoint_id=tmp_path / "checkpoint")
    with loader_of(view, 0, 1) as loader:
        dcp.load({"loader": loader}, checkpoint_id=tmp_path / "checkpoint")
        np.testing.assert_array_equal(next(loader).indices, never_stopped(view)[1])
    with pytest.raises(Exception, match="seed"):
        dcp.load({"loader": penstock.Loader(view, TOTAL, seed=4)}, checkpoint_id=tmp_path / "checkpoint")


def test_torch_save_and_load_with_weights_only(tmp_path, view):
    with loader_of(view, 1, 2) as loader:
        for _ in islice(loader, 3):
            pass
        torch.save({"loader": loader.state_dict()}, tmp_path / "checkpoint.pt")
    with loader_of(view, 0, 1) as loader:
        loader.load_state_dict(torch.load(tmp_path / "checkpoint.pt", weights_only=True)["loader"])
        np.testing.assert_array_equal(next(loader).indices, never_stopped(view)[3])
