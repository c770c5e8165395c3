"""Computed columns: cu_seqlens, position_ids and document_ids, against a plain model."""

from __future__ import annotations

from typing import Any

import numpy as np
import penstock
import pytest
from _datasets import LENGTHS, array, compact, raw_tokens, token_stream

ALL = ["cu_seqlens", "position_ids", "document_ids"]
END = 7


def sequences(rows: list[Any], window: int | None) -> dict[str, Any]:
    """What a batch must offer; a row is the list of its sequences' lengths, None one of padding."""
    bounds, positions, documents, longest = [0], [], [], 0
    for lengths in rows:
        before = len(bounds) - 1 if window is not None else 0  # documents have no axis of rows
        for length in [window] if lengths is None else lengths:
            number = -1 if lengths is None else len(bounds) - 1 - before
            positions.append(np.arange(length))
            documents.append(np.full(length, number))
            bounds.append(bounds[-1] + length)
            longest = max(longest, length)
    shape = (len(rows), window) if window is not None else (-1,)
    return {
        "cu_seqlens": np.array(bounds, "i4"),
        "position_ids": np.concatenate([*positions, np.zeros(0)]).astype("i4").reshape(shape),
        "document_ids": np.concatenate([*documents, np.zeros(0)]).astype("i4").reshape(shape),
        "max_seqlen": longest,
    }


def cut_after(tokens: np.ndarray, end: int) -> list[int]:
    ends = [at for at in np.flatnonzero(tokens == end) + 1 if at < len(tokens)]
    return np.diff([0, *ends, len(tokens)]).tolist()


def found(batch: penstock.Batch) -> dict[str, Any]:
    assert list(batch.columns) == ALL
    assert all(batch.columns[name] is getattr(batch, name) for name in ALL)
    return {name: array(getattr(batch, name)) for name in ALL} | {"max_seqlen": batch.max_seqlen}


def assert_are(got: dict[str, Any], expected: dict[str, Any]) -> None:
    for name in ALL:
        assert got[name].dtype == np.int32, name
        np.testing.assert_array_equal(got[name], expected[name], err_msg=name)
    assert type(got["max_seqlen"]) is int and got["max_seqlen"] == expected["max_seqlen"]


def loader(view: penstock.View, batch_size: int = 5, **options: Any) -> penstock.Loader:
    return penstock.Loader(view, batch_size, **{"seed": 4, "epochs": 2, "columns": ALL, **options})


# --- spans


# --- an end-of-document token


@pytest.mark.parametrize("dtype", ["u1", "u2", "u4"])
@pytest.mark.parametrize("lookahead", [0, 1])
def test_tokens_with_an_end_of_document(tmp_path, dtype, lookahead):
    tokens = np.random.default_rng(1).integers(0, 12, 700).astype(dtype)
    tokens.tofile(tmp_path / "tokens.bin")
    view = penstock.open(tmp_path / "tokens.bin", dtype=dtype).windows(90, lookahead=lookahead)
    columns = [penstock.columns.CuSeqlens(end_of_document=END), "position_ids", "document_ids"]
    for batch in loader(view, columns=columns):
        rows = [None if i < 0 else cut_after(tokens[i * 90 : (i + 1) * 90], END) for i in array(batch.indices)]
        assert_are(found(batch), sequences(rows, 90))


# --- max_documents


def test_max_documents_pads_with_the_last_value(tmp_path):
    view = compact(tmp_path, LENGTHS)[0].windows(6)
    plain = [array(batch.cu_seqlens) for batch in loader(view)]
    most = max(len(bounds) for bounds in plain) - 1
    for allowed in (most, most + 3, 10_000):
        for batch, bounds in zip(loader(view, max_documents=allowed), plain, strict=True):
            padded = np.pad(bounds, (0, allowed + 1 - len(bounds)), mode="edge")
            np.testing.assert_array_equal(array(batch.cu_seqlens), padded)
            assert batch.max_seqlen == 6  # the window, so that it is one number in all batches


def test_more_documents_than_max_documents_is_an_error_of_that_batch(tmp_path):
    view = compact(tmp_path, LENGTHS)[0].windows(6)
    counts = [len(batch.cu_seqlens) - 1 for batch in loader(view)]
    most = max(counts)
    assert min(counts) < most
    with loader(view, max_documents=most - 1) as batches:
        for count in counts:
            position = batches.position
            if count < most:
                next(batches)
                continue
            words = f"cu_seqlens: this batch has {most} documents, max_documents is {most - 1}"
            for _ in range(2):  # it stays so
                with pytest.raises(penstock.InvalidArgumentError, match=words):
                    next(batches)
                assert batches.position == position
            batches.seek(position + 5)


