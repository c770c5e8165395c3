"""What one batch offers, against plain models of the datasets."""

from __future__ import annotations

import json
import pickle
from typing import Any

import numpy as np
import penstock
import pytest
import torch
from _datasets import (
    FIELDS,
    LENGTHS,
    NUMBERS,
    array,
    compact,
    ids,
    opaque,
    raw_tokens,
    records_of,
    span_tuples,
    token_stream,
)
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

NESTED = np.dtype(
    [("id", "<u4"), ("pair", [("x", "<i2"), ("deep", [("y", "<f8")])]), ("vector", "<f4", (3,)), ("grid", "u1", (2, 2)),
     ("flag", "?"), ("name", "S5"), ("half", "<f2"), ("small", "i1")]
)  # fmt: skip


def make(view: penstock.View, batch_size: int = 4, **options: Any) -> penstock.Loader:
    return penstock.Loader(view, batch_size, **{"order": "sequential", "epochs": 1, "threads": 2, **options})


@pytest.fixture
def tokens(tmp_path):
    return raw_tokens(tmp_path / "tokens.bin", 95)


# --- fields and their types


def test_torch_is_given_contiguous_int64(tokens):
    dataset, expected = tokens
    batch = next(make(dataset.windows(10)))
    assert isinstance(batch["token"], torch.Tensor)
    assert batch["token"].dtype == torch.int64 and batch["token"].is_contiguous() and batch["token"].shape == (4, 10)
    assert batch["token"].tolist() == expected[:40].reshape(4, 10).tolist()
    for name, dtype in [("indices", torch.int64), ("epochs", torch.int64), ("valid", torch.bool)]:
        assert getattr(batch, name).dtype == dtype and getattr(batch, name).shape == (4,)
    torch.nn.Embedding(60_000, 2)(batch["token"])


def test_numpy_keeps_the_type_that_is_stored(tokens):
    dataset, expected = tokens
    batch = next(make(dataset.windows(10), framework="numpy"))
    assert type(batch["token"]) is np.ndarray and batch["token"].dtype == np.uint16
    np.testing.assert_array_equal(batch["token"], expected[:40].reshape(4, 10))
    assert batch.indices.dtype == np.int64 and batch.valid.dtype == bool


@pytest.mark.parametrize("dtype", ["int32", np.int32, torch.int32, {"token": "int32"}, {"token": torch.int32}, "<i4"])
@pytest.mark.parametrize("framework", ["torch", "numpy"])
def test_dtype_changes_integer_fields(tokens, dtype, framework):
    dataset, expected = tokens
    for lookahead in (0, 1):
        batch = next(make(dataset.windows(10, lookahead=lookahead), dtype=dtype, framework=framework))
        assert array(batch["token"]).dtype == np.int32
        np.testing.assert_array_equal(array(batch["token"])[0], expected[: 10 + lookahead])
        if lookahead:
            assert framework == "numpy" or batch.labels.dtype == torch.int32


@pytest.mark.parametrize("ragged", [False, True])
def test_a_field_that_is_its_whole_record_is_not_copied(tmp_path, ragged):
    tokens = np.arange(1, 42, dtype=np.uint32)
    with penstock.Writer(str(tmp_path / "data"), fields={"token": "u4"}, metadata="raw") as writer:
        for part in np.split(tokens, [20, 30]):
            writer.append(token=part, metadata=b"x")
    dataset = penstock.open(tmp_path / "data")
    view = dataset.documents() if ragged else dataset.windows(10)
    for dtype, shared in (("int32", True), ("uint32", True), ("int64", False)):
        rows = []
        for batch in make(view, 3, dtype=dtype, framework="numpy"):
            assert np.shares_memory(batch["token"], batch.records) == shared
            assert batch["token"].flags["C_CONTIGUOUS"] and batch["token"].dtype == dtype
            rows.append(batch["token"][batch.valid].ravel() if not ragged else batch["token"])
            assert ragged or not batch["token"][~batch.valid].any()
        np.testing.assert_array_equal(np.concatenate(rows), tokens[: 41 if ragged else 40])


def test_rows_of_whole_pages_and_a_record_lie_a_cache_line_apart(tmp_path):
    tokens = np.arange(5 * 4096 + 1, dtype=np.uint32)
    tokens.tofile(tmp_path / "tokens.bin")
    dataset = penstock.open(tmp_path / "tokens.bin", dtype="u4")
    for lookahead, stride in ((0, 16384), (1, 16384 + 64)):
        batch = next(make(dataset.windows(4096, lookahead=lookahead), framework="numpy"))
        assert batch.records.strides == (stride, 4)
        expected = np.stack([tokens[4096 * i : 4096 * (i + 1) + lookahead] for i in range(4)])
        np.testing.assert_array_equal(batch["token"], expected)


