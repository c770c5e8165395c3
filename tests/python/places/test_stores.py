"""Datasets that Python reads: stores of obstore, filesystems of fsspec, objects of one's own."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest
from _batches import VIEWS, contents
from _fault_servers import fault_server
from _google import google
from _python_stores import Own, memory_filesystem, memory_store, write_root
from _servers import moto, nginx
from penstock import InvalidArgumentError, NotFoundError, Storage


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("root")
    write_root(folder)
    return folder


@pytest.fixture(scope="module")
def opened(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Opens a path below the root by each kind of store."""
    memory, filesystem = memory_store(root), memory_filesystem(root)
    local = pytest.importorskip("obstore").store.LocalStore(root)
    with contextlib.ExitStack() as servers:
        yield_google: list[str] = []

        def of_google(path: str, **given: Any) -> Any:
            if not yield_google:
                yield_google.append(servers.enter_context(google({"bucket": root}, tmp_path_factory.mktemp("gs"))))
            return penstock.open(
                f"gs://bucket/{path}", storage=Storage(endpoint=yield_google[0], anonymous=True), **given
            )

        yield {
            "obstore's memory": lambda path, **given: penstock.open(path, store=memory, **given),
            "obstore's files": lambda path, **given: penstock.open(path, store=local, **given),
            "fsspec by address": lambda path, **given: penstock.open(f"memory://{root.name}/{path}", **given),
            "fsspec": lambda path, **given: penstock.open(f"{root.name}/{path}", store=filesystem, **given),
            "own": lambda path, **given: penstock.open(path, store=Own(root), **given),
            "gs": of_google,
        }


KINDS = ["obstore's memory", "obstore's files", "fsspec by address", "fsspec", "own", "gs"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("order", ["uniform", "sequential", penstock.orders.Blocks(4, 32)], ids=str)
def test_batches_are_those_of_the_local_files(root, opened, kind, view, order):
    def of(dataset: penstock.Dataset) -> list[Any]:
        loader = penstock.Loader(VIEWS[view](dataset), 16, order=order, seed=3, epochs=1)
        assert (loader.reader == "python") == (dataset.path != str(root / "corpus"))
        return contents(loader, view != "spans alone")

    assert of(opened[kind]("corpus")) == of(penstock.open(root / "corpus"))


@pytest.mark.parametrize("kind", KINDS)
def test_states_and_fingerprints_are_those_of_the_local_files(root, opened, kind):
    here, there = penstock.open(root / "corpus"), opened[kind]("corpus")
    assert there.fingerprint == here.fingerprint
    ours, theirs = (penstock.Loader(each.windows(64), 16, seed=1) for each in (here, there))
    for _ in range(5):
        next(ours)
    theirs.load_state_dict(ours.state_dict())
    assert theirs.state_dict() == ours.state_dict()
    assert next(ours)["token"].tolist() == next(theirs)["token"].tolist()


@pytest.mark.parametrize("kind", KINDS)
def test_a_glob_opens_what_the_store_lists(root, opened, kind):
    here = penstock.open(root / "*.npy")
    there = opened[kind]("*.npy")
    assert there.fingerprint == here.fingerprint
    assert there.windows(10)[4001]["token"].tolist() == here.windows(10)[4001]["token"].tolist()
    assert opened[kind]("[12].npy").records == 40_000
    with pytest.raises(NotFoundError, match=r"x\*\.npy: no file matches"):
        opened[kind]("x*.npy")


def test_a_glob_costs_one_listing_and_no_request_for_sizes(root):
    class Counting(Own):
        sizes, lists = 0, 0

        def size(self, path: str) -> int:
            self.sizes += 1
            return super().size(path)

        def list(self, prefix: str) -> list[Any]:
            self.lists += 1
            return [(each, super(Counting, self).size(each)) for each in super().list(prefix)]

    store = Counting(root)
    assert penstock.open("*.npy", store=store).records == 60_000
    assert (store.sizes, store.lists) == (0, 1)


def test_token_files_open_all_at_once(tmp_path):
    obstore = pytest.importorskip("obstore")
    names = [f"{number}.bin" for number in range(40)]
    for number, name in enumerate(names):
        np.full(5_000 * number, number, "u2").tofile(tmp_path / name)
    with nginx(tmp_path, tmp_path / "nginx", delay=0.02) as address:
        store = obstore.store.HTTPStore.from_url(address, client_options={"allow_http": True})

        def seconds_of(names: list[str]) -> float:
            begin = time.monotonic()
            there = penstock.open(*names, store=store, dtype="u2")
            taken = time.monotonic() - begin
            assert there.fingerprint == penstock.open(*(tmp_path / name for name in names), dtype="u2").fingerprint
            return taken

        one = min(seconds_of(["7.bin"]) for _ in range(3))
        assert seconds_of(names) < 15 * one  # one after another they take 40 times that


def test_globs_go_through_folders(root):
    assert penstock.open("**/*.npy", store=Own(root)).fingerprint == penstock.open("*.npy", store=Own(root)).fingerprint
    assert penstock.open("part[01]", store=Own(root)).spans == 200
    assert penstock.open("part?", store=Own(root)).spans == 300


def test_http_and_s3_are_read_through_python_where_that_is_asked_for(root, tmp_path, monkeypatch):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "id")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "Pa55word")
    expected = contents(penstock.Loader(penstock.open(root / "corpus").windows(64), 16, seed=1, epochs=1))
    with fault_server(root) as server:
        loader = penstock.Loader(
            penstock.open(f"{server.address}/corpus").windows(64), 16, seed=1, epochs=1, reader="python"
        )
        assert loader.reader == "python"
        assert contents(loader) == expected
        assert any("object_store" in headers.get("user-agent", "") for _, _, headers in server.requests)
    with moto({"bucket": root}, tmp_path / "log") as url:
        dataset = penstock.open("s3://bucket/corpus", storage=Storage(endpoint=url))
        loader = penstock.Loader(dataset.windows(64), 16, seed=1, epochs=1, reader="python")
        assert loader.reader == "python"
        assert contents(loader) == expected
        globbed = penstock.open("s3://bucket/*.npy", storage=Storage(endpoint=url))
        assert globbed.fingerprint == penstock.open(root / "*.npy").fingerprint


