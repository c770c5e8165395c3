"""Datasets of servers of HTTP: the same batches as on a local disk, faults that pass, and errors in words."""

import contextlib
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest
from _batches import VIEWS, contents
from _fault_servers import FAULTS, at_random, fault_server
from _servers import nginx, write_corpus
from penstock import CorruptionError, InvalidArgumentError, NotFoundError, Storage


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a dataset of three shards, and token files."""
    folder = tmp_path_factory.mktemp("root")
    rng = np.random.default_rng(0)
    write_corpus(folder, rng, shards=3, documents=200)
    rng.integers(0, 60_000, 100_000).astype("u2").tofile(folder / "a.bin")
    np.save(folder / "b.npy", rng.integers(0, 60_000, 50_000).astype("u2"))
    return folder


@pytest.fixture(scope="module")
def server(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    with nginx(root, tmp_path_factory.mktemp("nginx")) as address:
        yield address


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("order", ["uniform", "sequential", penstock.orders.Blocks(4, 32)])
def test_batches_are_those_of_the_local_files(root, server, view, order):
    def of(path: Any) -> list[Any]:
        loader = penstock.Loader(VIEWS[view](penstock.open(path)), 16, order=order, seed=3, epochs=1)
        return contents(loader, view != "spans alone")

    assert of(f"{server}/corpus") == of(root / "corpus")


def test_states_and_fingerprints_are_those_of_the_local_files(root, server):
    here, there = penstock.open(root / "corpus"), penstock.open(f"{server}/corpus/")
    assert there.fingerprint == here.fingerprint
    ours, theirs = (penstock.Loader(each.windows(64), 16, seed=1) for each in (here, there))
    for _ in range(5):
        next(ours)
    theirs.load_state_dict(ours.state_dict())
    assert theirs.state_dict() == ours.state_dict()
    assert next(ours)["token"].tolist() == next(theirs)["token"].tolist()


def test_token_files_open_by_their_addresses(root, server):
    assert penstock.open(f"{server}/b.npy").windows(10)[7]["token"].tolist() == np.load(root / "b.npy")[70:80].tolist()
    both = penstock.open(f"{server}/a.bin", root / "a.bin", dtype="u2")
    assert both.records == 200_000
    assert both.windows(1)[150_000]["token"].tolist() == [np.fromfile(root / "a.bin", "u2")[50_000]]


@pytest.mark.parametrize("sizes", [(0,), (2,), (4096,), (4098,), (100_000,), (4096,) * 3, (6000,) * 70, (2, 0, 9000)])
def test_fingerprints_of_token_files_are_those_of_the_local_ones(tmp_path, sizes):
    rng = np.random.default_rng(7)
    for number, size in enumerate(sizes):
        (tmp_path / f"{number}.bin").write_bytes(rng.bytes(size))
    local = [tmp_path / f"{number}.bin" for number in range(len(sizes))]
    with nginx(tmp_path, tmp_path / "nginx") as nginx_address, fault_server(tmp_path) as server:
        for address in (nginx_address, server.address):
            there = penstock.open(*(f"{address}/{each.name}" for each in local), dtype="u2")
            assert there.fingerprint == penstock.open(*local, dtype="u2").fingerprint
            assert there.records == sum(sizes) // 2


def test_an_empty_file_opens_where_a_server_names_no_size_of_it(tmp_path):
    (tmp_path / "none.bin").write_bytes(b"")
    with fault_server(tmp_path, lambda path, number: "416") as server:
        assert penstock.open(f"{server.address}/none.bin", dtype="u2").records == 0


def test_columns_of_several_shards_are_read_by_their_own_etags(tmp_path):
    with penstock.Writer(tmp_path / "data", {"token": "u2"}, columns={"n": "u4"}, shard_size=2000) as writer:
        for number in range(500):
            writer.append(token=[number] * 9, columns={"n": number})
    for number, file in enumerate(sorted((tmp_path / "data").rglob("*.*"))):
        os.utime(file, (number, number))
    with nginx(tmp_path, tmp_path / "nginx") as address:
        for options in ({}, {"cache": tmp_path / "cache"}, {"cache": tmp_path / "cache"}):
            dataset = penstock.open(f"{address}/data", **options)
            assert len(list((tmp_path / "data").glob("0*"))) > 2
            assert dataset.columns["n"][:].tolist() == list(range(500))


def test_opening_asks_for_the_manifest_alone(root, tmp_path):
    with fault_server(root) as server:
        penstock.open(f"{server.address}/corpus")
        assert [path for path, *_ in server.requests] == ["/corpus/dataset.json"]


def test_tls_needs_a_certificate_that_is_trusted(root, tmp_path):
    with nginx(root, tmp_path / "nginx", tls=True) as address:
        with pytest.raises(OSError, match="ca_file"):
            penstock.open(f"{address}/corpus", storage=Storage(deadline=5))
        trusting = Storage(ca_file=tmp_path / "nginx" / "cert.pem")
        assert penstock.open(f"{address}/corpus", storage=trusting).fingerprint


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_that_passes_is_no_fault(root, fault):
    def of(path: Any) -> penstock.Loader:
        return penstock.Loader(penstock.open(path).windows(64), 16, seed=1)

    expected = contents(of(root / "corpus"), most=12)
    with fault_server(root, at_random(0.2, faults=(fault,))) as server:
        loader = of(f"{server.address}/corpus")
        assert contents(loader, most=12) == expected
        assert loader.metrics().retries > 0


def test_ten_thousand_reads_are_exact_where_a_fifth_of_them_fails(root):
    expected = np.fromfile(root / "a.bin", "u2")[:80_000].reshape(10_000, 8)
    with fault_server(root, at_random(0.2)) as server:
        view = penstock.open(f"{server.address}/a.bin", dtype="u2").windows(8)[:10_000]
        loader = penstock.Loader(view, 50, seed=1, epochs=1)
        seen = np.zeros(10_000, bool)
        for batch in loader:
            rows = np.asarray(batch.indices)
            np.testing.assert_array_equal(np.asarray(batch["token"]), expected[rows])
            seen[rows] = True
        assert seen.all()
        assert len(server.requests) >= 10_000
        assert loader.metrics().retries > 1_500


def test_a_fault_that_stays_is_told_with_its_place_and_attempts(root):
    with fault_server(root, lambda path, number: "503" if "stream.bin" in path else None) as server:
        dataset = penstock.open(f"{server.address}/corpus", storage=Storage(deadline=1.0))
        loader = penstock.Loader(dataset.windows(64), 4, seed=1)
        with pytest.raises(
            penstock.IoError, match=r"stream\.bin(\.crc)?, bytes [\d,]+ to [\d,]+: .* attempts; .*status 503"
        ):
            next(loader)


def test_a_server_without_ranges_is_told_at_once(root):
    with fault_server(root, lambda path, number: "200" if ".bin" in path else None) as server:
        begin = time.monotonic()
        with pytest.raises(penstock.IoError, match="knows no ranges"):
            penstock.open(f"{server.address}/a.bin", dtype="u2")
        assert time.monotonic() - begin < 20


def test_a_file_that_changes_is_refused(root):
    with fault_server(root, lambda path, number: "etag" if number > 5 else None) as server:
        loader = penstock.Loader(penstock.open(f"{server.address}/a.bin", dtype="u2").windows(64), 4, seed=1)
        with pytest.raises(CorruptionError, match="another one than before"):
            for _ in range(20):
                next(loader)
        free = penstock.open(f"{server.address}/a.bin", dtype="u2", storage=Storage(check_etag=False))
        assert len(next(penstock.Loader(free.windows(64), 4, seed=1)).indices) == 4


def test_what_is_not_there_is_not_found(server, root):
    with pytest.raises(NotFoundError, match=r"nothing/dataset\.json"):
        penstock.open(f"{server}/nothing")
    with pytest.raises(NotFoundError, match=r"none\.npy"):
        penstock.open(f"{server}/none.npy")


def test_no_server_is_told_in_a_moment():
    begin = time.monotonic()
    with pytest.raises(penstock.IoError, match="no connection in 3 attempts"):
        penstock.open("http://127.0.0.1:9/corpus")
    assert time.monotonic() - begin < 30


def test_secrets_are_in_no_message(root):
    def refused(path: str, number: int) -> str | None:
        return "403"

    with fault_server(root, refused) as server:
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


def test_a_dataset_travels_to_another_process_but_its_secrets_do_not(server, root):
    dataset = penstock.open(f"{server}/corpus")
    assert pickle.loads(pickle.dumps(dataset)).fingerprint == dataset.fingerprint
    secret = penstock.open(f"{server}/corpus?key=Pa55word")
    assert "Pa55word" not in repr(secret)
    with pytest.raises(InvalidArgumentError, match="password or a signature"):
        pickle.dumps(secret)
    code = "import pickle, sys, penstock; print(pickle.load(sys.stdin.buffer).fingerprint)"
    done = subprocess.run([sys.executable, "-c", code], input=pickle.dumps(dataset), capture_output=True, check=True)
    assert done.stdout.decode().strip() == dataset.fingerprint


@pytest.mark.parametrize("headers", [{}, {"X-Token": "secret"}])
def test_redirects_are_followed_but_not_with_secrets(root, headers):
    with fault_server(root) as target, fault_server(root, lambda path, number: "redirect") as server:
        server.elsewhere = target.address
        storage = Storage(headers=headers) if headers else None
        if headers:
            with pytest.raises(penstock.IoError, match="another server"):
                penstock.open(f"{server.address}/corpus", storage=storage)
            assert not target.requests
        else:
            assert penstock.open(f"{server.address}/corpus", storage=storage).records > 0


def test_redirects_have_an_end(root):
    with fault_server(root, lambda path, number: "redirect") as server:
        server.elsewhere = server.address
        with pytest.raises(penstock.IoError, match="more than 5 redirects"):
            penstock.open(f"{server.address}/corpus")


def test_ctrl_c_ends_a_wait_for_a_stalled_server(root):
    def slow(path: str, number: int) -> str | None:
        return "slow" if "stream.bin" in path or "columns.bin" in path else None

    with penstock.Writer(root / "column", {"token": "u2"}, columns={"n": "u4"}, overwrite=True) as writer:
        writer.append(token=[1], columns={"n": 1})
    with fault_server(root, slow) as server:
        view = penstock.open(f"{server.address}/corpus").windows(64)
        loader = penstock.Loader(view, 4, seed=1)
        column = penstock.open(f"{server.address}/column").columns["n"]
        for read in (lambda: next(loader), lambda: view[0], lambda: column[:]):
            threading.Timer(1.0, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
            begin = time.monotonic()
            with pytest.raises(KeyboardInterrupt):
                read()
            assert time.monotonic() - begin < 15
        loader.close()
        assert time.monotonic() - begin < 15


def test_datasets_of_one_server_share_its_limit_of_requests(root, tmp_path):
    delay, limit = 0.05, 4
    with nginx(root, tmp_path, delay=delay) as address, contextlib.ExitStack() as stack:
        few = Storage(connections=limit)
        views = [penstock.open(f"{address}/a.bin", dtype="u2", storage=few).windows(64) for _ in range(3)]
        loaders = [stack.enter_context(penstock.Loader(view, 4, seed=1, prefetch=4, threads=1)) for view in views]
        count, begin = 0, time.monotonic()
        while time.monotonic() < begin + 2:
            count += sum(len(next(each).indices) for each in loaders)
        rate = count / (time.monotonic() - begin)
    assert rate < 1.6 * limit / delay, "each of three would have as many under way"


@pytest.mark.parametrize("order", ["uniform", penstock.orders.Blocks(4, 32)])
def test_lengths_are_read_beside_requests_that_wait_for_them(root, tmp_path, order):
    with nginx(root, tmp_path / "nginx", delay=0.002) as address:
        few = Storage(connections=2)
        views = (penstock.open(root / "corpus"), penstock.open(f"{address}/corpus", storage=few))
        options = {"order": order, "threads": 2, "balance": penstock.Balance(), "rank": 0, "world_size": 2}
        here, there = (penstock.Loader(each.documents(), 8, seed=1, epochs=1, **options) for each in views)
        assert contents(there) == contents(here)


def test_a_child_after_a_fork_refuses(server):
    loader = penstock.Loader(penstock.open(f"{server}/corpus").windows(64), 4, seed=1)
    next(loader)
    view = penstock.open(f"{server}/corpus").windows(64)
    child = os.fork()
    if child == 0:
        try:
            view[0]
            os._exit(1)
        except InvalidArgumentError as error:
            os._exit(0 if "spawn" in str(error) else 2)
        finally:
            os._exit(3)
    assert os.waitpid(child, 0)[1] == 0
    assert len(view[0]["token"]) == 64


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("nonsense://host/x", "nonsense:// is not known"),
        ("https:///x", "without a host"),
        ("http://host/*.npy", "lists no files"),
        ("http://[::1]:9/[ab].npy", "lists no files"),
        ("http://host/cells.h5ad", "on this machine alone"),
        ("http://host/corpus/dataset.json", "give its folder"),
        ("http://host/a b", "%20"),
    ],
)
def test_addresses_that_cannot_be_are_refused(url, words):
    with pytest.raises(InvalidArgumentError, match=words):
        penstock.open(url)


def test_a_glob_is_refused_whatever_format_is_given():
    with pytest.raises(InvalidArgumentError, match="HTTP lists no files"):
        penstock.open("http://host/*.npy", format="raw")


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
    for url in ("file://elsewhere/a", "file://a", "file:///a%2", "file:///a%00"):
        with pytest.raises(InvalidArgumentError, match=r"file URL of another host|hexadecimal"):
            penstock.open(url)


def test_some_shards_have_the_cache_of_all(root):
    class Cached:
        counts = {"hits": 1}  # noqa: RUF012 - as of a CachedStore

    dataset = penstock.open(root / "corpus")
    dataset._cache = Cached()
    assert dataset.select([0]).cache_counts == {"hits": 1}


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


@pytest.mark.parametrize("endpoint", ["http://[::1]:9000/", "https://minio", "HTTP://127.0.0.1:9000/s3/"])
def test_endpoints_are_addresses_of_servers(endpoint):
    assert Storage(endpoint=endpoint).endpoint == endpoint


class _Secretive:
    def __call__(self) -> None: ...

    def __repr__(self) -> str:
        return "SECRET"


def test_what_gives_credentials_is_not_shown():
    with pytest.raises(InvalidArgumentError, match="credentials=_Secretive") as error:
        pickle.dumps(Storage(credentials=_Secretive()))
    assert "SECRET" not in str(error.value)


def test_features_and_columns_are_read_where_the_dataset_lies(root, server):
    path = root / "cells"
    genes = {"names": ["CD4", "CD8A", "GNLY"], "length": [458, 235, 145]}
    with penstock.Writer(path, {"gene": "u2", "count": "u1"}, features=genes, columns={"n": "u4"}) as writer:
        for number in range(50):
            writer.append(gene=[0, 2], count=[3, 1], columns={"n": number})
    dataset = penstock.open(f"{server}/cells")
    for each in (dataset, pickle.loads(pickle.dumps(dataset))):
        assert each.features.names == genes["names"]
        assert each.features.columns["length"][1].item() == 235
        assert each.columns["n"][7:9].tolist() == [7, 8]
    batch = next(penstock.Loader(dataset.cells("csr", columns=["n"]), 4, seed=0))
    assert batch.columns["n"].tolist() == np.asarray(batch.indices).tolist()


def test_a_read_of_many_rows_has_many_requests_under_way(root, tmp_path):
    delay = 0.2
    with nginx(root, tmp_path / "nginx", delay=delay) as address:
        view = penstock.open(f"{address}/a.bin", dtype="u2").windows(1)
        rows = np.arange(1280, dtype=np.uint64)  # of which 64 are one request
        view.read(rows[:1])
        begin = time.monotonic()
        found = view.read(rows)["token"]
        assert time.monotonic() - begin < 20 * delay / 2
    np.testing.assert_array_equal(found.reshape(-1), np.fromfile(root / "a.bin", "u2")[:1280])
