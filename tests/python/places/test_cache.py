"""The local cache of remote datasets: what was read is not asked for again, and is right whatever happened to it."""

import contextlib
import errno
import json
import os
import pickle
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest
from _fault_servers import FaultServer, fault_server
from _servers import nginx, write_corpus
from penstock import InvalidArgumentError
from penstock._cli.main import main

RECORDS = 3_000_000


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a dataset of three shards with metadata, a larger one of tokens alone, and token files."""
    folder = tmp_path_factory.mktemp("root")
    rng = np.random.default_rng(0)
    write_corpus(folder, rng, shards=3, documents=200)
    write_tokens(folder / "tokens", 1)
    rng.integers(0, 60_000, 100_000).astype("u2").tofile(folder / "a.bin")
    return folder


def write_tokens(folder: Path, seed: int) -> None:
    with penstock.Writer(folder, fields={"token": "u4"}, metadata=None, overwrite=True) as writer:
        writer.append(token=np.random.default_rng(seed).integers(0, 60_000, RECORDS).astype("u4"))


@pytest.fixture
def server(root: Path) -> Iterator[FaultServer]:
    with fault_server(root) as started:
        yield started


def epoch(dataset: penstock.Dataset, seed: int = 1, window: int = 4000) -> list[Any]:
    loader = penstock.Loader(dataset.windows(window), 16, seed=seed, epochs=1, framework="numpy")
    return [(batch.indices.tolist(), batch["token"].tobytes()) for batch in loader]


def asked(server: FaultServer) -> int:
    """Bytes that were asked for by range since the last call, but for check values.

    Which blocks of a file are compared first, and so which pages of its check values are read, depends on threads.
    """
    with server.lock:
        ranges = [each for path, each, _ in server.requests if each and ".crc" not in path]
        server.requests.clear()
    bounds = [tuple(map(int, each.removeprefix("bytes=").split("-"))) for each in ranges]
    return sum(last + 1 - first for first, last in bounds)


@pytest.mark.parametrize("order", ["uniform", "sequential", penstock.orders.Blocks(4, 32)])
def test_batches_and_states_are_those_of_the_local_files(root, server, tmp_path, order):
    def of(path: Any, **options: Any) -> list[Any]:
        found = []
        dataset = penstock.open(path, **options)
        for view in (dataset.windows(64, lookahead=1), dataset.documents()):
            loader = penstock.Loader(view, 16, order=order, seed=3, epochs=1, framework="numpy")
            for batch in loader:
                entries = [(s.row, s.start, s.stop, s.metadata) for s in batch.spans]
                found.append((batch.indices.tolist(), batch["token"].tolist(), entries, batch.state_dict()))
            middle = penstock.Loader(view, 16, order=order, seed=3, epochs=1, framework="numpy")
            middle.load_state_dict(found[-3][3])
            found.append([each["token"].tolist() for each in middle])
        return found

    expected = of(root / "corpus")
    assert of(f"{server.address}/corpus", cache=tmp_path / "cache") == expected
    assert of(f"{server.address}/corpus", cache=tmp_path / "cache") == expected
    shutil.rmtree(tmp_path / "cache")
    assert of(f"{server.address}/corpus", cache=tmp_path / "cache", cache_bytes=200_000) == expected


def test_a_second_epoch_asks_for_nothing(root, server, tmp_path):
    dataset = penstock.open(f"{server.address}/tokens", cache=tmp_path)
    local = penstock.open(root / "tokens")
    assert epoch(dataset) == epoch(local)
    assert asked(server) > 4 * RECORDS * 0.99
    assert epoch(dataset, 2) == epoch(local, 2)
    assert asked(server) == 0
    again = penstock.open(f"{server.address}/tokens", cache=tmp_path)  # the manifest alone
    assert [path for path, *_ in server.requests] == ["/tokens/dataset.json"]
    assert epoch(again, 3) == epoch(local, 3)
    assert asked(server) == 0
    assert again.cache_counts["wrong"] == 0


def test_nginx_is_asked_once_for_documents_and_their_entries(root, tmp_path):
    def read(address: str) -> list[Any]:
        dataset = penstock.open(f"{address}/corpus", cache=tmp_path / "cache", checks="all")
        loader = penstock.Loader(dataset.documents(), 16, seed=3, epochs=1, framework="numpy")
        return [([s.metadata for s in batch.spans], batch["token"].tolist()) for batch in loader]

    log = tmp_path / "nginx" / "access.log"
    with nginx(root, tmp_path / "nginx") as address:
        expected = read(address)
        with penstock.Loader(penstock.open(f"{address}/part0").windows(64), 16, seed=1) as loader:
            next(loader)  # what comes in the log after this came after the first epoch
        assert read(address) == expected
    lines = [line.split()[1] for line in log.read_text().splitlines()]
    marks = [i for i, path in enumerate(lines) if path.startswith("/part0/")]
    assert any("metadata.bin" in path for path in lines[: marks[0]])
    assert set(lines[marks[0] :]) - {lines[i] for i in marks} == {"/corpus/dataset.json"}


def test_each_epoch_hits_in_proportion_to_the_share(server, tmp_path):
    total = 4 * RECORDS
    dataset = penstock.open(f"{server.address}/tokens", cache=tmp_path, cache_bytes=total // 3)
    epoch(dataset)
    asked(server)
    for seed in (2, 3):
        epoch(dataset, seed)
        missing = asked(server) / total
        assert 0.6 < missing < 0.8  # blocks of 1 MiB: a third is 3 or 4 of 12
    assert held(tmp_path) <= total // 3 + 3 * 4096


def held(folder: Path) -> int:
    return sum(file.lstat().st_blocks * 512 for file in folder.rglob("*"))


def test_a_larger_bound_keeps_what_a_smaller_one_did_and_a_smaller_one_removes(server, tmp_path):
    total = 4 * RECORDS
    url = f"{server.address}/tokens"
    epoch(penstock.open(url, cache=tmp_path, cache_bytes=total // 3))
    small = held(tmp_path)
    asked(server)
    epoch(penstock.open(url, cache=tmp_path, cache_bytes=2 * total))
    assert asked(server) < 0.8 * total
    assert held(tmp_path) > total
    dataset = penstock.open(url, cache=tmp_path, cache_bytes=total // 3)
    assert held(tmp_path) <= small + 3 * 4096
    asked(server)
    epoch(dataset)
    assert asked(server) < 0.8 * total
    assert dataset.cache_counts["wrong"] == 0


FILLER = """
import sys, penstock
dataset = penstock.open(sys.argv[1], cache=sys.argv[2])
print("open", flush=True)
for seed in range(1000):
    for batch in penstock.Loader(dataset.windows(1000), 16, seed=int(sys.argv[3]) + seed, epochs=1, framework="numpy"):
        pass
    print(seed, dataset.cache_counts["misses"], flush=True)
