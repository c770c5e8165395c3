"""Files that datatrove, mosaicml-streaming and litdata wrote, opened in place (tests/golden/foreign/make.py)."""

from __future__ import annotations

import json
import pickle
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest
from _refused import refused
from _servers import nginx
from _token_files import DOCUMENTS, GOLDEN, STREAM, put_olmo

CASES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "datatrove/plain.ds": ("datatrove", "<u2", {}),
    "datatrove/loss.ds": ("datatrove", "<u4", {}),
    "litdata/tensor": ("litdata", "<i4", {}),
    "litdata/numpy": ("litdata", "<u2", {}),
    "mds/tokens": ("mds", "<i4", {}),
    "mds/beside": ("mds", "<u2", {}),
    "mds/bytes": ("mds", "<u2", {"dtype": "u2"}),
    "mds/dynamic": ("mds", "<u2", {}),
    "olmo": ("olmo", "<u2", {"dtype": "u2"}),
}


# How they are opened by an address, of which the name alone is looked at.
REMOTE: dict[str, dict[str, Any]] = {
    "datatrove/plain.ds": {},
    "datatrove/loss.ds": {},
    "litdata/tensor/index.json": {},
    "litdata/numpy": {"format": "litdata"},
    "mds/tokens/index.json": {},
    "mds/beside": {"format": "mds"},
    "mds/bytes/index.json": {"dtype": "u2"},
    "part.npy": {"format": "olmo", "dtype": "u2"},
}


@pytest.fixture(params=CASES)
def opened(request: Any, tmp_path: Path) -> tuple[str, str, penstock.Dataset]:
    kind, dtype, hints = CASES[request.param]
    path = put_olmo(tmp_path) if request.param == "olmo" else GOLDEN / request.param
    return kind, dtype, penstock.open(path, **hints)


def test_documents_and_windows_are_theirs(opened: tuple[str, str, penstock.Dataset]) -> None:
    kind, dtype, dataset = opened
    assert (dataset.kind, dataset.dtype["token"].str) == (kind, dtype)
    view = dataset.documents()
    assert [one["token"].tolist() for one in view] == DOCUMENTS
    batch = view.read(range(len(view)))
    assert batch.offsets.tolist() == np.cumsum([0, *map(len, DOCUMENTS)]).tolist()
    owner = np.repeat(np.arange(len(DOCUMENTS)), [len(each) for each in DOCUMENTS])
    starts = np.cumsum([0, *map(len, DOCUMENTS)])
    first = [sum(shard.spans for shard in dataset.shards[:number]) for number in range(len(dataset.shards))]
    for window in (1, 2, 7, 100, len(STREAM)):
        for index, one in enumerate(dataset.windows(window)):
            begin = index * window
            assert one["token"].tolist() == STREAM[begin : begin + window]
            numbers = [first[span.id.shard] + span.id.entry for span in one.spans]
            assert numbers == sorted(set(owner[begin : begin + window].tolist()))
            for number, span in zip(numbers, one.spans, strict=True):
                assert span.offset == max(begin - starts[number], 0)


def test_loaders_and_packed_rows_and_pickles(opened: tuple[str, str, penstock.Dataset]) -> None:
    dataset = pickle.loads(pickle.dumps(opened[2]))
    assert dataset.fingerprint == opened[2].fingerprint
    assert_loads_its_windows(dataset)
    packed = dataset.packed(400)
    pieces = [one["token"][span.start : span.stop] for one in packed for span in one.spans]
    assert sorted(np.concatenate(pieces).tolist()) == sorted(STREAM)


def assert_loads_its_windows(dataset: penstock.Dataset) -> None:
    view = dataset.windows(10, lookahead=1)
    with penstock.Loader(view, 4, epochs=1, framework="numpy", seed=5) as loader:
        for batch in loader:
            for row in np.flatnonzero(batch.valid):
                begin = int(batch.indices[row]) * 10
                assert batch["token"][row].tolist() == STREAM[begin : begin + 11]


def test_datatroves_loss_is_a_field_and_mds_may_have_a_fixed_shape(tmp_path: Path) -> None:
    dataset = penstock.open(GOLDEN / "datatrove" / "loss.ds")
    assert dataset.dtype["loss"].kind == "b"
    masks = [[bool(at % 2) for at in range(len(each))] for each in DOCUMENTS]
    assert [one["loss"].tolist() for one in dataset.documents()] == masks
    flat = [each for mask in masks for each in mask]
    for index, one in enumerate(dataset.windows(10)):
        assert one["loss"].tolist() == flat[index * 10 : index * 10 + 10]
    for source in (GOLDEN / "mds" / "fixed").iterdir():
        (tmp_path / source.name).symlink_to(source)  # which is followed
    found = penstock.open(tmp_path).documents()
    assert [one["token"].tolist() for one in found] == [each[:4] for each in DOCUMENTS if len(each) >= 4]


def test_a_glob_matches_files_beside_each_other_once(tmp_path: Path) -> None:
    assert len(penstock.open(f"{GOLDEN}/datatrove/plain*").shards) == 1
    put_olmo(tmp_path)
    assert len(penstock.open(f"{tmp_path}/part*", dtype="u2").shards) == 1
    raw = penstock.open(tmp_path / "part.npy", dtype="u2", format="raw")
    assert (raw.kind, raw.records) == ("raw", len(STREAM))


