"""The state: three keys for ever; loading says where it resumes; another job is refused by the name of what differs."""

from __future__ import annotations

import json
from itertools import islice
from pathlib import Path
from typing import Any

import penstock
import pytest
from _datasets import compact, raw_tokens
from penstock.adapters.torch import BatchDataset

GOLDEN = Path(__file__).parents[2] / "golden"


@pytest.fixture
def view(tmp_path):
    return raw_tokens(tmp_path / "tokens.bin", 1003)[0].windows(10)


def make(view: penstock.View, **options: Any) -> penstock.Loader:
    return penstock.Loader(view, **{"batch_size": 4, "seed": 1, "framework": "numpy", "threads": 1, **options})


# --- its shape


def test_it_has_three_keys_of_plain_values_and_is_valid_before_the_first_batch(view):
    with make(view) as loader:
        for expected in (0, 4, 8):
            state = loader.state_dict()
            assert list(state) == ["version", "position", "job"]
            assert [type(value) for value in state.values()] == [int, int, str]
            assert state["version"] == 1 and state["position"] == expected
            assert json.loads(json.dumps(state)) == state
            assert json.dumps(json.loads(state["job"]), sort_keys=True, separators=(",", ":")) == state["job"]
            next(loader)
    with pytest.raises(penstock.InvalidArgumentError, match="read from a view"):
        view.read([1, 2]).state_dict()


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


# --- loading


def test_loading_says_where_it_resumes(view):
    state = {**make(view).state_dict(), "position": 1212}
    with make(view) as loader:
        resume = loader.load_state_dict(state)
        assert str(resume) == "resumes at epoch 12, position 1,212, step 303"
        assert (resume.epoch, resume.position, resume.step) == (12, 1212, 303)
        assert next(loader).position == 1212


@pytest.mark.parametrize(
    ("saved", "now", "wanted"),
    [
        ({"seed": 1337}, {"seed": 7}, "Give seed=1337, or use"),
        ({"window": 8, "lookahead": 1}, {"window": 16}, "Give windows(8, lookahead=1), or use"),
        ({"order": "sequential"}, {}, 'Give order="sequential", or use'),
        ({"order": penstock.orders.Blocks(4, 16), "seed": 3}, {"window": 5},
         "Give order=orders.Blocks(4, 16, lanes=1) and windows(10, lookahead=0) and seed=3, or use"),
        ({"order": "sequential"}, {"order": penstock.orders.Weighted([1.0] * 100)}, 'Give order="sequential", or use'),
        ({"order": penstock.orders.Weighted([1.0] * 100)}, {"seed": 2}, ". Use"),
        ({"seed": 2}, {"phase": "random"}, ". Use"),
    ],
)  # fmt: skip
def test_a_refusal_says_first_which_arguments_are_those_of_the_state(view, saved, now, wanted):
    def of(window: int = 10, lookahead: int = 0, phase: Any = None, **options: Any) -> penstock.Loader:
        return make(view.dataset.windows(window, lookahead, phase=phase), **options)

    with of(**saved) as one, of(**now) as other:
        with pytest.raises(penstock.StateMismatchError) as error:
            other.load_state_dict(one.state_dict())
        assert wanted in str(error.value) and ("Give" in wanted) == ("Give" in str(error.value))
        dataset = BatchDataset(other.view, batch_size=4, rank=0, world_size=1, **{"seed": 1, **options_of(now)})
        with pytest.raises(penstock.StateMismatchError) as error:
            dataset.load_state_dict(one.state_dict())
        assert wanted in str(error.value)


def options_of(given: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in given.items() if name in ("seed", "order")}


def test_a_position_between_two_steps_of_the_new_batch_size_is_accepted_and_said(view):
    state = {**make(view).state_dict(), "position": 1212}
    with make(view, batch_size=9) as loader:
        resume = loader.load_state_dict(state)
        said = "step 135 (between steps 134 and 135 of 9 rows: saved with another batch size?)"
        assert str(resume) == f"resumes at epoch 12, position 1,212, {said}"
        assert (resume.position, resume.step, next(loader).position) == (1212, 135, 1212)


@pytest.mark.parametrize("tail", ["pad", "drop", "short"])
@pytest.mark.parametrize("options", [{}, {"per_epoch": True}, {"skip": [(8, 21)]}])
def test_every_state_of_the_run_is_at_the_beginning_of_a_step(view, tail, options):
    given = {"batch_size": 7, "epochs": 3, "tail": tail, **options}
    with make(view, **given) as loader, make(view, **given) as again:
        assert "between" not in str(again.load_state_dict(loader.state_dict()))
        batches = [batch for _ in range(3 if "per_epoch" in options else 1) for batch in loader]
        for batch in batches:
            assert "between" not in str(again.load_state_dict(batch.state_dict()))
    assert len(batches) > 30


