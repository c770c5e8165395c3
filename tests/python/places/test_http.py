"""Servers of HTTP: what only they do, faults that pass, and errors in words."""

from __future__ import annotations

import os
import pickle
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest
from _batches import contents
from _fault_servers import FAULTS, at_random, fault_server
from _servers import nginx
from penstock import InvalidArgumentError, Storage

DELAY = 0.05  # of each answer of a slow server


@pytest.fixture(scope="module")
def slow(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str]]:
    """A folder with a.bin and 40 small token files, and its address at a server that takes its time."""
    folder = tmp_path_factory.mktemp("slow") / "data"
    folder.mkdir()
    (folder / "a.bin").symlink_to(root / "a.bin")
    (folder / "corpus").symlink_to(root / "corpus")
    for number in range(40):
        np.full(5_000 * number, number, "u2").tofile(folder / f"{number:02}.bin")
    with nginx(folder, folder.parent / "nginx", delay=DELAY) as address:
        yield folder, address


@pytest.mark.parametrize("through", ["http", "obstore"])
def test_token_files_are_looked_at_all_at_once(slow, through):
    folder, address = slow
    names = [f"{number:02}.bin" for number in range(40)]
    given: dict[str, Any] = {"dtype": "u2"}
    paths = [f"{address}/{name}" for name in names]
    if through == "obstore":
        obstore = pytest.importorskip("obstore")
        paths, options = names, {"allow_http": True}
        given["store"] = obstore.store.HTTPStore.from_url(address, client_options=options)
    begin = time.monotonic()
    found = penstock.open(*paths, **given)
    assert time.monotonic() - begin < 40 * DELAY / 2, "two requests of each, one after the other, take twice 2 s"
    assert found.fingerprint == penstock.open(*(folder / name for name in names), dtype="u2").fingerprint


def test_a_read_of_many_rows_has_many_requests_under_way(root, slow):
    view = penstock.open(f"{slow[1]}/a.bin", dtype="u2").windows(1)
    rows = np.arange(2560, dtype=np.uint64)  # of which 64 are one request
    view.read(rows[:1])
    begin = time.monotonic()
    found = view.read(rows)["token"]
    assert time.monotonic() - begin < 40 * DELAY / 2
    np.testing.assert_array_equal(found.reshape(-1), np.fromfile(root / "a.bin", "u2")[:2560])


def test_lengths_are_read_beside_requests_that_wait_for_them(root, slow):
    views = (penstock.open(root / "corpus"), penstock.open(f"{slow[1]}/corpus", storage=Storage(connections=2)))
    options = {"threads": 2, "balance": penstock.Balance(), "rank": 0, "world_size": 2}
    for order in ("uniform", penstock.orders.Blocks(4, 32)):
        here, there = (penstock.Loader(each.documents(), 8, seed=1, order=order, **options) for each in views)
        assert contents(there, most=2) == contents(here, most=2)


