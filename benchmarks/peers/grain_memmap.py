"""Grain over a source of ours that maps the tokens; its index shuffle is global and computed, not stored."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import grain
import job
import numpy as np
from grain.experimental import ElasticIterator


class Windows:
    """A random-access source of windows; a worker process maps the file by itself."""

    def __init__(self, setup: job.Setup) -> None:
        self._setup = setup
        self._rows: np.ndarray | None = None

    def __reduce__(self) -> Any:
        return Windows, (self._setup,)

    def __len__(self) -> int:
        return self._setup.windows

    def __getitem__(self, index: int) -> np.ndarray:
        if self._rows is None:
            self._rows = self._setup.matrix()
        return self._rows[index]


class GrainMemmap(job.Peer):
    name = "Grain, memmap source"
    packages = ("grain", "numpy")
    dtypes = ("uint32",)
    settings: ClassVar = (*job.WORKERS, job.Setting(threads=16, background=True))
    tail = "drops what fills no global batch"
    note = "several ranks by grain.experimental.ElasticIterator"

    def __init__(self, setup: job.Setup) -> None:
        super().__init__(setup)
        self._source = self.source()
        self._iterator: Any = None
        self._state: Any = None

    def source(self) -> Any:
        return Windows(self.setup)

    def _shuffled(self, seed: int) -> Any:
        return grain.MapDataset.source(self._source).seed(seed).shuffle()

    def _options(self) -> dict[str, Any]:
        threads, workers = self.setup.setting.threads, self.setup.setting.workers
        # As many elements ahead as Grain's default where threads read, none where the training thread does.
        return {
            "read": grain.ReadOptions(num_threads=threads, prefetch_buffer_size=500 if threads else 0),
            "processes": grain.multiprocessing.MultiprocessingOptions(num_workers=workers) if workers else None,
        }

    def _batches(self, dataset: Any) -> Any:
        setup = self.setup
        options = self._options()
        if setup.world > 1:
            return iter(
                ElasticIterator(
                    dataset,
                    setup.batch * setup.world,
                    grain.sharding.ShardOptions(setup.rank, setup.world),
                    read_options=options["read"],
                    multiprocessing_options=options["processes"],
                )
            )
        batches = dataset.batch(setup.batch).to_iter_dataset(options["read"])
        return iter(batches.mp_prefetch(options["processes"]) if options["processes"] else batches)

    def epoch(self, number: int) -> Iterator[Any]:
        self._iterator = self._batches(self._shuffled(self.setup.seed + number))
        if self._state is not None:
            self._iterator.set_state(self._state)
            self._state = None
        yield from self._iterator

    def forever(self) -> Iterator[Any]:
        self._iterator = self._batches(self._shuffled(self.setup.seed).repeat())
        yield from self._iterator

    def state(self) -> Any:
        return self._iterator.get_state()

    def load(self, state: Any) -> None:
        self._state = state

    def close(self) -> None:
        if hasattr(self._iterator, "close"):
            self._iterator.close()


if __name__ == "__main__":
    job.main(GrainMemmap)
