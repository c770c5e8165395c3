"""torchdata's StatefulDataLoader over a BatchDataset, whose workers have read ahead when it is saved."""

from __future__ import annotations

import job
from penstock.adapters.torch import BatchDataset
from torchdata.stateful_dataloader import StatefulDataLoader


def main() -> None:
    options = job.arguments()
    training = job.Training(options)
    dataset = BatchDataset(job.view(options.folder), batch_size=4, seed=1)
    loader = StatefulDataLoader(
        dataset, batch_size=None, num_workers=options.workers, multiprocessing_context=options.context
    )
    training.resume(loader.load_state_dict)
    for batch in loader:
        training.step(batch["inputs"], batch["labels"], loader.state_dict)
        if training.is_over:
            break


if __name__ == "__main__":
    main()
