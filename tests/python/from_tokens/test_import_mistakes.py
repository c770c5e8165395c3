"""What a new user gets wrong in an import, export or commit: each is refused, and the message has what to do."""

from __future__ import annotations

import gzip
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest
from _token_files import GOLDEN
from penstock._cli.main import main

TOKENS = np.arange(1000, dtype="u2")


def refused(path: Path, match: str, **given: Any) -> None:
    out = path.parent / "refused"
    with pytest.raises(penstock.Error, match=match):
        penstock.import_tokens(path, out, **given)
    assert not out.exists()


@pytest.mark.parametrize(
    ("head", "match"),
    [
        (gzip.compress(TOKENS.tobytes(), mtime=0), "compressed by gzip, by its first bytes: unpack it first"),
        (b"PK\x03\x04" + bytes(96), "a zip archive"),
        (b"PAR1" + bytes(96), "a Parquet file, by its first bytes: give the format, parquet"),
        (b"\x28\xb5\x2f\xfd" + bytes(96), "compressed by Zstandard"),
        (b"\x89HDF\r\n\x1a\n" + bytes(92), r"an HDF5 file, .*\.h5ad"),
        (b"MMIDIDX\x00\x00" + bytes(91), "a Megatron index"),
    ],
)
def test_bare_tokens_that_are_a_file_of_another_format_are_refused_by_their_first_bytes(
    tmp_path: Path, head: bytes, match: str
) -> None:
    path = tmp_path / "train.bin"
    path.write_bytes(head + bytes(len(head) % 2))
    refused(path, match, dtype="u2")
    done = penstock.import_tokens(path, tmp_path / "said", dtype="u2", format="raw")
    assert done.records == path.stat().st_size // 2


@pytest.mark.parametrize(
    ("name", "match"),
    [
        ("shard.00000.mds", r"one shard of MDS: give its folder"),
        ("shard.00000.mds.zstd", r"one shard of MDS: give its folder"),
        ("train.bin.gz", r"compressed: unpack it first"),
        ("train.jsonl.gz", r"text, not tokens: penstock write"),
        ("train.txt", r"text, not tokens: penstock write"),
    ],
)
def test_names_that_token_files_never_have(tmp_path: Path, name: str, match: str) -> None:
    TOKENS.tofile(tmp_path / name)
    refused(tmp_path / name, match, dtype="u2")


def test_an_empty_file_is_called_empty(tmp_path: Path) -> None:
    (tmp_path / "train.bin").touch()
    refused(tmp_path / "train.bin", r"train\.bin: an empty file")


@pytest.mark.parametrize("name", ["huggingface/plain", "mds/tokens", "mds/tokens/index.json"])
def test_a_dataset_is_not_made_in_the_folder_that_is_imported(tmp_path: Path, name: str) -> None:
    pytest.importorskip("pyarrow")
    shutil.copytree(GOLDEN, tmp_path / "in")
    path = tmp_path / "in" / name
    folder = path if path.is_dir() else path.parent
    before = sorted(folder.iterdir())
    for given in ({}, {"overwrite": True}, {"resume": True}):
        with pytest.raises(penstock.InvalidArgumentError, match="is an input: choose another folder"):
            penstock.import_tokens(path, folder.parent / "." / folder.name, **given)
    assert sorted(folder.iterdir()) == before
    penstock.import_tokens(path, folder / "inside")


def test_compressed_shards_in_place_name_the_import() -> None:
    with pytest.raises(penstock.InvalidArgumentError, match="penstock import"):
        penstock.open(GOLDEN / "packed/gz")


def test_negative_tokens_are_not_told_to_take_another_type(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.array([1, -100], "i4"))
    refused(tmp_path / "a.npy", r"record 1: token -100 does not fit u4 .*: no dtype of tokens holds it")
    np.save(tmp_path / "b.npy", np.array([1, 300], "i4"))
    refused(tmp_path / "b.npy", r"record 1: token 300 does not fit u1 .*: say with dtype what does", dtype="u1")


def test_a_folder_of_somebody_else_in_the_place_of_a_shard(tmp_path: Path) -> None:
    TOKENS.tofile(tmp_path / "train.bin")
    (tmp_path / "out/00000").mkdir(parents=True)
    (tmp_path / "out/00000/mine.txt").write_text("mine")
    for overwrite in (False, True):
        with pytest.raises(penstock.NotFoundError, match=r"out/00000: no shard of penstock, .*write elsewhere"):
            penstock.import_tokens(tmp_path / "train.bin", tmp_path / "out", dtype="u2", overwrite=overwrite)
    assert (tmp_path / "out/00000/mine.txt").read_text() == "mine"


