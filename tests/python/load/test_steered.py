"""Weights that are set while a mixture runs: every state repeats the run, on any ranks; what cannot be is refused."""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import pickle
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest
from _mixtures import WINDOW, all_rows, loader, rows, turns, write_sources
from penstock import Mixture, Positions, Stage, Tokens
from penstock.orders import Blocks, Custom, Weighted

G = 60  # of a global batch: 1 to 5 ranks share it


@pytest.fixture(scope="module")
def datasets(tmp_path_factory: pytest.TempPathFactory) -> dict[str, penstock.Dataset]:
    return write_sources(tmp_path_factory.mktemp("steered"))


@pytest.fixture(scope="module")
def views(datasets):
    return {name: dataset.windows(WINDOW, lookahead=1) for name, dataset in datasets.items()}


@pytest.fixture(scope="module")
def mixture(views):
    later = Stage({"web": 1, "code": 1}, at=500, ramp=Positions(300))
    return Mixture(views, [Stage({"web": 3, "code": 1}), later], caps={"books": 90}, end=1210, steered=True)


@pytest.fixture(scope="module")
def cut(views):
    stages = [Stage({"web": 3, "code": 1}, window=16), Stage({"web": 1, "code": 1}, at=700)]
    return Mixture(views, stages, end=1210, group=8, steered=True)


def weights_at(position: int) -> dict[str, float] | None:
    """What a loop sets after the batch that ends at a position."""
    if position % 3 == 0:
        return None
    return {"web": 0.1 + position % 7 / 10, "code": 1 / 3, "books": position % 5 / 10}


def run(mixture: Any, ranks: int, state: dict[str, Any] | None = None, **options: Any):
    """The rows of each global batch, and the states before and after weights are set."""
    loaders = [loader(mixture, global_batch_size=G, rank=r, world_size=ranks, **options) for r in range(ranks)]
    for each in loaders if state is not None else ():
        assert each.load_state_dict(state).position == state["position"]
    given, states = [], []
    while True:
        batches = [next(each, None) for each in loaders]
        if batches[0] is None:
            return given, states, loaders[0]
        given.append(turns([rows(each) for each in batches]))
        step = loaders[0].step
        known = [each.state_dict() for each in loaders]
        assert all(each == known[0] for each in known) and batches[-1].state_dict() == known[0]
        weights = weights_at(step)
        begins = {each.set_weights(weights) for each in loaders} if weights is not None else {known[0]["position"]}
        assert len(begins) == 1 and next(iter(begins)) >= known[0]["position"]
        after = [each.state_dict() for each in loaders]
        assert all(each == after[0] for each in after)
        states.append((known[0], after[0], weights))


@pytest.mark.parametrize("kind", ["mixture", "cut"])
def test_each_state_repeats_the_run_on_1_to_5_ranks(kind, request):
    mixture = request.getfixturevalue(kind)
    given, states, first = run(mixture, 1)
    assert sum(map(len, given)) == 1210
    for step, (known, after, _) in enumerate(states):
        ranks = 1 + step % 5
        again, _, other = run(mixture, ranks, after)
        assert again == given[step + 1 :]
        assert other.stages == first.stages
        # The state of the batch does not have what was set after it; who resumes there sets it again.
        resumed = loader(mixture, global_batch_size=G, world_size=1, rank=0)
        resumed.load_state_dict(known)
        if weights_at(step + 1) is not None:
            resumed.set_weights(weights_at(step + 1))
        batch = next(resumed, None)
        assert (rows(batch) if batch is not None else None) == (given[step + 1] if step + 1 < len(given) else None)