def test_a_reader_of_local_files_is_refused(root):
    view = penstock.open("corpus", store=Own(root)).windows(64)
    for reader in ("pread", "uring", "direct", "mmap"):
        with pytest.raises(InvalidArgumentError, match="corpus is elsewhere"):
            penstock.Loader(view, 4, reader=reader)
    with pytest.raises(InvalidArgumentError, match="through Python"):
        penstock.Loader(view, 4, reader="http")
    with pytest.raises(InvalidArgumentError, match="on this machine"):
        penstock.Loader(penstock.open(root / "corpus").windows(64), 4, reader="python")


@pytest.mark.parametrize(
    ("url", "given", "words"),
    [
        ("gs:///key", {}, "no bucket"),
        ("gs://bucket/key", {"storage": Storage(region="x")}, r"region=…\) is not for gs"),
        ("az://bucket/key", {"storage": Storage(profile="x")}, r"profile=…\) is not for az"),
        ("memory://key", {"storage": Storage(anonymous=True)}, r"anonymous=…\) is not for memory"),
        ("nonsense://key", {}, "not known"),
        ("memory://name:Pa55word@host/key", {}, r"^memory://…@…: .* give store="),
        ("github://key", {}, r"wants more than an address: give store="),
        ("key", {"store": 5}, "an obstore store, an fsspec filesystem, or an object"),
        ("key", {"store": Own}, "an obstore store, an fsspec filesystem, or an object"),
    ],
)
def test_what_cannot_be_opened_is_refused(url, given, words):
    pytest.importorskip("obstore")
    with pytest.raises(InvalidArgumentError, match=words):
        penstock.open(url, **given)
