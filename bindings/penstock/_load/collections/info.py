"""BatchInfo: which observations a batch of a collection holds."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class BatchInfo:
    """Which observations a batch of a `CollectionLoader` holds.

    Attributes:
        position: the job's position before the batch.
        indices: int64 [rows], of the collection.
        epochs: int64 [rows]: in which epoch each is met.
        valid: bool [rows], false in padded rows, which hold the last observation of the global batch, or the row before
            where hooks do not see them.
        global_rows: valid rows of all ranks' batches together, see `Batch.global_rows`.
        world_size: number of ranks.
    """

    position: int
    indices: npt.NDArray[np.int64]
    epochs: npt.NDArray[np.int64]
    valid: npt.NDArray[np.bool_]
    global_rows: int
    world_size: int
    _state: tuple[int, int, str] = field(repr=False)  # version, position behind the batch, job

    @property
    def loss_scale(self) -> float:
        """Factor for the mean over this rank's valid rows, see `Batch.loss_scale`."""
        return int(self.valid.sum()) * self.world_size / self.global_rows

    def state_dict(self) -> dict[str, Any]:
        """The loader's state after this batch; see `Batch.state_dict`.

        A loop that fetches batches ahead of training keeps `loader.info` beside each and saves the state of the batch
        that was trained last: the loader's own state is after the batch that was fetched last, and a resume from it
        would leave out those between.
        """
        return dict(zip(("version", "position", "job"), self._state, strict=True))
