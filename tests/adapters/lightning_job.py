"""Lightning's Trainer, mixed precision: an endless loader, or one of epochs, which are Lightning's then."""

from __future__ import annotations

from typing import Any

import job
import lightning
import penstock
import torch
from lightning.pytorch.callbacks import ModelCheckpoint
from penstock.adapters.lightning import TrainLoader


class Module(lightning.LightningModule):
    def __init__(self, log: job.Log) -> None:
        super().__init__()
        self.model, self._lines = job.model(), log

    def training_step(self, batch: dict[str, Any], number: int) -> torch.Tensor:
        loss = job.loss_of(self.model, batch["inputs"], batch["labels"])
        self.log("loss", loss, on_step=True, on_epoch=True)
        self._seen = (batch["inputs"], loss.item())
        return loss

    def on_train_batch_end(self, outputs: Any, batch: Any, number: int) -> None:
        inputs, loss = self._seen
        self._lines.trained(self.trainer.global_step, [inputs], loss)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.AdamW(self.parameters(), lr=1e-2)


class Saved(ModelCheckpoint):
    """Says what a checkpoint holds of the loader."""

    def __init__(self, log: job.Log, loader: penstock.Loader, **options: Any) -> None:
        super().__init__(**options)
        self._lines, self._loader = log, loader

    def _save_checkpoint(self, trainer: lightning.Trainer, filepath: str) -> None:
        super()._save_checkpoint(trainer, filepath)
        states = torch.load(filepath, weights_only=False)["loops"]["fit_loop"]["state_dict"]["combined_loader"]
        self._lines.saved(states[0], self._loader)


def main() -> None:
    options = job.arguments()
    log = job.Log(options)
    length = {"batch_size": 64, "epochs": 50, "per_epoch": True} if options.epochs else {"batch_size": 4}
    loader = penstock.Loader(job.view(options.folder), seed=1, **length)
    saved = Saved(log, loader, dirpath=options.checkpoints, every_n_train_steps=options.save_at, filename="{step}",
                  save_top_k=-1)  # fmt: skip
    trainer = lightning.Trainer(
        max_steps=options.steps,
        accelerator="cpu",
        precision="bf16-mixed",
        callbacks=[saved],
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    path = options.checkpoints / f"step={options.save_at}.ckpt" if options.resume else None
    trainer.fit(Module(log), TrainLoader(loader), ckpt_path=path, weights_only=False)


if __name__ == "__main__":
    main()
