"""The state: three keys for ever; loading says where it resumes; another job is refused by the name of what differs."""

from __future__ import annotations

import json
import time
from itertools import islice
from pathlib import Path
from typing import Any

import penstock
import pytest
from _datasets import MODES, compact, raw_tokens
from hypothesis import given
from hypothesis import strategies as st

GOLDEN = Path(__file__).parents[2] / "golden"


@pytest.fixture
def view(tmp_path):
    return raw_tokens(tmp_path / "tokens.bin", 1003)[0].windows(10)


def make(view: penstock.View, **options: Any) -> penstock.Loader:
    return penstock.Loader(view, **{"batch_size": 4, "seed": 1, "framework": "numpy", "threads": 1, **options})


# --- its shape


@pytest.mark.parametrize("mode", MODES)
def test_it_has_three_keys_of_plain_values_and_is_valid_before_the_first_batch(tmp_path, mode):
    with make(MODES[mode](tmp_path)) as loader:
        for expected in (0, 4, 8):
            state = loader.state_dict()
            assert list(state) == ["version", "position", "job"]
            assert [type(value) for value in state.values()] == [int, int, str]
            assert state["version"] == 1 and state["position"] == expected
            assert json.loads(json.dumps(state)) == state
            assert json.dumps(json.loads(state["job"]), sort_keys=True, separators=(",", ":")) == state["job"]
            next(loader)


def test_it_is_the_same_on_every_rank_and_for_everything_that_may_differ(view):
    states = []
    for options in (
        {"rank": 0, "world_size": 4, "batch_size": 4}, {"rank": 3, "world_size": 4, "batch_size": 4},
        {"rank": 1, "world_size": 2, "batch_size": 8}, {"global_batch_size": 16, "batch_size": None},
        {"rank": 0, "world_size": 8, "batch_size": 2, "threads": 3, "prefetch": 9, "framework": "torch"},
        {"batch_size": 16, "epochs": 7, "per_epoch": True, "tail": "drop", "max_bytes": 1 << 20, "dtype": "int32"},
    ):  # fmt: skip
        with make(view, **options) as loader:
            next(loader)
            states.append(loader.state_dict())
    assert all(state == states[0] for state in states)
    assert states[0]["position"] == 16


def test_taking_it_costs_nothing_and_waits_for_nothing(view):
    with make(view, prefetch=16) as loader:
        next(loader)
        begun = time.perf_counter()
        for _ in range(2000):
            loader.state_dict()
        assert (time.perf_counter() - begun) / 2000 < 1e-3


def test_a_batch_of_a_view_has_no_state(view):
    with pytest.raises(penstock.InvalidArgumentError, match="read from a view"):
        view.read([1, 2]).state_dict()


# --- loading


def test_loading_says_where_it_resumes(view):
    state = {**make(view).state_dict(), "position": 1212}
    with make(view) as loader:
        resume = loader.load_state_dict(state)
        assert str(resume) == "resumes at epoch 12, position 1,212, step 303"
        assert (resume.epoch, resume.position, resume.step) == (12, 1212, 303)
        assert next(loader).position == 1212


def other_jobs(folder: Path) -> dict[str, tuple[penstock.View, dict[str, Any], list[str]]]:
    """What differs -> the other job, and words that its refusal must hold."""
    dataset, _ = raw_tokens(folder / "tokens.bin", 1003)
    changed, _ = raw_tokens(folder / "changed.bin", 1003, seed=1)
    longer, _ = raw_tokens(folder / "longer.bin", 2003)
    window = dataset.windows(10)
    return {
        "dataset": (changed.windows(10), {}, ["dataset"]),
        "size": (longer.windows(10), {}, ["dataset", "1,003", "2,003"]),
        "seed": (window, {"seed": 2}, ["seed", "1", "2"]),
        "order": (window, {"order": "sequential"}, ["order", "uniform", "sequential"]),
        "block": (window, {"order": penstock.orders.Blocks(2, 4)}, ["order", "blocks"]),
        "window": (dataset.windows(20), {}, ["window", "10", "20"]),
        "lookahead": (dataset.windows(10, lookahead=1), {}, ["lookahead"]),
        "skip": (window, {"skip": [(0, 4)]}, ["skip"]),
    }


