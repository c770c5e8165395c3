"""transformers' Trainer, two batches a step, an epoch whose last step has one; resumed without further arguments."""

from __future__ import annotations

import json
from typing import Any

import job
import penstock
import torch
import transformers
from penstock.adapters.transformers import LoaderCallback, TrainLoader


class Trainer(transformers.Trainer):
    def __init__(self, loader: penstock.Loader, log: job.Log, **options: Any) -> None:
        super().__init__(**options)
        self.loader, self.lines, self.seen = loader, log, []

    def get_train_dataloader(self) -> Any:
        return TrainLoader(self.loader)

    def training_step(self, model: Any, inputs: dict[str, Any], count: Any = None) -> torch.Tensor:
        loss = super().training_step(model, inputs, count)
        self.seen.append((inputs["input_ids"], loss.item()))
        return loss

    def _save_checkpoint(self, model: Any, trial: Any) -> None:
        super()._save_checkpoint(model, trial)
        path = job_checkpoint(self.args.output_dir, self.state.global_step)
        state = json.loads(path.joinpath("trainer_state.json").read_text())
        self.lines.saved(state["stateful_callbacks"]["LoaderCallback"]["attributes"]["loader_state"], self.loader)


class Lines(transformers.TrainerCallback):
    """Writes a step's line after the Trainer has saved it."""

    trainer: Trainer

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        inputs, losses = zip(*self.trainer.seen, strict=True)
        self.trainer.seen = []
        self.trainer.lines.trained(state.global_step, list(inputs), sum(losses))


def job_checkpoint(folder: str, step: int) -> Any:
    from pathlib import Path

    return Path(folder) / f"checkpoint-{step}"


def main() -> None:
    options = job.arguments()
    transformers.set_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=job.VOCABULARY,
        hidden_size=32,
        intermediate_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        attention_dropout=0.1,
    )
    # 4 rows a batch: the number of batches is odd, so the last step of the epoch has one.
    loader = penstock.Loader(job.view(options.folder), batch_size=4, seed=1, epochs=1)
    lines = Lines()
    trainer = Trainer(
        loader,
        job.Log(options),
        model=transformers.LlamaForCausalLM(config),
        args=transformers.TrainingArguments(
            output_dir=str(options.checkpoints),
            gradient_accumulation_steps=2,
            num_train_epochs=1,
            save_strategy="steps",
            save_steps=options.save_at,
            use_cpu=True,
            report_to=[],
            disable_tqdm=True,
        ),
        callbacks=[LoaderCallback(), lines],
    )
    lines.trainer = trainer
    path = job_checkpoint(str(options.checkpoints), options.save_at)
    trainer.train(resume_from_checkpoint=str(path) if options.resume else None)


if __name__ == "__main__":
    main()