def test_another_job_is_refused_in_words_that_name_what_differs_and_only_that(tmp_path, view):
    longer = raw_tokens(tmp_path / "longer.bin", 2003)[0].windows(10)
    dataset = view.dataset
    other_jobs: dict[str, tuple[penstock.View, dict[str, Any], list[str]]] = {
        "dataset": (raw_tokens(tmp_path / "changed.bin", 1003, seed=1)[0].windows(10), {}, []),
        "1,003": (longer, {}, ["dataset", "2,003"]),
        "seed": (view, {"seed": 2}, ["1", "2"]),
        "order": (view, {"order": "sequential"}, ["uniform", "sequential"]),
        "blocks": (view, {"order": penstock.orders.Blocks(2, 4)}, ["order"]),
        "window": (dataset.windows(20), {}, ["10", "20"]),
        "lookahead": (dataset.windows(10, lookahead=1), {}, []),
        "skip": (view, {"skip": [(0, 4)]}, []),
    }
    for name, (other, options, words) in other_jobs.items():
        for position in (0, 8):
            saved = {**make(view).state_dict(), "position": position}
            with make(other, **options) as loader:
                next(loader)
                before = loader.position
                if (name, position) == ("skip", 0):
                    loader.load_state_dict(saved)  # a skip that lies at or after the position is no difference
                    continue
                with pytest.raises(penstock.StateMismatchError) as caught:
                    loader.load_state_dict(saved)
                assert isinstance(caught.value, ValueError)
                said = str(caught.value)
                assert all(word in said for word in [name, *words, "on_mismatch"]), said
                if name == "seed":
                    said = said.split("Use on_mismatch")[0]
                    assert not any(word in said for word in ("window", "dataset", "skip"))
                assert loader.position == before  # a refused state changes nothing
                next(loader)


def test_skips_added_ahead_are_accepted_and_skips_behind_are_refused(view):
    with make(view, epochs=1) as loader:
        order = [i for batch in loader for i in batch.indices.tolist() if i >= 0]
        saved = {**loader.state_dict(), "position": 40}
    with make(view, epochs=1, skip=[(40, 45), (60, 70)]) as loader:
        loader.load_state_dict(saved)
        rest = [i for batch in loader for i in batch.indices.tolist() if i >= 0]
        assert rest == [i for p, i in enumerate(order) if p >= 45 and not 60 <= p < 70]
        later = {**loader.state_dict(), "position": 64}
    # Of what is behind, nothing can be skipped, and what was skipped cannot be taken back.
    for state, skip in ((saved, [(39, 45)]), (saved, [(0, 1)]), (saved, [(12, 90)]), (later, [])):
        with make(view, skip=skip) as loader, pytest.raises(penstock.StateMismatchError, match="skip"):
            loader.load_state_dict(state)
    with make(view, skip=[(60, 64), (62, 80), (40, 45)]) as loader:  # the same, said otherwise, up to 64
        loader.load_state_dict(later)


def test_on_mismatch_restarts_or_keeps_the_position(view):
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
    with make(dataset.windows(40)) as strict, pytest.raises(penstock.StateMismatchError) as caught:
        strict.load_state_dict(saved)
    assert '"keep_position" to go on at 25 (as many records as 103 windows of 10' in str(caught.value)


def test_the_same_dataset_elsewhere_is_the_same_dataset(tmp_path):
    views = []
    for name, seed in (("one", 0), ("two", 0), ("other", 1)):
        (tmp_path / name).mkdir()
        views.append(compact(tmp_path / name, [[5, 9, 20], [30]], seed=seed)[0].windows(4))
    state = make(views[0]).state_dict()
    make(views[1]).load_state_dict(state)
    with pytest.raises(penstock.StateMismatchError, match="dataset"):
        make(views[2]).load_state_dict(state)


# --- hostile states


def test_what_is_no_state_is_refused_and_changes_nothing(view):
    with make(view) as loader:
        next(loader)
        state = loader.state_dict()
        changes: list[dict[str, Any]] = [
            {"version": None}, {"position": None}, {"job": None}, {"version": "1"}, {"position": "4"},
            {"position": 4.0}, {"job": {}}, {"job": b"{}"}, {"position": -1}, {"position": 1 << 64},
            {"position": (1 << 63) + 1}, {"version": -1}, {"version": 0}, {"version": 2}, {"version": 1 << 63},
            {"job": ""}, {"job": "{"}, {"job": "[]"}, {"job": "null"}, {"job": "{}"}, {"job": "\x00"},
            {"job": "\ud800"}, {"job": "[" * 100_000}, {"job": '{"format":1}'}, {"job": "1e999"},
            {"job": '{"a":1,"a":1}'},
        ]  # fmt: skip
        for wrong in (*({**state, **change} for change in changes), None, 3, "state", [], [("version", 1)]):
            with pytest.raises(ValueError):
                loader.load_state_dict(wrong)
        for key in state:
            with pytest.raises(penstock.InvalidArgumentError, match=key):
                loader.load_state_dict({name: value for name, value in state.items() if name != key})
        assert loader.position == 4 and next(loader).position == 4


# --- for ever


def test_a_state_of_version_1_loads_for_ever():
    golden = json.loads((GOLDEN / "state-v1.json").read_text())
    for case in golden["cases"]:
        view = penstock.open(GOLDEN / case["file"], dtype=case["dtype"]).windows(**case["view"])
        order = penstock.orders.Blocks(**case["blocks"]) if "blocks" in case else case["order"]
        skip = [tuple(each) for each in case["skip"]]
        with make(view, seed=case["seed"], order=order, skip=skip, batch_size=case["batch_size"]) as loader:
            loader.load_state_dict(case["state"])
            assert loader.state_dict() == case["state"]
            for batch, expected in zip(islice(loader, len(case["batches"])), case["batches"], strict=True):
                assert batch.indices.tolist() == expected["indices"]
                assert batch.epochs.tolist() == expected["epochs"]
                assert batch["token"].tolist() == expected["tokens"]