@pytest.mark.parametrize("what", ["dataset", "size", "seed", "order", "block", "window", "lookahead", "skip"])
@pytest.mark.parametrize("position", [0, 8])
def test_another_job_is_refused_in_words_that_name_what_differs(tmp_path, view, what, position):
    saved = {**make(view).state_dict(), "position": position}
    other_view, options, words = other_jobs(tmp_path)[what]
    with make(other_view, **options) as loader:
        next(loader)
        before = loader.position
        if what == "skip" and position == 0:
            loader.load_state_dict(saved)  # a skip that lies at or after the position is no difference
            return
        with pytest.raises(penstock.StateMismatchError) as caught:
            loader.load_state_dict(saved)
        assert isinstance(caught.value, ValueError)
        for word in [*words, "on_mismatch"]:
            assert word in str(caught.value)
        assert loader.position == before  # a refused state changes nothing
        next(loader)


def test_only_what_differs_is_named(tmp_path, view):
    saved = make(view).state_dict()
    with make(view, seed=2) as loader, pytest.raises(penstock.StateMismatchError) as caught:
        loader.load_state_dict(saved)
    for word in ("window", "dataset", "skip"):
        assert word not in str(caught.value).split("Use on_mismatch")[0]


def test_another_lane_fetch_or_block_is_another_order(view):
    for what, other in [("lanes", (2, 4, 2)), ("fetch", (2, 8, 1)), ("block", (4, 4, 1))]:
        one = (2, 4, 1)
        orders = [penstock.orders.Blocks(block, fetch, lanes=lanes) for block, fetch, lanes in (one, other)]
        with pytest.raises(penstock.StateMismatchError, match=what):
            make(view, order=orders[1]).load_state_dict(make(view, order=orders[0]).state_dict())


def test_skips_added_ahead_are_accepted_and_skips_behind_are_refused(view):
    with make(view, epochs=1) as loader:
        order = [i for batch in loader for i in batch.indices.tolist() if i >= 0]
        saved = {**loader.state_dict(), "position": 40}
    with make(view, epochs=1, skip=[(40, 45), (60, 70)]) as loader:
        loader.load_state_dict(saved)
        rest = [i for batch in loader for i in batch.indices.tolist() if i >= 0]
        assert rest == [i for p, i in enumerate(order) if p >= 45 and not 60 <= p < 70]
        later = {**loader.state_dict(), "position": 64}
    for skip in ([(39, 45)], [(0, 1)], [(12, 90)]):
        with make(view, skip=skip) as loader, pytest.raises(penstock.StateMismatchError, match="skip"):
            loader.load_state_dict(saved)
    with make(view) as loader, pytest.raises(penstock.StateMismatchError, match="skip"):
        loader.load_state_dict(later)  # what was skipped cannot be taken back
    with make(view, skip=[(60, 64), (62, 80), (40, 45)]) as loader:  # the same, said otherwise, up to 64
        loader.load_state_dict(later)


def test_on_mismatch_restarts_or_keeps_the_position(tmp_path, view):
    saved = {**make(view).state_dict(), "position": 48}
    for on_mismatch, position in [("restart", 0), ("keep_position", 48)]:
        with make(view, seed=2, on_mismatch=on_mismatch) as loader:
            next(loader)
            resume = loader.load_state_dict(saved)
            assert "seed" in str(resume) and resume.position == position == loader.position
            assert next(loader).position == position
        with make(view, on_mismatch=on_mismatch) as loader:  # nothing differs: it resumes
            assert loader.load_state_dict(saved).position == 48


def test_windows_of_another_size_go_on_after_as_many_records(tmp_path):
    dataset, _ = raw_tokens(tmp_path / "other.bin", 4000)
    saved = {**make(dataset.windows(10)).state_dict(), "position": 103}
    with make(dataset.windows(40), on_mismatch="keep_position") as loader:
        resume = loader.load_state_dict(saved)
        assert resume.position == loader.position == next(loader).position == 25
        assert "window: saved 10, now 40" in str(resume)
        assert "as many records as 103 windows of 10, rounded down to windows of 40" in str(resume)
    with make(dataset.windows(4, lookahead=1), on_mismatch="keep_position") as loader:
        assert loader.load_state_dict(saved).position == 257  # 1,030 records
    with make(dataset.windows(40)) as strict, pytest.raises(penstock.StateMismatchError) as caught:
        strict.load_state_dict(saved)
    assert '"keep_position" to go on at 25 (as many records as 103 windows of 10' in str(caught.value)


