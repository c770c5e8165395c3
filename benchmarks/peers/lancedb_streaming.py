"""LanceDB's StreamingDataset with a number of splits that every number of ranks here divides."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import job
import lancedb
import numpy as np
import pyarrow
import torch
from lancedb.streaming import StreamingDataset
from torch.utils.data import DataLoader

TABLE = "windows"


def tensors(rows: pyarrow.RecordBatch) -> list[torch.Tensor]:
    """A tensor for each row."""
    column = rows.column("token")
    matrix = column.flatten().to_numpy(zero_copy_only=False).reshape(len(column), -1)
    return list(torch.from_numpy(matrix.copy()))


class LancedbStreaming(job.Peer):
    name = "LanceDB StreamingDataset, 60 splits"
    packages = ("lancedb", "torch", "numpy")
    dtypes = ("int32",)
    settings: ClassVar = (job.TRAINING_THREAD,)
    speed = False
    tail = "drops what its splits do not divide"
    note = "states of all ranks merged by merge_state_dicts"
    splits: ClassVar[int | None] = job.GLOBAL_BATCH

    def __init__(self, setup: job.Setup) -> None:
        super().__init__(setup)
        self._table = lancedb.connect(str(setup.folder)).open_table(TABLE)
        self._dataset: StreamingDataset | None = None

    @classmethod
    def prepare(cls, setup: job.Setup) -> None:
        tokens = pyarrow.array(setup.matrix().astype(np.int32).ravel())
        rows = pyarrow.FixedSizeListArray.from_arrays(tokens, setup.window)
        lancedb.connect(str(setup.folder)).create_table(TABLE, pyarrow.table({"token": rows}), mode="overwrite")

    def _make(self, splits: int | None, epoch: int) -> StreamingDataset:
        setup = self.setup
        return StreamingDataset(
            self._table,
            num_splits=splits,
            shuffle_seed=setup.seed,
            epoch=epoch,
            rank=setup.rank,
            world_size=setup.world,
            columns=["token"],
            transform=tensors,
        )

    def epoch(self, number: int) -> Iterator[Any]:
        if self._dataset is None:
            self._dataset = self._make(self.splits, number)
        yield from DataLoader(self._dataset, batch_size=self.setup.batch)

    def state(self) -> Any:
        assert self._dataset is not None
        return self._dataset.state_dict()

    def load(self, state: Any) -> None:
        self._dataset = self._make(state["num_splits"], state["epoch"])
        self._dataset.load_state_dict(state)

    @classmethod
    def handed(cls, states: list[Any], rank: int, world: int) -> Any:
        return StreamingDataset.merge_state_dicts(states)


if __name__ == "__main__":
    job.main(LancedbStreaming)
