"""checks=: flipped bits and exchanged files are errors that name the file. That checks change nothing: tests/model."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest
from _refused import refused

DOCUMENTS = 400
FILES = ("stream.bin", "metadata.bin", "metadata.index", "metadata.directory")


def write(path: Path, seed: int = 0, **options: Any) -> Path:
    """Datasets of any seed have files of the same sizes; some documents are empty."""
    rng = np.random.default_rng(seed)
    lengths = np.roll(np.random.default_rng(99).permutation(np.arange(DOCUMENTS) % 40), seed)
    with penstock.Writer(path, fields={"token": "u2"}, metadata="raw", **options) as writer:
        for number, length in enumerate(lengths):
            tokens = rng.integers(0, 60_000, length).astype("u2")
            writer.append(token=tokens, metadata=f"{seed} {number:06}".encode())
    return path


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write(tmp_path / "data")


def look(path: Path, checks: str) -> Any:
    """All that the views of a dataset give, or the error's words."""
    dataset = penstock.open(path, checks=checks)
    seen = []
    try:
        for view in (dataset.windows(64), dataset.documents()):
            batch = view.read(range(len(view)))
            spans = [(span.row, span.start, span.stop, span.offset, span.raw) for span in batch.spans]
            seen += [batch["token"].tobytes(), spans]
    except penstock.CorruptionError as error:
        return str(error)
    return seen


def flipped(file: Path, seed: int, count: int) -> Iterator[int]:
    """Flips a bit, and back."""
    original = file.read_bytes()
    rng = np.random.default_rng(seed)
    for bit in rng.choice(8 * len(original), min(count, 8 * len(original)), replace=False):
        changed = bytearray(original)
        changed[bit // 8] ^= 1 << (bit % 8)
        file.write_bytes(changed)
        yield int(bit)
    file.write_bytes(original)


@pytest.mark.parametrize("name", FILES)
def test_a_flipped_bit_is_an_error_where_it_is_checked(data, name):
    """Files that tell where spans lie are checked by default."""
    right = look(data, "none")
    assert look(data, "all") == right == look(data, "index")
    silent = 0
    for _ in flipped(data / "00000" / name, 5, 40):
        for checks in ("index", "all") if name in FILES[2:] else ("all",):
            assert name in look(data, checks)
        unchecked = look(data, "none")
        silent += not isinstance(unchecked, str) and unchecked != right
    assert silent > 0 or name == "metadata.directory", "nothing that only the check finds was tried"
    assert look(data, "all") == right


def test_a_flipped_check_value_is_an_error_too(data):
    for _ in flipped(data / "00000" / "metadata.index.crc", 3, 16):
        assert "metadata.index.crc says" in look(data, "index")
        assert not isinstance(look(data, "none"), str)


@pytest.mark.parametrize("name", [*FILES, "the shard"])
def test_a_file_or_a_shard_of_another_dataset_is_seen_where_it_is_first_opened(tmp_path, name):
    ours, theirs = write(tmp_path / "ours"), write(tmp_path / "theirs", seed=1)
    for file in FILES:
        assert (ours / "00000" / file).stat().st_size == (theirs / "00000" / file).stat().st_size
    right = look(ours, "none")
    if name == "the shard":
        shutil.rmtree(ours / "00000")
        shutil.copytree(theirs / "00000", ours / "00000")
    else:
        if (ours / "00000" / name).read_bytes() == (theirs / "00000" / name).read_bytes():
            pytest.skip("both have the same bytes")
        shutil.copy(theirs / "00000" / name, ours / "00000" / name)
    said = look(ours, "index")
    assert isinstance(said, str)
    assert ("another shard" if name == "the shard" else name) in said
    assert look(ours, "none") != right
    if name == "stream.bin":  # an error however often it is asked for
        view = penstock.open(ours).windows(64)
        with penstock.Loader(view, 4, order="sequential", framework="numpy") as loader:
            for read in 2 * (lambda: view[0], lambda: next(loader)):
                refused(r"stream\.bin", read, error=penstock.CorruptionError)


def test_shards_of_one_dataset_that_changed_places_are_seen(tmp_path):
    with penstock.Writer(tmp_path / "data", fields={"token": "u2"}, metadata="raw", shard_size=1 << 10) as writer:
        for number in range(64):
            writer.append(token=np.full(32, number, "u2"), metadata=b"%04d" % number)
    first, second = (tmp_path / "data" / name for name in ("00000", "00001"))
    first.rename(tmp_path / "kept")
    second.rename(first)
    (tmp_path / "kept").rename(second)
    refused("another shard", lambda: penstock.open(tmp_path / "data").windows(32)[0], error=penstock.CorruptionError)


@pytest.mark.parametrize("kind", ["windows", "documents"])
@pytest.mark.parametrize(("name", "checks"), [("metadata.index", "index"), ("stream.bin", "all")])
def test_a_flipped_bit_is_found_in_fetches_and_batches_before_it_are_delivered(tmp_path, kind, name, checks):
    path = write(tmp_path / "data", shard_size=4_000)
    last = sorted(path.glob("0*"))[-1] / name
    content = bytearray(last.read_bytes())
    content[len(content) // 2] ^= 4
    last.write_bytes(content)
    dataset = penstock.open(path, checks=checks)
    assert len(dataset.shards) > 3
    view = dataset.documents() if kind == "documents" else dataset.windows(100)
    delivered = 0
    loader = penstock.Loader(view, 4, order="sequential", epochs=1, framework="numpy")
    with loader, pytest.raises(penstock.CorruptionError, match=f"{last.parent.name}/{name}: bytes"):
        for _ in loader:
            delivered += 1
    assert delivered > len(loader) / 3


def test_opaque_documents_are_checked(tmp_path):
    with penstock.Writer(tmp_path / "data", metadata="raw") as writer:
        for number in range(100):
            writer.append(metadata=b"%05d" % number)
    index = tmp_path / "data/00000/metadata.index"
    content = bytearray(index.read_bytes())
    content[8 * 50] ^= 1  # entry 49 ends, and entry 50 begins, one byte off
    index.write_bytes(content)
    view = penstock.open(tmp_path / "data", checks="none").documents()
    assert view[49].spans[0].raw != b"00049"
    with pytest.raises(penstock.CorruptionError, match=r"metadata\.index: bytes 0 to 808"):
        penstock.open(tmp_path / "data").documents()[49]


def test_shards_without_manifest_are_read_and_ones_without_check_values_are_not(data):
    manifest = data / "00000" / "shard.json"
    manifest.unlink()
    assert not isinstance(look(data, "index"), str)
    manifest.mkdir()
    assert "shard.json" in look(data, "index")
    manifest.rmdir()
    for file in (data / "00000").glob("*.crc"):
        file.unlink()
    refused(r"\.crc", lambda: penstock.open(data).windows(64)[0], error=penstock.NotFoundError)
    assert not isinstance(look(data, "none"), str)
    refused("'index', 'all', 'none'", penstock.open, data, checks="some")


def test_checks_go_on_in_a_forked_child(data):
    view = penstock.open(data, checks="all").windows(64)
    whole = view.read(range(len(view)))["token"].tobytes()
    child = os.fork()
    if child == 0:
        os._exit(0 if view.read(range(len(view)))["token"].tobytes() == whole else 1)
    assert os.waitpid(child, 0)[1] == 0
