"""Other people's token files, opened in place; Megatron's against bytes that megatron-core's builder wrote."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest

MEGATRON = Path(__file__).parents[2] / "golden" / "megatron"
CASES = json.loads((MEGATRON / "documents.json").read_text())
TOKENS = np.array([50256, 1, 2, 3, 65535, 7, 8, 9, 10], "<u2")


def all_tokens(dataset: penstock.Dataset) -> list[int]:
    return dataset.windows(dataset.records)[0]["token"].tolist()


def put_llmc(path: Path, tokens: np.ndarray, magic: int, version: int, count: int | None = None) -> Path:
    header = np.zeros(256, "<i4")
    header[:3] = magic, version, len(tokens) if count is None else count
    path.write_bytes(header.tobytes() + tokens.tobytes())
    return path


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("suffix", ["", ".bin", ".idx"])
def test_megatron_cores_files_have_their_documents(name, suffix):
    dataset = penstock.open(MEGATRON / f"{name}{suffix}")
    documents = CASES[name]["documents"]
    assert (dataset.kind, dataset.dtype["token"].str) == ("megatron", CASES[name]["dtype"])
    view = dataset.documents()
    assert [one["token"].tolist() for one in view] == documents
    assert view.read(range(len(view))).offsets.tolist() == np.cumsum([0, *map(len, documents)]).tolist()
    stream = [token for document in documents for token in document]
    assert all_tokens(dataset) == stream
    owner = np.repeat(np.arange(len(documents)), [len(each) for each in documents])
    for window in range(1, len(stream) + 1):
        for index, one in enumerate(dataset.windows(window)):
            part = owner[index * window : (index + 1) * window]
            assert [span.id for span in one.spans] == [(0, number) for number in sorted(set(part.tolist()))]
            for span in one.spans:
                assert (part[span.start : span.stop] == span.id.entry).all()
                assert one["token"][span.start] == documents[span.id.entry][span.offset]


@pytest.mark.parametrize("dtype", [np.uint16, np.int32, np.uint8, np.int64])
def test_megatron_core_reads_the_same_where_it_is_installed(tmp_path, dtype):
    indexed_dataset = pytest.importorskip("megatron.core.datasets.indexed_dataset")
    torch = pytest.importorskip("torch")
    random = np.random.default_rng(0)
    prefix = str(tmp_path / "live_text_document")
    builder = indexed_dataset.IndexedDatasetBuilder(f"{prefix}.bin", dtype=dtype)
    for _ in range(500):
        for _ in range(random.integers(0, 4)):
            builder.add_item(torch.from_numpy(random.integers(0, 100, random.integers(1, 20))))
        builder.end_document()
    builder.finalize(f"{prefix}.idx")
    theirs = indexed_dataset.IndexedDataset(prefix)
    bounds = theirs.document_indices
    view = penstock.open(prefix).documents()
    assert len(view) == len(bounds) - 1 == 500
    for index, one in enumerate(view):
        sequences = [theirs[number] for number in range(bounds[index], bounds[index + 1])]
        assert one["token"].tolist() == [token for sequence in sequences for token in sequence.tolist()]


@pytest.mark.parametrize("break_it", ["magic", "short idx", "long idx", "short bin", "long bin", "lengths", "dtype"])
def test_broken_megatron_files_are_refused(tmp_path, break_it):
    for suffix in (".bin", ".idx"):
        shutil.copy(MEGATRON / f"u2_text_document{suffix}", tmp_path / f"t{suffix}")
    what, _, which = break_it.partition(" ")
    path = tmp_path / f"t.{which or 'idx'}"
    data = bytearray(path.read_bytes())
    if what == "magic":
        data[0] = 0
    elif what == "lengths":
        data[34] ^= 1
    elif what == "dtype":
        data[17] = 99
    path.write_bytes(data[:-1] if what == "short" else data + b"\0" if what == "long" else data)
    with pytest.raises(penstock.CorruptionError, match=r"t\.idx"):
        penstock.open(tmp_path / "t")


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


def test_bare_tokens_beside_somebody_elses_idx(tmp_path):
    TOKENS.tofile(tmp_path / "a.bin")
    (tmp_path / "a.idx").write_bytes(b"another format" * 3)
    assert all_tokens(penstock.open(tmp_path / "a.bin", dtype="u2", format="raw")) == TOKENS.tolist()
    with pytest.raises(penstock.CorruptionError, match="MMIDIDX"):
        penstock.open(tmp_path / "a.bin")


def test_megatron_says_its_dtype_itself_but_its_bin_can_be_opened_bare():
    with pytest.raises(ValueError, match="say their type"):
        penstock.open(MEGATRON / "u2_text_document", dtype="u4")
    raw = penstock.open(MEGATRON / "u2_text_document.bin", dtype="u2", format="raw")
    assert raw.kind == "raw" and raw.records == 12


def test_nanogpts_bin_and_olmos_headerless_npy(tmp_path):
    TOKENS.tofile(tmp_path / "train.bin")
    TOKENS.astype("<u4").tofile(tmp_path / "part-0.npy")
    assert all_tokens(penstock.open(tmp_path / "train.bin", dtype="u2")) == TOKENS.tolist()
    assert all_tokens(penstock.open(tmp_path / "part-0.npy", dtype=np.uint32)) == TOKENS.tolist()
    for name in ("train.bin", "part-0.npy"):
        with pytest.raises(ValueError, match="give the dtype, u2"):
            penstock.open(tmp_path / name)


def test_globs_are_sorted_and_one_stream(tmp_path):
    for number in (2, 0, 1):
        np.full(3, number, "u2").tofile(tmp_path / f"{number}.bin")
    dataset = penstock.open(f"{tmp_path}/*.bin", dtype="u2")
    assert all_tokens(dataset) == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    assert [(Path(shard.name).name, shard.records) for shard in dataset.shards] == [(f"{n}.bin", 3) for n in range(3)]
    with pytest.raises(FileNotFoundError, match=r"\*\.npy"):
        penstock.open(f"{tmp_path}/*.npy", dtype="u2")


def test_llmcs_header(tmp_path):
    gpt2 = penstock.open(put_llmc(tmp_path / "gpt2.bin", TOKENS, 20240520, 1))
    assert (gpt2.kind, gpt2.dtype["token"].str, all_tokens(gpt2)) == ("llm.c", "<u2", TOKENS.tolist())
    large = np.array([128000, 1], "<u4")
    assert all_tokens(penstock.open(put_llmc(tmp_path / "llama.bin", large, 20240801, 7))) == [128000, 1]


@pytest.mark.parametrize("dtype", [None, "u2"])
def test_truncated_and_wrong_llmc_files_are_refused(tmp_path, dtype):
    hints = {"dtype": dtype} if dtype else {}
    for count in (len(TOKENS) - 1, len(TOKENS) + 1):
        with pytest.raises(penstock.CorruptionError, match=r"a\.bin"):
            penstock.open(put_llmc(tmp_path / "a.bin", TOKENS, 20240520, 1, count), **hints)
    with pytest.raises(ValueError, match="evaluation"):
        penstock.open(put_llmc(tmp_path / "a.bin", TOKENS, 20240522, 1), **hints)
    with pytest.raises(penstock.CorruptionError, match="version"):
        penstock.open(put_llmc(tmp_path / "a.bin", TOKENS, 20240520, 3), **hints)


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
@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
def test_npy_files_that_numpy_saved(tmp_path, array, version):
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
    with pytest.raises(ValueError, match=r"a\.npy"):
        penstock.open(tmp_path / "a.npy")


def test_an_npy_files_dtype_must_agree_with_a_given_one(tmp_path):
    np.save(tmp_path / "a.npy", TOKENS)
    assert penstock.open(tmp_path / "a.npy", dtype="u2").kind == "numpy"
    with pytest.raises(ValueError, match="dtype given"):
        penstock.open(tmp_path / "a.npy", dtype="u4")


def test_truncated_npy_files_are_refused(tmp_path):
    np.save(tmp_path / "whole.npy", TOKENS)
    whole = (tmp_path / "whole.npy").read_bytes()
    for size in (6, 9, 11, 60, 127, len(whole) - 1):
        (tmp_path / "a.npy").write_bytes(whole[:size])
        with pytest.raises(penstock.CorruptionError, match=r"a\.npy"):
            penstock.open(tmp_path / "a.npy")


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
    with pytest.raises((penstock.CorruptionError, ValueError), match=words):
        penstock.open(tmp_path / "a.bin", dtype=dtype)


def test_a_structured_dtype_fits_bare_files(tmp_path):
    cells = np.array([(7, 1.5), (9, 2.5)], [("gene", "<u2"), ("count", "<f4")])
    cells.tofile(tmp_path / "cells.bin")
    one = penstock.open(tmp_path / "cells.bin", dtype=cells.dtype).windows(2)[0]
    assert (one["gene"].tolist(), one["count"].tolist()) == ([7, 9], [1.5, 2.5])


def test_folders_of_others_are_refused_in_words(tmp_path):
    TOKENS.tofile(tmp_path / "a.bin")
    with pytest.raises(ValueError, match=r"\*\.bin"):
        penstock.open(tmp_path)
    (tmp_path / "index.json").write_text("{}")
    with pytest.raises(ValueError, match="neither shards of MDS nor chunks of litdata"):
        penstock.open(tmp_path)
    with pytest.raises(ValueError, match="format"):
        penstock.open(tmp_path / "a.bin", format="tar")
    with pytest.raises(TypeError, match="shape"):
        penstock.open(tmp_path / "a.bin", shape=3)


@pytest.mark.parametrize("path", ["none", "none/", "none.bin", "none.idx", "deep/none.npy"])
def test_what_is_not_there_is_file_not_found(tmp_path, path):
    with pytest.raises(FileNotFoundError, match="none"):
        penstock.open(f"{tmp_path}/{path}", dtype="u2")


def test_the_fingerprint_is_of_content_type_and_order(tmp_path):
    TOKENS.tofile(tmp_path / "a.bin")
    shutil.copy(tmp_path / "a.bin", tmp_path / "copy.bin")
    TOKENS[::-1].tofile(tmp_path / "b.bin")
    a, b, copy = (penstock.open(tmp_path / f"{name}.bin", dtype="u2").fingerprint for name in ("a", "b", "copy"))
    assert a == copy != b
    assert penstock.open(tmp_path / "a.bin", dtype="i2").fingerprint != a
    both = penstock.open(tmp_path / "a.bin", tmp_path / "b.bin", dtype="u2").fingerprint
    assert both != penstock.open(tmp_path / "b.bin", tmp_path / "a.bin", dtype="u2").fingerprint
