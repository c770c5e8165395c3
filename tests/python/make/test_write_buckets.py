"""Datasets written into buckets of S3 (moto) and Google (fake-gcs-server), also by a proxy that fails on purpose."""

from __future__ import annotations

import json
import random
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
from _places import ACCESS, SECRET, SHARD_BYTES, Place, chain, plain, tree, without_names
from penstock import CorruptionError, InvalidArgumentError, IoError, NotFoundError, Storage
from penstock._cli.main import main

pytest.importorskip("obstore")

TOKEN = "ya29.Pa55word-0123456789"


class Google(Place):
    """A prefix of a bucket of Google's for one test."""

    def __init__(self, front: Front, name: str) -> None:
        self.front, self.server, self.name = front, front.address, name
        self.url = f"gs://data/{name}"
        self.storage = reached(self, front.address)

    def files(self) -> dict[str, bytes]:
        return self.front.files(f"{self.name}/")

    def uploads(self) -> list[str]:
        return list(self.front.parts)


def reached(place: Place, address: str, **given: Any) -> Storage:
    """The place by another address, as that of a proxy."""
    if isinstance(place, Google):
        return Storage(endpoint=address, credentials=lambda: {"token": TOKEN, "expires_at": None}, **given)
    return Storage(endpoint=address, region="us-east-1", **given)


@pytest.fixture(scope="module")
def front(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Front]:
    with writable_google(tmp_path_factory.mktemp("google")) as front:
        yield front


@pytest.fixture(params=["s3", "google"])
def either(request: pytest.FixtureRequest) -> Place:
    """What both must do."""
    if request.param == "s3":
        return request.getfixturevalue("place")
    name = request.node.name.translate({ord(each): "-" for each in "[]() ,"})
    return Google(request.getfixturevalue("front"), name)


def append(writer: penstock.Writer, seed: int = 0, documents: int = 100) -> None:
    rng = np.random.default_rng(seed)
    for document in range(documents):
        tokens = rng.integers(0, 60_000, int(rng.integers(1, 300))).astype("u2")
        writer.append(token=tokens, metadata={"name": document})


def write(place: Place, seed: int = 0, **options: Any) -> None:
    with place.writer(**options) as writer:
        append(writer, seed)


def local(folder: Path, seed: int = 0, **options: Any) -> dict[str, bytes]:
    """The files of a local dataset of the same."""
    options = {"shard_size": SHARD_BYTES, **options}
    with penstock.Writer(folder, fields={"token": "u2"}, metadata="json", **options) as writer:
        append(writer, seed)
    return tree(folder)


def in_shards(files: dict[str, bytes]) -> dict[str, bytes]:
    return {name: data for name, data in files.items() if "/" in name}


def only_what_is_published(place: Place, manifest: bytes) -> None:
    """Asserts that this manifest stands, with the shards that it names, whole, and no others."""
    files = place.files()
    assert files["dataset.json"] == manifest
    named = {each["name"] for each in json.loads(manifest)["shards"]}
    assert {name.split("/")[0] for name in files if "/" in name} == named
    assert penstock.verify(place.url, storage=place.storage)


def only_finished_shards(place: Place) -> set[str]:
    """The numbers of the whole shards that are there. Nothing is published."""
    files = place.files()
    assert "dataset.json" not in files
    return {name.split("-")[0] for name in files if name.endswith("/shard.json")}


def test_files_have_the_bytes_of_a_local_write(either: Place, tmp_path: Path) -> None:
    expected = local(tmp_path / "local")
    write(either, scratch=tmp_path / "scratch")
    found = either.files()
    assert plain(found) == in_shards(expected)
    assert without_names(found["dataset.json"]) == without_names(expected["dataset.json"])
    assert len(json.loads(found["dataset.json"])["shards"]) > 1
    assert list((tmp_path / "scratch").iterdir()) == []
    report = penstock.verify(either.url, storage=either.storage)
    assert report and report.bytes > 0 and list(report.notices) == []
    dataset = penstock.open(either.url, storage=either.storage)
    assert dataset.fingerprint == report.fingerprint == penstock.open(tmp_path / "local").fingerprint
    assert dataset.documents()[50].spans[0].metadata == {"name": 50}


