"""penstock itself: raw tokens as they are, read by its threads."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import Any

import job
import penstock


class Penstock(job.Peer):
    name = "penstock"
    packages = ("penstock",)
    dtypes = ("int64", "int32", "uint32")
    settings = (job.Setting(background=True),)
    tail = "none: the last batch is shorter"
    note = "int64 and int32 are torch tensors, uint32 the records as read, by NumPy; its own threads in all cases"

    def __init__(self, setup: job.Setup) -> None:
        super().__init__(setup)
        self._view = penstock.open(str(setup.tokens), dtype="u4").windows(setup.window)
        self._loader: penstock.Loader | None = None
        self._state: dict[str, Any] | None = None

    @classmethod
    def imports(cls, setup: job.Setup) -> None:
        if setup.dtype != "uint32":
            importlib.import_module("torch")

    def _size(self) -> dict[str, Any]:
        """How large batches are."""
        return {"batch_size": self.setup.batch}

    def _make(self, **options: Any) -> penstock.Loader:
        setup = self.setup
        options |= {"rank": setup.rank, "world_size": setup.world, "seed": setup.seed}
        if setup.dtype == "uint32":
            options["framework"] = "numpy"
        else:
            options |= {"framework": "torch", "dtype": {"token": setup.dtype}}
        self._loader = penstock.Loader(self._view, **self._size(), **options)
        if self._state is not None:
            self._loader.load_state_dict(self._state)
            self._state = None
        return self._loader

    def epoch(self, number: int) -> Iterator[Any]:
        loader = self._loader or self._make(per_epoch=True)
        for batch in loader:
            tokens = batch["token"]
            yield tokens if batch.valid.all() else tokens[batch.valid]

    def forever(self) -> Iterator[Any]:
        for batch in self._make():
            yield batch["token"]

    def state(self) -> Any:
        assert self._loader is not None
        return self._loader.state_dict()

    def load(self, state: Any) -> None:
        self._state = state

    def close(self) -> None:
        if self._loader is not None:
            self._loader.close()


if __name__ == "__main__":
    job.main(Penstock)
