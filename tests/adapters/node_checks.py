"""What `torchdata.Node` promises, beside being resumed: passes, states at every step, what is refused."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from itertools import islice
from typing import Any

import job
import numpy as np
import penstock
import torch
from penstock.adapters.torchdata import Node
from torchdata.nodes import Loader, Mapper, Prefetcher


def positions(batch: Any) -> list[int]:
    return batch["indices"].tolist()


def plain(view: penstock.View, **options: Any) -> list[list[int]]:
    with penstock.Loader(view, **options) as loader:
        return [batch.indices.tolist() for batch in loader]


def passes_are_epochs_and_begin_again(view: penstock.View) -> None:
    options: dict[str, Any] = {"batch_size": 64, "seed": 2, "epochs": 2, "per_epoch": True}
    loader = penstock.Loader(view, **options)
    expected = [[batch.indices.tolist() for batch in loader] for _ in range(2)]
    nodes = Loader(Prefetcher(Node(penstock.Loader(view, **options)), prefetch_factor=3))
    for epoch in (0, 1, 0):  # the run is over after two: the third pass begins it again
        assert [positions(batch) for batch in nodes] == expected[epoch], epoch
    # Broken off, a pass begins again, though the Prefetcher has read on.
    assert [positions(batch) for batch in islice(nodes, 2)] == expected[1][:2]
    assert [positions(batch) for batch in nodes] == expected[1]


def states_are_of_what_was_given(view: penstock.View) -> None:
    options: dict[str, Any] = {"batch_size": 64, "seed": 2, "epochs": 1}
    expected = plain(view, **options)
    for frequency in (1, 2):

        def nodes(frequency: int = frequency) -> Loader:
            node = Node(penstock.Loader(view, **options))
            mapped = Mapper(Prefetcher(node, prefetch_factor=3, snapshot_frequency=frequency), positions)
            return Loader(mapped, restart_on_stop_iteration=False)

        for step in range(len(expected) + 1):
            loader = nodes()
            given = list(islice(iter(loader), step))
            again = nodes()
            again.load_state_dict(loader.state_dict())
            assert given + list(again) == expected, (frequency, step)


def what_cannot_be_is_refused(view: penstock.View) -> None:
    for given in (view, penstock.Loader(view, batch_size=4, framework="numpy")):
        with job.refused(penstock.InvalidArgumentError, "torchdata.Node"):
            Node(given)
    nodes = Loader(Node(penstock.Loader(view, batch_size=4, seed=1)))
    nodes.load_state_dict(Loader(Node(penstock.Loader(view, batch_size=4, seed=2))).state_dict())
    with job.refused(penstock.StateMismatchError, "seed"):
        iter(nodes)


def ends_in_the_middle_of_a_call() -> None:
    """Ends Python while the Prefetcher's thread makes tensors in `Node.next`: torch aborts where that unwinds it."""
    inside = threading.Event()

    def makes_tensors(batch: Any) -> Any:
        inside.set()
        until = time.monotonic() + 1
        while time.monotonic() < until:
            torch.from_numpy(np.zeros(16))
        return batch

    with job.corpus() as folder:
        loader = penstock.Loader(job.view(folder), batch_size=4, transform=makes_tensors)
        batches = iter(Loader(Prefetcher(Node(loader), prefetch_factor=2)))
        inside.wait()
    sys.exit(int(batches is None))


def python_ends_while_a_thread_is_in_a_node() -> None:
    for _ in range(3):
        subprocess.run([sys.executable, __file__, "end"], check=True)


if __name__ == "__main__":
    if sys.argv[1:] == ["end"]:
        ends_in_the_middle_of_a_call()
    python_ends_while_a_thread_is_in_a_node()
    with job.corpus() as folder:
        view = job.view(folder)
        passes_are_epochs_and_begin_again(view)
        states_are_of_what_was_given(view)
        what_cannot_be_is_refused(view)