"""


def filler(address: str, folder: Path, seed: int) -> "subprocess.Popen[str]":
    command = [sys.executable, "-c", FILLER, f"{address}/tokens", str(folder), str(seed)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def test_processes_share_it(root, server, tmp_path):
    both = [filler(server.address, tmp_path, seed) for seed in (1, 2)]
    try:
        for each in both:
            assert each.stdout.readline() == "open\n"
            assert each.stdout.readline().startswith("0 ")
    finally:
        for each in both:
            each.kill()
            each.communicate()
    asked(server)
    dataset = penstock.open(f"{server.address}/tokens", cache=tmp_path)
    assert epoch(dataset) == epoch(penstock.open(root / "tokens"))
    assert asked(server) == 0
    assert dataset.cache_counts["wrong"] == 0


def test_every_byte_is_right_after_fillers_were_killed(root, server, tmp_path):
    local = epoch(penstock.open(root / "tokens"))
    for attempt in range(8):
        killed = filler(server.address, tmp_path, attempt)
        assert killed.stdout.readline() == "open\n"
        before = held(tmp_path)
        # While it fills: some blocks later, each time more of them.
        while held(tmp_path) < before + (1 + attempt) * 100_000 and held(tmp_path) < 4 * RECORDS:
            assert killed.poll() is None
            time.sleep(0.002)
        killed.send_signal(signal.SIGKILL)
        killed.communicate()
    dataset = penstock.open(f"{server.address}/tokens", cache=tmp_path)
    assert epoch(dataset) == local
    assert dataset.cache_counts["hits"] > 0
    asked(server)
    assert epoch(dataset) == local
    assert asked(server) == 0


@pytest.mark.parametrize("suffix", ["data", "crc"])
def test_a_flipped_byte_is_read_again(root, server, tmp_path, suffix):
    local = epoch(penstock.open(root / "tokens"))
    assert epoch(penstock.open(f"{server.address}/tokens", cache=tmp_path)) == local
    largest = max(tmp_path.rglob(f"*.{suffix}"), key=lambda file: file.stat().st_size)
    with largest.open("r+b") as file:
        for offset in (5, 1001, largest.stat().st_size - 1):
            file.seek(offset)
            old = file.read(1)[0]
            file.seek(offset)
            file.write(bytes([old ^ 1]))
    asked(server)
    dataset = penstock.open(f"{server.address}/tokens", cache=tmp_path)
    assert epoch(dataset) == local
    wrong = dataset.cache_counts["wrong"]
    assert 2 <= wrong <= 6  # the first two may lie in one page; one page may be read by two windows at once
    assert 0 < asked(server) <= 6 * 4096


def test_a_dataset_that_was_written_again_never_finds_old_pages(tmp_path):
    with fault_server(tmp_path) as server:
        for seed in (5, 6):
            write_tokens(tmp_path / "tokens", seed)
            dataset = penstock.open(f"{server.address}/tokens", cache=tmp_path / "cache")
            assert epoch(dataset) == epoch(penstock.open(tmp_path / "tokens"))
            assert dataset.cache_counts["hits"] < 2 * dataset.cache_counts["misses"]


def test_token_files_that_changed_in_their_middle_never_find_old_pages(tmp_path):
    tokens = np.arange(100_000, dtype="u2")
    with nginx(tmp_path, tmp_path / "nginx") as address:
        for round in range(2):
            tokens[50_000 + round] += 7  # neither the size nor what the fingerprint looks at
            tokens.tofile(tmp_path / "a.bin")
            os.utime(tmp_path / "a.bin", (round * 1000, round * 1000))  # nginx makes the ETag of it
            dataset = penstock.open(f"{address}/a.bin", dtype="u2", cache=tmp_path / "cache")
            assert epoch(dataset) == epoch(penstock.open(tmp_path / "a.bin", dtype="u2"))
            before = dataset.cache_counts["misses"]
            assert before > 0
            epoch(dataset)
            assert dataset.cache_counts["misses"] == before


def test_a_full_disk_only_stops_the_filling(root, server, tmp_path):
    code = """
