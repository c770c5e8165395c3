"""webdataset: tar shards in shuffled order, and a shuffle buffer of 1,000 windows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import job
import numpy as np
import webdataset

WINDOWS_A_SHARD = 1024
BUFFER = 1000


def decoded(sample: tuple[bytes]) -> np.ndarray:
    return np.frombuffer(sample[0], "<u4")


class WebdatasetShards(job.Peer):
    name = "webdataset"
    packages = ("webdataset", "torch", "numpy")
    order = "local: shards of 1,024 windows, and a buffer of 1,000"
    dtypes = ("uint32",)
    tail = "none: ranks have whole shards"

    @classmethod
    def prepare(cls, setup: job.Setup) -> None:
        pattern = str(setup.folder / "%06d.tar")
        # A whole number as time keeps tar from writing a second header for each member, which costs a third when read.
        options = {"maxcount": WINDOWS_A_SHARD, "maxsize": 1 << 40, "verbose": 0, "mtime": 0}
        with webdataset.ShardWriter(pattern, **options) as writer:
            for number, row in enumerate(setup.matrix()):
                writer.write({"__key__": f"{number:09}", "token": row.tobytes()})

    def _loader(self, number: int) -> Any:
        setup = self.setup
        shards = [str(file) for file in sorted(setup.folder.glob("*.tar"))]
        seed = setup.seed + number
        dataset = (
            webdataset.WebDataset(
                shards, shardshuffle=len(shards), nodesplitter=webdataset.split_by_node, seed=seed, empty_check=False
            )
            .shuffle(BUFFER, seed=seed)
            .to_tuple("token")
            .map(decoded)
            .batched(setup.batch, collation_fn=np.stack)
        )
        return webdataset.WebLoader(dataset, batch_size=None, num_workers=setup.setting.workers)

    def epoch(self, number: int) -> Iterator[Any]:
        # Torch's loader makes tensors of what workers send.
        for batch in self._loader(number):
            yield np.asarray(batch)


if __name__ == "__main__":
    job.main(WebdatasetShards)