def test_what_is_set_is_a_stage_and_later_ones_of_the_list_still_come(views, mixture):
    steered = loader(mixture, global_batch_size=G)
    next(steered)
    assert steered.set_weights({"books": 1, "web": 0.5}) == G
    assert steered.set_weights({"code": 2, "web": "1"}, at=Tokens(200 * WINDOW)) == 200
    same = [Stage({"web": 3, "code": 1}), Stage({"books": 2, "web": 1}, at=G), Stage({"code": 2, "web": 1}, at=200),
            Stage({"web": 1, "code": 1}, at=500, ramp=Positions(300))]  # fmt: skip
    plain = Mixture(views, same, caps={"books": 90}, end=1210)
    assert steered.stages == plain.stages and steered.stages[-1].ramp == 300
    steered.seek(0)
    assert [row for batch in steered for row in rows(batch)] == all_rows(plain)
    batch = next(iter(loader(mixture)))
    assert batch.sources.tolist() == next(iter(loader(plain))).sources.tolist()
    assert loader(views["web"]).stages == []
    assert [stage.begin for stage in loader(plain).stages] == [stage.begin for stage in plain.stages]


def test_the_last_call_counts_and_what_was_read_ahead_is_read_again(mixture, views):
    steered = loader(mixture, global_batch_size=G, prefetch=6)
    first = next(steered)
    steered.set_weights({"web": 1})
    steered.set_weights({"code": 1})
    batch = next(steered)
    assert set(batch.sources.tolist()) == {1} and batch.position == first.state_dict()["position"]
    for row, index in enumerate(batch.indices.tolist()):
        assert (batch["token"][row] == views["code"][index]["token"]).all()
    steered.set_weights({"web": 1}, at=3 * G)
    assert set(next(steered).sources.tolist()) == {1} and set(next(steered).sources.tolist()) == {0}
    assert [(stage.begin, stage.weights) for stage in steered.stages[1:3]] == [(G, {"code": 1}), (3 * G, {"web": 1})]


@pytest.mark.parametrize("order", ["uniform", Blocks(4, 16)])
def test_batches_read_ahead_that_end_before_the_weights_begin_are_kept(mixture, order):
    steered = loader(mixture, global_batch_size=G, prefetch=5, order=order)
    next(steered)
    before = ahead_of(steered)
    assert steered.set_weights({"web": 1}, at=4 * G) == 4 * G  # three of five stay
    assert next(steered).position == G  # given at once, so what was read for it before is not read again
    after = ahead_of(steered)
    if order == "uniform":  # else the rows of fetches are read together
        assert after - before < 3.5 * before / 6, "two that were dropped, and one more"
    given = [{*next(steered).sources.tolist()} for _ in range(4)]
    assert given[1] != {0} and given[2:] == [{0}, {0}]
    plain = loader(mixture, global_batch_size=G, order=order)
    plain.set_weights({"web": 1}, at=4 * G)
    steered.seek(0)
    assert [rows(batch) for batch in steered] == [rows(batch) for batch in plain]


def ahead_of(steered: penstock.Loader[Any]) -> int:
    """Bytes that were read, once all batches ahead are."""
    found = [steered.metrics().bytes_read]
    while len(found) < 4 or len(set(found[-4:])) > 1:
        time.sleep(0.2)
        found.append(steered.metrics().bytes_read)
    return found[-1]


def test_weights_whose_group_begins_with_a_stage_of_the_list_take_its_place(views, cut):
    steered = loader(cut, global_batch_size=12)
    assert steered.set_weights({"books": 1, "web": 4}, at=690) == 704  # where the list's next stage begins
    assert [(stage.begin, stage.window, stage.weights) for stage in steered.stages] == [
        (0, 16, {"code": 1, "web": 3}),
        (704, 64, {"books": 1, "web": 4}),
    ]
    again = loader(cut, global_batch_size=12)
    again.load_state_dict({**steered.state_dict(), "position": 720})
    assert again.stages == steered.stages
    steered.seek(720)
    assert [rows(next(again)) for _ in range(5)] == [rows(next(steered)) for _ in range(5)]
    ramped = loader(Mixture(views, [Stage({"web": 1}), Stage({"code": 1}, at=60, ramp=Positions(90))], steered=True))
    assert ramped.set_weights({"books": 1}, at=60) == 60
    assert [(stage.begin, stage.ramp) for stage in ramped.stages] == [(0, 0), (60, 0)], "its ramp, too"


def asked(steered: penstock.Loader[Any]) -> list[int]:
    return [stage.begin for stage in steered.stages if not stage.implied]