def test_documents_do_not_become_windows_at_a_kept_position(tmp_path):
    dataset, _ = compact(tmp_path, [[5, 9, 20], [30]])
    saved = {**make(dataset.documents()).state_dict(), "position": 3}
    for on_mismatch in ("keep_position", "refuse"):
        with make(dataset.windows(4), on_mismatch=on_mismatch) as loader:
            with pytest.raises(
                penstock.StateMismatchError, match="a position in documents is none in windows of 4"
            ) as e:
                loader.load_state_dict(saved)
            assert "keep_position" not in str(e.value) and "restart" in str(e.value) and loader.position == 0
    with make(dataset.documents(), seed=5, on_mismatch="keep_position") as loader:
        assert loader.load_state_dict(saved).position == 3


def test_a_position_of_an_unknown_job_is_not_kept(view):
    job = json.loads(make(view).state_dict()["job"])
    saved = {"version": 1, "position": 8, "job": json.dumps({**job, "format": 2})}
    for on_mismatch in ("keep_position", "refuse"):
        with (
            make(view, on_mismatch=on_mismatch) as loader,
            pytest.raises(penstock.StateMismatchError, match=r"format 2.*seek\(\).*unknown job"),
        ):
            loader.load_state_dict(saved)
    with make(view, on_mismatch="restart") as loader:
        assert loader.load_state_dict(saved).position == 0


def test_the_same_dataset_elsewhere_is_the_same_dataset(tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    one, two = (compact(tmp_path / name, [[5, 9, 20], [30]])[0].windows(4) for name in ("one", "two"))
    other = compact(tmp_path / "two" / ".." / "one" / "..", [[5, 9, 20], [30]], seed=1)[0].windows(4)
    state = make(one).state_dict()
    make(two).load_state_dict(state)
    with pytest.raises(penstock.StateMismatchError, match="dataset"):
        make(other).load_state_dict(state)


# --- hostile states


@pytest.mark.parametrize(
    "change",
    [
        {"version": None}, {"position": None}, {"job": None}, {"version": "1"}, {"position": "4"}, {"position": 4.0},
        {"job": {}}, {"job": b"{}"}, {"position": -1}, {"position": 1 << 64}, {"position": (1 << 63) + 1},
        {"version": -1}, {"version": 0}, {"version": 2}, {"version": 1 << 63}, {"job": ""}, {"job": "{"},
        {"job": "[]"}, {"job": "null"}, {"job": "{}"}, {"job": "\x00"}, {"job": "\ud800"}, {"job": "[" * 100_000},
        {"job": '{"format":1}'}, {"job": "1e999"}, {"job": '{"a":1,"a":1}'},
    ],
)  # fmt: skip
def test_what_is_no_state_is_refused_and_changes_nothing(view, change):
    with make(view) as loader:
        next(loader)
        state = {**loader.state_dict(), **change}
        with pytest.raises(ValueError):
            loader.load_state_dict(state)
        assert loader.position == 4 and next(loader).position == 4


@pytest.mark.parametrize("key", ["version", "position", "job"])
def test_a_missing_key_is_named(view, key):
    state = make(view).state_dict()
    del state[key]
    with pytest.raises(penstock.InvalidArgumentError, match=key):
        make(view).load_state_dict(state)


@pytest.mark.parametrize("what", [None, 3, "state", [], [("version", 1)]])
def test_what_is_no_mapping_is_refused(view, what):
    with pytest.raises(ValueError):
        make(view).load_state_dict(what)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(1 << 70), 1 << 70) | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@st.composite
def broken_jobs(draw: st.DrawFn, job: Any) -> Any:
    """A real job of which one value, anywhere, became something else."""
    if not isinstance(job, dict | list) or not job or draw(st.integers(0, 3)) == 0:
        return draw(json_values)
    if isinstance(job, dict):
        key = draw(st.sampled_from(sorted(job)))
        return {**job, key: draw(broken_jobs(job[key]))}
    at = draw(st.integers(0, len(job) - 1))
    return [*job[:at], draw(broken_jobs(job[at])), *job[at + 1 :]]


def test_a_broken_job_never_crashes(view):
    with make(view, on_mismatch="keep_position") as loader, make(view) as strict:
        real = json.loads(loader.state_dict()["job"])

        @given(broken_jobs(real))
        def check(broken: Any) -> None:
            state = {"version": 1, "position": 4, "job": json.dumps(broken)}
            for each in (loader, strict):
                try:
                    each.load_state_dict(state)
                except ValueError:
                    continue
                assert each.position == 4

        check()


