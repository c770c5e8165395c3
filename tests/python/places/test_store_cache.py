"""The local cache over stores that Python reads: what was read once is not asked for again."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np
import penstock
import pytest
from _batches import VIEWS, contents
from _fault_servers import FaultProxy, fault_proxy
from _google import google
from _python_stores import Failing, Own, write_root
from _servers import moto, without_credentials
from penstock import InvalidArgumentError, Storage

pytest.importorskip("obstore")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("root")
    write_root(folder)
    return folder


def nothing(method: str, path: str, number: int) -> None:
    """No fault."""


@pytest.fixture(scope="module")
def google_proxy(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FaultProxy]:
    with google({"data": root}, tmp_path_factory.mktemp("gs")) as server, fault_proxy(server, nothing) as proxy:
        yield proxy


@pytest.fixture(scope="module")
def moto_proxy(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FaultProxy]:
    log = tmp_path_factory.mktemp("moto") / "log"
    with moto({"data": root}, log) as server, fault_proxy(server, nothing) as proxy:
        yield proxy


@pytest.fixture
def proxy(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """(a server's proxy, how what lies there is opened)"""
    scheme = request.param
    if scheme == "s3":
        without_credentials(monkeypatch, tmp_path)
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "access")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    found: FaultProxy = request.getfixturevalue("moto_proxy" if scheme == "s3" else "google_proxy")
    found.requests.clear()
    storage = Storage(endpoint=found.address) if scheme == "s3" else Storage(endpoint=found.address, anonymous=True)
    return found, lambda path, **given: penstock.open(f"{scheme}://data/{path}", storage=storage, **given)


def asked(proxy: FaultProxy) -> list[str]:
    """Names of the files that were asked for since the last call, but for check values."""
    with proxy.lock:
        names = [unquote(path.partition("?")[0]).rpartition("/")[2] for _, path in proxy.requests]
        proxy.requests.clear()
    return [name for name in names if not name.endswith(".crc")]


def epoch(dataset: penstock.Dataset, view: str) -> list[Any]:
    order = penstock.orders.Blocks(4, 32)
    loader = penstock.Loader(VIEWS[view](dataset), 16, order=order, seed=3, epochs=1, reader="python")
    assert loader.reader == "python"
    return contents(loader, view != "spans alone")


def local_epoch(root: Path, view: str) -> list[Any]:
    order = penstock.orders.Blocks(4, 32)
    loader = penstock.Loader(VIEWS[view](penstock.open(root / "corpus")), 16, order=order, seed=3, epochs=1)
    return contents(loader, view != "spans alone")


both = pytest.mark.parametrize("proxy", ["s3", "gs"], indirect=True)


@both
@pytest.mark.parametrize("view", VIEWS)
def test_a_second_open_reads_nothing_but_the_manifest(root, proxy, tmp_path, view):
    server, opened = proxy
    expected = local_epoch(root, view)
    assert epoch(opened("corpus", cache=tmp_path / "cache"), view) == expected
    assert "stream.bin" in asked(server) or view == "spans alone"
    again = opened("corpus", cache=tmp_path / "cache")
    assert asked(server) == ["dataset.json"]
    assert epoch(again, view) == expected
    assert asked(server) == []
    assert again.cache_counts["wrong"] == 0
    assert again.cache_counts["hits"] > 0


@both
def test_a_second_open_of_token_files_reads_their_ends_alone(root, proxy, tmp_path):
    server, opened = proxy

    def tokens(dataset: penstock.Dataset) -> list[Any]:
        return contents(penstock.Loader(dataset.windows(50), 100, seed=1, epochs=1, reader="python"))

    expected = contents(penstock.Loader(penstock.open(root / "*.npy").windows(50), 100, seed=1, epochs=1))
    assert tokens(opened("*.npy", cache=tmp_path / "cache")) == expected
    asked(server)
    again = opened("*.npy", cache=tmp_path / "cache")
    asked(server)
    assert tokens(again) == expected
    assert asked(server) == []


@both
def test_a_smaller_cache_reads_the_rest_again(root, proxy, tmp_path):
    server, opened = proxy
    expected = local_epoch(root, "windows")
    for _ in range(2):
        asked(server)
        small = opened("corpus", cache=tmp_path / "cache", cache_bytes=1)
        assert epoch(small, "windows") == expected
        assert "stream.bin" in asked(server)


def test_a_store_of_ones_own_is_cached(root, tmp_path):
    def read(fault: Callable[[str, int], Any]) -> list[Any]:
        dataset = penstock.open("corpus", store=Failing(root, fault), cache=tmp_path / "cache")
        return contents(penstock.Loader(dataset.windows(64, lookahead=1), 16, seed=3, epochs=1))

    def gone(path: str, number: int) -> None:
        if not path.endswith("dataset.json"):
            raise PermissionError("it was read before")

    assert read(lambda path, number: None) == read(gone)


def test_files_of_others_in_a_store_are_not_kept(root, tmp_path):
    for names in (["0.npy"], ["*.npy"]):
        with pytest.raises(InvalidArgumentError, match=r"nothing tells .*npy in this store="):
            penstock.open(*names, store=Own(root), cache=tmp_path / "cache")


def test_files_of_one_name_at_two_servers_do_not_mix(tmp_path, monkeypatch):
    """They differ in the middle alone."""
    without_credentials(monkeypatch, tmp_path)
    tokens = np.zeros(50_000, "u2")
    found = []
    with contextlib.ExitStack() as servers:
        for number in (1, 2):
            folder = tmp_path / str(number)
            folder.mkdir()
            tokens[25_000:25_100] = number
            tokens.tofile(folder / "a.bin")
            storage = Storage(
                endpoint=servers.enter_context(google({"data": folder}, tmp_path / f"gs{number}")), anonymous=True
            )
            for _ in range(2):
                dataset = penstock.open("gs://data/a.bin", dtype="u2", storage=storage, cache=tmp_path / "cache")
                found.append(next(iter(penstock.Loader(dataset.windows(100)[250:251], 1, seed=1)))["token"].max())
            assert dataset.cache_counts["hits"] > 0
    assert found == [1, 1, 2, 2]


def test_a_changed_file_of_a_filesystem_is_read_again(tmp_path):
    filesystem = pytest.importorskip("fsspec").filesystem("memory")
    tokens, found = np.zeros(50_000, "u2"), []
    for number in (1, 2):
        tokens[25_000:25_100] = number
        filesystem.pipe_file("/kept/a.bin", tokens.tobytes())
        dataset = penstock.open("memory://kept/a.bin", dtype="u2", cache=tmp_path / "cache")
        found.append(next(iter(penstock.Loader(dataset.windows(100)[250:251], 1, seed=1)))["token"].max())
    assert found == [1, 2]
