"""A slice and a selection of a view are views: lazy, numbered anew, loaded, resumed and pickled as any other."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import penstock
import pytest
from _datasets import LENGTHS, MODES, array, assert_same, compact, raw_tokens, snapshot
from test_loader_views import plain

WHOLE = [mode for mode in MODES if mode != "split"]  # whose numbers are those of the whole view
SLICES = [
    slice(2, 5), slice(None, 4), slice(3, None), slice(None, None, 2), slice(-4, -1), slice(None, None, -1),
    slice(1, None, 3), slice(-1, 1, -2),
]  # fmt: skip


def one_epoch(view: penstock.View, **options) -> list[int]:
    with penstock.Loader(view, 3, framework="numpy", epochs=1, threads=2, **options) as loader:
        return [i for batch in loader for i in batch.indices.tolist() if i >= 0]


@pytest.mark.parametrize("mode", WHOLE)
@pytest.mark.parametrize("part", SLICES, ids=str)
def test_a_slice_is_what_a_list_would_be(tmp_path, mode, part):
    view = MODES[mode](tmp_path)
    numbers = list(range(len(view)))[part]
    sliced = view[part]
    assert isinstance(sliced, penstock.View) and len(sliced) == len(numbers)
    assert [sliced.base_indices(i) for i in range(len(sliced))] == numbers
    for i in range(len(sliced)):
        assert_same(plain(sliced[i]), plain(view[numbers[i]]))
    found = sliced.read(range(len(sliced)))
    assert found.indices.tolist() == list(range(len(sliced)))
    assert_same({**snapshot(found), "indices": 0}, {**snapshot(view.read(numbers)), "indices": 0})


def test_slices_of_slices_and_their_names(tmp_path):
    view = raw_tokens(tmp_path / "tokens.bin", 1000)[0].windows(10)
    part = view[10:90:2][5:-5]
    assert part.base_indices([0, 29]).tolist() == [20, 78] and len(part) == 30
    assert repr(part).endswith(".windows(10, lookahead=0)[20:80:2]")
    assert repr(view[5:]).endswith("[5:100]") and repr(view[::-1]).endswith("[99::-1]")
    assert repr(view[:]) == repr(view)
    assert repr(view[5 : 5 + 10**30 : 10**30]) == repr(view[5:6:7]) == repr(view[5:6]) and repr(view[5:6]).endswith(
        "[5:6]"
    )
    assert view[:: 10**30][0].records.tolist() == view[0].records.tolist()
    assert repr(view[7:3]).endswith("[0:0]") and len(view[7:3]) == 0 and list(view[7:3]) == []
    with pytest.raises(penstock.InvalidArgumentError, match=r"\[0:0\] has no observations"):
        penstock.Loader(view[7:3], 1)
    with pytest.raises(ValueError):
        view[::0]
    with pytest.raises(IndexError):
        view[:5][5]


def test_base_indices_take_what_a_batch_gives(tmp_path):
    view = raw_tokens(tmp_path / "tokens.bin", 1000)[0].windows(10)[40:]
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
    dataset, _ = compact(tmp_path, LENGTHS)
    view = dataset.windows(4)
    for file in tmp_path.rglob("*.bin"):
        file.unlink()
    assert len(view[1:][:3]) == 3
    with pytest.raises(penstock.Error):
        view[0]


def test_a_slice_pickles_and_resumes_and_no_other_takes_its_state(tmp_path):
    view = raw_tokens(tmp_path / "tokens.bin", 1000)[0].windows(10)
    train = view[20:]
    for again in (pickle.loads(pickle.dumps(train)), copy.copy(train), copy.deepcopy(train)):
        assert repr(again) == repr(train) and one_epoch(again, seed=3) == one_epoch(train, seed=3)
    with penstock.Loader(train, 4, seed=1) as loader:
        next(loader)
        state = loader.state_dict()
        expected = array(next(loader).indices)
    with penstock.Loader(view[10:][10:], 4, seed=1) as other:  # the same, said otherwise
        other.load_state_dict(state)
        np.testing.assert_array_equal(array(next(other).indices), expected)
    for part in (view, view[:80], view[20::2]):
        with penstock.Loader(part, 4, seed=1) as other, pytest.raises(penstock.StateMismatchError, match="slice"):
            other.load_state_dict(state)
    with penstock.Loader(view[:], 4, seed=1) as whole, penstock.Loader(view, 4, seed=1) as same:
        assert whole.state_dict() == same.state_dict()


@pytest.mark.parametrize("mode", WHOLE)
def test_a_selection_is_what_indexing_an_array_would_be(tmp_path, mode):
    view = MODES[mode](tmp_path)
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
        assert len(part) == len(numbers) and part.base_indices(np.arange(len(part))).tolist() == numbers
        for i, number in enumerate(numbers[:4]):
            assert_same(plain(part[i]), plain(view[number]))
        if numbers:
            assert sorted(one_epoch(part, order=penstock.orders.Blocks(2, 4))) == list(range(len(part)))


def test_a_selection_pickles_and_no_other_takes_its_state(tmp_path):
    view = raw_tokens(tmp_path / "tokens.bin", 1000)[0].windows(10)
    part = view.select([7, 3, 50, 9])
    again = pickle.loads(pickle.dumps(part))
    assert repr(again) == repr(part) and repr(part).endswith(".select(4 observations)")
    with penstock.Loader(part, 2, seed=1) as loader:
        next(loader)
        state = loader.state_dict()
    with penstock.Loader(again, 2, seed=1) as same:
        same.load_state_dict(state)
    for other in (view, view[:4], view.select([3, 7, 50, 9])):
        with penstock.Loader(other, 2, seed=1) as loader, pytest.raises(penstock.StateMismatchError, match="selection"):
            loader.load_state_dict(state)


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
def test_what_is_no_selection_is_refused_in_words(tmp_path, which, words):
    view = raw_tokens(tmp_path / "tokens.bin", 1000)[0].windows(10)
    with pytest.raises(penstock.InvalidArgumentError, match=words):
        view.select(which)


def test_what_is_no_index_is_told_what_to_use(tmp_path):
    view = raw_tokens(tmp_path / "tokens.bin", 1000)[0].windows(10)
    for index in ([1, 2], np.array([1, 2]), "1", 1.0):
        with pytest.raises(TypeError, match=r"view\.select\(indices\).*view\.read\(indices\)"):
            view[index]
    with pytest.raises(TypeError, match="pickle its view"):
        pickle.dumps(penstock.Job(view, global_batch_size=4))