def test_large_files_go_in_parts(either: Place) -> None:
    tokens = np.arange(5_000_000, dtype="u4").astype("u2")
    with fault_proxy(either.server, lambda method, path, number: None) as proxy:
        storage = reached(either, proxy.address)
        with penstock.Writer(either.url, fields={"token": "u2"}, storage=storage) as writer:
            writer.append(token=tokens)
        assert len([path for method, path in proxy.requests if method == "PUT" and "partNumber=" in path]) == 2
    stream = next(data for name, data in either.files().items() if name.endswith("stream.bin"))
    assert stream == tokens.tobytes() and either.uploads() == []


@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize("when", ["before it looks", "before its manifest arrives"])
def test_of_two_writers_at_once_the_second_is_refused(either: Place, when: str, overwrite: bool) -> None:
    if overwrite:
        write(either, 1)
    first, published = either.writer(overwrite=overwrite), []

    def publish() -> None:
        first.commit()
        published.append(either.files()["dataset.json"])

    def fault(method: str, path: str, number: int) -> None:
        if method == "PUT" and unquote(path).endswith("/dataset.json") and not published:
            publish()  # after all that the second looks at

    with fault_proxy(either.server, fault) as proxy:
        second = either.writer(overwrite=overwrite, storage=reached(either, proxy.address))
        append(first, 2)
        append(second, 3)
        if overwrite:
            assert penstock.open(either.url, storage=either.storage).fingerprint  # the old one stands meanwhile
        if when == "before it looks":
            publish()
        with pytest.raises(InvalidArgumentError, match="someone else has published"):
            second.commit()
        second.abort()
    only_what_is_published(either, published[0])
    with pytest.raises(InvalidArgumentError, match="there is a published dataset"):
        either.writer()


def test_an_exception_leaves_finished_shards_alone(either: Place, tmp_path: Path) -> None:
    def stopped() -> None:
        with either.writer(scratch=tmp_path / "scratch") as writer:
            append(writer)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stopped()
    only_finished_shards(either)
    assert list((tmp_path / "scratch").iterdir()) == []
    write(either, overwrite=True)  # goes on with them
    only_what_is_published(either, either.files()["dataset.json"])


def test_shards_of_several_writers_are_committed(either: Place, tmp_path: Path) -> None:
    for number in (4, 1, 7):
        write(either, number, shard=number, task={"part": number}, shard_size=1 << 30)
    assert only_finished_shards(either) == {"00001", "00004", "00007"}
    found = penstock.finished_shards(either.url, storage=either.storage)
    assert [(each.number, each.task) for each in found] == [(number, {"part": number}) for number in (1, 4, 7)]
    with pytest.raises(InvalidArgumentError, match="is finished already"):
        either.writer(shard=1)
    penstock.remove_shards(either.url, [7], storage=either.storage)
    for shards, words in (
        (None, "shard 00000 is missing"),
        ([1], "shard 00004 is finished, and is not one of those"),
        ([1, 2, 4], "shard 00002 is missing"),
    ):
        with pytest.raises(InvalidArgumentError, match=words):
            penstock.commit(either.url, shards=shards, storage=either.storage)
    given: dict[str, Any] = {"shards": [1, 4], "tasks": [{"part": 1}, {"part": 4}]}
    fingerprint = penstock.commit(either.url, storage=either.storage, **given)
    for number in (1, 4):
        local(tmp_path / "local", number, shard=number, task={"part": number}, shard_size=1 << 30)
    assert penstock.commit(tmp_path / "local", **given) == fingerprint
    assert plain(either.files()) == in_shards(tree(tmp_path / "local"))
    assert penstock.verify(either.url, storage=either.storage)


def test_two_attempts_of_a_shard_do_not_mix(place: Place) -> None:
    writers = [place.writer(shard=0, shard_size=1 << 30) for _ in range(2)]
    for seed, writer in enumerate(writers):
        append(writer, seed)
    for writer in writers:
        writer.commit()
    with pytest.raises(InvalidArgumentError, match="shard 00000 is there 2 times"):
        penstock.commit(place.url, storage=place.storage)
    penstock.remove_shards(place.url, [0], storage=place.storage)
    assert place.files() == {}


