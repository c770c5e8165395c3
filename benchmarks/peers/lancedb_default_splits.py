"""LanceDB's StreamingDataset with its default number of splits: one for each rank of the run that began."""

from __future__ import annotations

from typing import Any

import job
from lancedb_streaming import LancedbStreaming


class LancedbDefaultSplits(LancedbStreaming):
    name = "LanceDB StreamingDataset, its default of a split a rank"
    splits = None

    def _make(self, splits: int | None, epoch: int) -> Any:
        # Workers each want a split of their own.
        return super()._make(splits or (self.setup.setting.workers or None), epoch)


if __name__ == "__main__":
    job.main(LancedbDefaultSplits)