# --- the same, whatever reads


def test_threads_prefetch_and_reader_change_nothing(tmp_path):
    tokens = raw_tokens(tmp_path / "tokens.bin", 5000)[1]
    end = int(tokens[40])
    ends = [penstock.columns.CuSeqlens(end_of_document=end), "position_ids", "document_ids"]
    (tmp_path / "more").mkdir()
    views = [
        (compact(tmp_path, LENGTHS)[0].windows(3, lookahead=1), ALL),
        (compact(tmp_path / "more", LENGTHS, seed=1)[0].documents(), ALL),
        (penstock.open(tmp_path / "tokens.bin", dtype="u2").windows(7), ends),
    ]
    for view, columns in views:
        plain = [found(b) for b in loader(view, 37, columns=columns, epochs=20, threads=1, prefetch=1, reader="pread")]
        for options in ({"threads": 8, "prefetch": 9}, {"threads": 3, "prefetch": 1}, {"reader": "mmap"}, {}):
            again = [found(batch) for batch in loader(view, 37, columns=columns, epochs=20, **options)]
            assert len(again) == len(plain)
            for one, other in zip(again, plain, strict=True):
                assert_are(one, other)


def test_the_state_says_nothing_of_columns(tmp_path):
    view = compact(tmp_path, LENGTHS)[0].windows(3)
    with loader(view) as one, loader(view, columns=()) as other:
        assert one.state_dict() == other.state_dict()


# --- what is refused


def test_what_was_not_asked_for_is_refused_in_words(tmp_path):
    view = compact(tmp_path, LENGTHS)[0].windows(6)
    batch = next(loader(view, columns=()))
    assert dict(batch.columns) == {}
    for name, wanted in [("cu_seqlens",) * 2, ("max_seqlen", "cu_seqlens"), ("position_ids",) * 2]:
        with pytest.raises(penstock.InvalidArgumentError, match=f"no {name}.*columns=.*{wanted}"):
            getattr(batch, name)
        with pytest.raises(penstock.InvalidArgumentError, match=name):
            getattr(view.read([1]), name)
    batch = next(loader(view, columns=["document_ids"]))
    assert list(batch.columns) == ["document_ids"]
    with pytest.raises(TypeError):
        batch.columns["position_ids"] = 1


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"columns": ["cu_seqlens", "cu_seqlens"]}, "cu_seqlens is there twice"),
        ({"columns": ["cu_seqlens", penstock.columns.CuSeqlens()]}, "cu_seqlens is there twice"),
        (
            {"columns": ["max_seqlen"]},
            "no column 'max_seqlen'; there are cu_seqlens, position_ids, document_ids, loss_mask",
        ),
        ({"columns": ["loss_mask"]}, r"loss_mask says too little: give penstock.columns.LossMask\(…\)"),
        ({"columns": "cu_seqlens"}, "must be a list"),
        ({"columns": [3]}, "3 is neither a name nor one of penstock.columns"),
        ({"columns": ["position_ids"], "max_documents": 3}, "max_documents= is of cu_seqlens"),
        ({"columns": ["cu_seqlens"], "max_documents": 0}, "max_documents=0: must be from 1"),
        ({"columns": ["cu_seqlens"], "max_documents": 1 << 31}, "max_documents=2147483648: must be from 1"),
        (
            {"columns": [penstock.columns.CuSeqlens(3), penstock.columns.PositionIds(4)]},
            "end_of_document is 3 and end_of_document is 4",
        ),
        ({"columns": [penstock.columns.CuSeqlens(70_000)]}, "end_of_document=70000: must be from 0 to 65,535"),
        ({"columns": [penstock.columns.CuSeqlens(-1)]}, "end_of_document=-1"),
    ],
)
def test_arguments_that_cannot_be(tmp_path, options, words):
    view = compact(tmp_path, LENGTHS)[0].windows(6)
    with pytest.raises(penstock.InvalidArgumentError, match=words):
        loader(view, **options)


def test_a_stream_that_does_not_say_where_documents_end(tmp_path):
    view = token_stream(tmp_path, 50)[0].windows(5)
    with pytest.raises(penstock.InvalidArgumentError, match=r"PositionIds.*no spans.*windows\(…, end_of_document=…\)"):
        loader(view, columns=["position_ids"])
    with pytest.raises(penstock.InvalidArgumentError, match="columns"):
        penstock.Writer(tmp_path / "reserved", fields={"columns": "u2"}, metadata=None)