def test_a_part_that_is_not_there_cannot_be_dropped(tmp_path: Path) -> None:
    TOKENS.tofile(tmp_path / "train.bin")
    penstock.import_tokens(tmp_path / "train.bin", tmp_path / "data", dtype="u2", end_of_document=9)
    with pytest.raises(penstock.InvalidArgumentError, match="drop='meta': there is none"):
        penstock.export(tmp_path / "data", tmp_path / "out", to="megatron", drop=["meta"])
    with pytest.raises(penstock.InvalidArgumentError, match=r"out: .* ends in \.ds: .*/out\.ds\?"):
        penstock.export(tmp_path / "data", tmp_path / "out", to="datatrove")


def test_commit_of_no_folder_says_what_is_wanted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "empty").mkdir()
    for name, words, code in (
        ("none", "no such folder: give the folder that penstock.Writer", 2),
        ("file", "a file: give the folder that penstock.Writer", 2),
        ("empty", "no finished shard to commit: Writer(…, shard=K) writes them", 1),
    ):
        assert main(["commit", str(tmp_path / name)]) == code
        assert words in capsys.readouterr().err


@pytest.mark.parametrize("verb", ["import_tokens", "shuffle"])
def test_a_script_whose_workers_import_it_is_told_of_the_guard(tmp_path: Path, verb: str) -> None:
    for name in ("a", "b"):
        TOKENS.tofile(tmp_path / f"{name}.bin")
    penstock.import_tokens([tmp_path / "a.bin"], tmp_path / "data", dtype="u2")
    calls = {
        "import_tokens": "penstock.import_tokens(['a.bin', 'b.bin'], 'out', dtype='u2', shard_size=100, workers=2)",
        "shuffle": "penstock.shuffle('data', 'out', seed=0, window=8, shard_size=100, workers=2)",
    }
    script = tmp_path / "script.py"
    script.write_text(f"import penstock\n{calls[verb]}\n")
    done = subprocess.run([sys.executable, script], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    *others, parent = (each for each in done.stderr.splitlines() if "__main__" in each and "penstock" in each)
    words = "InvalidArgumentError: this is a worker process: a script that starts workers needs if __name__"
    assert any(words in each for each in others)
    assert "exited with code 1 before it was ready: a script that starts workers needs if __name__" in parent
    assert not (tmp_path / "out" / "dataset.json").exists()


@pytest.mark.parametrize("call", [penstock.import_anndata, penstock.import_tokens, penstock.combine, penstock.open])
def test_anndata_in_memory_in_the_place_of_a_path(tmp_path: Path, call: Any) -> None:
    anndata = pytest.importorskip("anndata")
    made = anndata.AnnData(np.ones((3, 2), "f4"))
    for given in (made, [made]):
        if call is penstock.open and given is not made:
            continue
        with pytest.raises(penstock.InvalidArgumentError, match=r"is no path: a path is wanted: adata\.write_h5ad"):
            call(given, tmp_path / "out")
    with pytest.raises(penstock.InvalidArgumentError, match="3 is no path"):
        call(3, tmp_path / "out")


def test_an_anndata_zarr_in_the_place_of_a_dataset_says_import(tmp_path: Path) -> None:
    anndata, _ = pytest.importorskip("anndata"), pytest.importorskip("zarr")
    path = tmp_path / "cells.zarr"
    anndata.AnnData(np.ones((3, 2), "f4")).write_zarr(path)
    with pytest.raises(penstock.InvalidArgumentError, match=r"cells\.zarr: a zarr store, .*`penstock import` it"):
        penstock.open(path)
    for call in (penstock.verify, lambda each: penstock.combine([each], tmp_path / "out")):
        with pytest.raises(penstock.InvalidArgumentError, match=r"zarr: a zarr store, .* makes a dataset of it"):
            call(path)


def test_cells_without_genes_name_their_file(tmp_path: Path) -> None:
    anndata = pytest.importorskip("anndata")
    path = tmp_path / "empty.h5ad"
    anndata.AnnData(np.ones((3, 0), "f4")).write_h5ad(path)
    with pytest.raises(penstock.InvalidArgumentError, match=r"empty\.h5ad: there are no genes"):
        penstock.import_anndata(path, tmp_path / "out")
