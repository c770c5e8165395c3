"""Stages of shorter windows: batches of tokens, the last group, and what a state goes on with.

What every order gives in them, on any ranks and from any state, tests/model and the tests of mixtures in C++ compare.
"""

from __future__ import annotations

import penstock
import pytest
from _mixtures import WINDOW, all_rows, loader, rows, write_sources
from penstock import Mixture, Stage, Tokens

STAGES = [
    Stage({"web": 2, "code": 1}, window=16),
    Stage(window=32, at=500),
    Stage({"web": 1, "code": 2}, at=800),
    Stage({"web": 3, "code": 1}, window=16, at=900),
]


@pytest.fixture(scope="module")
def views(tmp_path_factory):
    datasets = write_sources(tmp_path_factory.mktemp("windows"))
    return {name: datasets[name].windows(WINDOW, lookahead=1) for name in ("web", "code")}


@pytest.fixture(scope="module")
def mixture(views):
    return Mixture(views, STAGES, end=1500, group=16)


def test_schedules_of_tokens_keep_their_tokens_across_windows(mixture):
    schedule = [(0, Tokens(512)), (256, Tokens(1024)), (850, 5), (1000, Tokens(256))]
    flat = all_rows(mixture, global_batch_size=60)
    assert len(flat) == 1500
    given = []
    for batch in loader(mixture, global_batch_size=schedule):
        size = [each for at, each in schedule if at <= batch.position][-1]
        window = batch.inputs.shape[1]
        assert len(batch.inputs) == (size.count // window if isinstance(size, Tokens) else size), batch.position
        given += rows(batch)
    assert given == flat
    with pytest.raises(penstock.InvalidArgumentError, match="no whole windows of 64"):
        loader(mixture, global_batch_size=[(0, Tokens(512)), (100, Tokens(96))])
    plain = loader(mixture.sources["web"], global_batch_size=[(0, Tokens(128)), (10, 4)])
    assert [len(rows(next(plain))) for _ in range(7)] == [2, 2, 2, 2, 2, 4, 4]


def last_group(views, caps, **more):
    return Mixture(views, [Stage({"web": 2, "code": 1}, window=16)], caps=caps, group=16, **more)


def test_in_a_last_group_that_is_short_another_end_is_refused_and_before_it_taken(views):
    saved = last_group(views, {"web": 50, "code": 25})  # 75 units: the last group has 11
    whole = all_rows(saved)
    begin, end = 64 * 4, 75 * 4
    assert saved.run_end == end == len(whole) == len(set(whole))
    job = penstock.Job(saved, global_batch_size=1, seed=3)
    for caps in ({"web": 55, "code": 25}, {"web": 50, "code": 24}, {"web": 49, "code": 25}, {}):
        other = last_group(views, caps, end=600)
        for position in (begin - 1, begin):
            again = loader(other)
            again.load_state_dict(job.state_dict(position))
            given = whole[:position] + [row for batch in again for row in rows(batch)]
            first = [row for row in given if row[1] == 0]
            assert len(set(first)) == len(first) and len(given) == (other.run_end or 600)
        for position in (begin + 1, end - 1, end):
            with pytest.raises(penstock.StateMismatchError, match=r"stage \d: saved .*from there on"):
                loader(other).load_state_dict(job.state_dict(position))
    alone = [Mixture({"web": views["web"]}, [Stage(window=16)], caps={"web": cap}, group=16) for cap in (75, 80)]
    with pytest.raises(penstock.StateMismatchError) as error:
        loader(alone[1]).load_state_dict(penstock.Job(alone[0], global_batch_size=1, seed=3).state_dict(290))
    assert (
        "stage 1: saved the run's end at position 300, by which the group from 256 is mixed, now no such stage; "
        "34 observations had been given" in str(error.value)
    )


def test_a_changed_group_is_named(views, mixture):
    state = penstock.Job(mixture, global_batch_size=60, seed=3).state_dict(240)
    with pytest.raises(
        penstock.StateMismatchError,
        match=r"windows of 16 from position 0, group 16, now .*windows of 16 from position 0, group 8;",
    ):
        loader(Mixture(views, STAGES, end=1500, group=8)).load_state_dict(state)


def test_keep_position_goes_on_after_as_many_records(views, mixture):
    whole = Mixture(views, [Stage({"web": 2, "code": 1})], end=3000)
    changes = [stage.begin for stage in mixture.stages]
    assert changes == [0, 512, 800, 900]
    state = penstock.Job(mixture, global_batch_size=60, seed=3).state_dict(700)
    records = changes[1] * 16 + (700 - changes[1]) * 32
    found = loader(whole, on_mismatch="keep_position").load_state_dict(state)
    assert found.position == records // WINDOW
    assert "as many records as 700 windows of 16 and 32 and 64, rounded down to windows of 64" in str(found)
    back = penstock.Job(whole, global_batch_size=60, seed=3).state_dict(found.position)
    assert loader(mixture, on_mismatch="keep_position").load_state_dict(back).position == 700
