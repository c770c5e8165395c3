"""Datasets written to gs://, on fake-gcs-server: the same bytes and the same protocol as in a bucket of S3."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np
import penstock
import pytest
from _fault_servers import fault_proxy
from _google import Front, writable_google
from _places import SHARD_BYTES, chain, plain, tree, without_names
from penstock import InvalidArgumentError, IoError, Storage

pytest.importorskip("obstore")

TOKEN = "ya29.Pa55word-0123456789"


def credentials() -> dict[str, Any]:
    return {"token": TOKEN, "expires_at": None}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Front]:
    with writable_google(tmp_path_factory.mktemp("google")) as front:
        yield front


class Place:
    """A prefix of the bucket for one test."""

    def __init__(self, server: Front, name: str) -> None:
        self.server, self.name = server, name
        self.url = f"gs://data/{name}"
        self.storage = Storage(endpoint=server.address, credentials=credentials)

    def files(self) -> dict[str, bytes]:
        return self.server.files(f"{self.name}/")

    def writer(self, **options: Any) -> penstock.Writer:
        options = {"storage": self.storage, "shard_size": SHARD_BYTES, **options}
        return penstock.Writer(self.url, fields={"token": "u2"}, metadata="json", **options)


@pytest.fixture
def place(server: Front, request: pytest.FixtureRequest) -> Place:
    return Place(server, request.node.name.translate({ord(each): "-" for each in "[]"}))


def append(writer: penstock.Writer, seed: int = 0) -> None:
    rng = np.random.default_rng(seed)
    for document in range(200):
        tokens = rng.integers(0, 60_000, int(rng.integers(1, 300))).astype("u2")
        writer.append(token=tokens, metadata={"name": document})


def only_what_is_published(place: Place, manifest: bytes) -> None:
    files = place.files()
    assert files["dataset.json"] == manifest
    named = {each["name"] for each in json.loads(manifest)["shards"]}
    assert {name.split("/")[0] for name in files if "/" in name} == named
    assert penstock.verify(place.url, storage=place.storage)


def test_files_have_the_bytes_of_a_local_write(place: Place, tmp_path: Path) -> None:
    with penstock.Writer(tmp_path / "local", fields={"token": "u2"}, metadata="json", shard_size=SHARD_BYTES) as writer:
        append(writer)
    with place.writer(scratch=tmp_path / "scratch") as writer:
        append(writer)
    found, expected = place.files(), tree(tmp_path / "local")
    assert plain(found) == {name: data for name, data in expected.items() if "/" in name}
    assert without_names(found["dataset.json"]) == without_names(expected["dataset.json"])
    assert list((tmp_path / "scratch").iterdir()) == []
    report = penstock.verify(place.url, storage=place.storage)
    assert report and list(report.notices) == []
    assert penstock.open(place.url, storage=place.storage).fingerprint == report.fingerprint


def test_large_files_go_in_parts(place: Place) -> None:
    tokens = np.arange(10_000_000, dtype="u4").astype("u2")
    with penstock.Writer(place.url, fields={"token": "u2"}, storage=place.storage) as writer:
        writer.append(token=tokens)
    begun = next(place.server.numbers)
    assert begun > 1 and place.server.parts == {}  # of an upload that ended none is left
    stream = next(data for name, data in place.files().items() if name.endswith("stream.bin"))
    assert stream == tokens.tobytes()


def test_of_two_writers_at_once_the_second_is_refused(place: Place) -> None:
    first, second = place.writer(), place.writer()
    append(first, 1)
    append(second, 2)
    first.commit()
    published = place.files()["dataset.json"]
    with pytest.raises(InvalidArgumentError, match="someone else has published"):
        second.commit()
    second.abort()
    only_what_is_published(place, published)


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_manifest_that_was_put_meanwhile_stays(place: Place, overwrite: bool) -> None:
    if overwrite:
        with place.writer() as writer:
            append(writer, 1)
    first = place.writer(overwrite=overwrite)

    def fault(method: str, path: str, number: int) -> None:
        if method == "PUT" and "dataset%2Ejson" in path:
            first.commit()  # after all that the second looks at, before its manifest arrives

    with fault_proxy(place.server.address, fault) as proxy:
        storage = Storage(endpoint=proxy.address, credentials=credentials)
        second = place.writer(overwrite=overwrite, storage=storage)
        append(first, 2)
        append(second, 3)
        with pytest.raises(InvalidArgumentError, match="someone else has published"):
            second.commit()
        second.abort()
    only_what_is_published(place, place.files()["dataset.json"])


def test_overwrite_replaces_the_version_that_it_saw(place: Place) -> None:
    with place.writer() as writer:
        append(writer, 1)
    first, second = place.writer(overwrite=True), place.writer(overwrite=True)
    append(first, 2)
    append(second, 3)
    first.commit()
    published = place.files()["dataset.json"]
    with pytest.raises(InvalidArgumentError, match="someone else has published"):
        second.commit()
    second.abort()
    only_what_is_published(place, published)


def test_shards_of_several_writers_are_committed_with_features(place: Place) -> None:
    for number in (1, 0):
        with place.writer(shard=number, shard_size=1 << 30) as writer:
            append(writer, number)
    assert [each.number for each in penstock.finished_shards(place.url, storage=place.storage)] == [0, 1]
    penstock.commit(place.url, shards=2, storage=place.storage, features=["a", "b"])
    dataset = penstock.open(place.url, storage=place.storage)
    assert list(dataset.features.names) == ["a", "b"]
    assert penstock.verify(place.url, storage=place.storage)


def test_an_exception_leaves_finished_shards_alone(place: Place) -> None:
    def write() -> None:
        with place.writer() as writer:
            append(writer)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write()
    assert "dataset.json" not in place.files()


def test_a_failed_upload_shows_no_token(place: Place) -> None:
    def fault(method: str, path: str, number: int) -> str | None:
        return "503" if method == "PUT" else None

    with fault_proxy(place.server.address, fault) as proxy:
        storage = Storage(endpoint=proxy.address, credentials=credentials, deadline=0.5)
        with pytest.raises(IoError, match="503") as raised, place.writer(storage=storage) as writer:
            append(writer)
    assert TOKEN not in chain(raised.value)


def test_after_kill_a_run_goes_on_to_the_same_bytes(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    account = {"disable_oauth": True, "client_email": "", "private_key": "", "private_key_id": ""}
    (tmp_path / "account.json").write_text(json.dumps({"gcs_base_url": place.server.address, **account}))
    monkeypatch.setenv("GOOGLE_SERVICE_ACCOUNT", str(tmp_path / "account.json"))
    rng = np.random.default_rng(0)
    lines = (json.dumps({"ids": rng.integers(0, 60_000, 100).tolist()}) for _ in range(100))
    (tmp_path / "ids.jsonl").write_text("\n".join(lines))
    held, over = threading.Event(), threading.Event()

    def fault(method: str, path: str, number: int) -> str | None:
        if method == "PUT" and "/00002-" in unquote(path) and unquote(path).endswith("shard.json"):
            held.set()
            over.wait(100)
            return "reset"
        return None

    def command(out: str, *more: str) -> list[str]:
        return [
            *(sys.executable, "-m", "penstock", "write", str(tmp_path / "ids.jsonl"), "--ids-column", "ids"),
            *("--dtype", "u2", "--shard-size", "10000", "--workers", "1", "--json", "--out", out, *more),
        ]

    with fault_proxy(place.server.address, fault) as proxy:
        process = subprocess.Popen(command(place.url, "--endpoint", proxy.address), stdout=subprocess.DEVNULL)
        assert held.wait(100)
        process.kill()
        process.wait()
        over.set()
    assert "dataset.json" not in place.files()
    to_server = ("--endpoint", place.server.address)
    again = subprocess.run(command(place.url, *to_server), capture_output=True, text=True)
    assert again.returncode == 2 and "--resume" in again.stderr
    resumed = subprocess.run(command(place.url, *to_server, "--resume"), capture_output=True, text=True)
    assert resumed.returncode == 0, resumed.stderr
    assert json.loads(resumed.stdout)["kept_shards"] == 2
    subprocess.run(command(str(tmp_path / "local")), check=True, capture_output=True)
    expected = tree(tmp_path / "local")
    assert plain(place.files()) == {name: data for name, data in expected.items() if "/" in name}
    verified = subprocess.run(
        [sys.executable, "-m", "penstock", "verify", place.url, *to_server], capture_output=True, text=True
    )
    assert verified.returncode == 0 and "all as written" in verified.stdout
    other = subprocess.run(command(place.url, *to_server, "--overwrite"), capture_output=True, text=True)
    assert other.returncode == 0, other.stderr
    assert penstock.verify(place.url, storage=place.storage)


def test_shards_are_copied_on_the_server(place: Place, server: Front, tmp_path: Path) -> None:
    with place.writer() as writer:
        append(writer)
    other = Place(server, f"{place.name}-other")
    with server.lock:
        begin = len(server.requests)
    found = penstock.combine([place.url], other.url, storage=place.storage, scratch=tmp_path / "scratch")
    assert not [path for method, path in server.requests[begin:] if method == "GET" and "stream.bin" in path]
    assert found == penstock.open(place.url, storage=place.storage).fingerprint
    assert plain(other.files()) == plain(place.files()) and penstock.verify(other.url, storage=place.storage)
    assert not list((tmp_path / "scratch").iterdir())
