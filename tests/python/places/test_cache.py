"""The local cache of remote datasets: what was read is not asked for again, and is right whatever happened to it.

That its batches are right whatever it holds, test_stores.py says of every store.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np
import penstock
import pytest
from _batches import VIEWS, contents
from _fault_servers import FaultServer, at_random, fault_proxy, fault_server
from _google import google
from _python_stores import Failing, Own
from _servers import nginx
from penstock import InvalidArgumentError, Storage
from penstock._cli.main import main

RECORDS = 1_500_000
TOTAL = 4 * RECORDS  # bytes: of blocks of 1 MiB, nearly six


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a dataset of large shards of tokens."""
    folder = tmp_path_factory.mktemp("root")
    write_tokens(folder / "tokens", 1)
    return folder


def write_tokens(folder: Path, seed: int) -> None:
    with penstock.Writer(folder, fields={"token": "u4"}, metadata=None, overwrite=True) as writer:
        writer.append(token=np.random.default_rng(seed).integers(0, 60_000, RECORDS).astype("u4"))


@pytest.fixture
def server(folder: Path) -> Iterator[FaultServer]:
    with fault_server(folder) as started:
        yield started


def epoch(dataset: penstock.Dataset, seed: int = 1) -> list[Any]:
    loader = penstock.Loader(dataset.windows(4000), 16, seed=seed, epochs=1, framework="numpy")
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


def held(folder: Path) -> int:
    return sum(file.lstat().st_blocks * 512 for file in folder.rglob("*"))


def test_a_second_epoch_asks_for_nothing_here_or_in_another_process(folder, server, tmp_path):
    dataset = penstock.open(f"{server.address}/tokens", cache=tmp_path)
    local = penstock.open(folder / "tokens")
    assert epoch(dataset) == epoch(local)
    assert asked(server) > TOTAL * 0.99
    assert epoch(dataset, 2) == epoch(local, 2)
    assert asked(server) == 0
    again = penstock.open(f"{server.address}/tokens", cache=tmp_path)  # the manifest alone
    assert [path for path, *_ in server.requests] == ["/tokens/dataset.json"]
    assert epoch(again, 3) == epoch(local, 3)
    travelled = pickle.loads(pickle.dumps(dataset))
    asked(server)
    assert epoch(travelled) == epoch(local)
    assert asked(server) == 0
    assert again.cache_counts["wrong"] == 0 and again.select([0]).cache_counts == again.cache_counts


