"""Computed columns: what is refused, functions of metadata, tokens that bound documents.

What they are of every view, in mixtures, on any ranks, tests/model says (its dimension `columns`).
"""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import penstock
import pytest
from _datasets import LENGTHS, NUMBERS, array, compact, ids, opaque, token_stream
from _refused import refused
from penstock.columns import CuSeqlens, DocumentIds, Labels, LossMask, PerSpan, PositionIds

SEQUENCES = ["cu_seqlens", "position_ids", "document_ids"]


def quality() -> PerSpan:
    return PerSpan("quality", lambda metadata: metadata["number"], "f4", -7.5)


def by_spans() -> LossMask:
    return LossMask(spans=lambda metadata: [[0, metadata["number"]]])


def loader(view: penstock.View, batch_size: int = 4, **options: Any) -> penstock.Loader:
    return penstock.Loader(view, batch_size, **{"seed": 4, "epochs": 2, **options})


def test_the_state_says_nothing_of_columns(tmp_path):
    view = compact(tmp_path, LENGTHS)[0].windows(3)
    with loader(view, columns=SEQUENCES) as one, loader(view, columns=()) as other:
        assert one.state_dict() == other.state_dict()


def test_a_tokenizer_tells_what_bounds_documents_as_a_view_does(tmp_path):
    tokens = np.random.default_rng(1).integers(0, 12, 700).astype("u2")
    tokens[-1] = 7
    note = {"name": "test", "vocabulary_size": 100, "end_of_document": 7, "hash": "0" * 32}
    with penstock.Writer(tmp_path / "d", {"token": "u2"}, metadata=None, tokenizer=note) as writer:
        writer.append(token=tokens)
    dataset = penstock.open(tmp_path / "d")
    told = dataset.windows(30, lookahead=1, end_of_document=7)
    assert "end_of_document=7" in repr(told) and "end_of_document=7" in repr(told[1:3])
    columns = [*SEQUENCES, Labels(cross_document=False)]
    views = (told, dataset.windows(30, lookahead=1))
    for batch, other in zip(*(loader(view, columns=columns) for view in views), strict=True):
        assert len(batch.cu_seqlens) > 5
        for name in (*SEQUENCES, "labels"):
            np.testing.assert_array_equal(array(getattr(other, name)), array(getattr(batch, name)), err_msg=name)


@pytest.mark.parametrize("framework", ["torch", "numpy"])
def test_values_of_spans_of_every_type(tmp_path, framework):
    view = compact(tmp_path, LENGTHS)[0].windows(6)
    for dtype in ("bool", "int8", "uint8", "int16", "int32", "int64", "float16", "float32", "float64"):
        kind = np.dtype(dtype).kind
        fill = {"b": True, "f": 0.5}.get(kind, 3)
        of = (lambda metadata: metadata["number"] % 2 == 0) if kind == "b" else (lambda metadata: metadata["number"])
        for batch in loader(view, columns=[PerSpan("value", of, dtype, fill)], framework=framework):
            found = array(batch.columns["value"])
            expected = np.full((4, 6), fill, dtype)
            for span in batch.spans:
                expected[span.row, span.start : span.stop] = of(span.metadata)
            assert found.dtype == dtype
            np.testing.assert_array_equal(found, expected)


def test_a_function_is_called_once_for_each_entry_of_a_batch_by_who_asks_for_it(tmp_path):
    dataset, _ = compact(tmp_path, ((40, 3, 40, 0, 2),))
    calls: list[tuple[int, int]] = []

    def ranges(metadata: Any) -> Any:
        calls.append((metadata.pop("number"), threading.get_ident()))  # what it does to its metadata, others do not see
        return np.array([[0, 1 << 50]])

    view = dataset.windows(6, lookahead=1)
    with loader(view, columns=[LossMask(spans=ranges), quality()]) as given:
        for batch in given:
            here = {(span.id.entry, threading.get_ident()) for span in batch.spans}
            assert sorted(calls) == sorted(here)
            calls.clear()


def test_an_error_of_a_function_is_that_of_the_batch_and_names_the_document(tmp_path):
    dataset, _ = compact(tmp_path, LENGTHS)
    broken = True

    def value(metadata: Any) -> float:
        if metadata["number"] == 7 and broken:
            raise KeyError("quality")
        return metadata["number"]

    view = dataset.windows(6, lookahead=1)
    with loader(view, 2, columns=[PerSpan("quality", value, "f4")], order="sequential", epochs=1) as given:
        first = next(given)
        assert first.position == 0
        with pytest.raises(penstock.InvalidArgumentError) as caught:
            for _ in range(9):
                position = given.position
                next(given)
        words = f"PerSpan('quality'): document 7 of shard 0 of {dataset.path}: KeyError: 'quality'"
        assert str(caught.value) == words
        assert isinstance(caught.value.__cause__, KeyError)
        assert given.position == position == 2  # it was not delivered
        refused("document 7 of", next, given)
        broken = False
        assert array(next(given).indices).tolist() == [2, 3]


