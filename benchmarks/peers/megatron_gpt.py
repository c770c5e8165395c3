"""Megatron-core's GPTDataset on its .bin and .idx files; each document is a window, so that all do the same job."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import job
import numpy as np
import torch
import torch_ranks
from megatron.core.datasets.gpt_dataset import GPTDataset, GPTDatasetConfig
from megatron.core.datasets.indexed_dataset import IndexedDataset, IndexedDatasetBuilder
from megatron.core.datasets.utils import Split
from torch.utils.data import DataLoader


class Tokenizer:
    """The few answers that a dataset of ready tokens asks of a tokenizer."""

    vocab_size = 1 << 30
    pad, eod, eos = -1, -2, -2
    unique_identifiers: ClassVar = {"class": "counting"}


class ConsumedSamples:
    """Batches of one rank from the count of consumed samples on: what Megatron's training loop gives its DataLoader."""

    def __init__(self, size: int, setup: job.Setup) -> None:
        self.consumed = 0
        self._size = size
        self._setup = setup

    def __iter__(self) -> Iterator[list[int]]:
        setup = self._setup
        step = setup.batch * setup.world
        for begin in range(self.consumed, self._size - step + 1, step):
            mine = begin + setup.rank * setup.batch
            yield list(range(mine, mine + setup.batch))


def tokens(samples: list[dict[str, torch.Tensor]]) -> torch.Tensor:
    """Only what the job asks for is put together."""
    return torch.stack([sample["tokens"] for sample in samples])


class MegatronGpt(job.Peer):
    name = "Megatron-core GPTDataset"
    packages = ("megatron-core", "torch", "numpy")
    dtypes = ("int64",)
    note = (
        "index caches built before; each sample also makes labels, loss mask and position ids, which are not collated; "
        "the sampler by consumed samples is ours, Megatron's is outside of its core; it drops the tail"
    )

    @classmethod
    def prepare(cls, setup: job.Setup) -> None:
        prefix = setup.folder / "corpus"
        builder = IndexedDatasetBuilder(f"{prefix}.bin", dtype=np.int32)
        for row in setup.matrix():
            builder.add_document(row, [len(row)])
        builder.finalize(f"{prefix}.idx")
        cls(setup)

    def __init__(self, setup: job.Setup) -> None:
        super().__init__(setup)
        torch_ranks.join(setup)
        prefix = str(setup.folder / "corpus")
        config = GPTDatasetConfig(
            random_seed=setup.seed,
            sequence_length=setup.window,
            blend=([prefix], None),
            split="1,0,0",
            path_to_cache=str(setup.folder / "cache"),
            tokenizer=Tokenizer(),
            reset_position_ids=False,
            reset_attention_mask=False,
            eod_mask_loss=False,
            create_attention_mask=False,
            add_extra_token_to_sequence=False,
        )
        documents = np.arange(setup.windows, dtype=np.int32)
        dataset = GPTDataset(IndexedDataset(prefix), prefix, documents, None, Split.train, config)
        self._sampler = ConsumedSamples(len(dataset), setup)
        workers = setup.setting.workers
        self._loader = DataLoader(
            dataset,
            batch_sampler=self._sampler,
            collate_fn=tokens,
            num_workers=workers,
            persistent_workers=workers > 0,
        )
        self._consumed = 0

    def epoch(self, number: int) -> Iterator[Any]:
        self._sampler.consumed = self._consumed
        for batch in self._loader:
            self._consumed += self.setup.batch * self.setup.world
            yield batch
        self._consumed = 0

    def state(self) -> Any:
        return {"consumed_samples": self._consumed}

    def load(self, state: Any) -> None:
        self._consumed = state["consumed_samples"]


if __name__ == "__main__":
    job.main(MegatronGpt)