@pytest.mark.parametrize("layout", ["compact", "ids"])
def test_rows_a_cache_line_apart_have_their_spans_and_padding(tmp_path, layout):
    tokens = np.arange(1, 6 * 4096, dtype=np.uint32)
    fields = {"token": "u4"} if layout == "ids" else {"token": "u4", "other": "u4"}
    with penstock.Writer(str(tmp_path / "data"), fields=fields, metadata="raw", layout=layout) as writer:
        for number, part in enumerate(np.array_split(tokens, 7)):
            writer.append(**dict.fromkeys(fields, part), metadata=b"document %d" % number)
    view = penstock.open(tmp_path / "data").windows(4096, lookahead=1)
    batches = list(make(view, 3))
    assert batches[0].records.strides[0] % 4096 == 64 and [int(batch.valid.sum()) for batch in batches] == [3, 2]
    for number, batch in enumerate(batches):
        for row in range(3):
            first = (3 * number + row) * 4096
            inside = bool(batch.valid[row])
            expected = tokens[first : first + 4097] if inside else np.zeros(4097, np.uint32)
            np.testing.assert_array_equal(batch.records["token"][row], expected)
            np.testing.assert_array_equal(array(batch.inputs)[row], expected[:-1])
            np.testing.assert_array_equal(array(batch.labels)[row], expected[1:] if inside else np.full(4096, -100))
        for span in batch.spans:
            document = np.array_split(tokens, 7)[int(span.raw.split()[1])]
            assert set(batch.records["token"][span.row, span.start : span.stop].tolist()) <= set(document.tolist())
        assert {span.row for span in batch.spans} == set(range(int(batch.valid.sum())))


def test_a_value_that_does_not_fit_is_refused_where_nothing_is_copied(tmp_path):
    tokens = np.arange(40, dtype=np.uint32)
    tokens[23] = 2**31
    tokens.tofile(tmp_path / "tokens.bin")
    loader = make(penstock.open(tmp_path / "tokens.bin", dtype="u4").windows(10), 1, dtype="int32")
    assert [next(loader)["token"][0, 0].item() for _ in range(2)] == [0, 10]
    with pytest.raises(penstock.InvalidArgumentError, match="observation 2: field token: value 2,147,483,648 does"):
        next(loader)


def test_dtype_of_one_field_leaves_the_others(tmp_path):
    records = records_of(20, dtype=np.dtype([("token", "<u2"), ("other", "<u4")]))
    records.tofile(tmp_path / "a.bin")
    view = penstock.open(tmp_path / "a.bin", dtype=records.dtype).windows(5)
    batch = next(make(view, dtype={"other": "int16"}))
    assert batch["other"].dtype == torch.int16 and batch["token"].dtype == torch.int64
    np.testing.assert_array_equal(batch["other"], records["other"].reshape(4, 5))


@pytest.mark.parametrize("dtype", [{"nothing": "int32"}, {"token": "S4"}, "nonsense", {"token": "nonsense"}])
def test_a_dtype_that_cannot_be_is_refused(tokens, dtype):
    with pytest.raises(penstock.InvalidArgumentError):
        make(tokens[0].windows(10), dtype=dtype)


def test_a_value_that_does_not_fit_the_type_asked_for_raises_at_its_batch(tmp_path):
    np.array([1, 2, 3, 4, 127, 128, 5, 6], "u2").tofile(tmp_path / "a.bin")
    with make(penstock.open(tmp_path / "a.bin", dtype="u2").windows(2), 1, dtype="int8") as loader:
        given = []
        with pytest.raises(ValueError, match="128") as caught:
            given.extend(iter(lambda: next(loader)["token"].tolist(), None))
        assert given == [[[1, 2]], [[3, 4]]] and "token" in str(caught.value) and loader.position == 2


