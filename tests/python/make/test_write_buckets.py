"""Datasets written into buckets: on moto, and through a proxy of our own that fails on purpose."""

import json
import random
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest
from _fault_servers import fault_proxy
from _places import ACCESS, SECRET, SHARD_BYTES, Place, chain, plain, tree, without_names
from penstock import CorruptionError, Error, InvalidArgumentError, IoError, NotFoundError, Storage

pytest.importorskip("obstore")


@pytest.fixture
def server(s3_server: str) -> str:
    return s3_server


def append(writer: penstock.Writer, seed: int = 0, documents: int = 200) -> None:
    rng = np.random.default_rng(seed)
    for document in range(documents):
        tokens = rng.integers(0, 60_000, int(rng.integers(1, 300))).astype("u2")
        writer.append(token=tokens, metadata={"name": document})


def local(folder: Path, seed: int = 0, **options: Any) -> dict[str, bytes]:
    """The files of a local dataset of the same."""
    with penstock.Writer(folder, fields={"token": "u2"}, metadata="json", shard_size=SHARD_BYTES, **options) as writer:
        append(writer, seed)
    return tree(folder)


def only_what_is_published(place: Place, manifest: bytes) -> None:
    """Asserts that this manifest stands, with the shards that it names, whole, and no others."""
    files = place.files()
    assert files["dataset.json"] == manifest
    named = {each["name"] for each in json.loads(manifest)["shards"]}
    assert {name.split("/")[0] for name in files if "/" in name} == named
    assert penstock.verify(place.url, storage=place.storage)


def test_files_have_the_bytes_of_a_local_write(place: Place, tmp_path: Path) -> None:
    expected = local(tmp_path / "local")
    scratch = tmp_path / "scratch"
    with place.writer(scratch=scratch) as writer:
        append(writer)
    found = place.files()
    assert plain(found) == {name: data for name, data in expected.items() if "/" in name}
    assert without_names(found["dataset.json"]) == without_names(expected["dataset.json"])
    assert len(json.loads(found["dataset.json"])["shards"]) > 2
    assert list(scratch.iterdir()) == []
    there, here = penstock.open(place.url, storage=place.storage), penstock.open(tmp_path / "local")
    assert there.fingerprint == here.fingerprint
    for number in (3, 150):
        far, near = (each.documents()[number] for each in (there, here))
        assert far.spans[0].metadata == near.spans[0].metadata == {"name": number}
    report = penstock.verify(place.url, storage=place.storage)
    assert report and report.bytes > 0 and list(report.notices) == []


def test_large_files_go_in_parts(place: Place, server: str) -> None:
    tokens = np.arange(10_000_000, dtype="u4").astype("u2")
    with fault_proxy(server, lambda method, path, number: None) as proxy:
        storage = Storage(endpoint=proxy.address, region="us-east-1")
        with penstock.Writer(place.url, fields={"token": "u2"}, storage=storage) as writer:
            writer.append(token=tokens)
        parts = [path for method, path in proxy.requests if method == "PUT" and "partNumber=" in path]
    assert len(parts) == 3
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
    with pytest.raises(InvalidArgumentError, match="there is a published dataset"):
        place.writer()


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_manifest_that_was_put_meanwhile_stays(place: Place, server: str, overwrite: bool) -> None:
    if overwrite:
        with place.writer() as writer:
            append(writer, 1)
    first = place.writer(overwrite=overwrite)

    def fault(method: str, path: str, number: int) -> str | None:
        if method == "PUT" and path.endswith("/dataset.json"):
            first.commit()  # after all that the second looks at, before its manifest arrives
        return None

    with fault_proxy(server, fault) as proxy:
        second = place.writer(overwrite=overwrite, storage=Storage(endpoint=proxy.address, region="us-east-1"))
        append(first, 2)
        append(second, 3)
        with pytest.raises(InvalidArgumentError, match="someone else has published"):
            second.commit()
        second.abort()
    only_what_is_published(place, place.files()["dataset.json"])


