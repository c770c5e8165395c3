"""torchtitan's own loader of text, over a data set of documents, each of them one sample of a batch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import job
from datasets import Dataset, load_from_disk
from torchtitan.components.tokenizer import BaseTokenizer
from torchtitan.hf_datasets import DatasetConfig
from torchtitan.hf_datasets.text_datasets import DATASETS, HuggingFaceTextDataLoader

NAME = "counting"


class Numbers(BaseTokenizer):
    """Texts of numbers in words of digits; the end of a document is the one more token that a sample's labels need."""

    def __init__(self) -> None:
        self.eos_id = 0

    def encode(self, text: str, add_bos: bool = False, add_eos: bool = False) -> list[int]:
        return [*map(int, text.split()), *([self.eos_id] if add_eos else [])]

    def decode(self, ids: list[int]) -> str:
        return " ".join(map(str, ids))

    def get_vocab_size(self) -> int:
        return 1 << 31


class TorchtitanText(job.Peer):
    name = "torchtitan HuggingFaceTextDataLoader"
    packages = ("torchtitan", "datasets", "torchdata", "torch", "numpy")
    order = "shuffled once before, as its page on data sets shows"
    dtypes = ("int64",)
    settings: ClassVar = (job.TRAINING_THREAD,)
    speed = False
    tail = "none: ranks may have other numbers of samples"
    note = (
        "a map-style data set; infinite=False, so that an epoch ends (by default each rank begins its share again); "
        "the states of all ranks in one, as torch.distributed.checkpoint makes it"
    )

    @classmethod
    def prepare(cls, setup: job.Setup) -> None:
        texts = [" ".join(map(str, row)) for row in setup.matrix().tolist()]
        Dataset.from_dict({"text": texts}).save_to_disk(str(setup.folder))

    def __init__(self, setup: job.Setup) -> None:
        super().__init__(setup)
        DATASETS[NAME] = DatasetConfig(
            path=str(setup.folder),
            loader=lambda path: load_from_disk(path).shuffle(seed=setup.seed),
            sample_processor=lambda sample: sample["text"],
        )
        self._loader = HuggingFaceTextDataLoader(
            HuggingFaceTextDataLoader.Config(dataset=NAME, infinite=False),
            dp_world_size=setup.world,
            dp_rank=setup.rank,
            tokenizer=Numbers(),
            seq_len=setup.window,
            local_batch_size=setup.batch,
        )

    def epoch(self, number: int) -> Iterator[Any]:
        for inputs, _ in self._loader:
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
