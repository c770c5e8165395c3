"""LanceDB's StreamingDataset with a number of splits that every number of ranks here divides, as its page advises."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any, ClassVar

import job
import lancedb
import numpy as np
import pyarrow
import torch
from lancedb.streaming import StreamingDataLoader, StreamingDataset
from torch.utils.data import DataLoader

TABLE = "windows"
ROWS = 1 << 14  # written at once


def tensors(rows: pyarrow.RecordBatch) -> list[torch.Tensor]:
    """A tensor for each row."""
    column = rows.column("token")
    matrix = column.flatten().to_numpy(zero_copy_only=False).reshape(len(column), -1)
    return list(torch.from_numpy(matrix.copy()))


class LancedbStreaming(job.Peer):
    name = "LanceDB StreamingDataset, 60 splits"
    packages = ("lancedb", "torch", "numpy")
    dtypes = ("int32",)
    tail = "drops what its splits do not divide"
    note = (
        "its own threads read and transform in all cases; with workers its StreamingDataLoader, by forkserver, as its "
        "pages say; on several ranks states are merged by merge_state_dicts"
    )
    splits: ClassVar[int | None] = job.GLOBAL_BATCH

    def __init__(self, setup: job.Setup) -> None:
        super().__init__(setup)
        self._table = lancedb.connect(str(setup.folder)).open_table(TABLE)
        self._dataset: StreamingDataset | None = None

    @classmethod
    def prepare(cls, setup: job.Setup) -> None:
        table = None
        rows = setup.matrix()
        for begin in range(0, len(rows), ROWS):
            tokens = pyarrow.array(rows[begin : begin + ROWS].astype(np.int32).ravel())
            part = pyarrow.table({"token": pyarrow.FixedSizeListArray.from_arrays(tokens, setup.window)})
            if table is None:
                table = lancedb.connect(str(setup.folder)).create_table(TABLE, part, mode="overwrite")
            else:
                table.add(part)

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

    def _loader(self) -> DataLoader:
        batch, workers = self.setup.batch, self.setup.setting.workers
        if workers == 0:
            return DataLoader(self._dataset, batch_size=batch)
        return StreamingDataLoader(
            self._dataset, batch_size=batch, num_workers=workers, multiprocessing_context="forkserver"
        )

    def epoch(self, number: int) -> Iterator[Any]:
        if self._dataset is None:
            self._dataset = self._make(self.splits, number)
        yield from self._loader()

    def forever(self) -> Iterator[Any]:
        for number in itertools.count():
            self._dataset = self._make(self.splits, number)  # an epoch is a data set of its own
            yield from self._loader()

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