def test_what_stops_the_caller_is_not_caught(tmp_path):
    def stop(_: Any) -> Any:
        raise KeyboardInterrupt

    given = loader(compact(tmp_path, LENGTHS)[0].windows(6), columns=[LossMask(spans=stop)])
    with pytest.raises(KeyboardInterrupt):
        next(given)
    assert given.position == 0


BAD_RANGES: list[tuple[Any, str]] = [
    (None, r"it gave None: \[\[begin, end\), …\] of offsets in the document wanted"),
    ("0-3", "it gave '0-3'"),
    ([0, 3], r"it gave \[0, 3\]"),
    ([[0, 3, 4]], "it gave"),
    ([[0.5, 3]], "it gave"),
    ([[0, 3], [1]], "it gave"),
    ([[True, False]], "it gave"),
    (3, "it gave 3"),
    ([[3, 1]], r"it gave the range \[3, 1\): 0 <= begin <= end wanted"),
    ([[0, 1], [-1, 1]], r"it gave the range \[-1, 1\)"),
]
BAD_VALUES: list[tuple[str, Any, str]] = [
    ("u1", 256, "it gave 256: one value of uint8 wanted"),
    ("i4", 0.5, "it gave 0.5: one value of int32 wanted"),
    ("f4", "good", "it gave 'good': one value of float32 wanted"),
    ("f4", None, "it gave None: one"),
    ("f4", [1, 2], r"it gave \[1, 2\]: one"),
    ("bool", 1, "it gave 1: one value of bool wanted"),
]


def test_what_a_function_must_not_give(tmp_path):
    view = compact(tmp_path, LENGTHS)[0].windows(6)
    cases = [(LossMask(spans=lambda _, gives=gives: gives), r"LossMask\(spans=…\)", said) for gives, said in BAD_RANGES]
    for dtype, gives, said in BAD_VALUES:
        cases.append((PerSpan("value", lambda _, gives=gives: gives, dtype), r"PerSpan\('value'\)", said))
    for column, name, said in cases:
        refused(rf"{name}: document \d+ of shard .*{said}", next, loader(view, columns=[column]))


def test_what_was_not_asked_for_is_refused_in_words(tmp_path):
    view = compact(tmp_path, LENGTHS)[0].windows(6)
    batch = next(loader(view, columns=()))
    assert dict(batch.columns) == {}
    for name, wanted in [("cu_seqlens",) * 2, ("max_seqlen", "cu_seqlens"), ("position_ids",) * 2]:
        refused(f"no {name}.*columns=.*{wanted}", getattr, batch, name)
        refused(name, getattr, view.read([1]), name)
    batch = next(loader(view, columns=["document_ids"]))
    assert list(batch.columns) == ["document_ids"]
    refused(r"no loss_mask.*LossMask", getattr, batch, "loss_mask")
    with pytest.raises(TypeError):
        batch.columns["position_ids"] = 1


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        (["cu_seqlens", "cu_seqlens"], "cu_seqlens is there twice"),
        (["cu_seqlens", CuSeqlens()], "cu_seqlens is there twice"),
        (["max_seqlen"], "no column 'max_seqlen'; there are cu_seqlens, position_ids, document_ids, loss_mask"),
        (["loss_mask"], r"loss_mask says too little: give penstock.columns.LossMask\(…\)"),
        ("cu_seqlens", "must be a list"),
        ([3], "3 is neither a name nor one of penstock.columns"),
        ([CuSeqlens(3), PositionIds(4)], "end_of_document is 3 and end_of_document is 4"),
        ([CuSeqlens(70_000)], "end_of_document=70000: must be from 0 to 65,535"),
        ([CuSeqlens(-1)], "end_of_document=-1"),
        ([PositionIds(end_of_document=7), DocumentIds(begin_of_document=7)], "is 7 and end_of_document is 7: give one"),
        ([LossMask()], "LossMask takes field= or spans=: give exactly one"),
        ([LossMask("token", lambda _: [])], "LossMask takes field= or spans=: give exactly one"),
        ([LossMask(field="lost")], "LossMask.field='lost'.: there is no such field; the fields are .token., .weight."),
        ([LossMask(field="weight")], "field weight holds no single bool or integer"),
        ([LossMask(spans=[[0, 3]])], r"LossMask\(spans=…\): \[\[0, 3\]\] is no function of metadata"),
        ([PerSpan("value", 3, "f4")], r"PerSpan\('value'\): 3 is no function of metadata"),
        ([PerSpan("", len, "f4")], "must be a name"),
        ([PerSpan("position_ids", len, "f4")], "another column has this name"),
        ([PerSpan("a", len, "f4"), PerSpan("a", len, "f4")], "a is there twice"),
        ([PerSpan("a", len, "c8")], "must be a bool, an integer or a float"),
        ([PerSpan("a", len, "S4")], "must be a bool, an integer or a float"),
        ([PerSpan("a", len, "u1", fill=-1)], "fill=-1: must be one value of uint8"),
        ([PerSpan("a", len, "u1", fill=[1])], r"fill=\[1\]: must be one value of uint8"),
        ([Labels(), Labels(cross_document=False)], "labels is there twice"),
        (["labels"], r"labels says too little: give penstock.columns.Labels\(…\)"),
    ],
)
def test_columns_that_cannot_be(tmp_path, columns, words):
    view = compact(tmp_path, LENGTHS)[0].windows(6, lookahead=1)
    refused(words, loader, view, columns=columns)


