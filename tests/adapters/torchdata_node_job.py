"""torchdata.nodes: the node behind a Prefetcher, epoch by epoch, under torchdata's own Loader."""

from __future__ import annotations

from typing import Any

import job
import penstock
import torchdata.nodes
from penstock.adapters.torchdata import Node


def main() -> None:
    options = job.arguments()
    training = job.Training(options)
    loader = penstock.Loader(job.view(options.folder), batch_size=64, seed=1, epochs=50, per_epoch=True)
    nodes = torchdata.nodes.Loader(torchdata.nodes.Prefetcher(Node(loader), prefetch_factor=3))

    def state() -> dict[str, Any]:
        saved = nodes.state_dict()
        training.log.saved(loaders_state(saved), loader)
        return saved

    training.resume(nodes.load_state_dict)
    while not training.is_over:
        for batch in nodes:  # each is an epoch
            training.step(batch["inputs"], batch["labels"], state)
            if training.is_over:
                break


def loaders_state(state: dict[str, Any]) -> dict[str, Any]:
    """The loader's state in that of the nodes, with what the Prefetcher takes from it to be there."""
    source: dict[str, Any] = state["root"]["snapshot"]
    assert state["root"]["steps_since_snapshot"] == 0
    return source


if __name__ == "__main__":
    main()
