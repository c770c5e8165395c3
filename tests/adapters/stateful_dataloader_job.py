"""torchdata's StatefulDataLoader over a BatchDataset, whose workers have read ahead when it is saved."""

from __future__ import annotations

import job
import torch
from penstock.adapters.torch import BatchDataset
from torchdata.stateful_dataloader import StatefulDataLoader


def main() -> None:
    options = job.arguments()
    log = job.Log(options)
    dataset = BatchDataset(job.view(options.folder), batch_size=4, seed=1)
    loader = StatefulDataLoader(
        dataset, batch_size=None, num_workers=options.workers, multiprocessing_context=options.context
    )
    model = job.model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    path, step = options.checkpoints / "state.pt", 0
    if options.resume:
        saved = torch.load(path, weights_only=False)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        loader.load_state_dict(saved["loader"])
        step = options.save_at
    for batch in loader:
        loss = job.loss_of(model, batch["inputs"], batch["labels"])
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        step += 1
        if step == options.save_at:
            state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "loader": loader.state_dict()}
            torch.save(state, path)
        log.trained(step, [batch["inputs"]], loss.item())
        if step == options.steps:
            break


if __name__ == "__main__":
    main()
