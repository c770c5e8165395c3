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
        ("empty.bin", r"empty\.bin: an empty file"),
    ],
)
def test_names_that_token_files_never_have(tmp_path: Path, name: str, match: str) -> None:
    (TOKENS[:0] if name == "empty.bin" else TOKENS).tofile(tmp_path / name)
    refused(tmp_path / name, match, **({} if name == "empty.bin" else {"dtype": "u2"}))


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


@pytest.mark.parametrize(
    ("token", "options", "match"),
    [
        (-100, {}, r"record 1: token -100 does not fit u4 .*: no dtype of tokens holds it"),
        (300, {"dtype": "u1"}, r"record 1: token 300 does not fit u1 .*: say with dtype what does"),
    ],
)
def test_only_tokens_that_fit_one_are_told_to_take_another_type(
    tmp_path: Path, token: int, options: dict[str, Any], match: str
) -> None:
    np.save(tmp_path / "a.npy", np.array([1, token], "i4"))
    refused(tmp_path / "a.npy", match, **options)


def test_a_folder_of_somebody_else_in_the_place_of_a_shard(tmp_path: Path) -> None:
    TOKENS.tofile(tmp_path / "train.bin")
    (tmp_path / "out/00000").mkdir(parents=True)
    (tmp_path / "out/00000/mine.txt").write_text("mine")
    for overwrite in (False, True):
        with pytest.raises(penstock.NotFoundError, match=r"out/00000: no shard of penstock, .*write elsewhere"):
            penstock.import_tokens(tmp_path / "train.bin", tmp_path / "out", dtype="u2", overwrite=overwrite)
    assert (tmp_path / "out/00000/mine.txt").read_text() == "mine"


@pytest.mark.parametrize(
    ("name", "words", "code"),
    [
        ("none", "no such folder: give the folder that penstock.Writer", 2),
        ("file", "a file: give the folder that penstock.Writer", 2),
        ("empty", "no finished shard to commit: Writer(…, shard=K) writes them", 1),
    ],
)
def test_commit_of_no_folder_says_what_is_wanted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, words: str, code: int
) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "empty").mkdir()
    assert main(["commit", str(tmp_path / name)]) == code
    assert words in capsys.readouterr().err


def test_a_script_whose_workers_import_it_is_told_of_the_guard(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    folder = str(GOLDEN / "mds" / "tokens")  # which processes read
    call = f"penstock.import_tokens({folder!r}, 'out', shard_size=100, workers=2)"
    script.write_text(f"import penstock\n{call}\n")
    done = subprocess.run([sys.executable, script], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    *others, parent = (each for each in done.stderr.splitlines() if "__main__" in each and "penstock" in each)
    words = "InvalidArgumentError: this is a worker process: a script that starts workers needs if __name__"
    assert any(words in each for each in others)
    assert "exited with code 1 before it was ready: a script that starts workers needs if __name__" in parent
    assert not (tmp_path / "out" / "dataset.json").exists()


def test_anndata_in_the_place_of_something_else(tmp_path: Path) -> None:
    anndata, _ = pytest.importorskip("anndata"), pytest.importorskip("zarr")
    made, out = anndata.AnnData(np.ones((3, 2), "f4")), tmp_path / "out"
    made.write_zarr(stored := tmp_path / "cells.zarr")
    anndata.AnnData(np.ones((3, 0), "f4")).write_h5ad(empty := tmp_path / "empty.h5ad")
    verbs = (penstock.import_anndata, penstock.import_tokens, penstock.combine)
    in_memory = r"is no path: a path is wanted: adata\.write_h5ad"
    made_by = r"zarr: a zarr store, .* makes a dataset of it"
    for call, given, message in (
        *((call, (given, out), in_memory) for call in verbs for given in (made, [made])),
        *((call, (3, out), "3 is no path") for call in (*verbs, penstock.open)),
        (penstock.open, (made,), in_memory),
        (penstock.open, (stored,), r"cells\.zarr: a zarr store, .*`penstock import` it"),
        (penstock.verify, (stored,), made_by),
        (penstock.combine, ([stored], out), made_by),
        (penstock.import_anndata, (empty, out), r"empty\.h5ad: there are no genes"),
    ):
        with pytest.raises(penstock.InvalidArgumentError, match=message):
            call(*given)