def test_a_dataset_that_has_grown_is_said_to_be_the_same_and_more(tmp_path):
    for name, first in (("old", 0), ("new", 60)):
        with penstock.Writer(tmp_path / name, {"token": "u2"}, metadata="json", shard_size=400) as writer:
            for number in range(first, first + 60):
                writer.append(token=[number] * 10, metadata=number)
    old = penstock.open(tmp_path / "old")
    with make(old.windows(16)) as loader:
        next(loader)
        state = loader.state_dict()
        expected = next(loader).indices.tolist()
    count = len(old.shards)
    assert count > 1
    penstock.combine([tmp_path / "old", tmp_path / "new"], tmp_path / "both")
    grown = penstock.open(tmp_path / "both")
    words = (
        rf"the first {count} of these {len(grown.shards)} shards are the state's\. .*grown.*select\(range\({count}\)\)"
    )
    with make(grown.windows(16)) as loader, pytest.raises(penstock.StateMismatchError, match=words):
        loader.load_state_dict(state)
    with make(grown.select(range(count)).windows(16)) as loader:
        loader.load_state_dict(state)
        assert next(loader).indices.tolist() == expected
    others = grown.select(range(count, len(grown.shards)))
    with make(others.windows(16)) as loader, pytest.raises(penstock.StateMismatchError) as error:
        loader.load_state_dict(state)
    assert "and more" not in str(error.value)


# --- what is in it


def test_a_mixtures_state_with_more_or_less_than_it_has_is_refused(tmp_path):
    dataset = raw_tokens(tmp_path / "t.bin", 2000)[0]
    views = {"web": dataset.windows(16), "code": dataset.windows(16)[:50]}
    stages = [penstock.Stage({"web": 1}), penstock.Stage({"web": 1, "code": 1}, at=32)]
    with make(penstock.Mixture(views, stages), batch_size=8) as loader:
        state = {**loader.state_dict(), "position": 64}
        loader.load_state_dict(state)

        def changed(change: Any) -> dict[str, Any]:
            job = json.loads(state["job"])
            change(job)
            return {**state, "job": json.dumps(job)}

        changes: list[tuple[Any, str]] = [
            (lambda job: job["sources"][0].update(weight=2), "source web has weight, which is unknown"),
            (
                lambda job: job["sources"][0]["dataset"].update(salt=1),
                "source web's dataset has salt, which is unknown",
            ),
            (lambda job: job["sources"].pop(), "code: the saved stages use it, and the state says nothing of it"),
            (lambda job: job["order"]["orders"].pop("code"), "source code: order: saved none, now"),
            (lambda job: job["order"]["orders"].update(code=7), "source code: order: saved 7, now"),
            (lambda job: job["order"]["orders"].update(other={}), "an order of source other, which no stage uses"),
            (lambda job: job["sources"].append(job["sources"][0]), "two sources have one name"),
            (lambda job: job["order"]["stages"][0].update(window=16.0), "stage 0: saved"),
        ]
        for change, words in changes:
            with pytest.raises(penstock.StateMismatchError, match=words) as raised:
                loader.load_state_dict(changed(change))
            assert len(str(raised.value)) <= 500
        # Where only a later stage uses a source, nothing of it was given.
        early = changed(lambda job: (job["sources"].pop(), job["order"]["orders"].pop("code")))
        assert loader.load_state_dict({**early, "position": 32}).position == 32


# --- for ever


def test_a_state_of_version_1_loads_for_ever():
    golden = json.loads((GOLDEN / "state-v1.json").read_text())
    for case in golden["cases"]:
        view = penstock.open(GOLDEN / case["file"], dtype=case["dtype"]).windows(**case["view"])
        order = penstock.orders.Blocks(**case["blocks"]) if "blocks" in case else case["order"]
        with make(
            view, seed=case["seed"], order=order, skip=[tuple(s) for s in case["skip"]], batch_size=case["batch_size"]
        ) as loader:
            loader.load_state_dict(case["state"])
            assert loader.state_dict() == case["state"]
            for batch, expected in zip(islice(loader, len(case["batches"])), case["batches"], strict=True):
                assert batch.indices.tolist() == expected["indices"]
                assert batch.epochs.tolist() == expected["epochs"]
                assert batch["token"].tolist() == expected["tokens"]
