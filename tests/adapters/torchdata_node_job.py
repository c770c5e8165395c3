"""torchdata.nodes: the node behind a Prefetcher, epoch by epoch, under torchdata's own Loader."""

from __future__ import annotations

import job
import penstock
import torch
import torchdata.nodes
from penstock.adapters.torchdata import Node


def main() -> None:
    options = job.arguments()
    log = job.Log(options)
    loader = penstock.Loader(job.view(options.folder), batch_size=64, seed=1, epochs=50, per_epoch=True)
    nodes = torchdata.nodes.Loader(torchdata.nodes.Prefetcher(Node(loader), prefetch_factor=3))
    model = job.model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    path, step = options.checkpoints / "state.pt", 0
    if options.resume:
        saved = torch.load(path, weights_only=True)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        nodes.load_state_dict(saved["nodes"])
        step = options.save_at
    while step < options.steps:
        for batch in nodes:  # each is an epoch
            loss = job.loss_of(model, batch["inputs"], batch["labels"])
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            step += 1
            if step == options.save_at:
                state = nodes.state_dict()
                torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "nodes": state}, path)
                log.saved(position_in(state), loader)
            log.trained(step, [batch["inputs"]], loss.item())
            if step == options.steps:
                return


def position_in(state: dict) -> dict:
    """The loader's state in that of the nodes, with what the Prefetcher takes from it to be there."""
    source = state["root"]["snapshot"]
    assert state["root"]["steps_since_snapshot"] == 0
    return source


if __name__ == "__main__":
    main()