def test_seek_keeps_and_a_state_replaces_what_was_set_before_it(mixture):
    steered = loader(mixture, global_batch_size=G)
    for at in (60, 180, 420):
        steered.set_weights({"web": 1, "books": at}, at=at)
    steered.seek(240)
    assert asked(steered) == [0, 60, 180, 420, 500]
    other = loader(mixture, global_batch_size=G)
    other.set_weights({"code": 1}, at=120)
    other.seek(240)
    other.set_weights({"code": 7, "web": 1}, at=240)
    state = other.state_dict()
    steered.load_state_dict(state)
    assert asked(steered) == [0, 120, 240, 420, 500]
    assert steered.stages[2].weights == {"code": 7, "web": 1}
    at_end = next(other).state_dict()
    assert json.loads(at_end["job"])["order"]["steered"]["stages"] == [[120, 0, 1, 0], [240, 1, 7, 0]]
    assert pickle.loads(pickle.dumps(next(other).clone())).state_dict()["job"] == at_end["job"]
    assert other.state_dict()["job"] is other.state_dict()["job"], "states share their text"


def test_groups_of_windows_are_whole(cut):
    steered = loader(cut, global_batch_size=12)
    next(steered)
    assert steered.set_weights({"books": 1}) == 32 and steered.position == 12  # of 8 units in 4 windows each
    given = [row for batch in (next(steered) for _ in range(6)) for row in rows(batch)]
    assert {source for source, *_ in given[:20]} == {0, 1} and {source for source, *_ in given[20:]} == {2}
    assert loader(cut).stages[1].begin == steered.stages[2].begin == 704


def test_in_a_last_group_that_is_short_another_end_is_refused_and_before_it_taken(views):
    two = {name: views[name] for name in ("web", "code")}

    def last_group(caps: dict[str, int], **more: Any) -> Mixture:
        return Mixture(two, [Stage({"web": 1}, window=16)], caps=caps, group=16, steered=True, **more)

    saved = loader(last_group({"web": 50, "code": 25}), global_batch_size=1)  # 75 units: the last group has 11
    saved.set_weights({"web": 2, "code": 1})
    whole = [row for batch in saved for row in rows(batch)]
    begin, end = 64 * 4, 75 * 4
    assert len(whole) == len(set(whole)) == end
    state = saved.state_dict()
    for caps in ({"web": 55, "code": 25}, {"web": 50, "code": 24}, {"web": 49, "code": 25}, {}):
        other = last_group(caps, end=600)
        for position in (begin - 1, begin):
            again = loader(other)
            again.load_state_dict({**state, "position": position})
            given = whole[:position] + [row for batch in again for row in rows(batch)]
            first = [row for row in given if row[1] == 0]
            assert len(set(first)) == len(first)
        for position in (begin + 1, end - 1, end):
            with pytest.raises(penstock.StateMismatchError, match=r"cap: saved|the end of the run, by which"):
                loader(other).load_state_dict({**state, "position": position})


def test_a_source_added_in_mid_run_is_steered_to(views, mixture):
    two = {name: views[name] for name in ("web", "code")}
    steered = loader(Mixture(two, [Stage({"web": 1})], end=1210, steered=True))
    next(steered)
    steered.set_weights({"web": 2, "code": 1})
    next(steered)
    more = loader(Mixture(views, [Stage({"web": 1})], end=1210, steered=True))
    more.load_state_dict(steered.state_dict())
    more.set_weights({"books": 1})
    assert set(next(more).sources.tolist()) == {2}
    state = more.state_dict()
    with pytest.raises(penstock.StateMismatchError, match="source books: it has a weight from position 24 on"):
        steered.load_state_dict(state)
    del two["code"]
    one = loader(Mixture(two, [Stage({"web": 1})], end=1210, steered=True))
    with pytest.raises(penstock.StateMismatchError, match="source code: it has a weight from position 12 on"):
        one.load_state_dict(steered.state_dict())
    reordered = loader(Mixture(dict(reversed(views.items())), [Stage({"web": 1})], end=1210, steered=True))
    reordered.load_state_dict(state)
    assert [stage.weights for stage in reordered.stages] == [stage.weights for stage in more.stages]


