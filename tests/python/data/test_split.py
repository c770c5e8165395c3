"""Splits and shards: what is held out stays held out; parts of parts; datasets of some shards."""

from __future__ import annotations

import pickle

import numpy as np
import penstock
import pytest
from _datasets import LENGTHS, MODES, array, assert_same, compact, orders, raw_tokens, snapshot


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("one_in", [2, 3, 7])
def test_both_parts_are_the_view_and_each_run_gives_one(tmp_path, mode, one_in):
    view = MODES[mode](tmp_path)
    train, held_out = view.split(one_in, seed=4)
    parts = [part.base_indices(np.arange(len(part))).tolist() for part in (train, held_out)]
    assert all(part == sorted(part) for part in parts)
    assert sorted(parts[0] + parts[1]) == view.base_indices(np.arange(len(view))).tolist()
    assert len(view) // one_in <= len(held_out) <= -(-len(view) // one_in)
    assert view.split(one_in, seed=4)[1].read(range(len(held_out))).indices.tolist() == list(range(len(held_out)))
    place = view.base_indices(np.arange(len(view))).tolist().index(parts[1][0])
    one, same = (snapshot(each) for each in (held_out.read([0]), view.read([place])))
    assert_same({**one, "indices": 0}, {**same, "indices": 0})


def test_what_is_held_out_stays_when_shards_are_appended(tmp_path):
    dataset, _ = compact(tmp_path, LENGTHS)
    _, before = dataset.select([0]).documents().split(3, seed=1)
    _, after = dataset.documents().split(3, seed=1)
    old = len(LENGTHS[0])
    now = after.base_indices(np.arange(len(after)))
    assert now[now < old].tolist() == before.base_indices(np.arange(len(before))).tolist()
    others = [dataset.documents().split(3, seed=seed)[1].base_indices(range(4)).tolist() for seed in range(9)]
    assert len({str(each) for each in others}) > 3


def test_parts_of_parts_load_resume_and_pickle(tmp_path):
    view = raw_tokens(tmp_path / "tokens.bin", 3000)[0].windows(10)
    train, held_out = view.split(10)
    part = train[5:200:2].select([3, 50, 7, 9, 11, 60]).split(2)[0]
    all_of_train = train.base_indices(np.arange(len(train)))
    wanted = all_of_train[5:200:2][[3, 50, 7, 9, 11, 60]]
    assert set(part.base_indices(np.arange(len(part)))) < set(wanted.tolist()) and len(part) == 3
    again = pickle.loads(pickle.dumps(part))
    assert repr(again) == repr(part) and ".split(10, seed=0)[0]" in repr(part)
    for order in orders().values():
        with penstock.Loader(train, 4, seed=1, order=order, epochs=1, framework="numpy") as loader:
            seen = [index for batch in loader for index in batch.indices.tolist() if index >= 0]
            assert sorted(seen) == list(range(len(train)))
    with penstock.Loader(part, 1, seed=1) as loader:
        next(loader)
        state = loader.state_dict()
        following = array(next(loader)["token"])
    with penstock.Loader(again, 1, seed=1) as loader:
        loader.load_state_dict(state)
        np.testing.assert_array_equal(array(next(loader)["token"]), following)
    for other in (held_out, view.split(10, seed=1)[0], view.split(9)[0], view, train[1:]):
        with penstock.Loader(other, 1, seed=1) as loader, pytest.raises(penstock.StateMismatchError):
            loader.load_state_dict(state)


def test_nothing_is_kept_for_a_split_of_many(tmp_path):
    with (tmp_path / "tokens.bin").open("wb") as file:
        file.truncate(1 << 40)
    train, held_out = penstock.open(tmp_path / "tokens.bin", dtype="u2").windows(16).split(1000)
    assert len(train) + len(held_out) == 1 << 35
    assert train[len(train) - 1]["token"].tolist() == [0] * 16
    assert held_out.base_indices(len(held_out) - 1) // 1000 == len(held_out) - 1


def test_shards_are_a_dataset_with_the_fingerprint_of_combining_them(tmp_path):
    dataset, _ = compact(tmp_path, LENGTHS)
    some = dataset.select([2, 0])
    assert [shard.records for shard in some.shards] == [16, 44] and some.records == 60
    assert some.fingerprint == penstock.open(tmp_path / "compact-2", tmp_path / "compact-0").fingerprint
    assert dataset.select([-1]).fingerprint == penstock.open(tmp_path / "compact-3").fingerprint
    assert dataset.select(range(4)).fingerprint == dataset.fingerprint
    assert (
        some.documents()[0]["token"].tolist() == penstock.open(tmp_path / "compact-2").documents()[0]["token"].tolist()
    )
    again = pickle.loads(pickle.dumps(some))
    assert again.fingerprint == some.fingerprint and again.records == 60
    with penstock.Loader(some.windows(5, lookahead=1), 2, epochs=1) as loader:
        assert sum(int(batch.valid.sum()) for batch in loader) == 11
    for wrong, named in [
        ([], "no shards"),
        ([4], "no shard 4"),
        ([-5], "no shard -5"),
        ([1, 1], "twice"),
        (["a"], "numbers"),
    ]:
        with pytest.raises(penstock.InvalidArgumentError, match=named):
            dataset.select(wrong)
    for name in ("a", "b"):
        raw_tokens(tmp_path / f"{name}.bin", 50)
    files = penstock.open(tmp_path / "a.bin", tmp_path / "b.bin", dtype="u2")
    assert files.select([1]).records == 50 and len({files.select(each).fingerprint for each in ([0], [1], [1, 0])}) == 3


def test_windows_that_begin_elsewhere_each_epoch_are_not_split(tmp_path):
    view = raw_tokens(tmp_path / "tokens.bin", 3000)[0].windows(10, phase="random")
    with pytest.raises(penstock.InvalidArgumentError, match="none would stay held out"):
        view.split(10)


def test_a_split_that_cannot_be_is_refused(tmp_path):
    view = raw_tokens(tmp_path / "tokens.bin", 100)[0].windows(10)
    for one_in in (0, 1, -3, 2.5, "2"):
        with pytest.raises(penstock.InvalidArgumentError, match="one_in"):
            view.split(one_in)
    with pytest.raises(penstock.InvalidArgumentError, match="seed"):
        view.split(2, seed=-1)
    _, held_out = view[:1].split(5, seed=0)
    train, _ = view[:1].split(5, seed=0)
    assert len(held_out) + len(train) == 1
