"""Other people's token files, opened in place; Megatron's against bytes that megatron-core's builder wrote.

What cannot be in such files, tests/native/layout/foreign has.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest
from _refused import refused
from _token_files import MEGATRON

CASES = json.loads((MEGATRON / "documents.json").read_text())
TOKENS = np.array([50256, 1, 2, 3, 65535, 7, 8, 9, 10], "<u2")


def all_tokens(dataset: penstock.Dataset) -> list[int]:
    return dataset.windows(dataset.records)[0]["token"].tolist()


@pytest.mark.parametrize("name", CASES)
def test_megatron_cores_files_have_their_documents(name):
    documents = CASES[name]["documents"]
    for suffix in ("", ".bin", ".idx"):
        dataset = penstock.open(MEGATRON / f"{name}{suffix}")
        assert (dataset.kind, dataset.dtype["token"].str) == ("megatron", CASES[name]["dtype"])
        assert [one["token"].tolist() for one in dataset.documents()] == documents
    stream = [token for document in documents for token in document]
    owner = np.repeat(np.arange(len(documents)), [len(each) for each in documents])
    for window in range(1, len(stream) + 1):
        for index, one in enumerate(dataset.windows(window)):
            assert one["token"].tolist() == stream[index * window : (index + 1) * window]
            part = owner[index * window : (index + 1) * window]
            assert [span.id for span in one.spans] == [(0, number) for number in sorted(set(part.tolist()))]
            for span in one.spans:
                assert (part[span.start : span.stop] == span.id.entry).all()
                assert one["token"][span.start] == documents[span.id.entry][span.offset]


def test_several_megatron_pairs_and_globs_of_them(tmp_path):
    for name in ("a", "b"):
        for suffix in (".bin", ".idx"):
            shutil.copy(MEGATRON / f"u2_text_document{suffix}", tmp_path / f"{name}{suffix}")
    one = all_tokens(penstock.open(tmp_path / "a"))
    for dataset in (
        penstock.open(tmp_path / "a", tmp_path / "b"),
        penstock.open(f"{tmp_path}/*"),
        penstock.open(f"{tmp_path}/*.idx"),
    ):
        assert (all_tokens(dataset), len(dataset.shards)) == (one + one, 2)
        assert len(dataset.documents()) == 10
    refused("say their type", penstock.open, tmp_path / "a", dtype="u4", error=ValueError)
    raw = penstock.open(tmp_path / "a.bin", dtype="u2", format="raw")
    assert raw.kind == "raw" and raw.records == 12
    TOKENS.tofile(tmp_path / "a.bin")
    (tmp_path / "a.idx").write_bytes(b"another format" * 3)
    assert all_tokens(penstock.open(tmp_path / "a.bin", dtype="u2", format="raw")) == TOKENS.tolist()
    refused("MMIDIDX", penstock.open, tmp_path / "a.bin", error=penstock.CorruptionError)


def test_bare_files_in_order_of_their_names_need_a_dtype(tmp_path):
    for number in (2, 0, 1):
        np.full(3, number, "u2").tofile(tmp_path / f"{number}.bin")
    dataset = penstock.open(f"{tmp_path}/*.bin", dtype="u2")
    assert all_tokens(dataset) == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    assert [(Path(shard.name).name, shard.records) for shard in dataset.shards] == [(f"{n}.bin", 3) for n in range(3)]
    refused(r"\*\.npy", penstock.open, f"{tmp_path}/*.npy", dtype="u2", error=FileNotFoundError)
    TOKENS.astype("<u4").tofile(tmp_path / "part-0.npy")  # as OLMo names them
    assert all_tokens(penstock.open(tmp_path / "part-0.npy", dtype=np.uint32)) == TOKENS.tolist()
    for name in ("0.bin", "part-0.npy"):
        refused("give the dtype, u2", penstock.open, tmp_path / name, error=ValueError)


@pytest.mark.parametrize(
    "array",
    [
        TOKENS,
        TOKENS.astype("<i8"),
        np.zeros(5, [("gene", "<u4"), ("counts", "<f4", (2,)), ("at", [("x", "u1")])]),
        np.zeros(0, "<u2"),
    ],
    ids=["u2", "i8", "structured", "empty"],
)
def test_npy_files_that_numpy_saved(tmp_path, array):
    for version in ((1, 0), (2, 0), (3, 0)):
        with (tmp_path / "a.npy").open("wb") as file:
            np.lib.format.write_array(file, array, version)
        dataset = penstock.open(tmp_path / "a.npy")
        assert (dataset.kind, dataset.records) == ("numpy", len(array))
        assert dataset.dtype == (array.dtype if array.dtype.names else np.dtype([("token", array.dtype)]))
        if len(array):
            records = dataset.windows(len(array))[0].records
            np.testing.assert_array_equal(records if array.dtype.names else records["token"], array)


@pytest.mark.parametrize("array", [TOKENS.reshape(3, 3), TOKENS.astype(">u2"), np.array(3), np.zeros(2, "M8[s]")])
def test_npy_files_that_are_no_stream_are_refused(tmp_path, array):
    np.save(tmp_path / "a.npy", array)
    refused(r"a\.npy", penstock.open, tmp_path / "a.npy", error=ValueError)


@pytest.mark.parametrize(
    ("dtype", "words"),
    [
        ("u2", "4,095 bytes is not a multiple of 2"),
        (">u2", "big-endian"),
        (np.dtype([("a", "u1"), ("b", "u4")], align=True), "padding"),
        ("nonsense", "nonsense"),
        ("O", "dtype"),
    ],
)
def test_sizes_and_dtypes_that_cannot_be(tmp_path, dtype: Any, words):
    (tmp_path / "a.bin").write_bytes(bytes(4095))
    refused(words, penstock.open, tmp_path / "a.bin", dtype=dtype, error=(penstock.CorruptionError, ValueError))


def test_bare_files_that_are_all_empty_are_warned_of(tmp_path):
    (tmp_path / "a.bin").touch()
    with pytest.warns(UserWarning, match=r"a\.bin: an empty file: no records"):
        assert penstock.open(tmp_path / "a.bin", dtype="u2").records == 0
    TOKENS.tofile(tmp_path / "b.bin")
    assert penstock.open(tmp_path / "a.bin", tmp_path / "b.bin", dtype="u2").records == len(TOKENS)


def test_what_is_not_there_and_folders_of_others_are_refused_in_words(tmp_path):
    for path in ("none", "none/", "none.bin", "none.idx", "deep/none.npy"):
        refused("none", penstock.open, f"{tmp_path}/{path}", dtype="u2", error=FileNotFoundError)
    TOKENS.tofile(tmp_path / "a.bin")
    refused(r"\*\.bin", penstock.open, tmp_path, error=ValueError)
    (tmp_path / "index.json").write_text("{}")
    refused("neither shards of MDS nor chunks of litdata", penstock.open, tmp_path, error=ValueError)
    refused("format", penstock.open, tmp_path / "a.bin", format="tar", error=ValueError)
    refused("shape", penstock.open, tmp_path / "a.bin", shape=3, error=TypeError)