def test_packing_lengths_have_what_was_set_and_ramps_at_their_own_length(datasets):
    packed = {name: each.packed(WINDOW) for name, each in datasets.items()}
    stages = [
        Stage({"web": 1}, window=32),
        Stage({"code": 1}, at=60, ramp=Positions(32)),
        Stage({"web": 1, "code": 1}, window=32, at=120),
    ]
    mixture = Mixture(packed, stages, end=180, steered=True)
    steered = loader(mixture, global_batch_size=12)
    found: dict[int, tuple[int, set[int]]] = {}
    state = None
    for batch in steered:
        found[batch.position] = batch["token"].shape[1], {*batch.sources.tolist()}
        if batch.position == 12:
            steered.set_weights({"books": 1})
            state = steered.state_dict()
        if batch.position == 132:
            steered.set_weights({"books": 1}, at=156)
    assert [found[at] for at in (0, 24, 48)] == [(32, {0}), (32, {2}), (32, {2})]
    assert found[60][0] == 64 and {2} <= found[60][1] | found[72][1] <= {1, 2} and found[108] == (64, {1})
    assert found[120][0] == 32 and found[120][1] == {0, 1} and found[168] == (32, {2})
    again = loader(mixture, global_batch_size=12)
    again.load_state_dict(state)
    assert {batch.position: {*batch.sources.tolist()} for batch in again if batch.position < 156} == {
        at: sources for at, (_, sources) in found.items() if 24 <= at < 156
    }


def test_weights_of_rows_of_another_length_are_refused_at_the_load(datasets):
    packed = {name: each.packed(WINDOW) for name, each in datasets.items()}

    def steered(later: int, **options: Any) -> penstock.Loader[Any]:
        stages = [Stage({"web": 1}), Stage({"code": 1}, window=32, at=later), Stage({"web": 1}, at=200)]
        return loader(Mixture(packed, stages, end=300, steered=True), **options)

    first = steered(60)
    first.set_weights({"books": 1}, at=84)
    next(first)
    state = first.state_dict()
    same = steered(72)  # a stage that has not begun may move, as long as what was set has its rows
    same.load_state_dict(state)
    assert {stage.window for stage in same.stages if stage.begin in (72, 84)} == {32}
    words = "at position 84: they are of books@32, rows of the length of stage 1, but there stage 0 has books: let the"
    moved = steered(96)
    with pytest.raises(penstock.StateMismatchError, match=words):
        moved.load_state_dict(state)
    assert moved.position == 0 and sum(len(rows(batch)) for batch in moved) == 300
    kept = steered(96, on_mismatch="keep_position")
    told = str(kept.load_state_dict(state))
    assert "the weights that were set in the state's job are left out" in told
    assert [stage.begin for stage in kept.stages] == [0, 96, 200]


def test_to_be_steered_is_part_of_the_job(views, mixture):
    plain = Mixture(views, [Stage({"web": 3, "code": 1})], end=300)
    assert not plain.is_steered and plain.steered().is_steered and "steered" in repr(plain.steered())
    assert pickle.loads(pickle.dumps(plain.steered())).is_steered
    state = loader(plain).state_dict()
    assert json.loads(state["job"])["format"] == 1
    with pytest.raises(penstock.StateMismatchError, match="steered: the state's mixture is not"):
        loader(plain.steered()).load_state_dict(state)
    steered = loader(plain.steered())
    next(steered)
    steered.set_weights({"web": 1})
    with pytest.raises(penstock.StateMismatchError, match="steered: the state's mixture is, this one is not"):
        loader(plain).load_state_dict(steered.state_dict())
    with pytest.raises(penstock.StateMismatchError, match="seed: saved 3, now 4"):
        loader(plain.steered(), seed=4).load_state_dict(steered.state_dict())
    kept = loader(plain.steered(), seed=4, on_mismatch="keep_position")
    assert kept.load_state_dict(steered.state_dict()).position == 12
    assert [stage.begin for stage in kept.stages] == [0, 12], "weights go on"
    one = Mixture({"web": views["web"], "more": views["code"]}, [Stage()], end=300, steered=True)
    steered.set_weights({"code": 1})
    kept = loader(one, on_mismatch="keep_position")
    assert kept.load_state_dict(steered.state_dict()).position == 12 and len(kept.stages) == 1
    next(steered)
    steered.set_weights({"code": 1, "web": 2})
    told = kept.load_state_dict(steered.state_dict())
    assert "source code: it has a weight from position 12 on" in str(told) and "without sources that this" in str(told)
    assert [(stage.begin, stage.weights) for stage in kept.stages[1:]] == [(24, {"web": 1})]
    kept = loader(plain.steered(), on_mismatch="keep_position")
    assert kept.load_state_dict(state).position == 0
    with pytest.raises(penstock.StateMismatchError, match="source code: slice: saved none"):
        loader(Mixture({**views, "code": views["code"][1:]}, [Stage({"web": 3, "code": 1})], end=300, steered=True)
               ).load_state_dict(steered.state_dict())  # fmt: skip


