"""Mixtures whose stages came out alike, from other lists of stages or caps: a state of one is not the other's."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import penstock
import pytest
from penstock import Mixture, Positions, Stage

END = 600
CODE = {"code": 1, "web": 1}
BOOKS = {"books": 3, "web": 2}
Pair = tuple[Mixture, Mixture]


@pytest.fixture(scope="module")
def views(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    path = tmp_path_factory.mktemp("lists") / "tokens.bin"
    np.arange(5000, dtype="u2").tofile(path)
    view = penstock.open(path, dtype="u2").windows(4, lookahead=1)
    return {"web": view, "code": view, "books": view}


def job(mixture: Mixture) -> penstock.Job:
    return penstock.Job(mixture, global_batch_size=12, seed=5)


def load(mixture: Mixture, state: dict[str, Any]) -> int:
    """The position at which a loader of it goes on, which then saves what it is of."""
    with penstock.Loader(mixture, global_batch_size=12, seed=5) as loader:
        position = loader.load_state_dict(state).position
        assert loader.state_dict() == job(mixture).state_dict(position)
        return position


def order_of(mixture: Mixture) -> dict[str, Any]:
    order: dict[str, Any] = json.loads(job(mixture).state_dict(0)["job"])["order"]
    return order


def implied(mixture: Mixture) -> Any:
    (found,) = (stage for stage in mixture.stages if stage.implied)
    return found


def ramp_after_a_cap(views: dict[str, Any]) -> Pair:
    """It leads from books, which have given their cap, or from web alone."""
    ramp = Stage(CODE, at=150, ramp=Positions(96))
    one = Mixture(views, [Stage(BOOKS), ramp], caps={"books": 60}, end=END)
    return one, Mixture(views, [Stage(BOOKS), Stage({"web": 1}, at=implied(one).begin), ramp], end=END)


def ramp_as_a_cap_is_given(views: dict[str, Any]) -> Pair:
    """No stage tells of the cap, which the last unit before the ramp gives."""
    alone = Mixture(views, [Stage(BOOKS)])
    given = [alone.counts(position)["books"] for position in range(160)]
    at = next(position for position in range(150, 160) if given[position] > given[position - 1])
    stages = [Stage(BOOKS), Stage(CODE, at=at, ramp=Positions(96))]
    return Mixture(views, stages, caps={"books": given[at]}, end=END), Mixture(views, stages, end=END)


def ramp_to_a_source_that_has_ended(views: dict[str, Any]) -> Pair:
    stages = [Stage(BOOKS), Stage({"web": 1}, at=150), Stage({**CODE, "books": 7}, at=200, ramp=Positions(96))]
    given = Mixture(views, stages, end=END).counts(150)["books"]
    other = [*stages[:2], Stage({**CODE, "books": 1}, at=200, ramp=Positions(96))]
    one, two = (Mixture(views, each, caps={"books": given}, end=END) for each in (stages, other))
    return one, two


def cap_in_a_ramp(views: dict[str, Any]) -> Pair:
    """The ramp goes on behind it, or ends."""
    stages = [Stage(BOOKS), Stage({"code": 1, "books": 1}, at=50, ramp=Positions(96))]
    one = Mixture(views, stages, caps={"books": 60}, end=END)
    return one, Mixture(views, [*stages, Stage(implied(one).weights, at=implied(one).begin)], end=END)


def cap_after_a_ramp(views: dict[str, Any]) -> Pair:
    """Many weights behind a ramp begin at another slot of theirs than those of a stage do."""
    many = {"web": 4001, "code": 3001}
    stages = [Stage({"web": 1}), Stage({**many, "books": 5000}, at=50, ramp=Positions(32))]
    one = Mixture(views, stages, caps={"books": 60}, end=END)
    return one, Mixture(views, [*stages, Stage(many, at=implied(one).begin)], end=END)


def cap_at_a_whole_group(views: dict[str, Any]) -> Pair:
    """Groups are counted from the stage that was asked for."""
    both = Stage({"books": 1, "web": 1}, window=2)
    for cap in range(1, 40):
        one = Mixture(views, [both], caps={"books": cap}, end=END, group=8)
        stage = order_of(one)["stages"][1]
        if stage.get("unit", stage["begin"]) % 8 == 0:
            return one, Mixture(views, [both, Stage({"web": 1}, window=2, at=stage["begin"])], end=END, group=8)
    raise AssertionError("no cap is given at the end of a group")


#: With the words in which the first one refuses a state of the second, and the second one a state of the first.
PAIRS: dict[Callable[[dict[str, Any]], Pair], tuple[str, str]] = {
    ramp_after_a_cap: (
        "stage 1 as it was asked for: saved web 1 from position 100, now code 1, web 1 from "
        "position 150, ramp 96; .*source books: cap: saved none, now 60, which it had given",
        "stage 1 as it was asked for: saved code 1, web 1 from position 150, ramp 96, now web 1 ",
    ),
    ramp_as_a_cap_is_given: ("source books: cap: saved none, now 9.", "source books: cap: saved 9., now none"),
    ramp_to_a_source_that_has_ended: (
        "stage 2 as it was asked for: saved books 1, code 1, web 1 from position 200, ramp 96, now books 7, ",
        "stage 2 as it was asked for: saved books 7, code 1, web 1 from position 200, ramp 96, now books 1, ",
    ),
    cap_in_a_ramp: (
        "stage 2 as it was asked for: saved code .*, now no such stage",
        "stage 2 as it was asked for: saved no such stage, now code ",
    ),
    cap_after_a_ramp: (
        "stage 2 as it was asked for: saved code 3,001, .*, now no such stage",
        "stage 2 as it was asked for: saved no such stage, now code 3",
    ),
    cap_at_a_whole_group: (
        "stage 1 as it was asked for: saved web 1 in windows of 2",
        "stage 1 as it was asked for: saved no such stage, now web 1 in win",
    ),
}
made = pytest.mark.parametrize("make", PAIRS, ids=lambda make: make.__name__)


def without(state: dict[str, Any], member: str = "asked") -> dict[str, Any]:
    """As states were saved before orders said what was asked for."""
    saved = json.loads(state["job"])
    saved["order"].pop(member)
    return {**state, "job": json.dumps(saved, separators=(",", ":"), sort_keys=True)}


def both_ways(pair: Pair) -> Iterator[Pair]:
    yield pair
    yield pair[::-1]


@made
def test_where_rows_differ_the_state_of_one_is_refused_by_the_other(make, views):
    pair = make(views)
    orders, words = [order_of(each) for each in pair], PAIRS[make]
    assert orders[0].pop("asked") != orders[1].pop("asked") and orders[0] == orders[1]
    picks = [job(each).picks(0, END) for each in pair]
    (differ,) = np.nonzero(picks[0] != picks[1])
    for (one, two), refusal in zip(both_ways(pair), words, strict=True):
        state = job(two).state_dict(END - 12)
        assert load(two, state) == END - 12
        with pytest.raises(penstock.StateMismatchError, match=refusal):
            load(one, state)
        with pytest.raises(penstock.StateMismatchError):
            load(one, {**state, "position": int(differ[0]) + 1})
        assert load(one, without(state)) == END - 12, "a state that does not say it may be its own"


@made
def test_what_begins_later_may_change(make, views):
    pair = make(views)
    lists = [order_of(each)["asked"]["stages"] for each in pair]
    begins = [stage["begin"] for each in lists for stage in each if stage not in lists[0] or stage not in lists[1]]
    begin = min(begins) if begins else lists[0][1]["begin"]  # where another cap is given as the ramp begins
    for one, two in both_ways(pair):
        for position in (0, begin):
            assert load(one, job(two).state_dict(position)) == position


def test_ramps_caps_and_shorter_windows_may_be_added_and_left_out_later(views):
    stages, caps = [Stage(BOOKS), Stage({"web": 1}, at=100)], {"books": 300}
    mixtures = [
        Mixture(views, stages, end=END),
        Mixture(views, [*stages, Stage(CODE, at=150, ramp=Positions(96))], caps=caps, end=END),
        Mixture(views, [*stages, Stage(CODE, at=200, window=2)], end=END),
    ]
    assert ["asked" in order_of(each) for each in mixtures] == [False, True, True]
    for saved in mixtures:
        for now in mixtures:
            assert load(now, job(saved).state_dict(150)) == 150
            if now is not saved:
                with pytest.raises(penstock.StateMismatchError, match="stage 2: saved "):
                    load(now, job(saved).state_dict(201))


@pytest.mark.parametrize(
    "change",
    [
        lambda asked: asked.pop("caps"),
        lambda asked: asked.pop("stages"),
        lambda asked: asked.update(more=1),
        lambda asked: asked.update(caps=[]),
        lambda asked: asked.update(stages={}),
        lambda asked: asked["caps"].update(books=-1),
        lambda asked: asked["caps"].update(other="1"),
        lambda asked: asked["stages"][0].update(more=1),
        lambda asked: asked["stages"][1].pop("ramp"),
        lambda asked: asked["stages"].append(7),
    ],
)
def test_what_is_not_as_penstock_writes_it_is_refused(change, views):
    mixture = ramp_after_a_cap(views)[0]
    state = job(mixture).state_dict(300)
    saved = json.loads(state["job"])
    change(saved["order"]["asked"])
    with pytest.raises(penstock.StateMismatchError):
        load(mixture, {**state, "job": json.dumps(saved)})


@pytest.mark.parametrize("window", [None, 2])
def test_a_steered_run_that_its_caps_would_have_ended_may_go_on_to_another_stage(window, views):
    first = Stage({"web": 1}, window=window)
    saved = Mixture(views, [first], caps={"web": 32}, group=8, steered=True)
    now = Mixture(views, [first, Stage({"code": 1}, at=160)], caps={"web": 320}, group=8, steered=True)
    for position in (0, 8, 24):
        assert load(now, job(saved).state_dict(position)) == position
    with pytest.raises(penstock.StateMismatchError, match="source web: cap: saved 32, now 320"):
        load(now, job(saved).state_dict(33 if window is None else 65))


def test_a_steered_mixture_says_it_in_members_of_its_own(views):
    mixture = ramp_after_a_cap(views)[0]
    state, steered = job(mixture).state_dict(300), job(mixture.steered()).state_dict(300)
    orders = [json.loads(each["job"])["order"] for each in (state, steered)]
    assert {name: orders[1][name] for name in ("caps", "stages")} == orders[0]["asked"] and "asked" not in orders[1]
    for now, saved in ((mixture, steered), (mixture.steered(), state)):
        with pytest.raises(penstock.StateMismatchError, match=r"steered: the state's mixture is(?!.*order's)"):
            load(now, saved)
    saved = json.loads(steered["job"])
    saved["order"]["asked"] = orders[0]["asked"]
    with pytest.raises(penstock.StateMismatchError, match="order's asked: saved "):
        load(mixture.steered(), {**steered, "job": json.dumps(saved)})
    saved = json.loads(state["job"])
    saved["order"]["caps"] = orders[1]["caps"]
    with pytest.raises(penstock.StateMismatchError, match="order's caps: saved "):
        load(mixture, {**state, "job": json.dumps(saved)})
