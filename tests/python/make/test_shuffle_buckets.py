"""penstock.shuffle into a bucket: the bytes of a local shuffle, shards that leave while others are made, going on."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest
from _fault_servers import fault_proxy
from _places import SECRET, SHARD_BYTES, Place, plain, tree, without_names
from penstock import InvalidArgumentError, IoError, Storage

pytest.importorskip("obstore")

FEATURES = {"names": [f"gene{i}" for i in range(50)], "length": np.arange(50, dtype="u4")}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Five shards with entries, a column, a tokenizer and features."""
    rng = np.random.default_rng(0)
    with penstock.Writer(
        tmp_path / "in",
        fields={"token": "u2"},
        metadata="json",
        columns={"score": "f4", "label": "category"},
        features=FEATURES,
        tokenizer={"name": "mine", "vocabulary_size": 50},
        shard_size=SHARD_BYTES,
    ) as writer:
        for number in range(300):
            tokens = rng.integers(0, 50, int(rng.integers(1, 300))).astype("u2")
            columns = {"score": number / 7, "label": f"l{number % 3}"}
            writer.append(token=tokens, metadata={"name": number}, columns=columns)
    return tmp_path / "in"


def shuffle(data: Path, out: Any, **options: Any) -> str:
    return penstock.shuffle(data, out, **{"seed": 3, "documents": True, "shard_size": SHARD_BYTES, **options})


def split(files: dict[str, bytes]) -> tuple[dict[str, bytes], dict[str, bytes], Any]:
    """Files of shards, of features without their folder, and the manifest without names."""
    features = {name.partition("/")[2]: data for name, data in files.items() if name.startswith("features")}
    shards = {n: d for n, d in files.items() if "/" in n and not n.startswith("features")}
    manifest = without_names(files["dataset.json"])
    manifest["features"].pop("folder")
    return plain(shards), features, manifest


def check(place: Place, local: Path) -> None:
    assert split(place.files()) == split(tree(local))
    assert penstock.verify(place.url, storage=place.storage)
    assert set(place.files()) == {"dataset.json"} | {name for name in place.files() if "/" in name}


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("what", [{"documents": True}, {"documents": False, "window": 100}])
def test_files_have_the_bytes_of_a_local_shuffle(
    place: Place, data: Path, tmp_path: Path, what: dict[str, Any], workers: int
) -> None:
    told: list[tuple[int, int]] = []
    options = {**what, "memory": 1 << 18}
    there = shuffle(
        data,
        place.url,
        storage=place.storage,
        scratch=tmp_path / "scratch",
        workers=workers,
        progress=lambda done, total: told.append((done, total)),
        **options,
    )
    assert shuffle(data, tmp_path / "local", **options) == there
    check(place, tmp_path / "local")
    assert list((tmp_path / "scratch").iterdir()) == []
    assert told[-1][0] == told[-1][1] > 0
    assert list(penstock.open(place.url, storage=place.storage).features.names) == FEATURES["names"]


def test_shards_are_uploaded_and_removed_while_others_are_made(
    place: Place, s3_server: str, data: Path, tmp_path: Path
) -> None:
    scratch, here = tmp_path / "scratch", []

    def fault(method: str, path: str, number: int) -> None:
        if method == "PUT" and path.endswith("shard.json"):
            here.append(len(list(scratch.rglob("stream.bin"))))

    with fault_proxy(s3_server, fault) as proxy:
        storage = Storage(endpoint=proxy.address, region="us-east-1")
        shuffle(data, place.url, storage=storage, scratch=scratch, shard_size=8_000)
    # Two that wait, one that is being made; and the conditions that are tried with the first one's shard.json.
    assert len(here) > 8 and max(here) <= 4
    assert sum(name.endswith("stream.bin") for name in place.files()) > 8


def test_what_is_there_is_refused_kept_or_replaced(place: Place, data: Path, tmp_path: Path) -> None:
    fingerprint = shuffle(data, place.url, storage=place.storage)
    with pytest.raises(InvalidArgumentError, match="there is a published dataset"):
        shuffle(data, place.url, storage=place.storage)
    before = place.files()
    assert shuffle(data, place.url, storage=place.storage, resume=True) == fingerprint
    with pytest.raises(InvalidArgumentError, match="made of another input or with other options"):
        shuffle(data, place.url, storage=place.storage, resume=True, seed=4)
    assert place.files() == before
    replaced = shuffle(data, place.url, storage=place.storage, overwrite=True, seed=4)
    assert replaced != fingerprint
    assert penstock.open(place.url, storage=place.storage).fingerprint == replaced
    manifest = json.loads(place.files()["dataset.json"])
    named = {*(each["name"] for each in manifest["shards"]), manifest["features"]["folder"]}
    assert {name.split("/")[0] for name in place.files() if "/" in name} == named
    assert penstock.verify(place.url, storage=place.storage)


