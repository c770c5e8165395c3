"""A job whose dataset grew: its epoch ends over the old shards, the next ones are of all, against lists of integers."""

from __future__ import annotations

import json
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
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
        loader.load_state_dict(state)
        assert rest([loader], grown.tokens) == wanted[48:]
        for position in range(len(wanted) + 1):  # every state of the run, also those before the growths
            loader.load_state_dict({**state, "position": position})
            assert rest([loader], grown.tokens, 3) == wanted[position : position + 18]


@pytest.mark.parametrize("tail", ["pad", "drop"])
def test_epochs_that_end_batches_end_at_their_own_length(grown: Grown, tail: str) -> None:
    options = {"per_epoch": True, "tail": tail, "epochs": 4}
    with grown.loader(0, **options) as old:
        state = next(old).state_dict()
    with grown.loader(1, **options) as loader:
        resume = loader.load_state_dict(state)
        assert (resume.epoch, resume.step) == (0, 1)
        wanted = stream([(0, 0), (1, 1)], 4)
        begin, lengths = 0, []
        for epoch in range(4):
            lengths.append(len(loader))
            found = rest([loader], grown.tokens)
            n = SIZES[min(epoch, 1)]
            kept = n if tail == "pad" else n // 6 * 6
            assert found == wanted[begin : begin + kept][6 if epoch == 0 else 0 :]
            begin += n
            assert (loader.position, loader.epoch) == (begin, epoch + 1)
        whole = [n // 6 + (tail == "pad") for n in SIZES[:2]]
        assert lengths == [whole[0], *[whole[1]] * 3]
        assert next(iter(loader), None) is None


def test_a_state_at_the_end_of_an_epoch_or_at_0_takes_all_shards_at_once(grown: Grown) -> None:
    with grown.loader(0, global_batch_size=13) as old, grown.loader(1) as loader, grown.loader(1) as fresh:
        state = old.state_dict()
        assert str(loader.load_state_dict(state)) == "resumes at epoch 0, position 0, step 0"
        assert loader.state_dict() == fresh.state_dict()
        state = next(old).state_dict()
        loader.load_state_dict(state)
        assert rest([loader], grown.tokens, 4) == stream([(0, 0), (1, 1)], 3)[13 : 13 + 24]


def test_a_growth_that_never_came_is_forgotten(grown: Grown) -> None:
    with grown.loader(0) as old, grown.loader(1) as loader, grown.loader(0) as again:
        state = next(old).state_dict()
        loader.load_state_dict(state)
        later = next(loader).state_dict()
        assert (later["position"], later["job"] != state["job"]) == (12, True)
        assert again.load_state_dict(later).position == 12
        assert again.state_dict() == {**state, "position": 12}
        assert rest([again], grown.tokens, 6) == stream([(0, 0)], 5)[12:48]


def test_a_run_that_was_over_goes_on_with_more_epochs(grown: Grown) -> None:
    with grown.loader(0, epochs=2) as old:
        state = list(old)[-1].state_dict()
    assert state["position"] == 26
    with grown.loader(1, epochs=2) as loader:
        assert str(loader.load_state_dict(state)).startswith("resumes at epoch 2, position 26, step 5: the run is over")
        assert list(loader) == []
    with grown.loader(1, epochs=3) as loader:
        loader.load_state_dict(state)
        assert rest([loader], grown.tokens) == stream([(0, 0), (2, 1)], 3)[26:]


def test_the_resume_says_where_all_shards_begin(grown: Grown) -> None:
    with grown.loader(0) as old, grown.loader(1) as loader:
        resume = loader.load_state_dict(next(old).state_dict())
        assert str(resume) == (
            "resumes at epoch 0, position 6, step 1; the dataset has grown from 1 to 2 shards: epochs from 1 on, "
            "position 13, are of all of them"
        )
        list(islice(loader, 2))
        resume = loader.load_state_dict(loader.state_dict())
        assert str(resume) == "resumes at epoch 1, position 18, step 3"


def test_skips_and_schedules_and_set_batch_size_are_of_positions(grown: Grown) -> None:
    options = {"epochs": 3, "skip": [(4, 9), (20, 30)], "global_batch_size": [(0, 4), (16, 10)]}
    with grown.loader(0, **options) as old:
        batches = [(batch.position, batch.state_dict()["position"]) for batch in old]
        states = [old.state_dict()]
        old.rewind()
        states = [batch.state_dict() for batch in old]
    assert batches[:2] == [(0, 4), (4, 13)]
    wanted = stream([(0, 0), (1, 1)], 3)
    kept = [place for position, place in enumerate(wanted) if not (4 <= position < 9 or 20 <= position < 30)]
    with grown.loader(1, **options) as loader:
        loader.load_state_dict(states[0])
        loader.rewind()
        assert rest([loader], grown.tokens) == kept
        loader.rewind()
        sizes = [len(rows(batch, grown.tokens)) for batch in loader]
        assert sizes[:3] == [4, 4, 4] and set(sizes[4:-1]) == {10}
        loader.set_batch_size(7)
        loader.load_state_dict(states[0])
        loader.seek(59)
        assert len(loader.locate(position=40)) == 10
    with grown.loader(1, **options) as loader:
        loader.set_batch_size(7)
        loader.load_state_dict(states[0])  # the sizes that were set stay, whatever the epochs' lengths are
        loader.rewind()
        assert len(next(loader).indices) == 7


def test_random_runs_with_two_growths_are_what_counting_says(grown: Grown) -> None:
    random = np.random.default_rng(11)
    for _ in range(60):
        order = str(random.choice(list(ORDERS)))
        epochs, size = int(random.integers(3, 7)), int(random.integers(1, 30))
        steps = [int(random.integers(0, 40 // size + 2)) for _ in range(2)]
        options = {"order": ORDERS[order], "epochs": epochs, "global_batch_size": size, "tail": "pad"}
        history = [(0, 0)]
        state: dict[str, Any] | None = None
        for number in range(3):
            with grown.loader(number, **options) as loader:
                if state is not None:
                    position = state["position"]
                    loader.load_state_dict(state)
                    lengths = [SIZES[[which for first, which in history if first <= e][-1]] for e in range(epochs + 1)]
                    first, begin = end_of_epoch(position, *lengths)
                    history = [(e, which) for e, which in history if e < first] + [(first, number)]
                    wanted = stream(history, epochs, order)
                    stages = json.loads(loader.state_dict()["job"])["order"].get("stages", [{"begin": 0}])
                    assert stages[-1]["begin"] == begin and len(stages) == len(history)
                    taken = rest([loader], grown.tokens, steps[number - 1] if number == 1 else None)
                    assert taken == wanted[position : position + len(taken)]
                    assert number == 1 or position + len(taken) == len(wanted)
                else:
                    list(islice(loader, steps[0]))
                state = loader.state_dict()


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


@pytest.mark.filterwarnings("ignore:torch.distributed is disabled:UserWarning")
def test_a_checkpoint_of_dcp_has_the_history(grown: Grown, tmp_path: Path) -> None:
    dcp = pytest.importorskip("torch.distributed.checkpoint")
    for number in range(3):  # each run goes on with the checkpoint of the one before, over more shards
        with grown.loader(number, epochs=5) as loader:
            if number > 0:
                dcp.load({"loader": loader}, checkpoint_id=tmp_path / str(number - 1), no_dist=True)
            list(islice(loader, 4))
            dcp.save({"loader": loader}, checkpoint_id=tmp_path / str(number), no_dist=True)
            position = loader.position
    assert position == 72  # epochs of 13, 13 and 23 end at 49
    with grown.loader(2, epochs=5) as loader:
        dcp.load({"loader": loader}, checkpoint_id=tmp_path / "2", no_dist=True)
        assert rest([loader], grown.tokens) == stream([(0, 0), (2, 1), (3, 2)], 5)[72:]
