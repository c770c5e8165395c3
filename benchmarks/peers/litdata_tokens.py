"""litdata's StreamingDataset with its TokensLoader: chunks are shuffled, and the windows of a chunk in blocks."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import job
import numpy as np
import torch
import torch_ranks
from litdata import StreamingDataLoader, StreamingDataset, TokensLoader, optimize

WINDOWS_A_CHUNK = 2048


def windows_from(begin: int, setup: job.Setup) -> Iterator[torch.Tensor]:
    """The windows of one chunk."""
    for row in setup.matrix()[begin : begin + WINDOWS_A_CHUNK]:
        yield torch.from_numpy(row.astype(np.int32))


class Litdata(job.Peer):
    name = "litdata TokensLoader"
    packages = ("litdata", "torch", "numpy")
    order = "local: chunks of 2,048 windows in blocks of 256"
    dtypes = ("int32",)
    tail = "drops what fills no global batch (drop_last, its default on several ranks)"

    @classmethod
    def prepare(cls, setup: job.Setup) -> None:
        optimize(
            fn=functools.partial(windows_from, setup=setup),
            inputs=list(range(0, setup.windows, WINDOWS_A_CHUNK)),
            output_dir=str(setup.folder),
            chunk_size=WINDOWS_A_CHUNK * setup.window,
            item_loader=TokensLoader(block_size=setup.window),
            num_workers=1,
            reorder_files=False,
            mode="overwrite",
            verbose=False,
        )

    def __init__(self, setup: job.Setup) -> None:
        super().__init__(setup)
        torch_ranks.join(setup)
        dataset = StreamingDataset(
            input_dir=str(setup.folder),
            item_loader=TokensLoader(block_size=setup.window),
            shuffle=True,
            seed=setup.seed,
        )
        workers = setup.setting.workers
        self._loader = StreamingDataLoader(
            dataset, batch_size=setup.batch, num_workers=workers, persistent_workers=workers > 0
        )

    def epoch(self, number: int) -> Iterator[Any]:
        yield from self._loader

    def state(self) -> Any:
        return self._loader.state_dict()

    def load(self, state: Any) -> None:
        self._loader.load_state_dict(state)


if __name__ == "__main__":
    job.main(Litdata)