def test_max_documents_that_cannot_be(tmp_path):
    view = compact(tmp_path, LENGTHS)[0].windows(6)
    for column, most, words in (
        ("position_ids", 3, "max_documents= is of cu_seqlens"),
        ("cu_seqlens", 0, "max_documents=0: must be from 1"),
        ("cu_seqlens", 1 << 31, "max_documents=2147483648: must be from 1"),
    ):
        refused(words, loader, view, columns=[column], max_documents=most)


def test_labels_where_there_are_none(tmp_path):
    dataset = compact(tmp_path, LENGTHS)[0]
    mask = LossMask(field="token")
    for view, words in ((dataset.windows(6), "without lookahead"), (dataset.documents(), "lookahead=1")):
        for columns in ([Labels(cross_document=False)], [Labels()], [Labels(), mask]):
            refused(f"there are no labels: .*{words}", loader, view, columns=columns)
    # What crosses documents counts for the mask alone, too.
    loader(dataset.windows(6), columns=[Labels(cross_document=False), mask]).close()
    with penstock.Writer(tmp_path / "pairs", {"a": "u2", "b": "u2"}, "json") as writer:
        writer.append(a=[1], b=[2], metadata=None)
    pairs = penstock.open(tmp_path / "pairs")
    for view in (pairs.packed(4), pairs.documents().padded()):
        refused(r"there are no labels: .*none is called token", loader, view, columns=[Labels()])


def test_datasets_and_views_without_what_is_asked_for(tmp_path):
    for folder in ("stream", "boundaries", "compact", "ids", "opaque"):
        (tmp_path / folder).mkdir()
    stream = token_stream(tmp_path / "stream", 50)[0]
    documents = compact(tmp_path / "compact", LENGTHS)[0]
    cases = [
        (stream.windows(5), by_spans(), r"has no spans.*write or import and --metadata, or LossMask\(field=…\) with"),
        (stream.windows(5), quality(), "has no spans.*: make a dataset with penstock write or import and --metadata$"),
        (stream.windows(5), "position_ids", r"PositionIds.*no spans.*windows\(…, end_of_document=…\)"),
        (stream.windows(5, lookahead=1), Labels(cross_document=False), r"no spans.*windows\(…, end_of_document=…\)"),
        (stream.windows(5, begin_of_document=3), PositionIds(3), "is 3, and the view was made with begin"),
        (compact(tmp_path / "boundaries", LENGTHS, codec="boundaries")[0].windows(5), by_spans(), "and no metadata"),
        (ids(tmp_path / "ids", NUMBERS)[0].windows(5), by_spans(), r"ids layout.*penstock.convert"),
        (opaque(tmp_path / "opaque", 5)[0].documents(), quality(), "opaque documents have no records"),
        (documents.packed(9), CuSeqlens(end_of_document=5), "packed rows know their documents"),
        *(
            (view, column, rf"dataset.{view.kind}\(…, metadata=True\) does")
            for metadata in (False, "spans")
            for view in (documents.windows(6, metadata=metadata), documents.documents(metadata=metadata))
            for column in (by_spans(), quality())
        ),
    ]
    for view, column, words in cases:
        refused(words, loader, view, columns=[column])
    refused("columns", penstock.Writer, tmp_path / "reserved", fields={"columns": "u2"}, metadata=None)


def test_a_function_in_the_place_of_a_field_is_sent_to_spans() -> None:
    with pytest.raises(penstock.InvalidArgumentError, match=r"a function goes to spans=, LossMask\(spans=…\)"):
        LossMask(lambda metadata: metadata["answers"])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"end_of_document": 1, "begin_of_document": 2}, "give one of them"),
        ({"end_of_document": 70_000}, "end_of_document=70000: must be from 0 to 65,535"),
        ({"begin_of_document": -1}, "begin_of_document=-1: must be from 0"),
        ({"begin_of_document": "<s>"}, "must be an integer"),
    ],
)
def test_tokens_that_bound_nothing(tmp_path, given, words):
    refused(words, token_stream(tmp_path, 50)[0].windows, 5, **given)
