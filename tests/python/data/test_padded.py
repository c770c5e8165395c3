"""Padded documents: rectangles with a mask, on either side, of the longest or a given length."""

from __future__ import annotations

import pickle

import numpy as np
import penstock
import pytest
from _datasets import LENGTHS, array, compact, ids, opaque
from _refused import refused

ALL = [length for shard in LENGTHS for length in shard]


def test_only_the_records_that_are_wanted_are_read(tmp_path):
    with penstock.Writer(tmp_path / "d", {"token": "u4"}, "json") as writer:
        writer.append(token=np.arange(1 << 20, dtype="u4"), metadata=None)
        writer.append(token=[1, 2], metadata=None)
    view = penstock.open(tmp_path / "d").documents()
    with penstock.Loader(view.padded(8), 2, order="sequential", framework="numpy", epochs=1) as loader:
        batch = next(loader)
    assert batch["token"].tolist() == [list(range(8)), [1, 2, 0, 0, 0, 0, 0, 0]]
    assert len(batch.records) == 10 and [span.ends for span in batch.spans] == [False, True]
    one = view.padded(3, side="left")[1]
    assert one["token"].tolist() == [0, 1, 2] and one.labels.tolist() == [-100, 2, -100]


def test_long_documents_are_dropped_or_refused(tmp_path):
    view = compact(tmp_path, LENGTHS)[0].documents()
    dropped = view.padded(9, long="drop")
    kept = [i for i, length in enumerate(ALL) if length <= 9]
    assert dropped.base_indices(np.arange(len(dropped))).tolist() == kept
    assert dropped.lengths().tolist() == [ALL[i] for i in kept]
    strict = view.padded(9, long="refuse")
    assert strict.read([0])["token"].shape == (1, 9)
    refused("document 2 has 11 records", strict.read, [2])
    assert view.padded(9).lengths().tolist() == [min(length, 9) for length in ALL]


@pytest.mark.parametrize("framework", ["numpy", "torch"])
@pytest.mark.parametrize("value", [-1, 70_000, np.int8(-3), 2.0, True])
def test_padding_that_the_stored_type_does_not_hold(tmp_path, framework, value):
    dataset, _ = compact(tmp_path, LENGTHS)
    view = dataset.documents().padded(4, value={"token": value, "weight": 0.1})
    wide = framework == "torch" or not 0 <= value < 1 << 16
    with penstock.Loader(view, 5, order="sequential", epochs=1, framework=framework) as loader:
        for batch in loader:
            padding = array(batch.attention_mask) == 0
            assert padding.any()
            for name in ("token", "inputs"):
                assert (array(batch[name] if name == "token" else batch.inputs)[padding] == value).all()
            assert array(batch["token"]).dtype == (np.int64 if wide else np.uint16)
            assert (array(batch["weight"])[padding] == np.float32(0.1)).all()
    if framework == "numpy":
        read = view.read([1])
        assert (read["token"] == value).all() and read["token"].dtype == array(batch["token"]).dtype


def test_padding_of_floats_may_be_nan_or_infinite(tmp_path):
    dataset, _ = compact(tmp_path, LENGTHS)
    for value in (float("nan"), np.float64("inf"), -float("inf")):
        view = dataset.documents().padded(4, value={"weight": value})
        again = pickle.loads(pickle.dumps(view))
        np.testing.assert_array_equal(again.read([1])["weight"], np.full((1, 4), value, np.float32))
        assert again.rows == view.rows and hash(again.rows) == hash(view.rows)
        assert again.rows != dataset.documents().padded(4).rows
        penstock.Mixture({"a": view, "b": again}, [penstock.Stage()])


def test_a_state_is_that_of_the_documents(tmp_path):
    dataset, _ = compact(tmp_path, LENGTHS)
    plain, padded = dataset.documents()[2:], dataset.documents()[2:].padded(12)
    with penstock.Loader(plain, 3, seed=1) as loader:
        next(loader)
        state = loader.state_dict()
        wanted = array(next(loader).indices)
    again = pickle.loads(pickle.dumps(padded))
    assert repr(again) == repr(padded) and "padded(12)" in repr(padded)
    with penstock.Loader(again, 3, seed=1) as loader:
        loader.load_state_dict(state)
        np.testing.assert_array_equal(array(next(loader).indices), wanted)


def test_what_cannot_be_padded_is_refused(tmp_path):
    dataset, _ = compact(tmp_path, LENGTHS)
    view = dataset.documents()

    for pattern, arguments, options in (
        ("to='most'", ["most"], {}),
        ("to=0", [0], {}),
        ("to=10: must be a multiple of multiple_of=4", [10], {"multiple_of": 4}),
        ("multiple_of=0", [], {"multiple_of": 0}),
        ("side='top'", [], {"side": "top"}),
        ("long='keep'", [], {"long": "keep"}),
        ("packed", [9], {"long": "split"}),
        ("the field 'none'", [], {"value": {"none": 1}}),
        (r"value=0\.5: the padding of field token must be a value of int64", [], {"value": 0.5}),
        ("value=nan.*token", [], {"value": float("nan")}),
        ("value=18446744073709551616.*token.*int64", [], {"value": 1 << 64}),
        ("value=1e\\+300.*weight.*float32", [], {"value": {"weight": 1e300}}),
        ("value=1j.*weight", [], {"value": {"weight": 1j}}),
        *(
            ("value=.*must be a number, or a mapping from fields", [], {"value": value})
            for value in (np.zeros(2), [0], "0", None, {"token": [1, 2]})
        ),
    ):
        refused(pattern, view.padded, *arguments, **options)
    with pytest.raises(penstock.InvalidArgumentError, match=r"value=-1.*token.*uint8"):
        penstock.Loader(view.padded(value=-1), 2, dtype={"token": "u1"}, framework="numpy")
    refused("documents", dataset.windows(3).padded)
    (tmp_path / "others").mkdir()
    refused("records", opaque(tmp_path / "others", 3)[0].documents().padded)
    refused("documents", ids(tmp_path / "others", ((0, 1),))[0].windows(1).lengths)
    for columns in (["cu_seqlens"], ["position_ids"]):
        with pytest.raises(penstock.InvalidArgumentError, match=f"{columns[0]}: sequences are of documents end to end"):
            penstock.Loader(view.padded(), 2, columns=columns)
    refused(r"padded\(\)", lambda: view.read([0]).attention_mask)
    with penstock.Writer(tmp_path / "named", {"token": "u2", "lengths": "u2"}, "json") as writer:
        writer.append(token=[1], lengths=[1], metadata=None)
    refused("'lengths'", penstock.open(tmp_path / "named").documents().padded)
