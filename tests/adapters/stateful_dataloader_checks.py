"""What a StatefulDataLoader over `torch.BatchDataset` does with states of another job."""

from __future__ import annotations

from itertools import islice
from typing import Any

import job
import penstock
from penstock.adapters.torch import BatchDataset
from torchdata.stateful_dataloader import StatefulDataLoader


def loaded(view: penstock.View, workers: int, **options: Any) -> StatefulDataLoader:
    dataset = BatchDataset(view, batch_size=4, epochs=1, **options)
    context = "fork" if workers else None
    return StatefulDataLoader(dataset, batch_size=None, num_workers=workers, multiprocessing_context=context)


def saved(view: penstock.View, workers: int) -> dict[str, Any]:
    """After five batches: of two workers the second is asked next."""
    loader = loaded(view, workers, seed=1)
    batches = iter(loader)
    for _ in range(5):
        next(batches)
    return loader.state_dict()


def positions(loader: StatefulDataLoader, count: int = 6) -> list[int]:
    return [batch["position"] for batch in islice(iter(loader), count)]


def one_process_begins_again(view: penstock.View) -> None:
    for workers in (0, 1):
        loader = loaded(view, workers, seed=2, on_mismatch="restart")
        loader.load_state_dict(saved(view, workers))
        assert positions(loader) == [0, 4, 8, 12, 16, 20], workers
        loader = loaded(view, workers, seed=2, on_mismatch="keep_position")
        loader.load_state_dict(saved(view, workers))
        assert positions(loader) == [20, 24, 28, 32, 36, 40], workers


def several_are_refused_whatever_on_mismatch_says(view: penstock.View) -> None:
    for on_mismatch in ("refuse", "restart", "keep_position"):
        for workers in (2, 3):
            loader = loaded(view, workers, seed=2, on_mismatch=on_mismatch)
            loader.load_state_dict(saved(view, workers))
            with job.refused(penstock.StateMismatchError, "seed"):
                positions(loader)


if __name__ == "__main__":
    with job.corpus() as folder:
        one_process_begins_again(job.view(folder))
        several_are_refused_whatever_on_mismatch_says(job.view(folder))
