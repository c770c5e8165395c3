"""torchdata's StatefulDataLoader over the same map-style dataset, with its StatefulDistributedSampler."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import job
from torch_dataloader import Windows, as_it_is
from torchdata.stateful_dataloader import StatefulDataLoader
from torchdata.stateful_dataloader.sampler import StatefulDistributedSampler


class TorchdataStateful(job.Peer):
    name = "torchdata StatefulDataLoader over np.memmap"
    packages = ("torchdata", "torch", "numpy")
    dtypes = ("int64", "int32")
    tail = "repeats samples, so that all ranks have as many"
    note = "state_dict after every batch, as by default"

    def __init__(self, setup: job.Setup) -> None:
        super().__init__(setup)
        dataset = Windows(setup)
        self._sampler = StatefulDistributedSampler(dataset, setup.world, setup.rank, seed=setup.seed)
        workers = setup.setting.workers
        self._loader = StatefulDataLoader(
            dataset,
            batch_size=setup.batch,
            sampler=self._sampler,
            collate_fn=as_it_is,
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
    job.main(TorchdataStateful)
