"""LanceDB's StreamingDataset with its default number of splits: one for each rank of the run that began."""

from __future__ import annotations

import job
from lancedb_streaming import LancedbStreaming


class LancedbDefaultSplits(LancedbStreaming):
    name = "LanceDB StreamingDataset, its default of a split a rank"
    splits = None


if __name__ == "__main__":
    job.main(LancedbDefaultSplits)
