"""What one batch offers. That it is right of every view, type and framework, tests/model says."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import penstock
import pytest
import torch
from _datasets import FIELDS, LENGTHS, NUMBERS, array, compact, ids, opaque, raw_tokens, records_of, token_stream
from _refused import refused

NESTED = np.dtype(
    [("id", "<u4"), ("pair", [("x", "<i2"), ("deep", [("y", "<f8")])]), ("vector", "<f4", (3,)), ("grid", "u1", (2, 2)),
     ("flag", "?"), ("name", "S5"), ("half", "<f2"), ("small", "i1")]
)  # fmt: skip
FRAMEWORKS = pytest.mark.parametrize("framework", ["torch", "numpy"])


def make(view: penstock.View, batch_size: int = 4, **options: Any) -> penstock.Loader:
    return penstock.Loader(view, batch_size, **{"order": "sequential", "epochs": 1, "threads": 2, **options})


@pytest.fixture
def tokens(tmp_path):
    return raw_tokens(tmp_path / "tokens.bin", 95)


@FRAMEWORKS
@pytest.mark.parametrize(
    ("dtype", "field", "labels"),
    [
        (None, {"torch": "int64", "numpy": "uint16"}, "int64"),
        *((each, "int32", "int32") for each in ("int32", "<i4", np.int32, torch.int32)),
        *(({"token": each}, "int32", "int32") for each in ("i4", torch.int32)),
        ("u2", "uint16", "int64"),
    ],
)
def test_arrays_are_contiguous_and_of_the_type_that_was_chosen(tokens, framework, dtype, field, labels):
    dataset, expected = tokens
    for lookahead in (0, 1):
        batch = next(make(dataset.windows(10, lookahead=lookahead), framework=framework, dtype=dtype))
        wanted = field if isinstance(field, str) else field[framework]
        arrays = [(batch["token"], wanted, expected[: 10 + lookahead])]
        if lookahead:
            arrays += [(batch.inputs, labels, expected[:10]), (batch.labels, labels, expected[1:11])]
            assert batch.inputs is batch.inputs and batch.labels is batch.labels
        for found, name, values in arrays:
            assert isinstance(found, torch.Tensor) == (framework == "torch")
            assert found.is_contiguous() if framework == "torch" else found.flags.c_contiguous
            assert str(found.dtype).removeprefix("torch.") == name
            np.testing.assert_array_equal(array(found)[0].astype("i8"), values)


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


@pytest.mark.parametrize("layout", ["compact", "ids"])
def test_rows_of_whole_pages_and_a_record_lie_a_cache_line_apart(tmp_path, layout):
    tokens = np.arange(1, 6 * 4096, dtype=np.uint32)
    fields = {"token": "u4"} if layout == "ids" else {"token": "u4", "other": "u4"}
    with penstock.Writer(str(tmp_path / "data"), fields=fields, metadata="raw", layout=layout) as writer:
        for number, part in enumerate(np.array_split(tokens, 7)):
            writer.append(**dict.fromkeys(fields, part), metadata=b"document %d" % number)
    dataset = penstock.open(tmp_path / "data")
    assert layout == "ids" or next(make(dataset.windows(4096), 3)).records.strides[0] % 4096 == 0
    batches = list(make(dataset.windows(4096, lookahead=1), 3))
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


@pytest.mark.parametrize(("stored", "dtype", "value"), [("u4", "int32", 2**31), ("u2", "int8", 128)])
def test_a_value_that_does_not_fit_is_the_error_of_its_batch(tmp_path, stored, dtype, value):
    """Where the field is cast, and where its memory is taken as it is."""
    tokens = np.arange(40, dtype=stored)
    tokens[23] = value
    tokens.tofile(tmp_path / "tokens.bin")
    with make(penstock.open(tmp_path / "tokens.bin", dtype=stored).windows(10), 1, dtype=dtype) as loader:
        assert [next(loader)["token"][0, 0].item() for _ in range(2)] == [0, 10]
        words = f"observation 2: field token: value {value:,} does"
        refused(words, next, loader)
        assert loader.position == 2


@FRAMEWORKS
def test_fields_of_every_kind(tmp_path, framework):
    records = records_of(30, dtype=NESTED)
    records["name"] = [b"n%d" % i for i in range(30)]
    records["small"] = -(np.arange(30) % 100)
    records["pair"]["x"] = -np.arange(30)
    records.tofile(tmp_path / "a.bin")
    view = penstock.open(tmp_path / "a.bin", dtype=NESTED).windows(5)
    batch = next(make(view, 3, framework=framework))
    assert list(batch) == ["id", "pair.x", "pair.deep.y", "vector", "grid", "flag", "name", "half", "small"]
    assert len(batch) == 9 and "pair" not in batch and "pair.x" in batch and dict(batch).keys() == batch.keys()
    refused(r"no field pair: ask for pair\.x, pair\.deep\.y", lambda: batch["pair"], error=KeyError)
    for each in (batch, view[0]):
        with pytest.raises(KeyError, match=r"no field pears: the fields are id, pair\.x, pair\.deep\.y, vector, "):
            each["pears"]
    shaped = records[:15].reshape(3, 5)
    expected = {"pair.x": shaped["pair"]["x"], "pair.deep.y": shaped["pair"]["deep"]["y"]}
    for name in batch:
        value = expected.get(name, shaped[name.split(".")[0]])
        assert isinstance(batch[name], torch.Tensor) == (framework == "torch" and name != "name")
        if framework == "torch" and value.dtype.kind in "iu":
            value = value.astype("i8")
        assert array(batch[name]).dtype == value.dtype, name
        np.testing.assert_array_equal(array(batch[name]), value)


def test_names_of_attributes_are_no_names_of_fields(tmp_path):
    from penstock._data.dtype import PADDED_NAMES, RESERVED_NAMES

    assert {name for name in dir(penstock.Batch) if not name.startswith("_")} <= RESERVED_NAMES | set(PADDED_NAMES)
    np.zeros(20, "u2").tofile(tmp_path / "a.bin")
    for name in RESERVED_NAMES:
        refused(name, make, penstock.open(tmp_path / "a.bin", dtype=[(name, "u2")]).windows(5))


@FRAMEWORKS
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


def test_records_of_the_ids_layout_hide_the_id(tmp_path):
    batch = next(make(ids(tmp_path, NUMBERS)[0].windows(4), 8))
    assert batch.records.dtype.names == FIELDS.names and list(batch) == ["token", "weight"]
    assert batch.records.shape == (8, 4) and batch.records.dtype.itemsize == FIELDS.itemsize + 4


def test_labels_are_of_the_field_token_or_of_the_only_integer_field(tmp_path):
    for dtype, field in [([("a", "u2"), ("token", "u4")], "token"), ([("x", "f4"), ("gene", "u4")], "gene")]:
        records = records_of(21, dtype=np.dtype(dtype))
        records.tofile(tmp_path / "a.bin")
        batch = next(make(penstock.open(tmp_path / "a.bin", dtype=dtype).windows(5, lookahead=1)))
        np.testing.assert_array_equal(batch.inputs, records[field][:20].reshape(4, 5))
        np.testing.assert_array_equal(batch.labels, records[field][1:21].reshape(4, 5))


def test_documents_without_records(tmp_path):
    (tmp_path / "opaque").mkdir()
    batch = next(make(compact(tmp_path, [[0, 0, 0]])[0].documents(), 3))
    assert batch["token"].shape == (0,) and batch.offsets.tolist() == [0] * 4 and len(batch.spans) == 3
    batch = next(make(opaque(tmp_path / "opaque", 10)[0].documents(), 4))
    assert list(batch) == [] and bool(batch) and len(batch.spans) == 4
    refused("spans", getattr, batch, "records")


def test_what_is_printed_names_things(tmp_path):
    dataset, _ = compact(tmp_path, LENGTHS)
    batch = next(make(dataset.windows(7)))
    assert repr(batch) == "Batch(token, weight; 4 of 4 rows, position 0)"
    assert repr(batch.spans[0]) == "Span(row=0, start=0, stop=3, begins=True, ends=True, offset=0, id=(0, 0))"
    assert "spans:" in repr(batch.spans)


def test_what_a_batch_and_a_loader_refuse_they_say_in_words(tokens, tmp_path):
    view = tokens[0].windows(10)
    batch = next(make(view))
    for name in ("inputs", "labels"):
        refused("lookahead=1", getattr, batch, name)
    refused("one length", getattr, batch, "offsets", error=AttributeError)
    refused("copies of its arrays", pickle.dumps, batch, error=TypeError)
    with make(view) as loader, pytest.raises(TypeError, match="do not wrap it in a DataLoader"):
        loader[0]
    with pytest.raises(penstock.InvalidArgumentError):
        next(make(compact(tmp_path, LENGTHS)[0].documents())).labels  # noqa: B018
    two = [("a", "u2"), ("b", "u4")]
    records_of(21, dtype=np.dtype(two)).tofile(tmp_path / "b.bin")
    with pytest.raises(penstock.InvalidArgumentError, match="2 integer fields"):
        next(make(penstock.open(tmp_path / "b.bin", dtype=two).windows(5, lookahead=1))).labels  # noqa: B018
    refused("must be an integer, or a schedule", make, view, batch_size=[1, 2])
    for dtype in ({"nothing": "int32"}, {"token": "S4"}, "nonsense", {"token": "nonsense"}):
        with pytest.raises(penstock.InvalidArgumentError):
            make(view, dtype=dtype)
