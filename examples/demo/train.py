"""Trains the small GPT; `torchrun` starts one of these a process. Nothing here knows that it may be killed.

All that resuming takes: the loader goes into the checkpoint beside model and optimizer, and the step is its position.
The loader gives a mixture in two stages, and tells documents apart: attention and labels stay inside them.
"""

import argparse
import json
import math
import os
from pathlib import Path
from typing import Any

import penstock
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from model import GPT
from settings import ROWS_PER_STEP, SHARES, Settings
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.checkpoint.stateful import Stateful

# Where documents begin, for the model's mask; a document's last token has nothing to predict.
COLUMNS = ["document_ids", "position_ids", penstock.columns.Labels(cross_document=False)]


class Training(Stateful):
    """Model and optimizer as one part of a checkpoint, as PyTorch's documentation has it."""

    def __init__(self, model: torch.nn.Module, optimizer: torch.optim.Optimizer) -> None:
        self.model, self.optimizer = model, optimizer

    def state_dict(self) -> dict[str, Any]:
        model, optimizer = get_state_dict(self.model, self.optimizer)
        return {"model": model, "optimizer": optimizer}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        set_state_dict(self.model, self.optimizer, model_state_dict=state["model"], optim_state_dict=state["optimizer"])


class Log:
    """What this process saw, a line a batch, on disk before the next step: the evidence that run.py compares."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.file = (folder / f"rank-{dist.get_rank()}.jsonl").open("w")
        self.write(pid=os.getpid())

    def write(self, **record: Any) -> None:
        self.file.write(json.dumps(record) + "\n")
        self.file.flush()

    def batch(self, step: int, batch: penstock.Batch, losses: torch.Tensor) -> None:
        rank, ranks = dist.get_rank(), dist.get_world_size()
        self.write(
            step=step,
            # The i-th row of the global batch goes to rank i mod R, so row j of this rank is its (j * R + rank)-th.
            positions=[batch.position + row * ranks + rank for row in range(len(losses))],
            indices=batch.indices.tolist(),
            sources=batch.sources.tolist(),
            ids=torch.cat([batch.inputs, batch.labels[:, -1:]], dim=1).tolist(),
            losses=losses.tolist(),
        )


def learning_rate(step: int, steps: int) -> float:
    warm = min(1.0, (step + 1) / 10)
    return 2e-3 * warm * (0.55 + 0.45 * math.cos(math.pi * step / steps))


def average_gradients(model: torch.nn.Module) -> None:
    """Means over all processes. As one flat tensor: see "No DistributedDataParallel" in docs/decisions.md."""
    gradients = [parameter.grad for parameter in model.parameters() if parameter.grad is not None]
    flat = torch.cat([gradient.flatten() for gradient in gradients])
    dist.all_reduce(flat)
    flat /= dist.get_world_size()
    for gradient, mean in zip(gradients, flat.split([gradient.numel() for gradient in gradients]), strict=True):
        gradient.copy_(mean.view_as(gradient))


def losses_of(model: torch.nn.Module, batch: penstock.Batch) -> torch.Tensor:
    """Mean loss of each row, [B]."""
    losses: torch.Tensor = model(batch.inputs, batch.labels, batch.position_ids, batch.document_ids)
    return losses


def evaluate(model: torch.nn.Module, settings: Settings) -> list[float]:
    """The loss over the held-out documents, twice by the same loader: an evaluation starts over at every `for`."""
    view = penstock.open(settings.valid_data).windows(settings.window, lookahead=1)
    result = []
    with torch.no_grad(), penstock.eval_loader(view, batch_size=8, rank="env", columns=COLUMNS) as loader:
        for _ in range(2):
            total = torch.zeros(2, dtype=torch.float64)
            for batch in loader:
                valid = torch.as_tensor(batch.valid)
                total += torch.stack([(losses_of(model, batch) * valid).sum(), valid.sum()])
            dist.all_reduce(total)
            result.append((total[0] / total[1]).item())
    return result


def train(settings: Settings, log: Log, checkpoints: Path, resume_from: str | None, until: int) -> None:
    torch.manual_seed(0)
    # float64, so that sums in another order differ in the 13th digit and anything wrong stands out.
    model = GPT(settings.vocabulary, settings.window, settings.width, settings.layers).double()
    optimizer = torch.optim.AdamW(model.parameters(), betas=(0.9, 0.95))
    shares = SHARES[dist.get_world_size()]

    mixture = penstock.Mixture.from_file(settings.mixture)
    loader = penstock.Loader(mixture, batch_size=shares.batch_size, seed=1, rank="env", columns=COLUMNS)
    state = {"training": Training(model, optimizer), "loader": loader}
    if resume_from:
        dcp.load(state, checkpoint_id=resume_from)
    done = loader.state_dict()["position"] // ROWS_PER_STEP

    batches = iter(loader)
    for step in range(done + 1, until + 1):
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(step, settings.steps)
        for _ in range(shares.accumulation):
            batch = next(batches)
            losses = losses_of(model, batch)
            (losses.mean() / shares.accumulation).backward()
            log.batch(step, batch, losses.detach())
        average_gradients(model)
        optimizer.step()
        optimizer.zero_grad()
        if step % settings.save_every == 0:
            dcp.save(state, checkpoint_id=checkpoints / f"step-{step:04}")
    loader.close()
    if until == settings.steps:
        log.write(evaluation=evaluate(model, settings))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--settings", required=True)
    parser.add_argument("--name", required=True, help="name of this run: where its log and checkpoints go")
    parser.add_argument("--resume-from", help="a checkpoint's folder")
    parser.add_argument("--until", type=int, required=True, help="the last step to take")
    arguments = parser.parse_args()
    torch.use_deterministic_algorithms(True)
    dist.init_process_group("gloo")
    settings = Settings.load(arguments.settings)
    folder = settings.folder / "runs" / arguments.name
    train(settings, Log(folder), folder / "checkpoints", arguments.resume_from, arguments.until)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
