"""A job whose dataset grew: its epoch ends over the old shards, the next ones are of all, against lists of integers."""

from __future__ import annotations

import json
from itertools import islice
from typing import Any

import penstock
import pytest
from _grown import ORDERS, SIZES, WINDOW, Grown, end_of_epoch, make_grown, rest, rows, stream


@pytest.fixture(scope="module")
def grown(tmp_path_factory: pytest.TempPathFactory) -> Grown:
    return make_grown(tmp_path_factory.mktemp("grown"))


@pytest.mark.parametrize("order", ORDERS)
def test_from_every_step_the_epoch_ends_over_the_old_shards_and_the_next_is_of_all(grown: Grown, order: str) -> None:
    options = {"order": ORDERS[order], "epochs": 4}
    plain = stream([(0, 0)], 4, order)
    with grown.loader(0, **options) as old:
        states = [old.state_dict(), *(batch.state_dict() for batch in old)]
    assert [state["position"] for state in states] == [min(step * 6, 52) for step in range(10)]
    for state in states:
        position = state["position"]
        first, _ = end_of_epoch(position, SIZES[0])
        wanted = stream([(0, 0), (first, 1)], 4, order)
        with grown.loader(1, **options) as loader:
            resume = loader.load_state_dict(state)
            assert (resume.position, loader.position, loader.step) == (position, position, -(-position // 6))
            assert len(loader) == -(-len(wanted) // 6)
            assert rest([loader], grown.tokens) == wanted[position:]
            assert wanted[:position] == plain[:position]
            loader.rewind()
            assert rest([loader], grown.tokens) == wanted  # the run from its beginning


def test_several_growths_of_one_run_are_all_in_its_state(grown: Grown) -> None:
    state: dict[str, Any] = {}
    for number, steps in ((0, 1), (1, 7), (2, 0)):
        with grown.loader(number, epochs=6) as loader:
            if state:
                loader.load_state_dict(state)
            list(islice(loader, steps))
            state = loader.state_dict()
    assert state["position"] == 48  # 13, then epochs of 23: in epoch 2, which ends at 59
    stages = json.loads(state["job"])["order"]["stages"]
    assert [(each["begin"], each["source"]["dataset"]["shards"]) for each in stages] == [(0, 1), (13, 2), (59, 3)]
    assert len(state) == 3 and json.loads(json.dumps(state)) == state
    wanted = stream([(0, 0), (1, 1), (3, 2)], 6)
    with grown.loader(2, epochs=6) as loader:
        for position in range(len(wanted) + 1):  # every state of the run, also those before the growths
            loader.load_state_dict({**state, "position": position})
            assert rest([loader], grown.tokens, 3) == wanted[position : position + 18]


def test_growths_that_begin_at_once_never_come_or_come_when_all_was_over(grown: Grown) -> None:
    with grown.loader(0, global_batch_size=13) as old, grown.loader(1) as loader, grown.loader(1) as fresh:
        assert str(loader.load_state_dict(old.state_dict())) == "resumes at epoch 0, position 0, step 0"
        assert loader.state_dict() == fresh.state_dict()
        loader.load_state_dict(next(old).state_dict())
        assert rest([loader], grown.tokens, 4) == stream([(0, 0), (1, 1)], 3)[13 : 13 + 24]
    with grown.loader(0) as old, grown.loader(1) as loader, grown.loader(0) as again:
        state = next(old).state_dict()
        loader.load_state_dict(state)
        later = next(loader).state_dict()
        assert (later["position"], later["job"] != state["job"]) == (12, True)
        assert again.load_state_dict(later).position == 12  # the growth never came: it is forgotten
        assert again.state_dict() == {**state, "position": 12}
        assert rest([again], grown.tokens, 6) == stream([(0, 0)], 5)[12:48]
    with grown.loader(0, epochs=2) as old:
        state = list(old)[-1].state_dict()
    with grown.loader(1, epochs=2) as loader, grown.loader(1, epochs=3) as longer:
        assert str(loader.load_state_dict(state)).startswith("resumes at epoch 2, position 26, step 5: the run is over")
        assert list(loader) == []
        longer.load_state_dict(state)
        assert rest([longer], grown.tokens) == stream([(0, 0), (2, 1)], 3)[26:]


def test_the_resume_says_where_all_shards_begin(grown: Grown) -> None:
    with grown.loader(0) as old, grown.loader(1) as loader:
        resume = loader.load_state_dict(next(old).state_dict())
        assert str(resume) == (
            "resumes at epoch 0, position 6, step 1; the dataset has grown from 1 to 2 shards: epochs from 1 on, "
            "position 13, are of all of them"
        )
        list(islice(loader, 2))
        assert str(loader.load_state_dict(loader.state_dict())) == "resumes at epoch 1, position 18, step 3"


def test_sizes_that_were_set_stay_whatever_the_epochs_lengths_are(grown: Grown) -> None:
    options = {"epochs": 3, "global_batch_size": [(0, 4), (16, 10)]}
    with grown.loader(0, **options) as old, grown.loader(1, **options) as loader:
        loader.set_batch_size(7)
        loader.load_state_dict(next(old).state_dict())
        loader.seek(59)
        assert len(loader.locate(position=40)) == 10
        loader.rewind()
        assert len(next(loader).indices) == 7


def test_locate_and_the_job_tell_what_the_loader_gives(grown: Grown) -> None:
    with grown.loader(0, epochs=3) as old:
        state = list(islice(old, 2))[-1].state_dict()
    job = penstock.Job(grown.view(1), global_batch_size=6, seed=3, epochs=3)
    assert len(job) == -(-3 * 23 // 6)
    longer = job.grown(state)
    wanted = stream([(0, 0), (1, 1)], 3)
    assert len(longer) == -(-len(wanted) // 6) and len(job) == -(-3 * 23 // 6)
    picks = longer.picks(0, len(wanted))
    assert list(zip(picks["epoch"].tolist(), picks["index"].tolist(), strict=True)) == wanted
    assert picks["first_record"].tolist() == [index * WINDOW for _, index in wanted]
    with grown.loader(1, epochs=3) as loader:
        loader.load_state_dict(state)
        assert loader.state_dict() == longer.state_dict(12)
        for step, batch in enumerate(loader, 2):
            located = loader.locate(step)
            assert [(each.epoch, each.index) for each in located] == rows(batch, grown.tokens)
            assert located == longer.locate(step)
            for number, each in enumerate(located):
                assert [span.id for span in each.spans] == [span.id for span in batch.spans if span.row == number]
    assert job.grown(job.state_dict(4)).state_dict(4) == job.state_dict(4)
