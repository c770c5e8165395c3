"""The contract of orders and of views: a state taken at any step gives exactly the rest, in a fresh loader."""

from __future__ import annotations

import json
from itertools import islice
from typing import Any

import numpy as np
import penstock
import pytest
from _datasets import MODES, assert_all_same, orders_of, raw_tokens, snapshot

ORDERS = (
    "uniform", "sequential", "blocks", "lanes", "fetches", "bucketed", "weighted", "weighted in blocks", "balanced",
    "shares",
)  # fmt: skip


def loader_of(view: penstock.View, order: Any, **options: Any) -> penstock.Loader:
    given = {"batch_size": 3, "seed": 11, "epochs": 2, "threads": 2, "order": orders_of(view)[order], **options}
    return penstock.Loader(view, **given)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("mode", MODES)
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
    assert len(batches) == len(job) == -(-2 * len(view) // 3) >= 6
    for step, state in enumerate(states):
        with loader_of(view, order, framework=framework, prefetch=1 + step % 3) as fresh:
            fresh.load_state_dict(json.loads(json.dumps(state)))
            assert_all_same([snapshot(batch) for batch in fresh], batches[step:])
            assert fresh.state_dict()["position"] == 2 * len(view)


def test_the_batches_are_not_all_alike(tmp_path):
    """Else the tests above would compare nothing."""
    view = MODES["compact"](tmp_path)
    with loader_of(view, "uniform", framework="numpy") as loader:
        batches = [snapshot(batch) for batch in loader]
    assert len({batch["token"].tobytes() for batch in batches}) == len(batches)
    assert sum(len(batch["spans"]) for batch in batches) > len(batches)


@pytest.mark.parametrize("per_epoch", [False, True])
@pytest.mark.parametrize("tail", ["pad", "drop"])
def test_restore_at_every_step_with_every_tail(tmp_path, per_epoch, tail):
    view = MODES["compact"](tmp_path)
    options = {"per_epoch": per_epoch, "tail": tail, "epochs": 3, "framework": "numpy", "skip": [(4, 6), (20, 27)]}

    def rest(loader: penstock.Loader) -> list[dict[str, Any]]:
        found = []
        while loader.state_dict()["position"] < 3 * len(view):
            found += [snapshot(batch) for batch in loader]
        return found

    states, batches = [], []
    with loader_of(view, "uniform", **options) as loader:
        while loader.position < 3 * len(view):
            for batch in loader:
                batches.append(snapshot(batch))
                states.append(batch.state_dict())
    assert len(batches) >= 6
    for step, state in enumerate(states):
        with loader_of(view, "uniform", **options) as fresh:
            fresh.load_state_dict(state)
            assert_all_same(rest(fresh), batches[step + 1 :])


def test_a_state_loads_before_and_after_iter_and_again_and_again(tmp_path):
    view = MODES["raw"](tmp_path)
    with loader_of(view, "uniform", epochs=None, framework="numpy") as loader:
        iterator = iter(loader)
        start = loader.state_dict()
        batches = [snapshot(next(iterator)) for _ in range(8)]
        loader.load_state_dict(start)  # after iter(), with batches under way
        assert_all_same([snapshot(next(iterator)) for _ in range(8)], batches)
        loader.load_state_dict(start)
        loader.load_state_dict(start)
        assert_all_same([snapshot(batch) for batch in islice(loader, 8)], batches)


def test_a_state_saved_after_a_load_loads_again(tmp_path):
    """Three deep: what others get wrong is the state of a run that was itself resumed, before it gave a batch."""
    view = MODES["raw"](tmp_path)
    with loader_of(view, "uniform", epochs=None, framework="numpy") as loader:
        batches = [snapshot(batch) for batch in islice(loader, 14)]
    state, done = None, 0
    for taken in (3, 0, 4, 2):
        with loader_of(view, "uniform", epochs=None, framework="numpy") as loader:
            if state is not None:
                loader.load_state_dict(state)
            assert_all_same([snapshot(batch) for batch in islice(loader, taken)], batches[done : done + taken])
            done += taken
            state = loader.state_dict()
    with loader_of(view, "uniform", epochs=None, framework="numpy") as loader:
        assert state is not None
        loader.load_state_dict(state)
        assert_all_same([snapshot(batch) for batch in islice(loader, 5)], batches[done:])


def test_those_who_fetch_ahead_save_the_state_of_the_batch_that_they_trained_on(tmp_path):
    view = MODES["compact"](tmp_path)
    with loader_of(view, "uniform", framework="numpy") as loader:
        fetched = list(islice(loader, 5))
        trained = fetched[1]
        assert trained.state_dict()["position"] == 6
        assert loader.state_dict()["position"] == 15
        expected = [snapshot(batch) for batch in fetched[2:]]
    with loader_of(view, "uniform", framework="numpy") as fresh:
        fresh.load_state_dict(trained.state_dict())
        assert_all_same([snapshot(batch) for batch in islice(fresh, 3)], expected)


def test_the_state_tells_what_was_delivered_not_what_was_read_ahead(tmp_path):
    dataset, _ = raw_tokens(tmp_path / "t.bin", 1000)
    with penstock.Loader(dataset.windows(10), batch_size=2, prefetch=8, epochs=1, framework="numpy") as loader:
        for step, batch in enumerate(loader, 1):
            assert loader.state_dict()["position"] == 2 * step == batch.position + 2


def test_seek_goes_where_it_is_told_and_rewind_to_the_beginning(tmp_path):
    dataset, _ = raw_tokens(tmp_path / "t.bin", 1000)
    with penstock.Loader(dataset.windows(10), batch_size=4, seed=3, framework="numpy") as loader:
        batches = [np.array(batch["token"]) for batch in islice(loader, 6)]
        loader.seek(8)
        np.testing.assert_array_equal(next(loader)["token"], batches[2])
        loader.seek(9)  # not where a batch began
        assert next(loader).position == 9
        loader.rewind()
        assert loader.position == 0
        np.testing.assert_array_equal(next(loader)["token"], batches[0])