@pytest.mark.parametrize(
    ("path", "hints", "words"),
    [
        ("mds/pickled", {}, "pickled"),
        ("mds/zstd", {}, "compressed"),
        ("mds/bytes", {}, "give the dtype"),
        ("mds/beside", {"column": "text"}, r"holds no tokens.*a \(int\)"),
        ("mds/beside", {"column": "none"}, r"no column .*none.*tokens \(ndarray:uint16\)"),
        ("mds/tokens", {"dtype": "u2"}, "the dtype given"),
        ("datatrove/plain.ds", {"dtype": "u4"}, "the dtype given"),
        ("litdata/tensor", {"dtype": "u2"}, "say their type"),
        ("litdata/tensor", {"column": "tokens"}, "column"),
    ],
)
def test_what_cannot_be_opened_in_place_is_refused(path: str, hints: dict[str, Any], words: str) -> None:
    refused(words, penstock.open, GOLDEN / path, **hints)


def copy(path: str, to: Path) -> Path:
    shutil.copytree(GOLDEN / path, to)
    return to


def test_names_that_leave_the_folder_are_refused(tmp_path: Path) -> None:
    folder = copy("mds/tokens", tmp_path / "mds")
    said = json.loads((folder / "index.json").read_text())
    for name in ("../a.mds", "/etc/passwd", "a/../../b", "", ".", "a//b", "a\\b", "a\0b"):
        said["shards"][0]["raw_data"]["basename"] = name
        (folder / "index.json").write_text(json.dumps(said))
        refused("none of its folder", penstock.open, folder, error=penstock.CorruptionError)


@pytest.mark.parametrize("path", ["datatrove", "litdata/tensor", "mds/tokens", "mds/beside"])
def test_truncated_and_longer_files_are_refused(tmp_path: Path, path: str) -> None:
    folder = copy(path, tmp_path / "copy")
    for file in sorted(folder.iterdir()):
        if file.suffix in (".json", ".metadata") or file.name.startswith("plain") is (file.suffix == ".loss"):
            continue
        before = file.read_bytes()
        for data in (before[:-1], before + b"\0", b""):
            file.write_bytes(data)
            with pytest.raises(penstock.Error):
                penstock.open(folder / f"{file.name.partition('.')[0]}.ds" if path == "datatrove" else folder)
        file.write_bytes(before)


def test_documents_of_olmo_that_cannot_be_are_refused(tmp_path: Path) -> None:
    ends = [(0, 5), (6, 618)], [(0, 618), (618, 619)], [(0, 5)], [("x", 5)], [(5,)], [(5, 618)]
    for rows in ends:
        refused(r"part\.csv\.gz", penstock.open, put_olmo(tmp_path, rows), dtype="u2", error=penstock.CorruptionError)
    path = put_olmo(tmp_path)
    whole = (tmp_path / "part.csv.gz").read_bytes()
    for data in (whole[:-9], whole[:20], b"", b"0,618\n", whole + b"x"):
        (tmp_path / "part.csv.gz").write_bytes(data)
        refused(r"part\.csv\.gz", penstock.open, path, dtype="u2", error=penstock.CorruptionError)


FLIPPED = {
    "datatrove/plain.ds.index": 64,
    "datatrove/plain.ds.metadata": None,
    "litdata/numpy/index.json": None,
    "litdata/numpy/chunk-0-0.bin": 28,
    "mds/tokens/index.json": None,
    "mds/tokens/shard.00001.mds": 12,
    "mds/beside/shard.00000.mds": 200,
    "mds/dynamic/shard.00000.mds": 40,
    "olmo/part.csv.gz": None,
}


@pytest.mark.parametrize("path", FLIPPED)
def test_each_flipped_byte_of_an_index_is_an_error_or_the_same(tmp_path: Path, path: str) -> None:
    folder = tmp_path / "copy"
    if path.startswith("olmo"):
        folder.mkdir()
        what = put_olmo(folder)
        target = folder / "part.csv.gz"
    else:
        copy(str(Path(path).parent), folder)
        target = folder / Path(path).name
        what = folder / "plain.ds" if path.startswith("datatrove") else folder
    whole = target.read_bytes()
    refused = 0
    size = FLIPPED[path] or len(whole)
    for at in range(0, size, 1 if size < 300 else 2):
        mask = (0x01, 0x41, 0x80)[at % 3]
        target.write_bytes(whole[:at] + bytes([whole[at] ^ mask]) + whole[at + 1 :])
        try:
            dataset = penstock.open(what, dtype="u2" if path.startswith("olmo") else None)
            found = [one["token"].tolist() for one in dataset.documents()]
        except penstock.Error as error:
            refused += 1
            assert str(tmp_path) in str(error)
            continue
        assert [token for document in found for token in document] == STREAM
    assert refused > 0 or target.suffix == ".metadata"


def test_addresses_give_what_the_files_give(tmp_path: Path, place: Any) -> None:
    root = tmp_path / "root"
    shutil.copytree(GOLDEN, root)
    put_olmo(root)
    for file in filter(Path.is_file, root.rglob("*")):
        place.put(file.relative_to(root).as_posix(), file.read_bytes())
    with nginx(root, tmp_path / "nginx") as server:
        for name, hints in REMOTE.items():
            fingerprint = penstock.open(root / name, **hints).fingerprint
            in_a_bucket = penstock.open(f"{place.url}/{name}", storage=place.storage, **hints)
            kept = [penstock.open(f"{server}/{name}", cache=tmp_path / "cache", **hints) for _ in range(2)]
            for dataset in (penstock.open(f"{server}/{name}", **hints), in_a_bucket, *kept):
                assert dataset.fingerprint == fingerprint, name
                assert [one["token"].tolist() for one in dataset.documents()] == DOCUMENTS
                assert_loads_its_windows(dataset)
            assert kept[1].cache_counts["hits"] > 0, name
        refused(r"nothing/index\.json", penstock.open, f"{server}/nothing/index.json", error=penstock.NotFoundError)