@pytest.mark.parametrize("framework", ["torch", "numpy"])
def test_fields_of_every_kind(tmp_path, framework):
    records = records_of(30, dtype=NESTED)
    records["flag"] = np.arange(30) % 3 == 0
    records["name"] = [b"n%d" % i for i in range(30)]
    records["small"] = -(np.arange(30) % 100)
    records["pair"]["x"] = -np.arange(30)
    records["pair"]["deep"]["y"] = np.arange(30) / 7
    records.tofile(tmp_path / "a.bin")
    view = penstock.open(tmp_path / "a.bin", dtype=NESTED).windows(5)
    batch = next(make(view, 3, framework=framework))
    assert list(batch) == ["id", "pair.x", "pair.deep.y", "vector", "grid", "flag", "name", "half", "small"]
    assert len(batch) == 9 and "pair" not in batch and "pair.x" in batch and dict(batch).keys() == batch.keys()
    with pytest.raises(KeyError, match=r"no field pair: ask for pair\.x, pair\.deep\.y"):
        batch["pair"]
    for each in (batch, view[0]):
        with pytest.raises(KeyError, match=r"no field pears: the fields are id, pair\.x, pair\.deep\.y, vector, "):
            each["pears"]
    shaped = records[:15].reshape(3, 5)
    expected = {"pair.x": shaped["pair"]["x"], "pair.deep.y": shaped["pair"]["deep"]["y"]}
    for name in batch:
        value = expected.get(name, shaped[name.split(".")[0]])
        if name == "name":
            assert type(batch[name]) is np.ndarray and batch[name].dtype == "S5"
        elif framework == "torch":
            assert isinstance(batch[name], torch.Tensor) and batch[name].is_contiguous()
            value = value.astype("i8") if value.dtype.kind in "iu" else value
        assert array(batch[name]).dtype == value.dtype, name
        np.testing.assert_array_equal(array(batch[name]), value)
    assert batch["vector"].shape == (3, 5, 3) and batch["grid"].shape == (3, 5, 2, 2)


@pytest.mark.parametrize(
    "name", ["indices", "spans", "records", "valid", "epochs", "position", "labels", "keys", "offsets"]
)
def test_a_field_called_like_an_attribute_is_refused(tmp_path, name):
    np.zeros(20, "u2").tofile(tmp_path / "a.bin")
    with pytest.raises(penstock.InvalidArgumentError, match=name):
        make(penstock.open(tmp_path / "a.bin", dtype=[(name, "u2")]).windows(5))


def test_every_attribute_of_a_batch_is_a_reserved_name():
    from penstock._data.dtype import PADDED_NAMES, RESERVED_NAMES

    assert {name for name in dir(penstock.Batch) if not name.startswith("_")} <= RESERVED_NAMES | set(PADDED_NAMES)


# --- records


@pytest.mark.parametrize("framework", ["torch", "numpy"])
def test_records_is_the_structured_array_as_read_without_a_copy(tmp_path, framework):
    dataset, model = token_stream(tmp_path, 50)
    batch = next(make(dataset.windows(5), framework=framework))
    assert batch.records.dtype == FIELDS and batch.records.shape == (4, 5)
    np.testing.assert_array_equal(batch.records, model.records[:20].reshape(4, 5))
    assert batch.records is batch.records and not batch.records.flags.owndata
    if framework == "numpy":
        assert np.shares_memory(batch.records, batch["token"]) and np.shares_memory(batch.records, batch["weight"])
        batch["token"][2, 3] = 4242
        assert batch.records["token"][2, 3] == 4242


@pytest.mark.parametrize("framework", ["torch", "numpy"])
def test_records_of_the_ids_layout_hide_the_id(tmp_path, framework):
    dataset, model = ids(tmp_path, NUMBERS)
    batch = next(make(dataset.windows(4), 8, framework=framework))
    assert batch.records.dtype.names == FIELDS.names and list(batch) == ["token", "weight"]
    assert batch.records.shape == (8, 4) and batch.records.dtype.itemsize == FIELDS.itemsize + 4
    for name in FIELDS.names:
        np.testing.assert_array_equal(batch.records[name], model.records[name][:32].reshape(8, 4))
        np.testing.assert_array_equal(array(batch[name]), model.records[name][:32].reshape(8, 4))


# --- inputs and labels


@pytest.mark.parametrize("framework", ["torch", "numpy"])
@pytest.mark.parametrize("stored", ["u1", "u2", "u4", "u8", "i4"])
def test_inputs_and_labels_are_contiguous_and_signed(tmp_path, framework, stored):
    values = np.arange(64).astype(stored)
    values.tofile(tmp_path / "a.bin")
    view = penstock.open(tmp_path / "a.bin", dtype=stored).windows(10, lookahead=1)
    assert len(view) == 6
    batches = list(make(view, 4, framework=framework))
    for batch, valid in zip(batches, (4, 2), strict=True):
        for name, skip in (("inputs", 0), ("labels", 1)):
            found = getattr(batch, name)
            assert found is getattr(batch, name)
            assert found.is_contiguous() if framework == "torch" else found.flags.c_contiguous
            assert array(found).dtype == np.int64 and found.shape == (4, 10)
            for row in range(4):
                at = int(batch.indices[row]) * 10 + skip
                padding = [0] * 10 if name == "inputs" else [-100] * 10
                assert found[row].tolist() == (list(range(at, at + 10)) if row < valid else padding)
        assert batch["token"].shape == (4, 11)
        assert batch["token"][0].tolist() == list(range(int(batch.indices[0]) * 10, int(batch.indices[0]) * 10 + 11))


