"""Stages of shorter windows: with every order, on any ranks, from any state, to the last group."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import penstock
import pytest
from _mixtures import WINDOW, all_rows, loader, rows, rows_of_ranks, write_sources
from penstock import Mixture, Stage, Tokens, orders

STAGES = [
    Stage({"web": 2, "code": 1}, window=16),
    Stage(window=32, at=500),
    Stage({"web": 1, "code": 2}, at=800),
    Stage({"web": 3, "code": 1}, window=16, at=900),
]


@pytest.fixture(scope="module")
def datasets(tmp_path_factory: pytest.TempPathFactory) -> dict[str, penstock.Dataset]:
    return write_sources(tmp_path_factory.mktemp("windows"))


@pytest.fixture(scope="module")
def views(datasets):
    return {name: datasets[name].windows(WINDOW, lookahead=1) for name in ("web", "code")}


@pytest.fixture(scope="module")
def mixture(views):
    return Mixture(views, STAGES, end=1500, group=16)


KINDS = (
    "uniform", "sequential", "fetches", "blocks", "lanes", "one source", "bucketed", "weighted", "balanced", "draws"
)  # fmt: skip


def orders_of(views: dict[str, Any]) -> dict[str, Any]:
    """One of each kind, for all sources or by name."""
    sizes = {name: len(view) for name, view in views.items()}
    return {
        "uniform": "uniform",
        "sequential": "sequential",
        "fetches": orders.Sequential(fetch=8),
        "blocks": orders.Blocks(2, 8),
        "lanes": orders.Blocks(4, 16, lanes=3),
        "one source": {"web": orders.Blocks(4, 16)},
        "bucketed": {name: orders.Bucketed(np.arange(size) % 37, 64, 8) for name, size in sizes.items()},
        "weighted": {name: orders.Weighted(np.arange(1, size + 1)) for name, size in sizes.items()},
        "balanced": {name: orders.Balanced(np.arange(size) % 5) for name, size in sizes.items()},
        "draws": {"code": orders.Weighted(np.arange(1, sizes["code"] + 1), block=2, fetch=8)},
    }


@pytest.mark.parametrize("kind", KINDS)
def test_every_order_gives_the_windows_of_its_units_on_any_ranks_and_threads(kind, mixture, views, datasets):
    order = orders_of(views)[kind]
    whole = rows_of_ranks(mixture, 1, order=order)
    flat = list(itertools.chain(*whole))
    assert len(flat) == 1500
    for ranks, threads in ((1, 1), (2, 3), (4, 1)):
        assert rows_of_ranks(mixture, ranks, order=order, threads=threads) == whole
    window_at = [(stage.begin, stage.window) for stage in mixture.stages]
    units: dict[str, dict[tuple[int, int], list[int]]] = {name: {} for name in views}
    counted = dict.fromkeys(views, 0)
    for position, (source, epoch, index) in enumerate(flat):
        window = [size for begin, size in window_at if begin <= position][-1]
        name = mixture.names[source]
        units[name].setdefault((epoch, index * window // WINDOW), []).append(window)
        counted[name] += 1
    assert counted == mixture.counts(1500)
    for number, (name, view) in enumerate(views.items()):
        seed = penstock._native.MixtureOrder.source_seed(3, mixture.names[number])
        alone = orders.resolve(order.get(name, "uniform") if isinstance(order, dict) else order, len(view), seed)
        given = sum(len(sizes) * size // WINDOW for each in units[name].values() for sizes, size in [(each, each[0])])
        drawn, _, epochs = alone.pick(0, 1, given + 16)
        wanted: dict[tuple[int, int], int] = {}
        for epoch, index in zip(epochs.tolist(), drawn.tolist(), strict=True):
            wanted[epoch, index] = wanted.get((epoch, index), 0) + 1
        for unit, sizes in units[name].items():  # each unit in all its windows, as often as its order has it
            assert sum(sizes) <= WINDOW * wanted[unit]
    for batch in itertools.islice(loader(mixture, order=order), 60):
        window = [size for begin, size in window_at if begin <= batch.position][-1]
        for row, (source, _, index) in enumerate(rows(batch)):
            alone = datasets[mixture.names[source]].windows(window, lookahead=1).read([index])
            assert np.array_equal(batch.inputs[row], alone.inputs[0])


def test_a_dropped_tail_ends_at_each_change_of_window(mixture):
    changes = [stage.begin for stage in mixture.stages[1:]]
    assert changes == [512, 800, 900]
    given = rows_of_ranks(mixture, 1, global_batch_size=70, tail="drop")
    assert all(len(each) == 70 for each in given)
    everything = list(itertools.chain(*rows_of_ranks(mixture, 1, global_batch_size=70)))
    assert len(everything) == 1500
    batches = list(loader(mixture, global_batch_size=70, tail="drop"))
    edges = [0, *changes, 1500]
    starts = [at for begin, end in itertools.pairwise(edges) for at in range(begin, end - 69, 70)]
    assert [batch.position for batch in batches] == starts
    for batch, each in zip(batches, given, strict=True):
        assert each == everything[batch.position : batch.position + 70]
        state = batch.state_dict()
        for ranks in (2, 5):
            later = [rest for other, rest in zip(batches, given, strict=True) if other.position >= state["position"]]
            assert rows_of_ranks(mixture, ranks, state, global_batch_size=70, tail="drop") == later


def test_schedules_of_tokens_keep_their_tokens_across_windows(mixture):
    schedule = [(0, Tokens(512)), (256, Tokens(1024)), (850, 5), (1000, Tokens(256))]
    flat = all_rows(mixture, global_batch_size=60)
    for ranks in (1, 2):
        schedule_of = [(at, 5 * ranks if size == 5 else size) for at, size in schedule]
        loaders = [loader(mixture, global_batch_size=schedule_of, rank=rank, world_size=ranks) for rank in range(ranks)]
        given = []
        for batches in zip(*loaders, strict=True):
            position = batches[0].position
            size = [each for at, each in schedule_of if at <= position][-1]
            window = batches[0].inputs.shape[1]
            total = sum(len(batch.inputs) for batch in batches)
            assert total == (size.count // window if isinstance(size, Tokens) else size), position
            found = [rows(batch) for batch in batches]
            given += [each[row] for row in range(len(found[0])) for each in found if row < len(each)]
        assert given == flat
    with pytest.raises(penstock.InvalidArgumentError, match="no whole windows of 64"):
        loader(mixture, global_batch_size=[(0, Tokens(512)), (100, Tokens(96))])


def last_group(views, caps, **more):
    return Mixture(views, [Stage({"web": 2, "code": 1}, window=16)], caps=caps, group=16, **more)


def test_in_a_last_group_that_is_short_another_end_is_refused_and_before_it_taken(views):
    saved = last_group(views, {"web": 50, "code": 25})  # 75 units: the last group has 11
    whole = all_rows(saved)
    begin, end = 64 * 4, 75 * 4
    assert saved.run_end == end == len(whole) == len(set(whole))
    job = penstock.Job(saved, global_batch_size=1, seed=3)
    for caps in (
        {"web": 55, "code": 25},
        {"web": 50, "code": 28},
        {"web": 50, "code": 24},
        {"web": 49, "code": 25},
        {},
    ):
        other = last_group(views, caps, end=600)
        for position in range(begin - 3, end + 1):
            again = loader(other, global_batch_size=1)
            if position <= begin:
                again.load_state_dict(job.state_dict(position))
                given = whole[:position] + [row for batch in again for row in rows(batch)]
                first = [row for row in given if row[1] == 0]
                assert len(set(first)) == len(first) and len(given) == (other.run_end or 600)
                continue
            with pytest.raises(penstock.StateMismatchError, match=r"stage \d: saved .*from there on"):
                again.load_state_dict(job.state_dict(position))
    alone = [Mixture({"web": views["web"]}, [Stage(window=16)], caps={"web": cap}, group=16) for cap in (75, 80)]
    with pytest.raises(penstock.StateMismatchError) as error:
        loader(alone[1]).load_state_dict(penstock.Job(alone[0], global_batch_size=1, seed=3).state_dict(290))
    assert (
        "stage 1: saved the run's end at position 300, by which the group from 256 is mixed, now no such stage; "
        "34 observations had been given" in str(error.value)
    )


def test_a_changed_group_is_named(views, mixture):
    state = penstock.Job(mixture, global_batch_size=60, seed=3).state_dict(240)
    other = Mixture(views, STAGES, end=1500, group=8)
    with pytest.raises(penstock.StateMismatchError) as error:
        loader(other, global_batch_size=60).load_state_dict(state)
    assert "windows of 16 from position 0, group 16, now " in str(error.value)
    assert "windows of 16 from position 0, group 8;" in str(error.value)


def test_keep_position_goes_on_after_as_many_records(views, mixture):
    whole = Mixture(views, [Stage({"web": 2, "code": 1})], end=3000)
    changes = [stage.begin for stage in mixture.stages]
    state = penstock.Job(mixture, global_batch_size=60, seed=3).state_dict(700)
    records = changes[1] * 16 + (700 - changes[1]) * 32
    found = loader(whole, on_mismatch="keep_position").load_state_dict(state)
    assert found.position == records // WINDOW
    assert "as many records as 700 windows of 16 and 32 and 64, rounded down to windows of 64" in str(found)
    back = penstock.Job(whole, global_batch_size=60, seed=3).state_dict(found.position)
    assert loader(mixture, on_mismatch="keep_position").load_state_dict(back).position == 700
