"""Hugging Face datasets, map-style: Arrow files mapped, a batch by one call as its page on PyTorch says."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import Any

import job
import numpy as np
from datasets import Dataset, Features, List, Value, load_from_disk
from torch.utils.data import BatchSampler
from torchdata.stateful_dataloader import StatefulDataLoader
from torchdata.stateful_dataloader.sampler import StatefulDistributedSampler


def rows(setup: job.Setup) -> Iterator[dict[str, np.ndarray]]:
    for row in setup.matrix():
        yield {"token": row.astype(np.int32)}


def write(setup: job.Setup) -> None:
    """Arrow files of windows of int32; the copy that the generator made first is removed."""
    features = Features({"token": List(Value("int32"), length=setup.window)})
    cache = setup.folder.with_name(f"{setup.folder.name}.cache")
    made = Dataset.from_generator(rows, gen_kwargs={"setup": setup}, features=features, cache_dir=str(cache))
    made.save_to_disk(str(setup.folder))
    shutil.rmtree(cache)


def tokens(batch: Any) -> Any:
    return batch["token"]


class HfMapStyle(job.Peer):
    name = "HF datasets, map-style"
    packages = ("datasets", "torchdata", "torch", "pyarrow", "numpy")
    dtypes = ("int64",)
    tail = "repeats samples, so that all ranks have as many"
    note = "format torch, a BatchSampler as sampler, torchdata's StatefulDataLoader for the state"

    @classmethod
    def prepare(cls, setup: job.Setup) -> None:
        write(setup)

    def __init__(self, setup: job.Setup) -> None:
        super().__init__(setup)
        dataset = load_from_disk(str(setup.folder)).with_format("torch")
        self._sampler = StatefulDistributedSampler(dataset, setup.world, setup.rank, seed=setup.seed)
        workers = setup.setting.workers
        self._loader = StatefulDataLoader(
            dataset,
            batch_size=None,
            sampler=BatchSampler(self._sampler, setup.batch, drop_last=False),
            collate_fn=tokens,
            num_workers=workers,
            persistent_workers=workers > 0,
        )

    def epoch(self, number: int) -> Iterator[Any]:
        self._sampler.set_epoch(number)
        yield from self._loader

    def state(self) -> Any:
        return self._loader.state_dict()

    def load(self, state: Any) -> None:
        self._loader.load_state_dict(state)


if __name__ == "__main__":
    job.main(HfMapStyle)
