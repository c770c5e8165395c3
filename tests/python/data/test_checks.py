"""checks=: flipped bits and exchanged files are errors that name the file, or nothing that a caller can see."""

from __future__ import annotations

import pickle
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest

DOCUMENTS = 400
FILES = ("stream.bin", "metadata.bin", "metadata.index", "metadata.directory")


def write(path: Path, seed: int = 0) -> Path:
    """One shard; datasets of any seed have files of the same sizes."""
    rng = np.random.default_rng(seed)
    lengths = np.roll(np.random.default_rng(99).permutation(1 + np.arange(DOCUMENTS) % 40), seed)
    with penstock.Writer(path, fields={"token": "u2"}, metadata="raw") as writer:
        for number, length in enumerate(lengths):
            tokens = rng.integers(0, 60_000, length).astype("u2")
            writer.append(token=tokens, metadata=f"{seed} {number:06}".encode())
    return path


@pytest.fixture
def data(tmp_path: Path) -> Path:
    with penstock.Writer(tmp_path / "data", fields={"token": "u2"}, metadata="raw") as writer:
        rng = np.random.default_rng(1)
        for number in range(DOCUMENTS):
            writer.append(token=rng.integers(0, 60_000, number % 40).astype("u2"), metadata=f"{number:06}".encode())
    return tmp_path / "data"


def everything(path: Path, checks: str) -> Iterator[Any]:
    """All that the views of a dataset give."""
    dataset = penstock.open(path, checks=checks)
    for view in (dataset.windows(64), dataset.documents()):
        batch = view.read(range(len(view)))
        yield batch["token"].tobytes()
        yield [(span.row, span.start, span.stop, span.offset, span.raw) for span in batch.spans]


def look(path: Path, checks: str) -> Any:
    """What is seen, or the error's words."""
    try:
        return list(everything(path, checks))
    except penstock.CorruptionError as error:
        return str(error)


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


@pytest.mark.parametrize("name", ["metadata.index", "metadata.directory"])
def test_a_flipped_bit_of_what_tells_where_spans_lie_is_an_error(data, name):
    right = look(data, "all")
    silent = 0
    for _ in flipped(data / "00000" / name, 5, 150):
        for checks in ("index", "all"):
            assert name in look(data, checks)
        unchecked = look(data, "none")
        silent += not isinstance(unchecked, str) and unchecked != right
    assert silent > 0 or name == "metadata.directory", "nothing that only the check finds was tried"
    assert look(data, "index") == right


def test_a_zeroed_page_of_the_index_loses_no_document_in_silence(data):
    file = data / "00000" / "metadata.index"
    content = bytearray(file.read_bytes())
    content[16:4096] = bytes(4080)
    file.write_bytes(content)
    assert "metadata.index: bytes 0 to 4,096" in look(data, "index")


@pytest.mark.parametrize("name", ["stream.bin", "metadata.bin"])
def test_all_checks_records_and_entries_too(data, name):
    right = look(data, "none")
    assert look(data, "all") == right == look(data, "index")
    for _ in flipped(data / "00000" / name, 7, 60):
        assert name in look(data, "all")
        assert look(data, "none") != right


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


def test_an_exchanged_file_is_an_error_however_often_it_is_asked_for(tmp_path):
    ours, theirs = write(tmp_path / "ours"), write(tmp_path / "theirs", seed=1)
    shutil.copy(theirs / "00000" / "stream.bin", ours / "00000" / "stream.bin")
    view = penstock.open(ours).windows(64)
    for _ in range(3):
        with pytest.raises(penstock.CorruptionError, match=r"stream\.bin"):
            view[0]
    with penstock.Loader(view, 4, order="sequential", framework="numpy") as loader:
        for _ in range(3):
            with pytest.raises(penstock.CorruptionError, match=r"stream\.bin"):
                next(loader)


def test_shards_of_one_dataset_that_changed_places_are_seen(tmp_path):
    with penstock.Writer(tmp_path / "data", fields={"token": "u2"}, metadata="raw", shard_size=1 << 10) as writer:
        for number in range(64):
            writer.append(token=np.full(32, number, "u2"), metadata=b"%04d" % number)
    first, second = (tmp_path / "data" / name for name in ("00000", "00001"))
    first.rename(tmp_path / "kept")
    second.rename(first)
    (tmp_path / "kept").rename(second)
    with pytest.raises(penstock.CorruptionError, match="another shard"):
        penstock.open(tmp_path / "data").windows(32)[0]


