"""scDataset over `penstock.CollectionLoader`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import penstock
from torch.utils.data import IterableDataset, get_worker_info  # noqa: F401 (tests patch it)

import scdataset

_theirs = scdataset.theirs("scdataset")


class scDataset(IterableDataset):
    """Arguments, seeds and ranks are scDataset's; batches, their number and their order are the loader's."""

    _init_seed = _theirs.scDataset._init_seed
    _detect_ddp = _theirs.scDataset._detect_ddp
    __init__ = _theirs.scDataset.__init__
    fetch_callback: Callable[..., Any] | None

    def __len__(self) -> int:
        with self._loader() as loader:
            return len(loader)

    def __iter__(self) -> Iterator[Any]:
        epoch, self._epoch = self._epoch, self._epoch + 1
        with self._loader(epoch + 1) as loader:
            loader.seek(epoch * self.strategy.get_len(self.collection))
            for batch in iter(loader):
                valid = loader.info.valid
                yield batch if valid.all() else batch[: int(valid.sum())]

    def _loader(self, epochs: int = 1) -> penstock.CollectionLoader:
        scdataset.count()
        collection, fetch = self.collection, self.fetch_callback
        chosen = self.strategy.chosen(collection)
        if chosen is not None:  # the indices are the collection
            theirs = fetch or (lambda whole, indices: whole[indices])

            def fetch(numbers: np.ndarray, places: np.ndarray) -> Any:
                return theirs(self.collection, numbers[places])

            collection = chosen
        rows = self.fetch_size * self.world_size
        order = self.strategy.order_of(self.collection, min(rows, 1 << 20))
        block = getattr(self.strategy, "block_size", 1)
        return penstock.CollectionLoader(
            collection,
            self.batch_size,
            order=order,
            fetch_factor=max(self.fetch_factor, -(-block // self.batch_size)),
            seed=self._base_seed,
            rank=self.rank,
            world_size=self.world_size,
            epochs=epochs,
            per_epoch=True,
            tail="drop" if self.drop_last else "short",
            fetch_callback=fetch,
            fetch_transform=self.fetch_transform,
            batch_callback=self.batch_callback,
            batch_transform=self.batch_transform,
        )
