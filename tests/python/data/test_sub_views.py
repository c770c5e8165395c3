"""A view is a sequence that pickles; so are its slices, selections and splits, each lazy and numbered anew."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import penstock
import pytest
from _datasets import LENGTHS, MODES, array, assert_same, compact, orders, raw_tokens, snapshot
from _refused import refused

SLICES = [
    slice(2, 5), slice(None, 4), slice(3, None), slice(None, None, 2), slice(-4, -1), slice(None, None, -1),
    slice(1, None, 3), slice(-1, 1, -2),
]  # fmt: skip
OF_MODES = pytest.mark.parametrize("mode", MODES)


@pytest.fixture
def windows(tmp_path) -> penstock.View:
    """100 of them."""
    return raw_tokens(tmp_path / "tokens.bin", 1000)[0].windows(10)


def plain(observation: Any) -> dict[str, Any]:
    """Its fields and spans, copied."""
    spans = [(tuple(span.id), span.start, span.stop, span.raw) for span in observation.spans]
    return {**{name: array(observation[name]) for name in observation}, "spans": spans}


def numbers_of(view: penstock.View) -> list[int]:
    """Of its observations, in the whole view."""
    found: list[int] = view.base_indices(np.arange(len(view))).tolist()
    return found


def one_epoch(view: penstock.View, **options: Any) -> list[int]:
    with penstock.Loader(view, 3, framework="numpy", epochs=1, threads=2, **options) as loader:
        return [i for batch in loader for i in batch.indices.tolist() if i >= 0]


@OF_MODES
def test_a_view_is_a_sequence_and_pickles(tmp_path, mode):
    view = MODES[mode](tmp_path)
    observations = list(view)
    assert len(observations) == len(view) > 5
    assert_same(plain(view[-1]), plain(view[len(view) - 1]))
    assert_same(plain(view[np.int64(2)]), plain(view[2]))
    assert_same(plain(view[2]), plain(observations[2]))
    for index in (len(view), -len(view) - 1, 1 << 70):
        with pytest.raises(IndexError):
            view[index]
    whole = view.read(range(len(view)))
    assert [tuple(span.id) for one in observations for span in one.spans] == [tuple(span.id) for span in whole.spans]
    for again in (pickle.loads(pickle.dumps(view)), copy.deepcopy(view)):
        assert len(again) == len(view) and repr(again) == repr(view)
        assert_same(snapshot(again.read([2, 0])), snapshot(view.read([2, 0])))
        with penstock.Loader(again, 4, seed=1, framework="numpy") as one, penstock.Loader(view, 4, seed=1) as other:
            assert one.state_dict() == other.state_dict()


def test_bulk_reads_take_any_integers_in_any_order(tmp_path):
    dataset, tokens = raw_tokens(tmp_path / "tokens.bin", 5000)
    view = dataset.windows(7)
    wanted = np.random.default_rng(0).integers(0, len(view), 500)
    for indices in (wanted, wanted.tolist(), wanted.astype("i4"), wanted.astype("u2"), tuple(wanted)):
        batch = view.read(indices)
        np.testing.assert_array_equal(batch["token"], tokens[(wanted[:, None] * 7) + np.arange(7)])
        assert batch.indices.tolist() == wanted.tolist() and batch.valid.all()
    assert view.read([])["token"].shape == (0, 7)
    for wrong in ([714], [-1], [0, 1 << 63], [0.5], ["1"], [[0, 1]], 3, None):
        with pytest.raises((ValueError, IndexError, TypeError)):
            view.read(wrong)


def test_a_running_loader_and_a_job_do_not_pickle_and_say_what_does(windows):
    with penstock.Loader(windows, 4) as loader:
        next(loader)
        refused("state_dict", pickle.dumps, loader, error=TypeError)
    refused("pickle its view", pickle.dumps, penstock.Job(windows, global_batch_size=4), error=TypeError)


@OF_MODES
def test_a_slice_is_what_a_list_would_be(tmp_path, mode):
    view = MODES[mode](tmp_path)
    whole = numbers_of(view)
    for part in SLICES:
        numbers = list(range(len(view)))[part]
        sliced = view[part]
        assert isinstance(sliced, penstock.View) and len(sliced) == len(numbers)
        assert numbers_of(sliced) == whole[part]
        assert_same(plain(sliced[-1]), plain(view[numbers[-1]]))
        found = sliced.read(range(len(sliced)))
        assert found.indices.tolist() == list(range(len(sliced)))
        assert_same({**snapshot(found), "indices": 0}, {**snapshot(view.read(numbers)), "indices": 0})


def test_slices_of_slices_and_their_names(windows):
    view = windows
    part = view[10:90:2][5:-5]
    assert part.base_indices([0, 29]).tolist() == [20, 78] and len(part) == 30
    assert repr(part).endswith(".windows(10, lookahead=0)[20:80:2]")
    assert repr(view[5:]).endswith("[5:100]") and repr(view[::-1]).endswith("[99::-1]")
    assert repr(view[:]) == repr(view)
    assert repr(view[5 : 5 + 10**30 : 10**30]) == repr(view[5:6:7]) == repr(view[5:6])
    assert repr(view[5:6]).endswith("[5:6]")
    assert view[:: 10**30][0].records.tolist() == view[0].records.tolist()
    assert repr(view[7:3]).endswith("[0:0]") and len(view[7:3]) == 0 and list(view[7:3]) == []
    refused(r"\[0:0\] has no observations", penstock.Loader, view[7:3], 1)
    with pytest.raises(ValueError):
        view[::0]
    with pytest.raises(IndexError):
        view[:5][5]
    for index in ([1, 2], np.array([1, 2]), "1", 1.0, None):
        with pytest.raises(TypeError, match=r"view\.select\(indices\).*view\.read\(indices\)"):
            view[index]


def test_base_indices_take_what_a_batch_gives(windows):
    view = windows[40:]
    with penstock.Loader(view, 32, epochs=1) as loader:
        *_, last = loader
    found = view.base_indices(last.indices)
    assert found.dtype == np.int64 and (found[~array(last.valid)] == -1).all()
    assert ((found[array(last.valid)] >= 40) & (found[array(last.valid)] < 100)).all()
    assert view.base_indices(np.uint8(3)) == 43 and view.base_indices([[0], [1]]).shape == (2, 1)
    assert view.base_indices([]).shape == (0,)
    for wrong in (60, [0, 60], [-2], 1 << 63, [0.5], "1"):
        with pytest.raises(penstock.InvalidArgumentError):
            view.base_indices(wrong)


def test_nothing_is_read_for_a_slice(tmp_path):
    compact(tmp_path, LENGTHS)
    for file in tmp_path.rglob("*.bin"):
        file.unlink()
    view = penstock.open(*(tmp_path / f"compact-{shard}" for shard in range(len(LENGTHS)))).windows(4)
    assert len(view[1:][:3]) == 3
    refused(r"stream\.bin", lambda: view[0], error=penstock.NotFoundError)


@OF_MODES
def test_a_selection_is_what_indexing_an_array_would_be(tmp_path, mode):
    view = MODES[mode](tmp_path)
    whole = np.array(numbers_of(view))
    wanted = np.random.default_rng(0).permutation(len(view))[: len(view) // 2]
    mask = np.zeros(len(view), bool)
    mask[wanted] = True
    for part, numbers in [
        (view.select(wanted), wanted.tolist()),
        (view.select(wanted.tolist()), wanted.tolist()),
        (view.select(mask), np.flatnonzero(mask).tolist()),
        (view.select(wanted)[1:][::-1], wanted[1:][::-1].tolist()),
        (view[2:].select([3, 0]), [5, 2]),
        (view[::-1].select(mask[::-1]), np.flatnonzero(mask)[::-1].tolist()),
        (view.select(wanted).select([1, 0]), wanted[[1, 0]].tolist()),
        (view.select([]), []),
    ]:
        assert numbers_of(part) == whole[numbers].tolist()
        for i, number in enumerate(numbers[:2]):
            assert_same(plain(part[i]), plain(view[number]))
        if numbers:
            assert sorted(one_epoch(part, order=penstock.orders.Blocks(2, 4))) == list(range(len(part)))


@pytest.mark.parametrize(
    ("which", "words"),
    [
        ([1, 2, 1], "number 2 of the selection is observation 1 again"),
        ([0, 100], "observation 100: indices of this view are from 0 to 99"),
        ([-1], "indices begin at 0"),
        ([True] * 99, r"a mask of shape \[99\]: \[100\] wanted"),
        ([0.5], "integers"),
        ([[1]], "shape"),
        ("1", "integers"),
    ],
)
def test_what_is_no_selection_is_refused_in_words(windows, which, words):
    refused(words, windows.select, which)


def test_nothing_is_kept_for_a_split_of_many(tmp_path):
    with (tmp_path / "tokens.bin").open("wb") as file:
        file.truncate(1 << 40)
    train, held_out = penstock.open(tmp_path / "tokens.bin", dtype="u2").windows(16).split(1000)
    assert len(train) + len(held_out) == 1 << 35
    assert train[len(train) - 1]["token"].tolist() == [0] * 16
    assert held_out.base_indices(len(held_out) - 1) // 1000 == len(held_out) - 1


def test_a_split_that_cannot_be_is_refused(tmp_path, windows):
    for one_in in (0, 1, -3, 2.5, "2"):
        refused("one_in", windows.split, one_in)
    refused("seed", windows.split, 2, seed=-1)
    train, held_out = windows[:1].split(5, seed=0)
    assert len(held_out) + len(train) == 1
    phased = penstock.open(tmp_path / "tokens.bin", dtype="u2").windows(10, phase="random")
    refused("none would stay held out", phased.split, 10)


def state_of(view: penstock.View) -> tuple[Any, Any]:
    """After a batch, and the indices of the next."""
    with penstock.Loader(view, 2, seed=1) as loader:
        next(loader)
        return loader.state_dict(), array(next(loader).indices).tolist()


def test_a_part_pickles_and_resumes_and_no_other_takes_its_state(windows):
    train, _ = windows.split(10)
    nested = train[5:80:2].select([3, 30, 7, 9, 11, 20]).split(2)[0]
    assert set(numbers_of(nested)) < set(np.array(numbers_of(train))[5:80:2][[3, 30, 7, 9, 11, 20]].tolist())
    picked = windows.select([7, 3, 50, 9])
    cases: list[tuple[penstock.View, str, list[penstock.View], str]] = [
        (windows[20:], "[20:100]", [windows, windows[:80], windows[20::2]], "slice"),
        (picked, ".select(4 observations)", [windows, windows[:4], windows.select([3, 7, 50, 9])], "selection"),
        (train, "", [windows, train[1:], *windows.split(10)[1:], windows.split(10, seed=1)[0]], "split|slice"),
        (nested, ".split(10, seed=0)[0]", [windows, windows.split(9)[0]], "split|slice"),
    ]
    for part, name, others, words in cases:
        state, following = state_of(part)
        for again in (pickle.loads(pickle.dumps(part)), copy.copy(part)):
            assert repr(again) == repr(part) and name in repr(part)
            with penstock.Loader(again, 2, seed=1) as loader:
                loader.load_state_dict(state)
                assert array(next(loader).indices).tolist() == following
        for other in others:
            with penstock.Loader(other, 2, seed=1) as loader, pytest.raises(penstock.StateMismatchError, match=words):
                loader.load_state_dict(state)
    for part, same in ((windows[20:], windows[10:][10:]), (windows, windows[:])):
        assert state_of(part) == state_of(same)
    for order in orders().values():
        assert sorted(one_epoch(train, order=order)) == list(range(len(train)))


def test_shards_are_a_dataset_with_the_fingerprint_of_combining_them(tmp_path):
    dataset, _ = compact(tmp_path, LENGTHS)
    some = dataset.select([2, 0])
    assert [shard.records for shard in some.shards] == [16, 44] and some.records == 60
    assert some.fingerprint == penstock.open(tmp_path / "compact-2", tmp_path / "compact-0").fingerprint
    assert dataset.select([-1]).fingerprint == penstock.open(tmp_path / "compact-3").fingerprint
    assert dataset.select(range(4)).fingerprint == dataset.fingerprint
    again = pickle.loads(pickle.dumps(some))
    assert again.fingerprint == some.fingerprint and again.records == 60
    for wrong, named in (
        ([], "no shards"),
        ([4], "no shard 4"),
        ([-5], "no shard -5"),
        ([1, 1], "twice"),
        (["a"], "num"),
    ):
        refused(named, dataset.select, wrong)
    paths = [raw_tokens(tmp_path / f"{name}.bin", 50)[0].path for name in "ab"]
    files = penstock.open(*paths, dtype="u2")
    assert files.select([1]).records == 50 and len({files.select(each).fingerprint for each in ([0], [1], [1, 0])}) == 3
