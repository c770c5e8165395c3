"""The process group that loaders of torch ask for their rank."""

from __future__ import annotations

import job
import torch.distributed


def join(setup: job.Setup) -> None:
    """Ranks meet through gloo where there are several; the runner has set RANK, WORLD_SIZE and the master's address."""
    if setup.world > 1:
        torch.distributed.init_process_group("gloo", rank=setup.rank, world_size=setup.world)