def test_a_shard_without_its_own_manifest_can_be_read(data):
    (data / "00000" / "shard.json").unlink()
    assert not isinstance(look(data, "index"), str)


@pytest.mark.parametrize("layout", ["compact", "ids"])
@pytest.mark.parametrize("order", ["uniform", "sequential", penstock.orders.Blocks(4, 64)])
def test_checks_change_nothing_that_is_delivered(tmp_path, layout, order):
    path = write(tmp_path / "data")
    if layout == "ids":
        penstock.convert(path, tmp_path / "ids", "ids")
        path = tmp_path / "ids"
    seen = []
    for checks in ("none", "index", "all"):
        view = pickle.loads(pickle.dumps(penstock.open(path, checks=checks).windows(48, lookahead=1)))
        with penstock.Loader(view, 8, seed=3, order=order, epochs=2, framework="numpy") as loader:
            seen.append([(b.indices.tolist(), b.inputs.tobytes(), [s.raw for s in b.spans]) for b in loader])
    assert seen[0] == seen[1] == seen[2]


def test_what_checks_may_be(data, tmp_path):
    with pytest.raises(penstock.InvalidArgumentError, match="'index', 'all', 'none'"):
        penstock.open(data, checks="some")
    np.arange(100, dtype="u2").tofile(tmp_path / "tokens.bin")
    for checks in ("none", "index", "all"):
        view = penstock.open(tmp_path / "tokens.bin", dtype="u2", checks=checks).windows(10)
        assert view[1]["token"].tolist() == list(range(10, 20))


def write_shards(path: Path) -> Path:
    """Many small shards; windows run across them."""
    rng = np.random.default_rng(4)
    with penstock.Writer(path, fields={"token": "u2"}, metadata="raw", shard_size=6_000) as writer:
        for number in range(DOCUMENTS):
            tokens = rng.integers(0, 60_000, number % 60).astype("u2")
            writer.append(token=tokens, metadata=b"%05d" % number * (1 + number % 9))
    assert len(penstock.open(path).shards) > 3
    return path


@pytest.mark.parametrize("kind", ["windows", "documents"])
@pytest.mark.parametrize("order", ["uniform", penstock.orders.Blocks(8, 64)])
def test_checks_of_many_shards_change_nothing_alone_or_in_fetches(tmp_path, kind, order):
    path = write_shards(tmp_path / "data")
    seen = []
    for checks in ("none", "index", "all"):
        dataset = penstock.open(path, checks=checks)
        view = dataset.documents() if kind == "documents" else dataset.windows(700)
        with penstock.Loader(view, 8, seed=3, order=order, epochs=2, threads=3, framework="numpy") as loader:
            seen.append([(b.indices.tolist(), b["token"].tobytes(), [s.raw for s in b.spans]) for b in loader])
    assert seen[0] == seen[1] == seen[2]


@pytest.mark.parametrize("kind", ["windows", "documents"])
@pytest.mark.parametrize(("name", "checks"), [("metadata.index", "index"), ("stream.bin", "all")])
def test_a_flipped_bit_is_found_in_fetches_and_batches_before_it_are_delivered(tmp_path, kind, name, checks):
    path = write_shards(tmp_path / "data")
    last = sorted(path.glob("0*"))[-1] / name
    content = bytearray(last.read_bytes())
    content[len(content) // 2] ^= 4
    last.write_bytes(content)
    dataset = penstock.open(path, checks=checks)
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


def test_a_copy_without_check_values_says_what_is_missing(data):
    for file in (data / "00000").glob("*.crc"):
        file.unlink()
    with pytest.raises(penstock.NotFoundError, match=r"\.crc"):
        penstock.open(data).windows(64)[0]
    assert not isinstance(look(data, "none"), str)


def test_a_shard_manifest_that_is_none_is_an_error_of_penstock(data):
    manifest = data / "00000" / "shard.json"
    manifest.unlink()
    manifest.mkdir()
    with pytest.raises(penstock.CorruptionError, match=r"shard\.json"):
        penstock.open(data).windows(64)[0]


def test_checks_go_on_in_a_forked_child(data):
    script = """
import os, sys, penstock
view = penstock.open(sys.argv[1], checks="all").windows(64)
whole = view.read(range(len(view)))["token"].tobytes()
child = os.fork()
if child == 0:
    os._exit(0 if view.read(range(len(view)))["token"].tobytes() == whole else 1)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    assert subprocess.run([sys.executable, "-c", script, str(data)], check=False, timeout=60).returncode == 0