def test_labels_work_with_cross_entropy(tokens):
    batch = list(make(tokens[0].windows(10, lookahead=1)))[-1]
    assert not batch.valid.all()
    logits = torch.zeros(4, 60_000, 10)
    loss = torch.nn.functional.cross_entropy(logits, batch.labels)
    assert torch.isclose(loss, torch.tensor(60_000.0).log())


def test_labels_are_of_the_field_token_or_of_the_only_integer_field(tmp_path):
    for dtype, field in [([("a", "u2"), ("token", "u4")], "token"), ([("x", "f4"), ("gene", "u4")], "gene")]:
        records = records_of(21, dtype=np.dtype(dtype))
        records.tofile(tmp_path / "a.bin")
        batch = next(make(penstock.open(tmp_path / "a.bin", dtype=dtype).windows(5, lookahead=1)))
        np.testing.assert_array_equal(batch.inputs, records[field][:20].reshape(4, 5))
        np.testing.assert_array_equal(batch.labels, records[field][1:21].reshape(4, 5))
    records_of(21, dtype=np.dtype([("a", "u2"), ("b", "u4")])).tofile(tmp_path / "b.bin")
    batch = next(make(penstock.open(tmp_path / "b.bin", dtype=[("a", "u2"), ("b", "u4")]).windows(5, lookahead=1)))
    with pytest.raises(penstock.InvalidArgumentError, match="2 integer fields"):
        batch.labels  # noqa: B018


def test_without_lookahead_there_are_no_labels_and_the_error_says_how_to_get_them(tokens):
    batch = next(make(tokens[0].windows(10)))
    for name in ("inputs", "labels"):
        with pytest.raises(penstock.InvalidArgumentError, match="lookahead=1"):
            getattr(batch, name)


# --- windows and their spans


def check_windows(dataset: penstock.Dataset, model: Any, window: int, lookahead: int) -> None:
    view = dataset.windows(window, lookahead=lookahead)
    assert len(view) == (len(model.records) - lookahead) // window
    batch = view.read(np.arange(len(view)))
    by_row: dict[int, list[Any]] = {row: [] for row in range(len(view))}
    for span in batch.spans:
        place = (span.start, span.stop, span.begins, span.ends, span.offset, tuple(span.id), span.metadata)
        by_row[span.row].append(place)
        assert json.loads(span.raw) == span.metadata
    for row in range(len(view)):
        for name in FIELDS.names:
            np.testing.assert_array_equal(batch[name][row], model.window(row, window, lookahead)[name])
        assert by_row[row] == model.window_spans(row, window, lookahead)


lengths_of_shards = st.lists(
    st.lists(st.integers(0, 9), min_size=0, max_size=6), min_size=1, max_size=3
).filter(lambda shards: sum(map(sum, shards)) >= 4)  # fmt: skip


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(lengths_of_shards, st.integers(1, 12), st.integers(0, 2))
def test_compact_windows_are_what_the_model_says(tmp_path_factory, shards, window, lookahead):
    dataset, model = compact(tmp_path_factory.mktemp("compact"), shards)
    check_windows(dataset, model, min(window, len(model.records) - lookahead), lookahead)


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=25), min_size=1, max_size=3).filter(
        lambda shards: sum(map(len, shards)) >= 4
    ),
    st.integers(1, 12),
    st.integers(0, 2),
)
def test_ids_windows_are_what_the_model_says(tmp_path_factory, shards, window, lookahead):
    dataset, model = ids(tmp_path_factory.mktemp("ids"), shards)
    check_windows(dataset, model, min(window, len(model.records) - lookahead), lookahead)


@pytest.mark.parametrize(("window", "lookahead"), [(1000, 0), (4096, 1), (1, 0), (25_000, 3)])
def test_windows_beyond_the_directorys_step(tmp_path, window, lookahead):
    random = np.random.default_rng(3)
    lengths = [*random.integers(0, 30, 400), 9000, 0, 0, 4096, 1, *random.integers(0, 3000, 9)]
    dataset, model = compact(tmp_path, [lengths[:300], lengths[300:]])
    if window == 1:  # all of them are too many to look at
        view = dataset.windows(1)
        for index in random.integers(0, len(view), 300):
            assert span_tuples(view[index].spans, 0) == model.window_spans(int(index), 1)
    else:
        check_windows(dataset, model, window, lookahead)