def test_overwrite_replaces_the_version_that_it_saw_and_no_other(place: Place) -> None:
    with place.writer() as writer:
        append(writer, 1)
    first, second = place.writer(overwrite=True), place.writer(overwrite=True)
    append(first, 2)
    append(second, 3)
    assert penstock.open(place.url, storage=place.storage).fingerprint  # the old one stands meanwhile
    first.commit()
    published = place.files()["dataset.json"]
    with pytest.raises(InvalidArgumentError, match="someone else has published"):
        second.commit()
    second.abort()
    only_what_is_published(place, published)  # the old shards are gone


def only_finished_shards(place: Place) -> set[str]:
    """The folders of the whole shards that are there. Nothing is published."""
    files = place.files()
    assert "dataset.json" not in files
    return {name.split("/")[0] for name in files if name.endswith("/shard.json")}


def test_an_exception_leaves_finished_shards_alone(place: Place, tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"

    def write() -> None:
        with place.writer(scratch=scratch) as writer:
            append(writer)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write()
    only_finished_shards(place)
    assert list(scratch.iterdir()) == []
    with place.writer(overwrite=True) as writer:  # goes on with them
        append(writer)
    only_what_is_published(place, place.files()["dataset.json"])


def test_shards_of_several_writers_are_committed(place: Place, tmp_path: Path) -> None:
    for number in (1, 0, 2):
        with place.writer(shard=number, task={"part": number}, shard_size=1 << 30) as writer:
            append(writer, number)
    assert "dataset.json" not in place.files()
    found = penstock.finished_shards(place.url, storage=place.storage)
    assert [(each.number, each.task) for each in found] == [(0, {"part": 0}), (1, {"part": 1}), (2, {"part": 2})]
    with pytest.raises(InvalidArgumentError, match="is finished already"):
        place.writer(shard=1)
    penstock.remove_shards(place.url, [2], storage=place.storage)
    with pytest.raises(InvalidArgumentError, match="finished shards: 2, expected: 3"):
        penstock.commit(place.url, shards=3, storage=place.storage)
    fingerprint = penstock.commit(place.url, shards=2, storage=place.storage)
    for number in (0, 1):
        with penstock.Writer(
            tmp_path / "local", fields={"token": "u2"}, metadata="json", shard=number, task={"part": number}
        ) as writer:
            append(writer, number)
    assert penstock.commit(tmp_path / "local", shards=2) == fingerprint
    assert plain(place.files()) == {name: data for name, data in tree(tmp_path / "local").items() if "/" in name}


def test_two_attempts_of_a_shard_do_not_mix(place: Place) -> None:
    first = place.writer(shard=0, shard_size=1 << 30)
    second = place.writer(shard=0, shard_size=1 << 30)
    append(first, 1)
    append(second, 2)
    first.commit()
    second.commit()
    with pytest.raises(InvalidArgumentError, match="shard 00000 is there 2 times"):
        penstock.commit(place.url, storage=place.storage)
    penstock.remove_shards(place.url, [0], storage=place.storage)
    assert place.files() == {}


def test_faults_are_tried_again(place: Place, server: str, tmp_path: Path) -> None:
    draw, lock = random.Random(0), threading.Lock()

    def fault(method: str, path: str, number: int) -> str | None:
        with lock:
            return draw.choice(("503", "reset")) if draw.random() < 0.2 else None

    expected = local(tmp_path / "local")
    with fault_proxy(server, fault) as proxy:
        writer = place.writer(storage=Storage(endpoint=proxy.address, region="us-east-1", deadline=300))
        append(writer)
        writer.commit()
    assert plain(place.files()) == {name: data for name, data in expected.items() if "/" in name}


def test_the_manifest_is_published_though_the_answer_is_lost(place: Place, server: str) -> None:
    lost: list[str] = []

    def fault(method: str, path: str, number: int) -> str | None:
        if method == "PUT" and path.endswith("/dataset.json") and not lost:
            lost.append(path)
            return "lost"
        return None

    with fault_proxy(server, fault) as proxy:
        writer = place.writer(storage=Storage(endpoint=proxy.address, region="us-east-1"))
        append(writer)
        writer.commit()
    assert lost
    assert penstock.verify(place.url, storage=place.storage)


def test_a_failed_upload_is_one_error_and_the_shard_stays_here(place: Place, server: str, tmp_path: Path) -> None:
    def fault(method: str, path: str, number: int) -> str | None:
        return "503" if method == "PUT" and "columns" not in path and "stream.bin" in path else None

    with fault_proxy(server, fault) as proxy:
        storage = Storage(endpoint=proxy.address, region="us-east-1", deadline=0.5)
        writer = place.writer(storage=storage, shard=0, shard_size=1 << 30, scratch=tmp_path / "scratch")
        append(writer)
        with pytest.raises(IoError) as raised:
            writer.commit()
        writer.abort()
    text = str(raised.value)
    assert f"{place.url}/00000-" in text and "503" in text and "attempt" in text
    kept = next((tmp_path / "scratch").rglob("shard.json")).parent
    assert str(kept) in text
    assert (kept / "stream.bin").exists()
    for secret in (SECRET, ACCESS, "Signature"):
        assert secret not in chain(raised.value)
    assert place.files() == {}
    for file in sorted(kept.iterdir(), key=lambda each: each.name == "shard.json"):  # as the message says
        place.put(f"{kept.name}/{file.name}", file.read_bytes())
    penstock.commit(place.url, shards=1, storage=place.storage)
    assert penstock.verify(place.url, storage=place.storage)


def test_a_failed_upload_of_a_dataset_publishes_nothing(place: Place, server: str, tmp_path: Path) -> None:
    def fault(method: str, path: str, number: int) -> str | None:
        return "503" if method == "PUT" and "/00001" in path else None

    with fault_proxy(server, fault) as proxy:
        storage = Storage(endpoint=proxy.address, region="us-east-1", deadline=0.5)
        with pytest.raises(IoError, match="503"), place.writer(storage=storage, scratch=tmp_path) as writer:
            append(writer)
    assert {each.split("-")[0] for each in only_finished_shards(place)} == {"00000"}
    assert not list(tmp_path.glob("penstock-scratch-*"))


def test_a_writer_that_fails_leaves_what_another_of_the_same_bytes_publishes(place: Place, server: str) -> None:
    """A run and its restart: the first fails and looks, the second publishes, the first goes on to remove."""
    restarted: list[bytes] = []

    def fault(method: str, path: str, number: int) -> str | None:
        if method == "PUT" and "/00001" in path:
            return "503"
        if method in ("POST", "DELETE") and not restarted:  # the look is over, nothing is removed yet
            publish()
        return None

    def publish() -> None:
        with place.writer(overwrite=True) as writer:
            append(writer)
        restarted.append(place.files()["dataset.json"])

    with fault_proxy(server, fault) as proxy:
        storage = Storage(endpoint=proxy.address, region="us-east-1", deadline=0.5)
        with pytest.raises(IoError, match="503"), place.writer(storage=storage) as writer:
            append(writer)
    if not restarted:  # it had nothing to remove
        publish()
    only_what_is_published(place, restarted[0])


def test_a_server_that_ignores_conditions_is_noticed(place: Place, server: str) -> None:
    with fault_proxy(server, lambda method, path, number: "blind") as proxy:
        storage = Storage(endpoint=proxy.address, region="us-east-1")
        with (
            pytest.raises(InvalidArgumentError, match="ignores If-None-Match and If-Match"),
            place.writer(storage=storage) as writer,
        ):
            append(writer)
    assert only_finished_shards(place)


def test_verify_names_what_is_damaged(place: Place) -> None:
    with place.writer() as writer:
        append(writer)
    files = place.files()
    stream = sorted(name for name in files if name.endswith("stream.bin"))[1]
    flipped = bytearray(files[stream])
    flipped[1000] ^= 1
    place.put(stream, bytes(flipped))
    report = penstock.verify(place.url, storage=place.storage)
    assert not report and any(stream in each for each in report.problems)
    place.put(stream, files[stream][:-2])
    report = penstock.verify(place.url, storage=place.storage)
    assert not report and any(stream in each for each in report.problems)
    place.client.delete_object(Bucket="data", Key=f"{place.name}/{stream}")
    report = penstock.verify(place.url, storage=place.storage)
    assert not report and any(stream in each for each in report.problems)
    place.put(stream, files[stream])
    assert penstock.verify(place.url, storage=place.storage)


def test_a_shard_that_is_not_whole_is_not_committed(place: Place) -> None:
    with place.writer(shard=0, shard_size=1 << 30) as writer:
        append(writer)
    stream = next(name for name in place.files() if name.endswith("stream.bin"))
    place.put(stream, b"short")
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


def command(place: Place, address: str, inputs: Path, scratch: Path, *more: str) -> list[str]:
    return [
        *(sys.executable, "-m", "penstock", "write", str(inputs), "--ids-column", "ids", "--dtype", "u2"),
        *("--out", place.url, "--endpoint", address, "--region", "us-east-1", "--scratch", str(scratch)),
        *("--shard-size", "10000", "--workers", "1", "--json", *more),
    ]


@pytest.fixture
def inputs(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    lines = (json.dumps({"ids": rng.integers(0, 60_000, 100).tolist()}) for _ in range(100))
    file = tmp_path / "ids.jsonl"
    file.write_text("\n".join(lines))
    return file


def test_after_kill_a_run_goes_on_to_the_same_bytes(place: Place, server: str, inputs: Path, tmp_path: Path) -> None:
    held = threading.Event()

    def fault(method: str, path: str, number: int) -> str | None:
        if method == "PUT" and "/00002-" in path and path.endswith("shard.json"):
            held.set()
            threading.Event().wait()
        return None

    scratch = tmp_path / "scratch"
    with fault_proxy(server, fault) as proxy:
        process = subprocess.Popen(command(place, proxy.address, inputs, scratch), stdout=subprocess.DEVNULL)
        assert held.wait(200)
        process.kill()
        process.wait()
    killed = place.files()
    assert "dataset.json" not in killed
    assert list(scratch.iterdir())
    again = subprocess.run(command(place, server, inputs, scratch), capture_output=True, text=True)
    assert again.returncode != 0 and "--resume" in again.stderr
    resumed = subprocess.run(command(place, server, inputs, scratch, "--resume"), capture_output=True, text=True)
    assert resumed.returncode == 0, resumed.stderr
    assert json.loads(resumed.stdout)["kept_shards" if "kept_shards" in resumed.stdout else "kept_tasks"] == 2
    assert list(scratch.iterdir()) == []
    out = tmp_path / "local"
    plain_command = [each for each in command(place, server, inputs, scratch) if each]
    at = plain_command.index("--out")
    plain_command[at : at + 8] = ["--out", str(out)]
    subprocess.run(plain_command, check=True, capture_output=True)
    assert plain(place.files()) == {name: data for name, data in tree(out).items() if "/" in name}
    verified = subprocess.run(
        [sys.executable, "-m", "penstock", "verify", place.url, "--endpoint", server, "--region", "us-east-1"],
        capture_output=True,
        text=True,
    )
    assert verified.returncode == 0, verified.stdout
    assert "all as written" in verified.stdout


def test_of_a_wrong_endpoint_no_secret_is_said(place: Place) -> None:
    storage = Storage(endpoint="http://127.0.0.1:9", region="us-east-1", deadline=0.2)
    with pytest.raises(Error) as raised:
        place.writer(storage=storage)
    for secret in (SECRET, ACCESS, "Signature"):
        assert secret not in chain(raised.value)


def test_named_shards_are_published_with_gaps_between_them(place: Place, tmp_path: Path) -> None:
    for shard in (1, 4):
        with place.writer(shard=shard, task=shard) as writer:
            append(writer, shard)
        with penstock.Writer(tmp_path, fields={"token": "u2"}, metadata="json", shard=shard, task=shard) as writer:
            append(writer, shard)
    with pytest.raises(InvalidArgumentError, match="shard 00000 is missing"):
        penstock.commit(place.url, storage=place.storage)
    with pytest.raises(InvalidArgumentError, match="shard 00004 is finished, and is not one of those"):
        penstock.commit(place.url, shards=[1], storage=place.storage)
    with pytest.raises(InvalidArgumentError, match="shard 00002 is missing"):
        penstock.commit(place.url, shards=[1, 2, 4], storage=place.storage)
    fingerprint = penstock.commit(place.url, shards=[1, 4], tasks=[1, 4], storage=place.storage)
    assert fingerprint == penstock.commit(tmp_path, shards=[1, 4])
    assert penstock.verify(place.url, storage=place.storage)
