"""Computed columns: cu_seqlens, position_ids and document_ids, against a plain model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest
from _datasets import LENGTHS, NUMBERS, array, compact, ids, orders, raw_tokens, token_stream

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


def lengths_of(spans: list[Any], row: int, window: int) -> list[int]:
    """Of the sequences of a row, from the spans that the batch itself gives."""
    starts = sorted({0, *(span.start for span in spans if span.row == row and 0 < span.start < window)})
    return np.diff([*starts, window]).tolist()


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


@pytest.mark.parametrize("framework", ["numpy", "torch"])
@pytest.mark.parametrize("lookahead", [0, 1])
@pytest.mark.parametrize("make", [lambda f: compact(f, LENGTHS)[0], lambda f: ids(f, NUMBERS)[0]])
def test_windows_with_spans(tmp_path, make, lookahead, framework):
    view = make(tmp_path).windows(6, lookahead=lookahead)
    padded = 0
    for options in ({}, {"per_epoch": True}, {"tail": "drop"}, {"order": orders()["blocks"]}, {"skip": [(3, 9)]}):
        with loader(view, framework=framework, **options) as batches:
            for batch in batches:
                valid = array(batch.valid)
                rows = [lengths_of(batch.spans, i, 6) if ok else None for i, ok in enumerate(valid)]
                assert_are(found(batch), sequences(rows, 6))
                padded += len(valid) - valid.sum()
    assert padded > 0


def test_windows_against_the_documents_that_were_written(tmp_path):
    dataset, model = compact(tmp_path, LENGTHS)
    view = dataset.windows(6)
    for batch in loader(view, framework="numpy"):
        rows = []
        for index in batch.indices:
            here = [span[0] for span in model.window_spans(int(index), 6)] if index >= 0 else None
            rows.append(None if here is None else np.diff([*here, 6]).tolist())
        assert_are(found(batch), sequences(rows, 6))


def test_documents_are_a_sequence_each(tmp_path):
    view = compact(tmp_path, LENGTHS)[0].documents()
    for batch in loader(view):
        offsets = array(batch.offsets)
        lengths = [[length] if ok else [] for length, ok in zip(np.diff(offsets), array(batch.valid), strict=True)]
        assert_are(found(batch), sequences(lengths, None))
        valid = int(array(batch.valid).sum())
        assert array(batch.cu_seqlens).tolist() == offsets[: valid + 1].tolist()


def test_megatron():
    prefix = Path(__file__).parents[2] / "golden" / "megatron" / "u2_text_document"
    view = penstock.open(prefix).windows(5, lookahead=1)
    for batch in loader(view, framework="numpy"):
        rows = [lengths_of(batch.spans, i, 5) if ok else None for i, ok in enumerate(batch.valid)]
        assert_are(found(batch), sequences(rows, 5))


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


def test_the_tokenizer_says_what_ends_a_document(tmp_path):
    tokens = np.random.default_rng(1).integers(0, 12, 300)
    path = tmp_path / "stream"
    note = {"name": "test", "vocabulary_size": 12, "end_of_document": END, "hash": "0" * 32}
    with penstock.Writer(path, fields={"token": "u2", "weight": "f4"}, metadata=None, tokenizer=note) as writer:
        writer.append(token=tokens, weight=np.zeros(300, "f4"))
    for batch in loader(penstock.open(path).windows(20)):
        rows = [None if i < 0 else cut_after(tokens[i * 20 : (i + 1) * 20], END) for i in array(batch.indices)]
        assert_are(found(batch), sequences(rows, 20))


def test_a_value_that_is_given_goes_before_spans(tmp_path):
    dataset, model = compact(tmp_path, LENGTHS)
    end = int(model.records["token"][4])
    columns = [penstock.columns.DocumentIds(end_of_document=end), "cu_seqlens", "position_ids"]
    for view in (dataset.windows(6), dataset.documents()):
        for batch in loader(view, columns=columns, framework="numpy"):
            if view.kind == "windows":
                rows = [
                    cut_after(row, end) if ok else None for row, ok in zip(batch["token"], batch.valid, strict=True)
                ]
            else:
                rows = [cut_after(row, end) for row in np.split(batch["token"], batch.offsets[1:-1])]
                rows = [row if ok else [] for row, ok in zip(rows, batch.valid, strict=True)]
            got = {name: array(getattr(batch, name)) for name in ALL} | {"max_seqlen": batch.max_seqlen}
            assert_are(got, sequences(rows, 6 if view.kind == "windows" else None))


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


def test_max_seqlen_of_documents_is_the_longest_with_max_documents_too(tmp_path):
    view = compact(tmp_path, LENGTHS)[0].documents()
    for batch, plain in zip(loader(view, max_documents=7), loader(view), strict=True):
        assert batch.max_seqlen == plain.max_seqlen == int(np.diff(array(batch.cu_seqlens)).max())


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


def test_any_rank_resumes_with_the_same_columns(tmp_path):
    view = compact(tmp_path, LENGTHS)[0].windows(3)
    with loader(view, 4, framework="numpy") as whole:
        everything = [found(batch) for batch in whole]
    for step in range(len(everything)):
        with loader(view, 4, framework="numpy") as again:
            again.seek(step * 4)
            assert_are(found(next(again)), everything[step])


def test_the_state_says_nothing_of_columns(tmp_path):
    view = compact(tmp_path, LENGTHS)[0].windows(3)
    with loader(view) as one, loader(view, columns=()) as other:
        assert one.state_dict() == other.state_dict()


def test_lent_memory(tmp_path, monkeypatch):
    torch = pytest.importorskip("torch")

    def allocator(_: Any) -> Any:
        def allocate(size: int) -> tuple[Any, int]:  # ordinary memory, full of what must never be seen
            tensor = torch.full((size,), 0x5A, dtype=torch.uint8)
            return tensor, tensor.data_ptr()

        return allocate

    monkeypatch.setattr(penstock._load.loader, "pinned_allocator", allocator)
    dataset = compact(tmp_path, LENGTHS)[0]
    for view in (dataset.windows(6), dataset.documents()):
        for allowed in (None, 40):
            lent = loader(view, pin_memory=True, max_documents=allowed)
            plain = loader(view, max_documents=allowed)
            for one, other in zip(lent, plain, strict=True):
                assert_are(found(one), found(other))
                storage = one.document_ids.untyped_storage().data_ptr()
                assert one.cu_seqlens.untyped_storage().data_ptr() == storage  # slices of what was lent


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
