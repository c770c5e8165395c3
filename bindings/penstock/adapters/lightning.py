"""A loader for Lightning's Trainer: `trainer.fit(model, TrainLoader(loader))`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from penstock._load.loader import Loader
from penstock._load.resume import Resume
from penstock.adapters._common import checked, given

# Lightning fetches a loader without a length one batch ahead of training, and saves its state after that batch. No run
# has so many batches, and the sum of this over a million ranks, which Lightning takes, fits 64 bits.
_ENDLESS = 1 << 40


class TrainLoader:
    """A loader as Lightning's train dataloader: its state is in the checkpoint, and is that of the batch trained on.

    Lightning saves and restores it by itself (`state_dict` and `load_state_dict` under "combined_loader"). It has a
    length, so that Lightning fetches nothing ahead: of an endless loader one that no run reaches, so say
    `Trainer(max_steps=…)`. Lightning's epoch is one `for`: the whole run, or with `Loader(per_epoch=True)` an epoch.

    Examples:
        >>> import numpy as np, os, penstock, tempfile
        >>> path = os.path.join(tempfile.mkdtemp(), "tokens.bin")
        >>> np.arange(1000, dtype=np.uint16).tofile(path)
        >>> view = penstock.open(path, dtype="u2").windows(10, lookahead=1)
        >>> loader = penstock.adapters.lightning.TrainLoader(penstock.Loader(view, batch_size=4, epochs=1))
        >>> batch = next(iter(loader))
        >>> sorted(batch)
        ['epochs', 'first_records', 'indices', 'inputs', 'labels', 'positions', 'sources', 'valid']
        >>> batch["inputs"].shape, len(loader)
        (torch.Size([4, 10]), 25)
    """

    def __init__(self, loader: Loader) -> None:
        """Wraps a loader, which was told its rank: Lightning does not split what it gives.

        Raises:
            InvalidArgumentError: no loader, or one of NumPy arrays.
        """
        self.loader = checked("lightning.TrainLoader", loader)

    def __iter__(self) -> TrainLoader:
        """Goes on at the loader's position."""
        iter(self.loader)
        return self

    def __next__(self) -> Any:
        """The next batch as a dict of tensors; or what the loader's `transform` made of it."""
        return given(next(self.loader), self.loader._arguments.uneven)

    def __len__(self) -> int:
        """Batches of the run, or of the epoch with per_epoch; of an endless loader more than any run takes."""
        return _ENDLESS if self.loader._endless else len(self.loader)

    def state_dict(self) -> dict[str, Any]:
        """The loader's state."""
        return self.loader.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> Resume:
        """Goes on where the state was taken."""
        return self.loader.load_state_dict(state)
