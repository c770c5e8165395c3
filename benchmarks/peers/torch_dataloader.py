"""torch's DataLoader over a map-style dataset on np.memmap, shuffled globally by its DistributedSampler."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import job
import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset, DistributedSampler


class Windows(Dataset):
    """Windows as rows; `__getitems__` gives a whole batch, so that nothing is collated."""

    def __init__(self, setup: job.Setup) -> None:
        self._rows = setup.matrix()
        self._dtype = np.dtype(setup.dtype)
        if self._dtype == np.int32:
            self._rows = self._rows.view(np.int32)

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.from_numpy(self._rows[index].astype(self._dtype))

    def __getitems__(self, indices: Sequence[int]) -> torch.Tensor:
        out = np.empty((len(indices), self._rows.shape[1]), self._dtype)
        for row, index in enumerate(indices):
            out[row] = self._rows[index]
        return torch.from_numpy(out)


def as_it_is(batch: Any) -> Any:
    return batch


class Skipping(DistributedSampler):
    """Leaves out what was consumed before a resume: DataLoader itself has no state."""

    skip = 0

    def __iter__(self) -> Iterator[int]:
        return iter(list(super().__iter__())[self.skip :])

    def __len__(self) -> int:
        return super().__len__() - self.skip


class TorchDataLoader(job.Peer):
    name = "torch DataLoader over np.memmap"
    packages = ("torch", "numpy")
    dtypes = ("int64", "int32")
    tail = "repeats samples, so that all ranks have as many"
    note = "state kept by the training loop: epoch and windows consumed by all ranks; the sampler skips them"

    def __init__(self, setup: job.Setup) -> None:
        super().__init__(setup)
        dataset = Windows(setup)
        self._sampler = Skipping(dataset, setup.world, setup.rank, seed=setup.seed)
        workers = setup.setting.workers
        self._loader = DataLoader(
            dataset,
            batch_size=setup.batch,
            sampler=self._sampler,
            collate_fn=as_it_is,
            num_workers=workers,
            persistent_workers=workers > 0,
        )
        self._epoch = self._consumed = 0

    def epoch(self, number: int) -> Iterator[Any]:
        self._epoch = number
        self._sampler.set_epoch(number)
        self._sampler.skip = self._consumed // self.setup.world
        for batch in self._loader:
            self._consumed += len(batch) * self.setup.world
            yield batch
        self._consumed = 0

    def state(self) -> Any:
        return {"epoch": self._epoch, "consumed": self._consumed}

    def load(self, state: Any) -> None:
        self._consumed = state["consumed"]


if __name__ == "__main__":
    job.main(TorchDataLoader)
