"""The contract of orders and of views: a state taken at any step gives exactly the rest, in a fresh loader."""

from __future__ import annotations

import json
from itertools import islice
from typing import Any

import penstock
import pytest
from _datasets import MODES, assert_all_same, orders_of, snapshot

ORDERS = (
    "uniform", "sequential", "blocks", "lanes", "fetches", "bucketed", "weighted", "weighted in blocks", "balanced",
    "shares", "custom", "asked",
)  # fmt: skip


def loader_of(view: penstock.View, order: Any, **options: Any) -> penstock.Loader:
    given = {"batch_size": 3, "seed": 11, "epochs": 2, "threads": 2, "order": orders_of(view)[order], **options}
    return penstock.Loader(view, **given)


# Every order on two views, and every view with two orders: tests/model has all the pairs.
PAIRS = sorted(
    {
        *((mode, order) for mode in ("compact", "padded") for order in ORDERS),
        *((mode, order) for mode in MODES for order in ("uniform", "lanes")),
    }
)


@pytest.mark.parametrize(("mode", "order"), PAIRS)
def test_restore_at_every_step_repeats_the_rest(tmp_path, mode, order):
    view = MODES[mode](tmp_path)
    framework = "torch" if ORDERS.index(order) % 2 else "numpy"
    states, batches = [], []
    job = penstock.Job(view, global_batch_size=3, seed=11, epochs=2, order=orders_of(view)[order])
    with loader_of(view, order, framework=framework) as loader:
        states.append(loader.state_dict())
        for batch in loader:
            batches.append(snapshot(batch))
            assert batch.state_dict() == loader.state_dict()
            assert job.plan(batch.position, 0, 1).picks["index"].tolist() == batches[-1]["indices"].tolist()
            states.append(loader.state_dict())
    epoch = len(view) + 2 if order == "custom" else len(view)
    assert len(batches) == len(job) == -(-2 * epoch // 3) >= 6
    assert len({batch["indices"].tobytes() for batch in batches}) > 2  # else nothing would be compared
    for step, state in enumerate(states):
        with loader_of(view, order, framework=framework, prefetch=1 + step % 3) as fresh:
            fresh.load_state_dict(json.loads(json.dumps(state)))
            assert_all_same([snapshot(batch) for batch in fresh], batches[step:])
            assert fresh.state_dict()["position"] == 2 * epoch


def test_a_running_loader_goes_wherever_it_is_told_and_its_state_with_it(tmp_path):
    """What others get wrong is the state of a run that was itself resumed, before it gave a batch."""
    view = MODES["raw"](tmp_path)
    with loader_of(view, "uniform", epochs=None, framework="numpy", prefetch=8) as loader:
        start = loader.state_dict()
        batches = [snapshot(batch) for batch in islice(loader, 14)]
        for position in (6, 3, 3):  # with batches under way
            loader.seek(position)
            assert_all_same([snapshot(batch) for batch in islice(loader, 2)], batches[position // 3 :][:2])
        loader.seek(7)  # not where a batch began
        assert next(loader).position == 7
        loader.rewind()
        assert loader.state_dict() == start
        state, done = start, 0
        for taken in (3, 0, 4, 2):
            loader.load_state_dict(state)
            loader.load_state_dict(state)
            state = loader.state_dict()
            for batch in islice(loader, taken):
                assert_all_same([snapshot(batch)], [batches[done]])
                done += 1
                state = loader.state_dict()
                assert state["position"] == 3 * done  # of what was delivered, not of what was read ahead