def test_workers_keep_what_is_there_and_fill_the_gaps(place: Place, data: Path, tmp_path: Path) -> None:
    options: dict[str, Any] = {"storage": place.storage, "scratch": tmp_path / "scratch", "workers": 2}
    shuffle(data, place.url, **options)
    whole = place.files()
    first, second = sorted({name.partition("/")[0] for name in whole if "/" in name})[:2]
    keys = ["dataset.json", *(name for name in whole if name.startswith(("features", f"{second}/")))]
    for key in keys:
        place.client.delete_object(Bucket="data", Key=f"{place.name}/{key}")
    with pytest.raises(InvalidArgumentError, match="resume"):
        shuffle(data, place.url, **options)
    shuffle(data, place.url, **{**options, "workers": 1}, resume=True)
    assert place.files() == whole and first != second
    assert not list((tmp_path / "scratch").iterdir())


def test_of_two_at_once_the_second_is_refused(place: Place, s3_server: str, data: Path) -> None:
    shuffle(data, place.url, storage=place.storage)
    other: list[str] = []

    def fault(method: str, path: str, number: int) -> None:
        if method == "PUT" and path.endswith("/dataset.json") and "features" not in path and not other:
            other.append(shuffle(data, place.url, storage=place.storage, overwrite=True, seed=5))

    with fault_proxy(s3_server, fault) as proxy:
        storage = Storage(endpoint=proxy.address, region="us-east-1")
        with pytest.raises(InvalidArgumentError, match="someone else has published"):
            shuffle(data, place.url, storage=storage, overwrite=True, seed=6)
    assert penstock.open(place.url, storage=place.storage).fingerprint == other[0]
    assert penstock.verify(place.url, storage=place.storage)


@pytest.mark.parametrize("workers", [1, 2])
def test_a_failed_upload_keeps_what_is_whole(
    place: Place, s3_server: str, data: Path, tmp_path: Path, workers: int
) -> None:
    def fault(method: str, path: str, number: int) -> str | None:
        return "503" if method == "PUT" and "/00002-" in path else None

    with fault_proxy(s3_server, fault) as proxy:
        storage = Storage(endpoint=proxy.address, region="us-east-1", deadline=0.5)
        with pytest.raises(IoError, match="503") as raised:
            shuffle(data, place.url, storage=storage, scratch=tmp_path / "scratch", workers=workers)
    assert SECRET not in str(raised.value) and "the shard stays" not in str(raised.value)
    assert list((tmp_path / "scratch").iterdir()) == []
    assert {"00000", "00001"} <= {name.split("-")[0] for name in place.files() if name.endswith("/shard.json")}
    with pytest.raises(InvalidArgumentError, match=r"[2-4] finished shards of a run that did not end"):
        shuffle(data, place.url, storage=place.storage)
    with pytest.raises(InvalidArgumentError, match="made of another input or with other options"):
        shuffle(data, place.url, storage=place.storage, resume=True, seed=4, workers=workers)
    shuffle(data, place.url, storage=place.storage, resume=True, workers=workers)
    shuffle(data, tmp_path / "local")
    check(place, tmp_path / "local")


def test_overwrite_begins_anew(place: Place, s3_server: str, data: Path, tmp_path: Path) -> None:
    def fault(method: str, path: str, number: int) -> str | None:
        return "503" if method == "PUT" and "/00001-" in path else None

    with fault_proxy(s3_server, fault) as proxy:
        storage = Storage(endpoint=proxy.address, region="us-east-1", deadline=0.5)
        with pytest.raises(IoError):
            shuffle(data, place.url, storage=storage)
    shuffle(data, place.url, storage=place.storage, overwrite=True)
    shuffle(data, tmp_path / "local")
    check(place, tmp_path / "local")


def command(data: Path, place: Place, address: str, scratch: Path, *more: str) -> list[str]:
    return [
        *(sys.executable, "-m", "penstock", "shuffle", str(data), "--out", place.url, "--endpoint", address),
        *("--region", "us-east-1", "--scratch", str(scratch), "--seed", "3", "--documents", "--shard-size"),
        *(str(SHARD_BYTES), "--json", *more),
    ]


def holding(name: str, held: threading.Event, over: threading.Event) -> Callable[[str, str, int], str | None]:
    def fault(method: str, path: str, number: int) -> str | None:
        if method == "PUT" and f"/{name}-" in path and path.endswith("shard.json"):
            held.set()
            over.wait(100)
            return "reset"
        return None

    return fault


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_a_run_that_was_ended_goes_on_to_the_same_bytes(
    place: Place, s3_server: str, data: Path, tmp_path: Path, how: signal.Signals
) -> None:
    held, over, scratch = threading.Event(), threading.Event(), tmp_path / "scratch"
    with fault_proxy(s3_server, holding("00002", held, over)) as proxy:
        process = subprocess.Popen(
            command(data, place, proxy.address, scratch), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )
        assert held.wait(100)
        process.send_signal(how)
        said = process.communicate(timeout=60)[1]
        over.set()
    if how == signal.SIGINT:
        assert process.returncode == 130
        assert "nothing was published; 2 finished shards are kept: go on with --resume" in said
        assert list(scratch.iterdir()) == []
    again = subprocess.run(command(data, place, s3_server, scratch), capture_output=True, text=True)
    assert again.returncode == 2 and "--resume" in again.stderr
    resumed = subprocess.run(command(data, place, s3_server, scratch, "--resume"), capture_output=True, text=True)
    assert resumed.returncode == 0, resumed.stderr
    assert json.loads(resumed.stdout)["path"] == place.url
    assert list(scratch.iterdir()) == []
    shuffle(data, tmp_path / "local")
    check(place, tmp_path / "local")