@pytest.fixture(scope="module", params=["http", "s3", "gs"])
def proxied(request: pytest.FixtureRequest, root: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """(a proxy of a server, how what lies there is opened, and read)"""
    scheme, keys = request.param, {"access_key_id": "access", "secret_access_key": "secret"}
    with contextlib.ExitStack() as servers:
        if scheme == "gs":
            target = servers.enter_context(google({"data": root}, tmp_path_factory.mktemp("gs")))
        else:
            target = request.getfixturevalue("http" if scheme == "http" else "bucket")
        proxy = servers.enter_context(fault_proxy(target, lambda method, path, number: None))
        given: dict[str, Any] = {"storage": Storage(endpoint=proxy.address, anonymous=True)}
        if scheme == "s3":
            given = {"storage": Storage(endpoint=proxy.address, region="us-east-1", credentials=lambda: keys)}
        if scheme == "http":
            given = {}
        before = f"{proxy.address}/" if scheme == "http" else f"{scheme}://data/"
        yield proxy, lambda path, **more: penstock.open(before + path, **given, **more), scheme


def names_asked(proxy: Any) -> set[str]:
    """Of files since the last call, but for check values."""
    with proxy.lock:
        names = {unquote(path.partition("?")[0]).rpartition("/")[2] for _, path in proxy.requests}
        proxy.requests.clear()
    return {name for name in names if not name.endswith(".crc")}


@pytest.mark.parametrize("view", VIEWS)
def test_a_second_open_reads_nothing_but_the_manifest_and_again_what_a_smaller_cache_dropped(proxied, tmp_path, view):
    proxy, opened, scheme = proxied

    def of(dataset: penstock.Dataset) -> list[Any]:
        order, reader = penstock.orders.Blocks(4, 32), "http" if scheme == "http" else "python"
        loader = penstock.Loader(VIEWS[view](dataset), 16, order=order, seed=3, epochs=1, reader=reader)
        return contents(loader, view != "spans alone")

    names_asked(proxy)
    expected = of(opened("corpus", cache=tmp_path / "cache"))
    assert "stream.bin" in names_asked(proxy)
    again = opened("corpus", cache=tmp_path / "cache")
    assert names_asked(proxy) == {"dataset.json"}
    assert of(again) == expected
    assert names_asked(proxy) == set()
    assert again.cache_counts["hits"] > 0 and again.cache_counts["wrong"] == 0
    assert of(opened("corpus", cache=tmp_path / "cache", cache_bytes=1)) == expected
    assert "stream.bin" in names_asked(proxy)


def test_a_second_open_of_token_files_reads_their_ends_alone(root, proxied, tmp_path):
    proxy, opened, _ = proxied
    expected = contents(penstock.Loader(penstock.open(root / "0.npy").windows(50), 100, seed=1, epochs=1))
    for number in range(2):
        there = opened("0.npy", cache=tmp_path / "cache")
        names_asked(proxy)
        assert contents(penstock.Loader(there.windows(50), 100, seed=1, epochs=1)) == expected
        assert (names_asked(proxy) == set()) == (number == 1)


def test_a_bound_is_kept_a_larger_one_keeps_what_a_smaller_one_did_and_a_smaller_one_removes(server, tmp_path):
    url, third = f"{server.address}/tokens", TOTAL // 3
    epoch(penstock.open(url, cache=tmp_path, cache_bytes=third))
    small = held(tmp_path)
    assert small <= third + 3 * 4096
    asked(server)
    epoch(penstock.open(url, cache=tmp_path, cache_bytes=2 * TOTAL))
    assert asked(server) < 0.9 * TOTAL
    assert held(tmp_path) > TOTAL
    dataset = penstock.open(url, cache=tmp_path, cache_bytes=third)
    assert held(tmp_path) <= small + 3 * 4096
    asked(server)
    epoch(dataset)
    assert 0.5 * TOTAL < asked(server) < 0.9 * TOTAL
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


def filler(address: str, folder: Path, seed: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", FILLER, f"{address}/tokens", str(folder), str(seed)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def test_processes_share_it_and_every_byte_is_right_though_they_are_killed(folder, server, tmp_path):
    """Two at a time are killed while they fill: some blocks later, each time more of them. The last two fill it."""
    for attempt in range(4):
        both = [filler(server.address, tmp_path, 2 * attempt + number) for number in range(2)]
        try:
            assert [each.stdout.readline() for each in both] == ["open\n"] * 2
            before = held(tmp_path)
            while attempt < 3 and held(tmp_path) < min(before + (1 + attempt) * 100_000, TOTAL):
                assert all(each.poll() is None for each in both)
                time.sleep(0.002)
            assert attempt < 3 or all(each.stdout.readline().startswith("0 ") for each in both)
        finally:
            for each in both:
                each.send_signal(signal.SIGKILL)
                each.communicate()
    asked(server)
    dataset = penstock.open(f"{server.address}/tokens", cache=tmp_path)
    assert epoch(dataset) == epoch(penstock.open(folder / "tokens"))
    assert asked(server) == 0
    assert dataset.cache_counts["hits"] > 0


@pytest.mark.parametrize("suffix", ["data", "crc"])
def test_a_flipped_byte_is_read_again(folder, server, tmp_path, suffix):
    local = epoch(penstock.open(folder / "tokens"))
    assert epoch(penstock.open(f"{server.address}/tokens", cache=tmp_path)) == local
    largest = max(tmp_path.rglob(f"*.{suffix}"), key=lambda file: file.stat().st_size)
    data = bytearray(largest.read_bytes())
    for offset in (5, 1001, len(data) - 1):
        data[offset] ^= 1
    with largest.open("r+b") as file:
        file.write(data)
    asked(server)
    dataset = penstock.open(f"{server.address}/tokens", cache=tmp_path)
    assert epoch(dataset) == local
    wrong = dataset.cache_counts["wrong"]
    assert 2 <= wrong <= 6  # the first two may lie in one page; one page may be read by two windows at once
    assert 0 < asked(server) <= 6 * 4096


def test_bytes_that_came_damaged_are_read_again_by_all_that_share_their_page(tmp_path):
    write_tokens(tmp_path / "tokens", 1)
    expected = penstock.open(tmp_path / "tokens").windows(256).read(np.arange(64))["token"]  # four windows in a page
    file = next((tmp_path / "tokens").rglob("stream.bin"))
    right = file.read_bytes()
    with fault_server(tmp_path) as server:
        file.write_bytes(bytes(each ^ 1 for each in right))
        unchecked = penstock.open(f"{server.address}/tokens", cache=tmp_path / "cache", checks="none")
        assert (unchecked.windows(256).read(np.arange(64))["token"] != expected).all()
        file.write_bytes(right)
        kept = unchecked.windows(256).read(np.arange(64))["token"]
        assert (kept != expected).all(), "nothing is kept that is wrong"
        checked = penstock.open(f"{server.address}/tokens", cache=tmp_path / "cache", checks="all")
        np.testing.assert_array_equal(checked.windows(256).read(np.arange(8, 12))["token"], expected[8:12])
        assert epoch(checked) == epoch(penstock.open(tmp_path / "tokens"))


def test_check_values_that_came_damaged_are_read_again_by_all_that_share_their_page(tmp_path):
    """The first block's are right, so that reading it keeps the page with the wrong ones of the others."""
    write_tokens(tmp_path / "tokens", 1)
    file = next((tmp_path / "tokens").rglob("stream.bin.crc"))
    right = file.read_bytes()
    with fault_server(tmp_path) as server:
        file.write_bytes(right[:4] + bytes(each ^ 1 for each in right[4:]))
        rows = np.arange(8, 12)  # four windows in a page
        penstock.open(f"{server.address}/tokens", cache=tmp_path / "cache", checks="none").windows(256).read(rows)
        for _ in range(2):
            server.requests.clear()
            checked = penstock.open(f"{server.address}/tokens", cache=tmp_path / "cache", checks="all")
            checked.windows(256).read([0])
        assert [path for path, *_ in server.requests] == ["/tokens/dataset.json"], "the check values are kept"
        file.write_bytes(right)
        expected = penstock.open(tmp_path / "tokens").windows(256).read(rows)["token"]
        np.testing.assert_array_equal(checked.windows(256).read(rows)["token"], expected)
        assert any(path.endswith("stream.bin.crc") for path, *_ in server.requests)
        assert epoch(checked) == epoch(penstock.open(tmp_path / "tokens"))


def test_faults_that_pass_are_no_faults(root, tmp_path):
    """A transfer that waits for its next attempt is begun again, though the cache's own wait is over."""
    expected = contents(penstock.Loader(penstock.open(root / "corpus").documents(), 16, seed=3, epochs=1))
    with fault_server(root, at_random(0.3, faults=("503", "closed"))) as server:
        dataset = penstock.open(f"{server.address}/corpus", cache=tmp_path)
        loader = penstock.Loader(dataset.documents(), 16, seed=3, epochs=1)
        assert contents(loader) == expected and loader.metrics().retries > 0


# ---- what changed there, or is another


def test_a_dataset_that_was_written_again_never_finds_old_pages(tmp_path):
    with fault_server(tmp_path) as server:
        for seed in (5, 6):
            write_tokens(tmp_path / "tokens", seed)
            dataset = penstock.open(f"{server.address}/tokens", cache=tmp_path / "cache")
            assert epoch(dataset) == epoch(penstock.open(tmp_path / "tokens"))
            assert dataset.cache_counts["hits"] < 2 * dataset.cache_counts["misses"]


def test_token_files_that_changed_in_their_middle_never_find_old_pages(tmp_path):
    """Neither the size nor what the fingerprint looks at changes: nginx makes the ETag of the time."""
    filesystem = pytest.importorskip("fsspec").filesystem("memory")
    tokens = np.arange(100_000, dtype="u2")
    with nginx(tmp_path, tmp_path / "nginx") as address:
        for number in range(2):
            tokens[50_000 + number] += 7
            tokens.tofile(tmp_path / "a.bin")
            os.utime(tmp_path / "a.bin", (number * 1000, number * 1000))
            filesystem.pipe_file("/kept/a.bin", tokens.tobytes())
            for url in (f"{address}/a.bin", "memory://kept/a.bin"):
                dataset = penstock.open(url, dtype="u2", cache=tmp_path / "cache")
                for _ in range(2):
                    assert epoch(dataset) == epoch(penstock.open(tmp_path / "a.bin", dtype="u2"))
                    before = dataset.cache_counts["misses"]
                assert dataset.cache_counts["misses"] == before > 0


def test_files_of_one_name_at_two_servers_do_not_mix(tmp_path):
    """They differ in the middle alone."""
    tokens, found = np.zeros(50_000, "u2"), []
    with contextlib.ExitStack() as servers:
        for number in (1, 2):
            folder = tmp_path / str(number)
            folder.mkdir()
            tokens[25_000:25_100] = number
            tokens.tofile(folder / "a.bin")
            address = servers.enter_context(google({"data": folder}, tmp_path / f"gs{number}"))
            storage = Storage(endpoint=address, anonymous=True)
            for _ in range(2):
                dataset = penstock.open("gs://data/a.bin", dtype="u2", storage=storage, cache=tmp_path / "cache")
                found.append(next(iter(penstock.Loader(dataset.windows(100)[250:251], 1, seed=1)))["token"].max())
            assert dataset.cache_counts["hits"] > 0
    assert found == [1, 1, 2, 2]


def test_a_store_of_ones_own_need_not_be_there_any_more(root, tmp_path):
    def read(fault: Any) -> list[Any]:
        dataset = penstock.open("corpus", store=Failing(root, fault), cache=tmp_path / "cache")
        return contents(penstock.Loader(dataset.windows(64, lookahead=1), 16, seed=3, epochs=1))

    def gone(path: str, number: int) -> None:
        if not path.endswith("dataset.json"):
            raise PermissionError("it was read before")

    assert read(lambda path, number: None) == read(gone)
    for name in ("0.npy", "*.npy"):  # files of others
        with pytest.raises(InvalidArgumentError, match=r"nothing tells .*npy in this store="):
            penstock.open(name, store=Own(root), cache=tmp_path / "cache")


# ---- where it lies


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


def test_a_small_disk_is_filled_and_no_more(folder, server, tmp_path):
    with tmpfs(tmp_path / "small", "-o", "size=3m") as small:
        for number in range(2):
            dataset = penstock.open(f"{server.address}/tokens", cache=small, cache_bytes=1 << 40)
            assert epoch(dataset) == epoch(penstock.open(folder / "tokens"))
            assert number == 1 or dataset.cache_counts["stopped_by"] == errno.ENOSPC
        assert dataset.cache_counts["hits"] > 100


@pytest.mark.parametrize(
    ("arguments", "kind", "words"),
    [
        ({"cache": "file/below"}, OSError, r"cannot be written.*give cache="),
        ({"cache_bytes": 5}, InvalidArgumentError, "cache=DIR"),
        ({"cache": "c", "cache_bytes": 0}, InvalidArgumentError, "cache_bytes=0"),
        ({"cache": "c", "cache_bytes": "20GiB"}, InvalidArgumentError, "must be an integer"),
        ({"cache": "s3://bucket/cache"}, InvalidArgumentError, "a folder of this machine"),
    ],
)
def test_a_cache_that_cannot_be_is_refused(arguments, kind, words, server, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(kind, match=words):
        penstock.open(f"{server.address}/tokens", **arguments)


def test_files_of_this_machine_are_not_cached(folder, tmp_path):
    with pytest.raises(InvalidArgumentError, match=r"lies on this machine.*leave cache= out"):
        penstock.open(folder / "tokens", cache=tmp_path)
    assert penstock.open(folder / "tokens").cache_counts is None


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
    assert main(["show", url, "--window", "100", "--cache", str(tmp_path), "--cache-bytes", "3MiB"]) == 0
    epoch(penstock.open(url, cache=tmp_path, cache_bytes=3 << 20))
    capsys.readouterr()
    assert main(["cache", str(tmp_path), "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert found["address"] == url
    assert found["dataset_bytes"] >= TOTAL
    assert 1 << 20 < found["kept_bytes"] <= 3 << 20
    assert 0.2 < found["share"] < 0.6
    assert main(["cache", str(tmp_path)]) == 0
    assert url in capsys.readouterr().out
    (tmp_path / "mine").write_text("mine")
    (Path(found["folder"]) / "mine too").write_text("mine")
    assert main(["cache", str(tmp_path), "--clear"]) == 0
    assert "removed" in capsys.readouterr().out
    assert {file.name for file in tmp_path.rglob("*") if file.is_file()} == {"mine", "mine too"}
    assert main(["cache", str(tmp_path / "nowhere")]) == 1
    assert "no folder of a cache" in capsys.readouterr().err
