"""Hugging Face datasets, iterable: the same Arrow files in 64 parts, which are shuffled, and a shuffle buffer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import job
from datasets import load_from_disk
from datasets.distributed import split_dataset_by_node
from hf_map_style import tokens, write
from torchdata.stateful_dataloader import StatefulDataLoader

PARTS = 64
BUFFER = 1000


class HfIterable(job.Peer):
    name = "HF datasets, iterable"
    packages = ("datasets", "torchdata", "torch", "pyarrow", "numpy")
    order = "local: 64 parts, and a buffer of 1,000 windows"
    dtypes = ("int64",)
    tail = "none: ranks may have other numbers of samples"
    note = "format torch; state by torchdata's StatefulDataLoader"

    @classmethod
    def prepare(cls, setup: job.Setup) -> None:
        write(setup)

    def __init__(self, setup: job.Setup) -> None:
        super().__init__(setup)
        parts = load_from_disk(str(setup.folder)).to_iterable_dataset(num_shards=PARTS)
        shuffled = parts.shuffle(seed=setup.seed, buffer_size=BUFFER).with_format("torch")
        self._dataset = split_dataset_by_node(shuffled, setup.rank, setup.world) if setup.world > 1 else shuffled
        workers = setup.setting.workers
        self._loader = StatefulDataLoader(
            self._dataset, batch_size=setup.batch, num_workers=workers, persistent_workers=workers > 0
        )

    def epoch(self, number: int) -> Iterator[Any]:
        self._dataset.set_epoch(number)
        yield from map(tokens, self._loader)

    def state(self) -> Any:
        return self._loader.state_dict()

    def load(self, state: Any) -> None:
        self._loader.load_state_dict(state)


if __name__ == "__main__":
    job.main(HfIterable)