def test_a_row_knows_its_spans(tmp_path):
    dataset, model = compact(tmp_path, LENGTHS)
    with make(dataset.windows(7), 4, order="uniform", framework="numpy") as loader:
        for batch in loader:
            assert list(batch.spans) and len(batch.spans) == len(list(batch.spans))
            assert [s.start for s in batch.spans[:2]] == [s.start for s in list(batch.spans)[:2]]
            assert batch.spans[-1].row == max(s.row for s in batch.spans)
            with pytest.raises(IndexError):
                batch.spans[len(batch.spans)]
            for row, index in enumerate(batch.indices.tolist()):
                found = [
                    (s.start, s.stop, s.begins, s.ends, s.offset, tuple(s.id), s.metadata)
                    for s in batch.spans.of_row(row)
                ]
                assert found == (model.window_spans(index, 7) if index >= 0 else [])


def test_a_token_stream_has_no_spans(tmp_path):
    dataset, _ = token_stream(tmp_path, 50)
    assert len(next(make(dataset.windows(5))).spans) == 0


def test_ids_have_no_offset_and_compact_spans_do(tmp_path):
    assert {span.offset for span in ids(tmp_path, NUMBERS)[0].windows(4).read([0, 1, 2]).spans} == {None}
    assert None not in {span.offset for span in compact(tmp_path, LENGTHS)[0].windows(4).read([0, 1, 2]).spans}


# --- documents


def test_documents_of_length_none_only(tmp_path):
    dataset, _ = compact(tmp_path, [[0, 0, 0]])
    batch = next(make(dataset.documents(), 3))
    assert batch["token"].shape == (0,) and batch.offsets.tolist() == [0] * 4 and len(batch.spans) == 3


def test_documents_have_no_labels_and_windows_no_offsets(tmp_path):
    dataset, _ = compact(tmp_path, LENGTHS)
    with pytest.raises(penstock.InvalidArgumentError):
        next(make(dataset.documents())).labels  # noqa: B018
    with pytest.raises(AttributeError, match="one length"):
        next(make(dataset.windows(5))).offsets  # noqa: B018


@pytest.mark.parametrize("framework", ["torch", "numpy"])
def test_opaque_documents_have_only_spans(tmp_path, framework):
    dataset, model = opaque(tmp_path, 10)
    batches = list(make(dataset.documents(), 4, framework=framework))
    assert len(batches) == 3
    for batch in batches:
        assert list(batch) == [] and bool(batch)
        with pytest.raises(penstock.InvalidArgumentError, match="spans"):
            batch.records  # noqa: B018
    entries = [(span.id.entry, span.metadata, span.raw) for batch in batches for span in batch.spans]
    assert entries == [(span.number, span.metadata, span.raw) for span in model.spans]


# --- positions, and what is printed


def test_what_is_printed_names_things(tmp_path):
    dataset, _ = compact(tmp_path, LENGTHS)
    batch = next(make(dataset.windows(7)))
    assert repr(batch) == "Batch(token, weight; 4 of 4 rows, position 0)"
    assert repr(batch.spans[0]) == "Span(row=0, start=0, stop=3, begins=True, ends=True, offset=0, id=(0, 0))"
    assert "spans:" in repr(batch.spans)


@pytest.mark.parametrize("framework", ["numpy", "torch"])
@pytest.mark.parametrize(
    ("dtype", "expected"), [("i4", "int32"), ({"token": "i4"}, "int32"), ("u2", "int64"), (None, "int64")]
)
def test_inputs_and_labels_have_the_signed_type_that_was_chosen(tokens, framework, dtype, expected):
    with make(tokens[0].windows(10, lookahead=1), dtype=dtype, framework=framework) as loader:
        batch = next(loader)
    assert {str(array.dtype).removeprefix("torch.") for array in (batch.inputs, batch.labels)} == {expected}


def test_what_a_batch_refuses_it_says_in_words(tmp_path):
    records_of(30, dtype=NESTED).tofile(tmp_path / "a.bin")
    view = penstock.open(tmp_path / "a.bin", dtype=NESTED).windows(5)
    with make(view) as loader:
        batch = next(loader)
        nested = next(name for name in batch if "." in name)
        with pytest.raises(KeyError, match=f"ask for .*{nested}"):
            batch[nested.split(".")[0]]
        with pytest.raises(TypeError, match="copies of its arrays"):
            pickle.dumps(batch)
        with pytest.raises(TypeError, match="do not wrap it in a DataLoader"):
            loader[0]
    with pytest.raises(penstock.InvalidArgumentError, match="must be an integer, or a schedule"):
        make(view, batch_size=[1, 2])
