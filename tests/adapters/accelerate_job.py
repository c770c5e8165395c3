"""Accelerate takes the loader itself: `prepare` leaves it as it is, and `save_state` keeps its state."""

from __future__ import annotations

import job
import penstock
import torch
from accelerate import Accelerator


def main() -> None:
    options = job.arguments()
    log = job.Log(options)
    accelerator = Accelerator(cpu=True)
    loader = penstock.Loader(job.view(options.folder), batch_size=4, seed=1)
    model = job.model()
    prepared, optimizer, same = accelerator.prepare(model, torch.optim.AdamW(model.parameters(), lr=1e-2), loader)
    assert same is loader
    accelerator.register_for_checkpointing(loader)
    step = 0
    if options.resume:
        accelerator.load_state(options.checkpoints / "state")
        step = options.save_at
    for batch in loader:
        loss = job.loss_of(prepared, batch.inputs, batch.labels)
        accelerator.backward(loss)
        optimizer.step()
        optimizer.zero_grad()
        step += 1
        if step == options.save_at:
            accelerator.save_state(options.checkpoints / "state")
            log.saved(loader.state_dict(), loader)
        log.trained(step, [batch.inputs], loss.item())
        if step == options.steps:
            break


if __name__ == "__main__":
    main()
