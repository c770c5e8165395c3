"""OLMo-core's NumpyFSLDataset and its data loader, over the tokens as they are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import job
import numpy as np
import torch_ranks
from olmo_core.data import DataCollator, NumpyFSLDataLoader, NumpyFSLDataset

UNUSED_TOKEN = (1 << 31) - 1  # padding and end of document: no token of the corpus


class OlmoCoreFsl(job.Peer):
    name = "OLMo-core NumpyFSLDataset"
    packages = ("ai2-olmo-core", "torch", "numpy")
    dtypes = ("int64",)
    settings: ClassVar = (*job.WORKERS, job.Setting(threads=4, background=True))
    tail = "drops what fills no global batch"

    def __init__(self, setup: job.Setup) -> None:
        super().__init__(setup)
        torch_ranks.join(setup)
        dataset = NumpyFSLDataset(
            str(setup.tokens),
            sequence_length=setup.window,
            pad_token_id=UNUSED_TOKEN,
            eos_token_id=UNUSED_TOKEN,
            vocab_size=UNUSED_TOKEN + 1,
            dtype=np.uint32,
            include_instance_metadata=False,
        )
        dataset.work_dir = setup.folder
        dataset.prepare()
        self._loader = NumpyFSLDataLoader(
            dataset,
            collator=DataCollator(pad_token_id=UNUSED_TOKEN),
            global_batch_size=setup.batch * setup.world * setup.window,
            work_dir=setup.folder,
            seed=setup.seed,
            num_threads=setup.setting.threads,
            num_workers=setup.setting.workers,
            dp_world_size=setup.world,
            dp_rank=setup.rank,
        )

    def epoch(self, number: int) -> Iterator[Any]:
        self._loader.reshuffle(epoch=number + 1)
        for batch in self._loader:
            yield batch["input_ids"]
        self._loader.reset()

    def state(self) -> Any:
        return self._loader.state_dict()

    def load(self, state: Any) -> None:
        self._loader.load_state_dict(state)


if __name__ == "__main__":
    job.main(OlmoCoreFsl)
