"""A view is a sequence of observations, and pickles."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import penstock
import pytest
from _datasets import LENGTHS, MODES, array, assert_same, compact, raw_tokens, snapshot


def plain(observation):
    """Its fields and spans, copied."""
    spans = [(tuple(span.id), span.start, span.stop, span.raw) for span in observation.spans]
    return {**{name: array(observation[name]) for name in observation}, "spans": spans}


@pytest.mark.parametrize("mode", MODES)
def test_a_view_is_a_sequence(tmp_path, mode):
    view = MODES[mode](tmp_path)
    observations = list(view)
    assert len(observations) == len(view) > 5
    assert_same(plain(view[-1]), plain(view[len(view) - 1]))
    assert_same(plain(view[np.int64(2)]), plain(view[2]))
    assert_same(plain(view[2]), plain(observations[2]))
    for index in (len(view), -len(view) - 1, 1 << 70):
        with pytest.raises(IndexError):
            view[index]
    for what in ("1", 1.0, None):
        with pytest.raises(TypeError):
            view[what]
    whole = view.read(range(len(view)))
    assert [tuple(span.id) for one in observations for span in one.spans] == [tuple(span.id) for span in whole.spans]


def test_one_observation_is_its_fields(tmp_path):
    dataset, model = compact(tmp_path, LENGTHS)
    window = dataset.windows(7)[3]
    np.testing.assert_array_equal(window["token"], model.window(3, 7)["token"])
    assert [span.metadata for span in window.spans] == [span[-1] for span in model.window_spans(3, 7)]
    document = dataset.documents()[2]
    np.testing.assert_array_equal(document["token"], model.records[3:14]["token"])
    assert document.spans[0].metadata == {"shard": 0, "number": 2, "text": "xx"}


def test_bulk_reads_take_any_integers_in_any_order(tmp_path):
    dataset, tokens = raw_tokens(tmp_path / "tokens.bin", 5000)
    view = dataset.windows(7)
    wanted = np.random.default_rng(0).integers(0, len(view), 500)
    for indices in (
        wanted,
        wanted.tolist(),
        wanted.astype("i4"),
        wanted.astype("u2"),
        tuple(wanted),
        wanted[::-1][::-1],
    ):
        batch = view.read(indices)
        np.testing.assert_array_equal(batch["token"], tokens[(wanted[:, None] * 7) + np.arange(7)])
        assert batch.indices.tolist() == wanted.tolist() and batch.valid.all()
    assert view.read([])["token"].shape == (0, 7)


@pytest.mark.parametrize("indices", [[714], [-1], [0, 1 << 63], [0.5], ["1"], [[0, 1]], 3, None])
def test_what_no_bulk_read_can_be(tmp_path, indices):
    view = raw_tokens(tmp_path / "tokens.bin", 5000)[0].windows(7)
    with pytest.raises((ValueError, IndexError, TypeError)):
        view.read(indices)


@pytest.mark.parametrize("mode", MODES)
def test_views_and_datasets_pickle_and_read_the_same(tmp_path, mode):
    view = MODES[mode](tmp_path)
    for again in (pickle.loads(pickle.dumps(view)), copy.deepcopy(view)):
        assert len(again) == len(view)
        assert_same(snapshot(again.read([2, 0])), snapshot(view.read([2, 0])))
        with penstock.Loader(again, 4, seed=1, framework="numpy") as one, penstock.Loader(view, 4, seed=1) as other:
            assert one.state_dict() == other.state_dict()


def test_a_dataset_pickles(tmp_path):
    dataset, _ = compact(tmp_path, LENGTHS)
    again = pickle.loads(pickle.dumps(dataset))
    assert_same(plain(again.windows(5)[1]), plain(dataset.windows(5)[1]))


def test_a_running_loader_does_not_pickle_and_says_what_does(tmp_path):
    with penstock.Loader(MODES["raw"](tmp_path), 4) as loader:
        next(loader)
        with pytest.raises(TypeError, match="state_dict"):
            pickle.dumps(loader)


def test_a_window_longer_than_the_stream_is_refused_in_words(tmp_path):
    dataset, _ = raw_tokens(tmp_path / "tokens.bin", 100)
    with pytest.raises(penstock.InvalidArgumentError, match=r"101.*100"):
        dataset.windows(101)
    with pytest.raises(penstock.InvalidArgumentError):
        dataset.windows(100, lookahead=1)
    assert len(dataset.windows(100)) == 1
    for window in (0, -1, 1.5):
        with pytest.raises(ValueError):
            dataset.windows(window)
