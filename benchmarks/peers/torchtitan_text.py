"""torchtitan's own loader of text, over a data set of documents whose tokens are ready, each one sample of a batch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import job
from datasets import load_from_disk
from hf_map_style import write
from torchtitan.components.tokenizer import BaseTokenizer
from torchtitan.hf_datasets import DatasetConfig
from torchtitan.hf_datasets.text_datasets import DATASETS, HuggingFaceTextDataLoader

NAME = "counting"
PARTS = 64
BUFFER = 1000
CHECKPOINT = 500  # steps, its trainer's default: with each it takes a snapshot of the loader


class Ready(BaseTokenizer):
    """Hands tokens through; the end of a document is the one more token that a sample's labels need."""

    def __init__(self) -> None:
        self.eos_id = 0

    def encode(self, tokens: list[int], add_bos: bool = False, add_eos: bool = False) -> list[int]:
        return [*tokens, *([self.eos_id] if add_eos else [])]

    def decode(self, ids: list[int]) -> str:
        return " ".join(map(str, ids))

    def get_vocab_size(self) -> int:
        return 1 << 31


class TorchtitanText(job.Peer):
    name = "torchtitan HuggingFaceTextDataLoader"
    packages = ("torchtitan", "datasets", "torchdata", "torch", "numpy")
    order = "shuffled once before, as its page on data sets shows"
    dtypes = ("int64",)
    tail = "none: ranks may have other numbers of samples"
    note = (
        "tokens are stored ready, and the tokenizer hands them through; each sample also has positions and labels; a "
        "map-style data set, with workers an iterable one of 64 parts and a buffer of 1,000, since each worker would "
        "give all of a map-style one; on several ranks infinite=False, so that an epoch ends (by default each rank "
        "begins its share again), and the states of all ranks in one, as torch.distributed.checkpoint makes it"
    )

    @classmethod
    def prepare(cls, setup: job.Setup) -> None:
        write(setup)

    def __init__(self, setup: job.Setup) -> None:
        super().__init__(setup)
        DATASETS[NAME] = DatasetConfig(
            path=str(setup.folder), loader=self._shuffled, sample_processor=lambda sample: sample["token"]
        )
        self._loader = self._make(infinite=False, snapshot=1)

    def _shuffled(self, path: str) -> Any:
        data, seed = load_from_disk(path), self.setup.seed
        if self.setup.setting.workers:
            return data.to_iterable_dataset(num_shards=PARTS).shuffle(seed=seed, buffer_size=BUFFER)
        return data.shuffle(seed=seed)

    def _make(self, infinite: bool, snapshot: int) -> HuggingFaceTextDataLoader:
        setup, workers = self.setup, self.setup.setting.workers
        return HuggingFaceTextDataLoader(
            HuggingFaceTextDataLoader.Config(
                dataset=NAME, infinite=infinite, num_workers=workers, persistent_workers=workers > 0
            ),
            dp_world_size=setup.world,
            dp_rank=setup.rank,
            tokenizer=Ready(),
            seq_len=setup.window,
            local_batch_size=setup.batch,
            snapshot_every_n_steps=snapshot,
        )

    def epoch(self, number: int) -> Iterator[Any]:
        for inputs, _ in self._loader:
            yield inputs["input"]

    def forever(self) -> Iterator[Any]:
        for inputs, _ in self._make(infinite=True, snapshot=CHECKPOINT):
            yield inputs["input"]

    def state(self) -> Any:
        return self._loader.state_dict()

    def load(self, state: Any) -> None:
        self._loader.load_state_dict(state)

    @classmethod
    def handed(cls, states: list[Any], rank: int, world: int) -> Any:
        return {key: value for state in states for key, value in state.items()}


if __name__ == "__main__":
    job.main(TorchtitanText)