def test_faults_are_tried_again(place: Place, tmp_path: Path) -> None:
    draw, lock = random.Random(0), threading.Lock()

    def fault(method: str, path: str, number: int) -> str | None:
        with lock:
            return draw.choice(("503", "reset")) if draw.random() < 0.2 else None

    with fault_proxy(place.server, fault) as proxy:
        write(place, storage=reached(place, proxy.address, deadline=300))
    assert plain(place.files()) == in_shards(local(tmp_path / "local"))


def test_the_manifest_is_published_though_the_answer_is_lost(place: Place) -> None:
    lost: list[str] = []

    def fault(method: str, path: str, number: int) -> str | None:
        if method == "PUT" and path.endswith("/dataset.json") and not lost:
            lost.append(path)
            return "lost"
        return None

    with fault_proxy(place.server, fault) as proxy:
        write(place, storage=reached(place, proxy.address))
    assert lost and penstock.verify(place.url, storage=place.storage)


def test_a_failed_upload_is_one_error_and_the_shard_stays_here(place: Place, tmp_path: Path) -> None:
    def fault(method: str, path: str, number: int) -> str | None:
        return "503" if method == "PUT" and "stream.bin" in path else None

    with fault_proxy(place.server, fault) as proxy:
        storage = reached(place, proxy.address, deadline=0.5)
        writer = place.writer(storage=storage, shard=0, shard_size=1 << 30, scratch=tmp_path / "scratch")
        append(writer)
        with pytest.raises(IoError) as raised:
            writer.commit()
        writer.abort()
    text = str(raised.value)
    assert f"{place.url}/00000-" in text and "503" in text and "attempt" in text
    kept = next((tmp_path / "scratch").rglob("shard.json")).parent
    assert str(kept) in text and (kept / "stream.bin").exists() and place.files() == {}
    for secret in (SECRET, ACCESS, "Signature"):
        assert secret not in chain(raised.value)
    for file in sorted(kept.iterdir(), key=lambda each: each.name == "shard.json"):  # as the message says
        place.put(f"{kept.name}/{file.name}", file.read_bytes())
    penstock.commit(place.url, shards=1, storage=place.storage)
    assert penstock.verify(place.url, storage=place.storage)


def test_a_writer_that_fails_leaves_what_another_of_the_same_bytes_publishes(place: Place, tmp_path: Path) -> None:
    """A run and its restart: the first fails and looks, the second publishes, the first goes on to remove."""
    restarted: list[bytes] = []

    def fault(method: str, path: str, number: int) -> str | None:
        if method == "PUT" and "/00001" in path:
            return "503"
        if method in ("POST", "DELETE") and not restarted:  # the look is over, nothing is removed yet
            publish()
        return None

    def publish() -> None:
        write(place, overwrite=True)
        restarted.append(place.files()["dataset.json"])

    with fault_proxy(place.server, fault) as proxy, pytest.raises(IoError, match="503"):
        write(place, storage=reached(place, proxy.address, deadline=0.5), scratch=tmp_path)
    assert not list(tmp_path.glob("penstock-scratch-*"))
    if not restarted:  # it had nothing to remove
        assert only_finished_shards(place) == {"00000"}
        publish()
    only_what_is_published(place, restarted[0])


def test_a_server_that_ignores_conditions_is_noticed(place: Place) -> None:
    with (
        fault_proxy(place.server, lambda method, path, number: "blind") as proxy,
        pytest.raises(InvalidArgumentError, match="ignores If-None-Match and If-Match"),
    ):
        write(place, storage=reached(place, proxy.address))
    assert only_finished_shards(place)


def test_verify_names_what_is_damaged(place: Place) -> None:
    write(place)
    files = place.files()
    stream = sorted(name for name in files if name.endswith("stream.bin"))[1]
    whole = files[stream]
    for damaged in (whole[:1000] + bytes([whole[1000] ^ 1]) + whole[1001:], whole[:-2], None):
        if damaged is None:
            place.client.delete_object(Bucket="data", Key=f"{place.name}/{stream}")
        else:
            place.put(stream, damaged)
        report = penstock.verify(place.url, storage=place.storage)
        assert not report and any(stream in each for each in report.problems)
    place.put(stream, whole)
    assert penstock.verify(place.url, storage=place.storage)


