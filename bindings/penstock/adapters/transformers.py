"""A loader for transformers' Trainer: `TrainLoader` as its train dataloader, `LoaderCallback` for the state."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from penstock._base.errors import InvalidArgumentError
from penstock._data.batch import Batch
from penstock._load.loader import Loader
from penstock.adapters._common import checked, missing

try:
    import torch
    from transformers.trainer_callback import ExportableState, TrainerCallback
except ImportError as error:
    raise missing("transformers", "'transformers[torch]'", error, "5.23.0") from error

_IGNORED = -100


class TrainLoader:
    """A loader as the Trainer's train dataloader: return it from `Trainer.get_train_dataloader`.

    Batches are dicts of what a causal language model takes: `input_ids`, `labels`, `shift_labels`, and where the loader
    has them `position_ids` and `attention_mask`. `shift_labels` are `batch.labels`, the targets as they are, which
    transformers' loss for causal models prefers. `labels` are the same a place to the right: models that shift labels
    themselves get the same targets, but for each row's last.

    With `LoaderCallback` among the callbacks the state is saved and restored.

    Examples:
        >>> import numpy as np, os, penstock, tempfile
        >>> from penstock.adapters.transformers import TrainLoader
        >>> path = os.path.join(tempfile.mkdtemp(), "tokens.bin")
        >>> np.arange(1000, dtype=np.uint16).tofile(path)
        >>> view = penstock.open(path, dtype="u2").windows(4, lookahead=1)
        >>> batch = next(iter(TrainLoader(penstock.Loader(view, batch_size=1, order="sequential"))))
        >>> {name: value.tolist() for name, value in batch.items()}
        {'input_ids': [[0, 1, 2, 3]], 'labels': [[-100, 1, 2, 3]], 'shift_labels': [[1, 2, 3, 4]]}
    """

    # What accelerate reads of a dataloader that it skips batches of.
    batch_size = None
    drop_last = False
    prefetch_factor = None

    def __init__(self, loader: Loader) -> None:
        """Wraps a loader, which was told its rank: the Trainer does not split what it gives.

        Raises:
            InvalidArgumentError: no loader, or one of NumPy arrays.
        """
        self.loader = checked("transformers.TrainLoader", loader)
        self._trained = 0  # batches of this pass before the position, which the Trainer skips

    def __iter__(self) -> TrainLoader:
        """Goes on at the loader's position."""
        iter(self.loader)
        return self

    def __next__(self) -> Any:
        """The next batch as the model's arguments; or what the loader's `transform` made of it.

        Raises:
            InvalidArgumentError: a batch without labels.
        """
        batch = next(self.loader)
        return _arguments(batch) if isinstance(batch, Batch) else batch

    def __len__(self) -> int:
        """Batches of the run, or of the epoch with per_epoch.

        Raises:
            TypeError: an endless loader; the Trainer then needs `max_steps`.
        """
        return len(self.loader)

    @property
    def dataset(self) -> Any:
        """The dataset that accelerate reads where the Trainer skips the batches that it has trained on.

        They are no batches here: the position is behind them.
        """
        return _Rest(self)


class _Rest(torch.utils.data.IterableDataset[Any]):
    """A pass from its beginning, with nothing in place of the batches that were trained on."""

    def __init__(self, loader: TrainLoader) -> None:
        self._loader = loader

    def __iter__(self) -> Iterator[Any]:
        for _ in range(self._loader._trained):
            yield None
        yield from self._loader


class LoaderCallback(TrainerCallback, ExportableState):
    """Keeps the state of the `TrainLoader` in the Trainer's checkpoints, in trainer_state.json.

    It is the state after the last optimizer step, though the Trainer fetches all batches of a step before it; with all
    weights of a steered mixture that were set when the Trainer saves, by callbacks that come later, too. With
    `resume_from_checkpoint` the loader goes on there before the first step. `ignore_data_skip` and
    `restore_callback_states_from_checkpoint` may be as they are; with the former a pass that was broken off counts its
    steps from 0 again, so that a last step of fewer batches is lost.
    """

    def __init__(self) -> None:
        """Knows the loader once training begins."""
        self.loader_state: dict[str, Any] | None = None
        self._loader: Loader | None = None

    def state(self) -> dict[str, Any]:
        """The state that the Trainer saves of this callback: asked for when it saves, after the callbacks of a step."""
        if self.loader_state is not None and self._loader is not None:
            self.loader_state = {**self.loader_state, "job": self._loader.state_dict()["job"]}
        return {"args": {}, "attributes": {"loader_state": self.loader_state}}

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Takes the loader to where the checkpoint was saved.

        Raises:
            InvalidArgumentError: the dataloader is no `TrainLoader`; a checkpoint without the state of one.
            StateMismatchError: a state of another job.
        """
        train = _train_loader(kwargs)
        train._trained = 0
        if state.global_step > 0:
            train.loader.load_state_dict(_saved(state))
            if not args.ignore_data_skip:
                train._trained = _trained(train, args, state)
        self._note(train.loader)

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Notes the state after a step."""
        self._note(_train_loader(kwargs).loader)

    def on_epoch_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """The next pass begins with a batch."""
        _train_loader(kwargs)._trained = 0

    def _note(self, loader: Loader) -> None:
        self._loader, self.loader_state = loader, loader.state_dict()


def _arguments(batch: Batch) -> dict[str, Any]:
    targets = batch.labels
    labels = torch.full_like(targets, _IGNORED)
    labels[:, 1:] = targets[:, :-1]
    found = {"input_ids": batch.inputs, "labels": labels, "shift_labels": targets}
    for name in ("position_ids", "attention_mask"):
        if name in batch._layout.column_of:
            found[name] = getattr(batch, name)
    return found


def _train_loader(kwargs: dict[str, Any]) -> TrainLoader:
    found = kwargs.get("train_dataloader")
    if not isinstance(found, TrainLoader):
        raise InvalidArgumentError(
            f"LoaderCallback: the Trainer's dataloader is a {type(found).__name__}: return a TrainLoader from "
            "get_train_dataloader"
        )
    return found


def _saved(state: Any) -> dict[str, Any]:
    """The loader's state in a checkpoint's trainer state; other callbacks may have this one's name."""
    entries = state.stateful_callbacks.get("LoaderCallback", [])
    for entry in entries if isinstance(entries, list) else [entries]:
        found: dict[str, Any] | None = entry.get("attributes", {}).get("loader_state")
        if found is not None:
            return found
    raise InvalidArgumentError(
        f"LoaderCallback: the checkpoint of step {state.global_step} has no state of a loader: it was saved without "
        "LoaderCallback; take the loader to its place with seek() and train without the callback"
    )


def _trained(train: TrainLoader, args: Any, state: Any) -> int:
    """Batches that the Trainer will skip in the pass that it goes on with, by its own count."""
    accumulated = args.gradient_accumulation_steps
    steps = state.max_steps if train.loader._endless else max(1, -(-len(train) // accumulated))
    return int(state.global_step % steps * accumulated)
