"""Datasets whose files are links, as views, verify and combine see them; which may be is in the native links_test."""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path

import numpy as np
import penstock
import pytest


@pytest.fixture
def data(tmp_path: Path) -> Path:
    with penstock.Writer(tmp_path / "data", fields={"token": "u2"}, metadata="raw", shard_size=500) as writer:
        for number in range(60):
            writer.append(token=np.full(20, number, "u2"), metadata=b"%d" % number)
    return tmp_path / "data"


def everything(path: Path) -> bytes:
    view = penstock.open(path, checks="all").windows(30)
    batch = view.read(range(len(view)))
    return batch["token"].tobytes() + b"".join(span.raw for span in batch.spans)


def test_a_dataset_in_a_cache_of_hugging_face_is_read_verified_and_combined(tmp_path, data):
    blobs = tmp_path / "hub/datasets--x/blobs"
    snapshot = tmp_path / "hub/datasets--x/snapshots/0a1b/corpus"
    blobs.mkdir(parents=True)
    for file in (each for each in data.rglob("*") if each.is_file()):
        blob = blobs / hashlib.sha256(file.read_bytes()).hexdigest()
        shutil.copy(file, blob)
        link = snapshot / file.relative_to(data)
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(os.path.relpath(blob, link.parent))
    assert everything(snapshot) == everything(data)
    assert penstock.verify(snapshot).ok
    penstock.combine([snapshot, snapshot], tmp_path / "twice")
    assert not any(each.is_symlink() for each in (tmp_path / "twice").rglob("*"))
    shutil.rmtree(tmp_path / "hub")
    assert penstock.verify(tmp_path / "twice").ok
    assert len(penstock.open(tmp_path / "twice").documents()) == 120


def test_the_dataset_itself_may_be_reached_by_links(tmp_path, data):
    (tmp_path / "link").symlink_to(data)
    (tmp_path / "far").symlink_to(tmp_path / "link")
    assert everything(tmp_path / "far") == everything(data)
    assert penstock.verify(tmp_path / "far").ok


@pytest.mark.parametrize("name", ["00000/stream.bin", "00000/stream.bin.crc", "00000/shard.json", "00001"])
def test_a_link_out_of_the_dataset_is_refused(tmp_path, data, name):
    file = data / name
    file.rename(tmp_path / "outside")
    file.symlink_to(tmp_path / "outside")
    with pytest.raises(
        penstock.CorruptionError, match=f"{file.name}.*: a symbolic link out of the dataset, to .*outside"
    ):
        everything(data)
    assert not penstock.verify(data).ok


def test_files_of_other_formats_may_be_links_to_anywhere(tmp_path):
    np.arange(100, dtype="u2").tofile(tmp_path / "tokens")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder/tokens.bin").symlink_to("../tokens")
    view = penstock.open(tmp_path / "folder/tokens.bin", dtype="u2").windows(10)
    assert view[9]["token"].tolist() == list(range(90, 100))
