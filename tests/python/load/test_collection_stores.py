"""CollectionLoader over real stores: every order on 1 to 5 ranks, restored at every step, and where it is read."""

from __future__ import annotations

from typing import Any

import numpy as np
import penstock
import pytest
from _stores import NAMES, ROW, ROWS, Store, make, orders


@pytest.fixture(params=NAMES)
def store(request, tmp_path):
    return make(request.param, tmp_path)


def loader(store: Store, **options: Any) -> penstock.CollectionLoader:
    return penstock.CollectionLoader(store.open, **{"batch_size": 3, "epochs": 2, "fetch_factor": 4, **options})


def delivered(store: Store, each: penstock.CollectionLoader) -> tuple[np.ndarray, penstock.BatchInfo]:
    rows = store.rows(next(each))
    np.testing.assert_array_equal(rows, ROW[each.info.indices])
    return rows, each.info


def deliver_and_restore(store: Store, order: Any, world_size: int) -> None:
    options = {"order": order, "world_size": world_size, "seed": 5, "threads": 0}
    ranks = [loader(store, rank=rank, **options) for rank in range(world_size)]
    found, states = [], []
    for _ in range(len(ranks[0])):
        states.append(ranks[0].state_dict())
        assert all(rank.state_dict() == states[-1] for rank in ranks)
        infos = [delivered(store, rank)[1] for rank in ranks]
        found.append([info.indices for info in infos])
        valid = np.stack([info.valid for info in infos], 1).ravel()
        job = penstock.orders.resolve(order, ROWS, 5).pick(states[-1]["position"], 1, int(valid.sum()))
        assert np.stack(found[-1], 1).ravel()[valid].tolist() == job[0].tolist()
    assert all(next(rank, None) is None for rank in ranks)
    # One rank goes on from every step, which mostly lies within a fetch, and back again.
    one = ranks[world_size // 2]
    for step, state in enumerate(states):
        one.load_state_dict(state)
        for expected in found[step : step + 2]:
            assert delivered(store, one)[1].indices.tolist() == expected[world_size // 2].tolist()


@pytest.mark.parametrize("order", orders())
def test_all_ranks_together_deliver_the_job_and_every_state_repeats_the_rest(order, tmp_path):
    store = make("memmap", tmp_path)
    for world_size in range(1, 6):
        deliver_and_restore(store, orders()[order], world_size)


def test_any_store_delivers_the_job_whatever_threads_processes_and_fetches(store):
    deliver_and_restore(store, penstock.orders.Blocks(2, 12), 2)
    options = {"order": penstock.orders.Blocks(2, 12), "seed": 3}
    with loader(store, threads=0, **options) as plain:
        expected = [store.rows(batch).tolist() for batch in plain]
    for other in (
        {"threads": 1, "fetch_factor": None}, {"threads": 1, "prefetch": 5, "fetch_factor": 1},
        {"processes": 1, "fetch_factor": 1},
    ):  # fmt: skip
        with loader(store, **options, **other) as each:
            assert [store.rows(batch).tolist() for batch in each] == expected, other
            each.load_state_dict({**each.state_dict(), "position": 33})  # within a fetch
            assert [store.rows(batch).tolist() for batch in each] == expected[11:], other


def test_loaders_of_one_collection_take_turns(store):
    opened = store.open()
    both = penstock.Collections(store=opened)
    with (
        penstock.CollectionLoader(opened, 3, fetch_factor=1, seed=1) as one,
        penstock.CollectionLoader(opened, 3, fetch_factor=1, seed=2, fetch_transform=lambda x: x) as two,
        penstock.CollectionLoader(both, 3, fetch_factor=1, seed=3) as three,
    ):
        for _ in range(15):
            delivered(store, one), delivered(store, two)
            assert (store.rows(next(three)["store"]) == ROW[three.info.indices]).all()
            assert (store.rows(both[[5, 3]]["store"]) == ROW[[5, 3]]).all()


@pytest.mark.parametrize("name", ["anndata", "zarr"])
def test_suggest_measures_a_real_store(name, tmp_path):
    found = penstock.suggest(make(name, tmp_path).open, 3, seconds=0.1)
    assert 1 <= found.block <= found.fetch_factor <= 16
    assert max(row.observations_per_s for row in found.table) > 0