def test_what_cannot_be_set_is_refused_and_changes_nothing(views, mixture, datasets):
    steered = loader(mixture, global_batch_size=G)
    next(steered)
    next(steered)
    before = steered.state_dict()
    for given, at, words in (
        ({"wbe": 1}, None, "set_weights: there is no source 'wbe'; the sources are"),
        ({}, None, "set_weights: all weights are 0"),
        ({"web": 0.0}, None, "set_weights: all weights are 0"),
        ({"web": -1}, None, r"set_weights: weights\['web'\]=-1"),
        ({"web": float("nan")}, None, "must be a finite number"),
        (None, None, "{name: number} is wanted"),
        ([1, 2, 3], None, "{name: number} is wanted"),
        ({"web": 1}, G, "weights from position 60 on: the loader has given batches up to position 120"),
        ({"web": 1}, Tokens(0), "weights from position 0 on"),
        ({"web": 1}, 7.5, "set_weights: at=7.5"),
        ({"books": 1}, None, "the weights set at position 120: their sources have given their caps by position 2"),
    ):  # fmt: skip
        with pytest.raises(penstock.InvalidArgumentError, match=words):
            steered.set_weights(given, at)
    assert steered.state_dict() == before
    assert steered.set_weights({"web": 1}, at=1210) == 1210, "where the run is over nothing changes"
    assert steered.state_dict() == before
    for other in (loader(views["web"]), loader(Mixture(views, [Stage()]))):
        with pytest.raises(penstock.InvalidArgumentError, match="this loader is not steered: give it a mixture"):
            other.set_weights({"web": 1})
    steered.close()
    with pytest.raises(penstock.InvalidArgumentError, match="closed"):
        steered.set_weights({"web": 1})
    with pytest.raises(penstock.InvalidArgumentError, match="steered='yes'"):
        Mixture(views, [Stage()], steered="yes")
    for words, stages in (
        ("ramp=5: must be Positions", lambda: [Stage(), Stage(at=5, ramp=5)]),
        ("stage 0: a ramp leads from", lambda: [Stage(ramp=Positions(5))]),
        ("stage 1: a ramp of 0", lambda: [Stage(), Stage(at=5, ramp=Tokens(0))]),
    ):
        with pytest.raises(penstock.InvalidArgumentError, match=words):
            Mixture(views, stages())