def test_a_shard_that_is_not_whole_is_not_committed(place: Place) -> None:
    write(place, shard=0, shard_size=1 << 30)
    with pytest.raises(InvalidArgumentError, match="finished shards: 1, expected: 2"):
        penstock.commit(place.url, shards=2, storage=place.storage)
    place.put(next(name for name in place.files() if name.endswith("stream.bin")), b"short")
    with pytest.raises(CorruptionError, match=r"5 bytes, its shard\.json says"):
        penstock.commit(place.url, storage=place.storage)


def test_refusals_say_what_to_do(place: Place, tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="no such bucket"):
        penstock.Writer("s3://nowhere/corpus", fields={"token": "u2"}, storage=place.storage)
    with pytest.raises(InvalidArgumentError, match="is not written to"):
        penstock.Writer("https://example.org/corpus", fields={"token": "u2"})
    with pytest.raises(InvalidArgumentError, match="path of this machine"):
        penstock.Writer(tmp_path / "corpus", fields={"token": "u2"}, scratch=tmp_path)
    with pytest.raises(NotFoundError, match="no finished shard to commit"):
        penstock.commit(place.url, storage=place.storage)


# ---- what only Google's has: other verbs on S3 are in test_verbs.py and test_verbs_in_buckets.py


@pytest.fixture
def google(front: Front, request: pytest.FixtureRequest) -> Google:
    return Google(front, request.node.name)


def test_a_failed_upload_to_google_shows_no_token(google: Google) -> None:
    def fault(method: str, path: str, number: int) -> str | None:
        return "503" if method == "PUT" else None

    with fault_proxy(google.server, fault) as proxy, pytest.raises(IoError, match="503") as raised:
        write(google, storage=reached(google, proxy.address, deadline=0.5))
    assert TOKEN not in chain(raised.value)


def test_a_run_into_google_that_failed_goes_on_to_the_same_bytes(
    google: Google, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    account = {"disable_oauth": True, "client_email": "", "private_key": "", "private_key_id": ""}
    (tmp_path / "account.json").write_text(json.dumps({"gcs_base_url": google.server, **account}))
    monkeypatch.setenv("GOOGLE_SERVICE_ACCOUNT", str(tmp_path / "account.json"))
    rng = np.random.default_rng(0)
    lines = (json.dumps({"ids": rng.integers(0, 60_000, 100).tolist()}) for _ in range(100))
    (tmp_path / "ids.jsonl").write_text("\n".join(lines))
    given = {"ids_column": "ids", "dtype": "u2", "shard_size": 10_000}

    def fault(method: str, path: str, number: int) -> str | None:
        return "503" if method == "PUT" and "/00002-" in unquote(path) else None

    with fault_proxy(google.server, fault) as proxy, pytest.raises(IoError, match="2 finished shards are kept"):
        penstock.write(
            tmp_path / "ids.jsonl", google.url, storage=Storage(endpoint=proxy.address, deadline=0.5), **given
        )
    assert only_finished_shards(google) == {"00000", "00001"}
    words = ["--ids-column", "ids", "--dtype", "u2", "--shard-size", "10000", "--workers", "1", "--json"]
    command = ["write", str(tmp_path / "ids.jsonl"), "--out", google.url, "--endpoint", google.server, *words]
    assert main(command) == 2 and "--resume" in capsys.readouterr().err
    assert main([*command, "--resume"]) == 0 and json.loads(capsys.readouterr().out)["kept_shards"] == 2
    penstock.write(tmp_path / "ids.jsonl", tmp_path / "local", **given)
    assert plain(google.files()) == in_shards(tree(tmp_path / "local"))
    assert main(["verify", google.url, "--endpoint", google.server]) == 0


def test_shards_are_copied_on_googles_server(google: Google, tmp_path: Path) -> None:
    write(google)
    other, before = Google(google.front, f"{google.name}-other"), len(google.front.requests)
    found = penstock.combine([google.url], other.url, storage=google.storage, scratch=tmp_path / "scratch")
    asked = google.front.requests[before:]
    assert not [path for method, path in asked if method == "GET" and "stream.bin" in path]
    assert found == penstock.open(google.url, storage=google.storage).fingerprint
    assert plain(other.files()) == plain(google.files()) and penstock.verify(other.url, storage=google.storage)
    assert not list((tmp_path / "scratch").iterdir())
