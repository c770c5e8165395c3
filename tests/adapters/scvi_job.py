"""scvi-tools' SCVI and SCANVI: a checkpoint of Lightning's within an epoch, validation after each."""

from __future__ import annotations

import os
from typing import Any

import job
import lightning.pytorch
import scvi
import torch
from penstock.adapters.scvi import DataModule


class Saved(lightning.pytorch.Callback):
    """Saves after a step; logs what each step was trained on."""

    def __init__(self, log: job.Log, cells: DataModule, options: Any) -> None:
        self._log, self._cells, self._options = log, cells, options

    def on_train_batch_end(self, trainer: Any, model: Any, outputs: Any, batch: Any, number: int) -> None:
        step = trainer.global_step
        if step == self._options.save_at:
            path = self._options.checkpoints / "saved.ckpt"
            trainer.save_checkpoint(path)
            state = torch.load(path, weights_only=False)["DataModule"]["cells"]
            if trainer.is_global_zero:
                self._log.saved(state, self._cells.train_dataloader().loader)
        batches = batch if isinstance(batch, list | tuple) else [batch]
        self._log.trained(step, [each["X"] for each in batches], outputs["loss"].item())


def main() -> None:
    options = job.arguments()
    ranks, kind = int(os.environ.get("WORLD_SIZE", 1)), options.model
    if "RANK" in os.environ:
        options.log = options.log.with_name(f"{options.log.stem}-{os.environ['RANK']}.jsonl")
    cells = DataModule(
        options.folder / "plates",
        batch_key="plate",
        labels_key="cell_type",
        model=kind,
        batch_size=128 // ranks,
        seed=1,
    )
    scvi.settings.seed = 0
    made = {"datamodule": cells} if kind == "SCANVI" else {}
    model = getattr(scvi.model, kind)(registry=cells.registry, n_hidden=16, **made)
    model.train(
        datamodule=cells,
        max_epochs=50,
        max_steps=options.steps,
        accelerator="cpu",
        devices=ranks,
        strategy="ddp_find_unused_parameters_true" if ranks > 1 else "auto",
        check_val_every_n_epoch=1,
        enable_progress_bar=False,
        default_root_dir=str(options.checkpoints),
        log_save_dir=str(options.checkpoints),
        callbacks=[Saved(job.Log(options), cells, options)],
        ckpt_path=options.checkpoints / "saved.ckpt" if options.resume else None,
    )


if __name__ == "__main__":
    main()
