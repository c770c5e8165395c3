"""Megatron-core's GPTDataset on its .bin and .idx files; each document is a window, so that all do the same job.

Megatron's samplers are outside of its core; those of Megatron-Bridge are used, out of their file alone.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

import job
import numpy as np
import torch
import torch_ranks
from megatron.core.datasets.gpt_dataset import GPTDataset, GPTDatasetConfig
from megatron.core.datasets.indexed_dataset import IndexedDataset, IndexedDatasetBuilder
from megatron.core.datasets.utils import Split


class Tokenizer:
    """The few answers that a dataset of ready tokens asks of a tokenizer."""

    vocab_size = 1 << 30
    pad, eod, eos = -1, -2, -2
    unique_identifiers: ClassVar = {"class": "counting"}


def samplers() -> ModuleType:
    """Megatron-Bridge's module of samplers, without the package around it, which wants CUDA."""
    package = importlib.util.find_spec("megatron.bridge")
    assert package is not None and package.submodule_search_locations is not None
    file = Path(package.submodule_search_locations[0]) / "data" / "samplers.py"
    spec = importlib.util.spec_from_file_location("samplers", file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def tokens(samples: list[dict[str, torch.Tensor]]) -> torch.Tensor:
    """Only what the job asks for is put together."""
    return torch.stack([sample["tokens"] for sample in samples])


class MegatronGpt(job.Peer):
    name = "Megatron-core GPTDataset"
    packages = ("megatron-core", "megatron-bridge", "torch", "numpy")
    kind = "single"  # Megatron's default
    dtypes = ("int64",)
    tail = "drops what fills no global batch"
    note = (
        "index caches built before; each sample also makes labels, loss mask and position ids, which are not collated; "
        'the sampler is "single" of Megatron-Bridge'
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
        self._dataset = GPTDataset(IndexedDataset(prefix), prefix, documents, None, Split.train, config)
        self._loader: Any = None
        self._begin = self._consumed = 0

    def _make(self) -> Any:
        setup = self.setup
        workers = setup.setting.workers
        return samplers().build_pretraining_data_loader(
            self._dataset,
            consumed_samples=self._consumed,
            dataloader_type=self.kind,
            micro_batch_size=setup.batch,
            num_workers=workers,
            data_sharding=True,
            collate_fn=tokens,
            pin_memory=False,
            persistent_workers=workers > 0,
            data_parallel_rank=setup.rank,
            data_parallel_size=setup.world,
        )

    def epoch(self, number: int) -> Iterator[Any]:
        if self._loader is None or self._begin != self._consumed:
            self._begin, self._loader = self._consumed, self._make()
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