import resource, sys, penstock
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, resource.RLIM_INFINITY))
dataset = penstock.open(sys.argv[1], cache=sys.argv[2])
for _ in range(2):
    loader = penstock.Loader(dataset.windows(4000), 16, seed=1, epochs=1, framework="numpy")
    print(sum(int(batch["token"].sum()) for batch in loader))
print(dataset.cache_counts["stopped_by"], dataset.cache_counts["failed"])
"""
    command = [sys.executable, "-c", code, f"{server.address}/tokens", str(tmp_path)]
    first, second, counts = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split("\n")[:3]
    expected = sum(int(np.frombuffer(each, "u4").sum()) for _, each in epoch(penstock.open(root / "tokens")))
    assert int(first) == int(second) == expected
    stopped_by, failed = map(int, counts.split())
    assert stopped_by == errno.EFBIG
    assert 1 <= failed <= 16  # each thread may be at it


@contextlib.contextmanager
def tmpfs(folder: Path, *options: str) -> Iterator[Path]:
    folder.mkdir()
    mount = subprocess.run(["mount", "-t", "tmpfs", *options, "none", str(folder)], capture_output=True, check=False)
    if mount.returncode != 0:
        pytest.skip("needs the right to mount a tmpfs")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def test_a_small_disk_is_filled_and_no_more(root, server, tmp_path):
    with tmpfs(tmp_path / "small", "-o", "size=4m") as folder:
        dataset = penstock.open(f"{server.address}/tokens", cache=folder, cache_bytes=1 << 40)
        assert epoch(dataset) == epoch(penstock.open(root / "tokens"))
        assert dataset.cache_counts["stopped_by"] == errno.ENOSPC
        again = penstock.open(f"{server.address}/tokens", cache=folder, cache_bytes=1 << 40)
        assert epoch(again) == epoch(penstock.open(root / "tokens"))
        assert again.cache_counts["hits"] > 100


def test_a_folder_that_cannot_be_written_is_one_error(server, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match=r"cannot be written.*give cache="):
        penstock.open(f"{server.address}/tokens", cache=tmp_path / "file" / "below")
    with (
        tmpfs(tmp_path / "full", "-o", "ro") as folder,
        pytest.raises(OSError, match=r"cannot be written.*give cache="),
    ):
        penstock.open(f"{server.address}/tokens", cache=folder)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"cache_bytes": 5}, "cache=DIR"),
        ({"cache": "c", "cache_bytes": 0}, "cache_bytes=0"),
        ({"cache": "c", "cache_bytes": "20GiB"}, "must be an integer"),
        ({"cache": "s3://bucket/cache"}, "a folder of this machine"),
    ],
)
def test_a_cache_that_cannot_be_is_refused(arguments, words, server, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidArgumentError, match=words):
        penstock.open(f"{server.address}/tokens", **arguments)


def test_files_of_this_machine_are_not_cached(root, tmp_path):
    with pytest.raises(InvalidArgumentError, match=r"lies on this machine.*leave cache= out"):
        penstock.open(root / "tokens", cache=tmp_path)
    assert penstock.open(root / "tokens").cache_counts is None


def test_it_travels_to_another_process(server, tmp_path):
    dataset = penstock.open(f"{server.address}/tokens", cache=tmp_path)
    epoch(dataset)
    asked(server)
    other = pickle.loads(pickle.dumps(dataset))
    assert epoch(other) == epoch(dataset)
    assert asked(server) == 0


def test_no_secret_is_in_it(server, tmp_path):
    epoch(penstock.open(f"{server.address}/tokens?key=Pa55word", cache=tmp_path))
    asked(server)
    assert not any(b"Pa55word" in file.read_bytes() for file in tmp_path.rglob("*") if file.is_file())
    epoch(penstock.open(f"{server.address}/tokens?key=other", cache=tmp_path))
    assert asked(server) == 0


def test_the_command_shows_and_clears_what_is_kept(server, tmp_path, capsys):
    url = f"{server.address}/tokens"
    assert main(["cache", str(tmp_path)]) == 0
    assert "nothing is kept" in capsys.readouterr().out
    assert main(["show", url, "--window", "100", "--cache", str(tmp_path), "--cache-bytes", "6MiB"]) == 0
    epoch(penstock.open(url, cache=tmp_path, cache_bytes=6 << 20))
    capsys.readouterr()
    assert main(["cache", str(tmp_path), "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert found["address"] == url
    assert found["dataset_bytes"] >= 4 * RECORDS
    assert 3 << 20 < found["kept_bytes"] <= 6 << 20
    assert 0.3 < found["share"] < 0.6
    assert main(["cache", str(tmp_path)]) == 0
    assert url in capsys.readouterr().out
    (tmp_path / "mine").write_text("mine")
    (Path(found["folder"]) / "mine too").write_text("mine")
    assert main(["cache", str(tmp_path), "--clear"]) == 0
    assert "removed" in capsys.readouterr().out
    assert {file.name for file in tmp_path.rglob("*") if file.is_file()} == {"mine", "mine too"}
    assert main(["cache", str(tmp_path / "nowhere")]) == 1
    assert "no folder of a cache" in capsys.readouterr().err
