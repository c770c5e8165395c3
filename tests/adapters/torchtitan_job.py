"""torchtitan's Trainer with its checkpointer and its Validator, two batches a step, on CPU processes.

torchtitan knows accelerators only: before it is imported the CPU is named to it as one, and an empty module is put in
place of its kernels for mixtures of experts, which need triton. Loop, dataloader, model, optimizer and checkpoints are
its own.
"""

from __future__ import annotations

import gc
import os
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import job
import torch
import torch._utils
from tokenizers import Tokenizer
from tokenizers.models import WordLevel

torch._utils._get_available_device_type = lambda: "cpu"
for name, value in {
    "get_device_name": "CPU",
    "get_device_properties": SimpleNamespace(total_memory=1 << 34),
    "memory_stats": {},
    "reset_peak_memory_stats": None,
    "empty_cache": None,
}.items():
    setattr(torch.cpu, name, lambda *_, value=value: value)

kernels = ModuleType("kernels")
kernels.__getattr__ = lambda name: None
sys.modules["torchtitan.distributed.minimal_async_ep.kernels"] = kernels

from penstock.adapters.torchtitan import DataLoader  # noqa: E402
from torchtitan.components.loss import IGNORE_INDEX, CrossEntropyLoss  # noqa: E402
from torchtitan.components.metrics import MetricsProcessor  # noqa: E402
from torchtitan.components.optimizer import LRSchedulersContainer, default_adamw  # noqa: E402
from torchtitan.components.validate import Validator  # noqa: E402
from torchtitan.config import CommConfig, DebugConfig, ParallelismConfig, TrainingConfig  # noqa: E402
from torchtitan.distributed import utils  # noqa: E402
from torchtitan.models.common.attention import ScaledDotProductAttention  # noqa: E402
from torchtitan.models.llama3 import model_registry  # noqa: E402
from torchtitan.trainer import Trainer  # noqa: E402

try:
    from torchtitan.components.checkpointer.dcp import CheckpointManager
except ModuleNotFoundError:  # 0.3
    from torchtitan.components.checkpoint import CheckpointManager

utils.set_pg_timeouts = lambda **_: None  # its barrier names a device, which gloo does not take

GLOBAL_BATCH = 8
LOCAL_BATCH = 2


def batches() -> dict[str, int]:
    """The same batches in the words of main, which counts tokens, or of 0.3, which counts rows."""
    if "max_context_length" in TrainingConfig.__slots__:
        return {
            "num_tokens_per_microbatch_per_dp_rank": LOCAL_BATCH * job.WINDOW,
            "num_tokens_per_train_step": GLOBAL_BATCH * job.WINDOW,
            "max_context_length": job.WINDOW,
        }
    return {"local_batch_size": LOCAL_BATCH, "global_batch_size": GLOBAL_BATCH, "seq_len": job.WINDOW}


def configuration(options: Any) -> Trainer.Config:
    assets = options.folder / "tokenizer"
    assets.mkdir(exist_ok=True)
    if not (assets / "tokenizer.json").exists():
        words = {str(number): number for number in range(job.VOCABULARY)}
        Tokenizer(WordLevel(words, unk_token="0")).save(str(assets / "tokenizer.json"))
    spec = model_registry("debugmodel")
    for layer in spec.model.layers:  # flex_attention has no backward on CPUs
        layer.attention.inner_attention = ScaledDotProductAttention.Config()
    return Trainer.Config(
        loss=CrossEntropyLoss.Config(global_vocab_size=2048),
        hf_assets_path=str(assets),
        dump_folder=str(options.checkpoints),
        model_spec=spec,
        optimizer=default_adamw(lr=1e-3),
        lr_scheduler=LRSchedulersContainer.Config(warmup_steps=2),
        training=TrainingConfig(steps=options.steps, disable_cuda_graphs=True, **batches()),
        dataloader=DataLoader.Config(mixture=str(options.folder / "mix.json"), seed=3),
        validator=Validator.Config(
            enable=True, freq=4, dataloader=DataLoader.Config(mixture=str(options.folder / "held_out.json"))
        ),
        metrics=MetricsProcessor.Config(log_freq=1),
        parallelism=ParallelismConfig(
            data_parallel_replicate_degree=int(os.environ["WORLD_SIZE"]),
            data_parallel_shard_degree=1,  # gloo cannot divide as it scatters, which FSDP asks of it
            spmd_backend="partial_dtensor",
        ),
        checkpoint=CheckpointManager.Config(
            enable=True,
            interval=options.save_at,
            load_step=options.save_at if options.resume else -1,
            last_save_model_only=False,
        ),
        comm=CommConfig(),
        debug=DebugConfig(seed=0),
    )


def note_validations(trainer: Trainer, log: job.Log) -> None:
    """Writes what each validation saw; whatever loader it made is gone by the next."""
    seen: list[torch.Tensor] = []
    validator, metrics = trainer.validator, trainer.metrics_processor
    process, write = validator.post_dataloading_process, metrics.log_validation

    def process_and_note(given: dict[str, Any], *more: Any) -> Any:
        valid = (more[0].view(-1, job.WINDOW) != IGNORE_INDEX).any(dim=1)
        seen.append(given["input"].view(-1, job.WINDOW)[valid])
        loaders = [each for each in gc.get_objects() if isinstance(each, DataLoader)]
        assert len(loaders) == 2, "of the training, and of this validation"
        return process(given, *more)

    def write_and_note(loss: float, step: int) -> None:
        log.validated(step, seen, loss)
        seen.clear()
        write(loss=loss, step=step)

    validator.post_dataloading_process = process_and_note
    metrics.log_validation = write_and_note


def main() -> None:
    options = job.arguments()
    options.log = options.log.with_name(f"{options.log.stem}-{os.environ['RANK']}{options.log.suffix}")
    log = job.Log(options)
    trainer = configuration(options).build()
    loader = trainer.dataloader.loader
    seen: list[tuple[torch.Tensor, float]] = []
    forward, step, save = trainer.forward_backward_step, trainer.train_step, trainer.checkpointer.save

    def forward_and_note(**given: Any) -> torch.Tensor:
        loss = forward(**given)
        seen.append((given["input_dict"]["input"].view(-1, job.WINDOW), loss.item()))
        return loss

    def step_and_write(batches: Any) -> None:
        seen.clear()
        step(batches)

    def save_and_write(at: int, **given: Any) -> Any:
        done = save(at, **given)
        if at == options.save_at:
            log.saved(trainer.dataloader.state_dict(), loader)
        inputs, losses = zip(*seen, strict=True)
        log.trained(at, list(inputs), sum(losses))
        return done

    note_validations(trainer, log)
    trainer.forward_backward_step = forward_and_note
    trainer.train_step = step_and_write
    trainer.checkpointer.save = save_and_write
    trainer.train()
    trainer.close()
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
