"""Servers that refuse, stall and send elsewhere: how often, how much at once and for how long they are asked."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest
from _fault_servers import fault_server
from _servers import nginx, write_corpus
from penstock import CorruptionError, IoError, Storage


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a dataset of two shards, and a token file."""
    folder = tmp_path_factory.mktemp("root")
    rng = np.random.default_rng(0)
    write_corpus(folder, rng, shards=2, documents=200)
    rng.integers(0, 60_000, 100_000).astype("u2").tofile(folder / "a.bin")
    return folder


def once(fault: str, file: str = "a.bin") -> Any:
    """The first request of the file fails."""
    failed: list[int] = []

    def of(path: str, number: int) -> str | None:
        if file not in path or failed:
            return None
        failed.append(number)
        return fault

    return of


def test_retry_after_is_waited_for(root):
    with fault_server(root, once("later")) as server:
        begin = time.monotonic()
        assert penstock.open(f"{server.address}/a.bin", dtype="u2").records == 100_000
        assert 1.9 < time.monotonic() - begin < 20


def test_a_stalled_reply_is_asked_for_again(root):
    with fault_server(root, once("slow")) as server:
        begin = time.monotonic()
        assert penstock.open(f"{server.address}/a.bin", dtype="u2").records == 100_000
        assert 4 < time.monotonic() - begin < 40


def test_a_server_that_resets_at_first_is_asked_until_the_deadline(root):
    with fault_server(root, lambda path, number: "reset" if number < 6 else None) as server:
        assert penstock.open(f"{server.address}/corpus").records > 0


def asked_by_a_loader(root: Path, refused: int = 0, **options: Any) -> int:
    """Requests for records that a loader has under way at a server that stalls, with those that came before: for the
    first so many it is too busy.
    """
    asked: list[int] = []

    def fault(path: str, number: int) -> str | None:
        if not path.endswith("stream.bin"):
            return None
        asked.append(number)
        return "503" if len(asked) <= refused else "slow"

    with fault_server(root, fault) as server:
        view = penstock.open(f"{server.address}/corpus").windows(16)
        with penstock.Loader(view, 8, seed=1, threads=1, **options) as loader:
            threading.Timer(3.0, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
            with pytest.raises(KeyboardInterrupt):
                next(loader)
            return len(asked)


@pytest.mark.parametrize(("prefetch", "expected"), [(None, 64), (4, 32)])
def test_what_is_read_ahead_by_default_fills_the_requests_under_way(root, prefetch, expected):
    assert asked_by_a_loader(root, prefetch=prefetch) == expected


def test_a_busy_server_is_asked_half_as_much_or_less(root):
    assert 64 < asked_by_a_loader(root, refused=64) <= 64 + 32


def test_token_files_are_looked_at_all_at_once(tmp_path):
    files = [tmp_path / f"{number:02}.bin" for number in range(40)]
    for file in files:
        np.arange(5000, dtype="u2").tofile(file)
    with nginx(tmp_path, tmp_path / "nginx", delay=0.05) as address:
        begin = time.monotonic()
        assert penstock.open(*(f"{address}/{file.name}" for file in files), dtype="u2").records == 40 * 5000
        assert time.monotonic() - begin < 40 * 0.05 / 2, "two requests of each, one after the other, take 4 s"


def test_a_file_that_is_shorter_than_the_manifest_says_is_refused(root, tmp_path):
    with penstock.Writer(tmp_path / "data", {"token": "u2"}, None) as writer:
        writer.append(token=np.arange(10_000) % 60_000)
    with nginx(tmp_path, tmp_path / "nginx") as address:
        dataset = penstock.open(f"{address}/data")
        (stream,) = (tmp_path / "data").glob("*/stream.bin")
        with stream.open("r+b") as file:
            file.truncate(15_000)
        with pytest.raises(CorruptionError, match=r"15,000 bytes there, and 20,000 were expected"):
            dataset.windows(16)[0]["token"]


def test_a_redirect_to_less_safety_is_refused(root, tmp_path):
    with fault_server(root) as plain, nginx(root, tmp_path, tls=True, elsewhere=plain.address) as address:
        storage = Storage(ca_file=tmp_path / "cert.pem")
        with pytest.raises(IoError, match="from https to http, which is not followed"):
            penstock.open(f"{address}/corpus", storage=storage)
        assert not plain.requests


@pytest.mark.parametrize("secret", ["name:Pa55word@", "?key=Pa55word"])
def test_no_secret_of_an_address_goes_elsewhere(root, secret):
    with fault_server(root) as target, fault_server(root, lambda path, number: "redirect") as server:
        server.elsewhere = target.address
        url = f"{server.address}/corpus"
        url = url + secret if secret.startswith("?") else url.replace("://", f"://{secret}")
        with pytest.raises(IoError, match="another server") as error:
            penstock.open(url)
        assert not target.requests
        assert "Pa55word" not in f"{error.value!r} {error.value.__cause__!r}"


def test_a_proxy_of_the_environment_is_used(root, tmp_path, monkeypatch):
    (tmp_path / "http:").mkdir()  # what a proxy is asked for is a whole address
    (tmp_path / "http:" / "nowhere.invalid").symlink_to(root)
    with fault_server(tmp_path) as proxy:
        monkeypatch.setenv("http_proxy", proxy.address)
        monkeypatch.setenv("no_proxy", "")
        dataset = penstock.open("http://nowhere.invalid/corpus")
        assert (
            dataset.windows(64)[3]["token"].tolist() == penstock.open(root / "corpus").windows(64)[3]["token"].tolist()
        )
        assert all(path.startswith("http://nowhere.invalid/corpus/") for path, _, _ in proxy.requests)