def test_a_run_that_ends_by_caps_ends_where_what_was_set_says(views):
    mixture = Mixture(views, [Stage({"web": 1, "books": 1})], caps={"web": 100, "books": 50}, steered=True)
    steered = loader(mixture)
    assert len(steered) == 13
    next(steered)
    steered.set_weights({"code": 1})
    with pytest.raises(TypeError, match="endless"):
        len(steered)
    next(steered)
    steered.set_weights({"web": 1})
    assert len(steered) == -(-(12 + 12 + 94) // 12)
    state = steered.state_dict()
    again = loader(mixture)
    again.load_state_dict(state)
    assert len(again) == len(steered) and len(list(again)) == len(list(steered))


def test_a_hundred_thousand_changes_cost_their_text(views):
    count = 100_000
    mixture = Mixture(views, [Stage({"web": 3, "code": 1})], steered=True)
    steered = loader(mixture, global_batch_size=4)
    random = np.random.default_rng(0)
    logits = np.exp(random.normal(0, 1, (count, 3)))
    softmax = (logits / logits.sum(axis=1, keepdims=True)).tolist()
    before = _resident_bytes()
    begin = time.process_time()
    for number, parts in enumerate(softmax):
        steered.set_weights(dict(zip(mixture.names, parts, strict=True)), at=4 * (number + 1))
    seconds = time.process_time() - begin
    grown = _resident_bytes() - before
    state = steered.state_dict()
    assert seconds < 60 and len(state["job"]) < 75 * count and grown < 4 * len(state["job"])
    begin = time.process_time()
    assert all(steered.state_dict()["job"] is state["job"] for _ in range(1000))
    assert time.process_time() - begin < 0.5
    again = loader(mixture, global_batch_size=4)
    begin = time.process_time()
    with ticks() as found:
        again.load_state_dict({**state, "position": 4 * count})
    assert time.process_time() - begin < 20 and len(found) > 5, "other threads run while a state is read"
    for position in (4 * count, 4 * 60_000, 0, 4 * 99_990):
        for each in (steered, again):
            each.seek(position)
        assert [rows(next(steered)) for _ in range(9)] == [rows(next(again)) for _ in range(9)]
    batch = next(steered).state_dict()
    assert batch["job"].count("[") == state["job"].count("[") - (count - batch["position"] // 4 + 1)


@contextlib.contextmanager
def ticks() -> Iterator[list[float]]:
    """Times at which another thread had its turn."""
    found: list[float] = []
    over = threading.Event()

    def tick() -> None:
        while not over.wait(0.002):
            found.append(time.monotonic())

    thread = threading.Thread(target=tick)
    thread.start()
    try:
        yield found
    finally:
        over.set()
        thread.join()


def _resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _ask_in_worker(steered: penstock.Loader[Any], answers: Any) -> None:
    try:
        steered.set_weights({"web": 1})
    except penstock.Error as error:
        answers.put(str(error))


def test_workers_and_forked_children_are_refused(mixture):
    torch = pytest.importorskip("torch")
    from penstock.adapters.torch import BatchDataset

    steered = loader(mixture)
    next(steered)

    class Asks(torch.utils.data.Dataset):
        def __len__(self) -> int:
            return 1

        def __getitem__(self, _: int) -> str:
            try:
                steered.set_weights({"web": 1})
            except penstock.Error as error:
                return str(error)
            return "taken"

    said = next(iter(torch.utils.data.DataLoader(Asks(), num_workers=1, multiprocessing_context="fork")))
    assert "set_weights in worker 0 of a DataLoader" in said[0]
    context = multiprocessing.get_context("fork")
    answers = context.Queue()
    child = context.Process(target=_ask_in_worker, args=(steered, answers))
    child.start()
    assert "has no threads in its forked child" in answers.get(timeout=60)
    child.join()
    with pytest.raises(penstock.InvalidArgumentError, match="a steered mixture: weights that are set reach no"):
        BatchDataset(mixture, 4)


def test_job_and_locate_tell_what_was_set(mixture):
    steered = loader(mixture, global_batch_size=G)
    next(steered)
    steered.set_weights({"books": 1, "web": 1})
    state = steered.state_dict()
    batch = next(steered)
    found = steered.locate(1)
    assert [(row.source, row.epoch, row.index) for row in found] == rows(batch)
    plain = penstock.Job(mixture, global_batch_size=G, seed=3)
    job = plain.steered(state)
    assert job.locate(position=G) == found and plain.locate(position=G) != found
    assert job.state_dict(G) == state
    with pytest.raises(penstock.InvalidArgumentError, match="this job is not steered"):
        penstock.Job(mixture.sources["web"], global_batch_size=G).steered(state)


def test_the_command_line_tells_what_was_set(tmp_path, datasets, capsys):
    from penstock._cli.main import main

    sources = {name: {"path": str(each.path), "window": WINDOW, "lookahead": 1} for name, each in datasets.items()}
    stages = [{"weights": {"web": 0.75, "code": "0.25"}}, {"at": 300, "ramp": 60}, {"at": 600, "ramp_tokens": 640}]
    content = {"sources": sources, "stages": stages, "end": 900, "steered": True}
    path = tmp_path / "mix.json"
    path.write_text(json.dumps(content))
    mixture = Mixture.from_file(path)
    assert mixture.is_steered and [stage.ramp for stage in mixture.stages] == [0, 60, 10]
    steered = loader(mixture, global_batch_size=G)
    next(steered)
    steered.set_weights({"books": 3, "web": 1})
    state = steered.state_dict()
    (tmp_path / "state.json").write_text(json.dumps(state))
    command = ["mix", str(path), "--dry-run", "--state", str(tmp_path / "state.json")]
    assert main(command) == 0
    told = capsys.readouterr().out
    assert "stage 1  from 60 (3,840 tokens), windows of 64: books 75.0%, web 25.0%" in told
    assert "stage 2  from 300 (19,200 tokens), windows of 64, after a ramp of 60: " in told
    assert main([*command, "--json"]) == 0
    assert [stage["begin"] for stage in json.loads(capsys.readouterr().out)["stages"]] == [0, 60, 300, 600]
    own = {"web": Custom(np.arange(50)), "code": Weighted(np.ones(len(mixture.sources["code"])))}
    other = loader(mixture, global_batch_size=G, order=own)  # of these a state has only digests
    next(other)
    other.set_weights({"books": 3, "web": 1})
    (tmp_path / "own.json").write_text(json.dumps(other.state_dict()))
    assert main([*command[:-1], str(tmp_path / "own.json")]) == 0
    assert "stage 1  from 60 (3,840 tokens), windows of 64: books 75.0%, web 25.0%" in capsys.readouterr().out
    content["steered"] = False
    path.write_text(json.dumps(content))
    trace = ["trace", str(path), "--state", str(tmp_path / "state.json"), "-b", str(G), "--json"]
    assert main(trace) == 0
    told = json.loads(capsys.readouterr().out)["rows"]
    batch = next(steered)
    assert [(mixture.names.index(row["source"]), row["epoch"], row["index"]) for row in told] == rows(batch)
    assert main([*command[:-1], str(path)]) == 2


@pytest.mark.parametrize("end", [None, 398])
def test_in_the_last_short_group_nothing_changes(tmp_path, end):
    for number, name in enumerate("ab"):
        np.random.default_rng(number).integers(0, 999, 400).astype("u2").tofile(tmp_path / f"{name}.bin")
    views = {name: penstock.open(tmp_path / f"{name}.bin", dtype="u2").windows(20) for name in "ab"}
    stages = [Stage({"a": 1, "b": 1}, window=5)]
    mixture = Mixture(views, stages, epochs={"a": 2, "b": 2}, group=16, end=end, steered=True)
    with loader(mixture, global_batch_size=5) as running:
        for _ in running:
            begins = running.set_weights({"a": 1, "b": 2})
            assert begins % 64 == 0 or running.position > running.stages[-1].begin
        assert running.position == mixture.run_end


def test_weights_that_begin_in_another_group_are_refused_at_the_load(views):
    def steered(group: int) -> Mixture:
        stages = [Stage({"web": 1}), Stage({"web": 1}, window=16, at=200)]
        return Mixture(views, stages, end=5000, group=group, steered=True)

    with loader(steered(8)) as running:
        next(running)
        begin = running.set_weights({"code": 1}, at=225)
        state = running.state_dict()
    assert begin == 232
    with loader(steered(8)) as again:
        again.load_state_dict(state)
        assert [stage.begin for stage in again.stages] == [0, 200, 232]
    with loader(steered(10)) as other, pytest.raises(penstock.StateMismatchError, match="from position 232 on"):
        other.load_state_dict(state)
