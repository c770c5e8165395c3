"""Grain over ArrayRecord, its own format: a window is a record, one record a group, not compressed."""

from __future__ import annotations

from typing import Any

import grain
import job
import numpy as np
from array_record.python import array_record_module
from grain_memmap import GrainMemmap

RECORDS_A_FILE = 1 << 14


class GrainArrayRecord(GrainMemmap):
    name = "Grain, ArrayRecord"
    packages = ("grain", "array_record", "numpy")

    @classmethod
    def prepare(cls, setup: job.Setup) -> None:
        rows = setup.matrix()
        for begin in range(0, len(rows), RECORDS_A_FILE):
            path = setup.folder / f"{begin // RECORDS_A_FILE:05}.array_record"
            writer = array_record_module.ArrayRecordWriter(str(path), "group_size:1,uncompressed")
            for row in rows[begin : begin + RECORDS_A_FILE]:
                writer.write(row.tobytes())
            writer.close()

    def source(self) -> Any:
        return grain.sources.ArrayRecordDataSource([str(file) for file in sorted(self.setup.folder.iterdir())])

    def _shuffled(self, seed: int) -> Any:
        return super()._shuffled(seed).map(decoded)


def decoded(record: bytes) -> np.ndarray:
    return np.frombuffer(record, "<u4")


if __name__ == "__main__":
    job.main(GrainArrayRecord)
