"""mosaicml-streaming: MDS shards, read in place, in its default order (py1e)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import job
import no_pictures  # noqa: F401  (before streaming)
import numpy as np
import torch_ranks
from streaming import MDSWriter, StreamingDataLoader, StreamingDataset
from streaming.base.util import clean_stale_shared_memory


def tokens(batch: Any) -> Any:
    return batch["token"]


class MosaicStreaming(job.Peer):
    name = "mosaicml-streaming"
    packages = ("mosaicml-streaming", "torch", "numpy")
    order = "local: py1e, shards spread over blocks of at least 262,144 windows"
    dtypes = ("int32",)
    tail = "repeats samples, so that all ranks have as many"

    @classmethod
    def prepare(cls, setup: job.Setup) -> None:
        columns = {"token": f"ndarray:int32:{setup.window}"}
        with MDSWriter(out=str(setup.folder), columns=columns, size_limit="64mb", exist_ok=True) as writer:
            for row in setup.matrix():
                writer.write({"token": row.astype(np.int32)})

    @classmethod
    def imports(cls, setup: job.Setup) -> None:
        if setup.world == 1:
            # What a run that failed has left; no part of a start.
            clean_stale_shared_memory()

    def __init__(self, setup: job.Setup) -> None:
        super().__init__(setup)
        torch_ranks.join(setup)
        if setup.world > 1:
            clean_stale_shared_memory()
        dataset = StreamingDataset(
            local=str(setup.folder), shuffle=True, shuffle_seed=setup.seed, batch_size=setup.batch
        )
        workers = setup.setting.workers
        self._loader = StreamingDataLoader(
            dataset, batch_size=setup.batch, num_workers=workers, persistent_workers=workers > 0
        )

    def epoch(self, number: int) -> Iterator[Any]:
        yield from map(tokens, self._loader)

    def state(self) -> Any:
        return self._loader.state_dict()

    def load(self, state: Any) -> None:
        self._loader.load_state_dict(state)


if __name__ == "__main__":
    job.main(MosaicStreaming)