def test_fingerprints_of_token_files_are_those_of_the_local_ones(root, tmp_path):
    rng = np.random.default_rng(7)
    sizes = [(0,), (2,), (4096,), (4098,), (100_000,), (4096,) * 3, (6000,) * 70, (2, 0, 9000)]
    for case, several in enumerate(sizes):
        (tmp_path / "data" / f"{case}").mkdir(parents=True)
        for number, size in enumerate(several):
            (tmp_path / "data" / f"{case}" / f"{number}.bin").write_bytes(rng.bytes(size))
    with nginx(tmp_path / "data", tmp_path / "nginx") as address, fault_server(tmp_path / "data") as server:
        for case, several in enumerate(sizes):
            names = [f"{case}/{number}.bin" for number in range(len(several))]
            local = penstock.open(*(tmp_path / "data" / name for name in names), dtype="u2")
            for before in (address, server.address):
                there = penstock.open(*(f"{before}/{name}" for name in names), dtype="u2")
                assert (there.fingerprint, there.records) == (local.fingerprint, sum(several) // 2), several
        both = penstock.open(f"{address}/4/0.bin", tmp_path / "data" / "4" / "0.bin", dtype="u2")
        assert both.records == 100_000
        assert both.windows(50_000)[1]["token"].tolist() == both.windows(50_000)[0]["token"].tolist()


def test_columns_of_several_shards_are_read_by_their_own_etags(tmp_path):
    with penstock.Writer(tmp_path / "data", {"token": "u2"}, columns={"n": "u4"}, shard_size=2000) as writer:
        for number in range(500):
            writer.append(token=[number] * 9, columns={"n": number})
    assert len(list((tmp_path / "data").glob("0*"))) > 2
    for number, file in enumerate(sorted((tmp_path / "data").rglob("*.*"))):
        os.utime(file, (number, number))
    with nginx(tmp_path, tmp_path / "nginx") as address:
        for options in ({}, {"cache": tmp_path / "cache"}, {"cache": tmp_path / "cache"}):
            dataset = penstock.open(f"{address}/data", **options)
            assert dataset.columns["n"][:].tolist() == list(range(500))


def test_opening_asks_for_the_manifest_alone(root):
    with fault_server(root) as server:
        penstock.open(f"{server.address}/corpus")
        assert [path for path, *_ in server.requests] == ["/corpus/dataset.json"]


# ---- faults


def test_two_thousand_reads_are_exact_where_a_fifth_of_them_fails(root):
    """By all faults in turn; the retries of so many reads show that each of them passed often."""
    expected = np.fromfile(root / "a.bin", "u2")[:16_000].reshape(2_000, 8)
    drawn: set[str | None] = set()
    fails = at_random(0.2)

    def fault(path: str, number: int) -> str | None:
        drawn.add(found := fails(path, number))
        return found

    with fault_server(root, fault) as server:
        view = penstock.open(f"{server.address}/a.bin", dtype="u2").windows(8)[:2_000]
        loader = penstock.Loader(view, 50, seed=1, epochs=1)
        seen = np.zeros(2_000, bool)
        for batch in loader:
            rows = np.asarray(batch.indices)
            np.testing.assert_array_equal(np.asarray(batch["token"]), expected[rows])
            seen[rows] = True
        assert seen.all() and drawn == {None, *FAULTS}
        assert loader.metrics().retries > 100


def test_a_fault_that_stays_is_told_with_its_place_and_attempts(root):
    with fault_server(root, lambda path, number: "503" if "stream.bin" in path else None) as server:
        dataset = penstock.open(f"{server.address}/corpus", storage=Storage(deadline=0.5))
        loader = penstock.Loader(dataset.windows(64), 4, seed=1)
        with pytest.raises(
            penstock.IoError, match=r"stream\.bin(\.crc)?, bytes [\d,]+ to [\d,]+: .* attempts?; .*status 503"
        ):
            next(loader)


@pytest.mark.parametrize(("prefetch", "expected"), [(None, 64), (4, 32)])
def test_what_is_read_ahead_by_default_fills_the_requests_under_way(root, prefetch, expected):
    """At a server that stalls; Ctrl-C ends the wait when no more has come for half a second."""
    asked: list[int] = []

    def fault(path: str, number: int) -> str | None:
        if not path.endswith("stream.bin"):
            return None
        asked.append(number)
        if len(asked) == expected:
            interrupt_in(0.5)
        return "slow"

    with fault_server(root, fault) as server:
        view = penstock.open(f"{server.address}/corpus").windows(16)
        with penstock.Loader(view, 8, seed=1, threads=1, prefetch=prefetch) as loader:
            with pytest.raises(KeyboardInterrupt):
                next(loader)
            assert len(asked) == expected


def interrupt_in(seconds: float) -> None:
    threading.Timer(seconds, lambda: os.kill(os.getpid(), signal.SIGINT)).start()


def test_ctrl_c_ends_a_wait_for_a_stalled_server(root):
    def stalls(path: str, number: int) -> str | None:
        return "slow" if "stream.bin" in path or "columns.bin" in path else None

    with fault_server(root, stalls) as server:
        view = penstock.open(f"{server.address}/corpus").windows(64)
        loader = penstock.Loader(view, 4, seed=1)
        column = penstock.open(f"{server.address}/cells").columns["n"]
        reads: tuple[Callable[[], Any], ...] = (lambda: next(loader), lambda: view[0], lambda: column[:])
        for read in reads:
            interrupt_in(0.3)
            begin = time.monotonic()
            with pytest.raises(KeyboardInterrupt):
                read()
            assert time.monotonic() - begin < 15
        loader.close()
        assert time.monotonic() - begin < 15


# ---- secrets, and where they go


def test_secrets_are_sent_and_in_no_message(root):
    with fault_server(root, lambda path, number: "403") as server:
        host = server.address.removeprefix("http://")
        url = f"http://key:Pa55word@{host}/corpus?X-Signature=Pa55word"
        storage = Storage(headers={"X-Token": "Pa55word"})
        with pytest.raises(penstock.IoError, match="password or the query") as error:
            penstock.open(url, storage=storage)
        path, _, headers = server.requests[0]
        assert path == "/corpus/dataset.json?X-Signature=Pa55word"
        assert headers["X-Token"] == "Pa55word"
        assert "Basic" in headers["Authorization"]
        assert "Pa55word" not in f"{error.value!r} {error.value} {error.value.__cause__!r} {storage!r}"
    with pytest.raises(InvalidArgumentError, match="X-Token") as refusal:
        pickle.dumps(storage)
    assert "Pa55word" not in str(refusal.value)


def test_a_dataset_of_a_signed_address_does_not_travel(http):
    secret = penstock.open(f"{http}/corpus?key=Pa55word")
    assert "Pa55word" not in repr(secret)
    with pytest.raises(InvalidArgumentError, match="password or a signature"):
        pickle.dumps(secret)


def test_redirects_are_followed_but_not_with_secrets(root):
    with fault_server(root) as target, fault_server(root, lambda path, number: "redirect") as server:
        server.elsewhere = target.address
        named = server.address.replace("://", "://name:Pa55word@")
        for url, headers in (
            (f"{server.address}/corpus", {"X-Token": "Pa55word"}),
            (f"{named}/corpus", {}),
            (f"{server.address}/corpus?key=Pa55word", {}),
        ):
            with pytest.raises(penstock.IoError, match="another server") as error:
                penstock.open(url, storage=Storage(headers=headers))
            assert not target.requests
            assert "Pa55word" not in f"{error.value!r} {error.value.__cause__!r}"
        assert penstock.open(f"{server.address}/corpus").records > 0


def test_tls_needs_a_certificate_that_is_trusted_and_is_not_left(root, tmp_path):
    folder = tmp_path / "nginx"
    with nginx(root, folder, tls=True) as address:
        with pytest.raises(OSError, match="ca_file"):
            penstock.open(f"{address}/corpus", storage=Storage(deadline=5))
        assert penstock.open(f"{address}/corpus", storage=Storage(ca_file=folder / "cert.pem")).fingerprint
    folder = tmp_path / "elsewhere"
    with fault_server(root) as plain, nginx(root, folder, tls=True, elsewhere=plain.address) as address:
        with pytest.raises(penstock.IoError, match="from https to http, which is not followed"):
            penstock.open(f"{address}/corpus", storage=Storage(ca_file=str(folder / "cert.pem")))
        assert not plain.requests


def test_a_proxy_of_the_environment_is_used(root, tmp_path, monkeypatch):
    (tmp_path / "http:").mkdir()  # what a proxy is asked for is a whole address
    (tmp_path / "http:" / "nowhere.invalid").symlink_to(root)
    with fault_server(tmp_path) as proxy:
        monkeypatch.setenv("http_proxy", proxy.address)
        monkeypatch.setenv("no_proxy", "")
        there = penstock.open("http://nowhere.invalid/corpus").windows(64)
        assert there[3]["token"].tolist() == penstock.open(root / "corpus").windows(64)[3]["token"].tolist()
        assert all(path.startswith("http://nowhere.invalid/corpus/") for path, _, _ in proxy.requests)


# ---- addresses, and how they are read


@pytest.mark.parametrize(
    ("url", "given", "words"),
    [
        ("nonsense://host/x", {}, "nonsense:// is not known"),
        ("https:///x", {}, "without a host"),
        ("http://host/*.npy", {}, "lists no files"),
        ("http://host/*.npy", {"format": "raw"}, "HTTP lists no files"),
        ("http://[::1]:9/[ab].npy", {}, "lists no files"),
        ("http://host/cells.h5ad", {}, "on this machine alone"),
        ("http://host/corpus/dataset.json", {}, "give its folder"),
        ("http://host/a b", {}, "%20"),
        ("file://elsewhere/a", {}, "file URL of another host"),
        ("file://a", {}, "file URL of another host"),
        ("file:///a%2", {}, "hexadecimal"),
        ("file:///a%00", {}, "hexadecimal"),
    ],
)
def test_addresses_that_cannot_be_are_refused(url, given, words):
    with pytest.raises(InvalidArgumentError, match=words):
        penstock.open(url, **given)


def test_a_host_in_brackets_is_no_glob():
    with pytest.raises(penstock.IoError, match=r"http://\[::1\]:9/corpus"):
        penstock.open("http://[::1]:9/corpus", storage=Storage(deadline=0.1))


@pytest.mark.parametrize("other", ["http://host/a?X-Sig=SECRET", "http://key:SECRET@host/a/b.npy", "http://u@host/"])
def test_addresses_within_each_other_have_the_same_secrets(other):
    with pytest.raises(InvalidArgumentError, match=r"penstock\.concatenate") as error:
        penstock.open("http://host/a?X-Sig=OTHER", other, format="penstock")
    assert "SECRET" not in str(error.value) and "OTHER" not in str(error.value)


def test_file_urls_are_paths(tmp_path):
    path = tmp_path / "a b%é.bin"
    np.arange(10, dtype="u2").tofile(path)
    for url in (path.as_uri(), path.as_uri().replace("file://", "FILE://localhost")):
        assert penstock.open(url, dtype="u2").records == 10


def test_what_cannot_be_written_or_read_shows_no_secrets(tmp_path):
    url = "https://key:SECRET@127.0.0.1:1/x?X-Sig=SECRET"
    with pytest.raises(InvalidArgumentError, match=r"https://127.0.0.1:1/x: ") as refused:
        penstock.Writer(url, {"token": "u2"})
    with pytest.raises(penstock.IoError, match=r"https://127.0.0.1:1/x/dataset.json: ") as failed:
        penstock.combine([url], tmp_path / "out", storage=Storage(deadline=0.1))
    assert "SECRET" not in f"{refused.value} {failed.value}"
    assert "SECRET" not in repr(penstock.verify(url))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"connections": 0}, "connections"),
        ({"connections": 5000}, "1,024"),
        ({"deadline": 0}, "more than 0"),
        ({"deadline": "soon"}, "seconds"),
        ({"headers": {"Range": "bytes=0-1"}}, "penstock itself"),
        ({"headers": {"X": "a\r\nb"}}, "one line"),
        ({"headers": ["X: 1"]}, "name: value"),
        ({"credentials": 5}, "function"),
        ({"region": 5}, "str is wanted"),
        ({"endpoint": "minio:9000"}, "http://HOST:PORT"),
        ({"endpoint": "https://user:SECRET@minio:9000"}, "without user"),
        ({"endpoint": "https://user:12/SECRET@minio:9000"}, "without user"),
        ({"endpoint": "https://minio:9000/?SECRET"}, "without user"),
        ({"endpoint": "https://"}, "HOST"),
    ],
)
def test_a_storage_that_cannot_be_is_refused(arguments, words):
    with pytest.raises(InvalidArgumentError, match=words) as error:
        Storage(**arguments)
    assert "SECRET" not in str(error.value)


def test_endpoints_are_addresses_of_servers():
    for endpoint in ("http://[::1]:9000/", "https://minio", "HTTP://127.0.0.1:9000/s3/"):
        assert Storage(endpoint=endpoint).endpoint == endpoint


class _Secretive:
    def __call__(self) -> None: ...

    def __repr__(self) -> str:
        return "SECRET"


def test_what_gives_credentials_is_not_shown():
    with pytest.raises(InvalidArgumentError, match="credentials=_Secretive") as error:
        pickle.dumps(Storage(credentials=_Secretive()))
    assert "SECRET" not in str(error.value)
