"""combine, append, annotate and convert where datasets lie in buckets: the bytes of the local verbs, copies, refusals."""

from __future__ import annotations

import json
import os
import re
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
from _places import SHARD_BYTES, Place, plain, tree, without_names
from penstock import InvalidArgumentError, IoError, NotFoundError, Storage

pytest.importorskip("obstore")

FEATURES = {"names": [f"gene{i}" for i in range(50)], "length": np.arange(50, dtype="u4")}
TOKENIZER = {"name": "mine", "vocabulary_size": 50}
COUNT = 120


def write(path: Any, seed: int = 0, count: int = COUNT, **options: Any) -> Any:
    """Shards with entries, columns, a tokenizer and features, each document with a record at least."""
    rng = np.random.default_rng(seed)
    given: dict[str, Any] = {"tokenizer": TOKENIZER, "features": FEATURES, "shard_size": SHARD_BYTES, **options}
    columns = {"score": "f4", "label": "category"}
    with penstock.Writer(path, {"token": "u2"}, metadata="json", columns=columns, **given) as writer:
        for number in range(count):
            tokens = rng.integers(0, 50, int(rng.integers(1, 300))).astype("u2")
            values = {"score": number / 7, "label": f"l{number % 3 + seed}"}
            writer.append(token=tokens, metadata={"name": number, "seed": seed}, columns=values)
    return path


@pytest.fixture
def data(tmp_path: Path) -> list[Path]:
    return [write(tmp_path / "a"), write(tmp_path / "b", seed=1, count=COUNT // 2)]


@pytest.fixture
def other(s3_server: str, place: Place) -> Place:
    """Another prefix of the bucket."""
    return Place(s3_server, f"{place.name}-other")


def split(files: dict[str, bytes]) -> tuple[dict[str, bytes], dict[str, bytes], Any]:
    """Files of shards, of features without their folder, and the manifest without names."""
    features = {name.partition("/")[2]: data for name, data in files.items() if name.startswith("features")}
    shards = {n: d for n, d in files.items() if "/" in n and not n.startswith("features")}
    manifest = without_names(files["dataset.json"])
    manifest["features"].pop("folder")
    return {re.sub(r"^(\d+)\.\d+/", r"\1/", n): d for n, d in plain(shards).items()}, features, manifest


def check(place: Place, local: Path) -> None:
    """The bytes of a local dataset, and nothing else."""
    files, wanted = split(place.files()), split(tree(local))
    assert [sorted(each) for each in files] == [sorted(each) for each in wanted]
    assert files == wanted
    report = penstock.verify(place.url, storage=place.storage)
    assert report and not report.notices
    named = {"dataset.json"} | {name for name in place.files() if "/" in name}
    assert set(place.files()) == named


def empty(folder: Path) -> bool:
    return not folder.exists() or not list(folder.iterdir())


@pytest.mark.parametrize("workers", [1, 2])
def test_combined_into_a_bucket_from_there_and_here(
    place: Place, other: Place, data: list[Path], tmp_path: Path, workers: int
) -> None:
    penstock.combine([data[0]], other.url, storage=place.storage)
    told: list[tuple[int, int]] = []
    found = penstock.combine(
        [other.url, data[1]],
        place.url,
        storage=place.storage,
        scratch=tmp_path / "scratch",
        workers=workers,
        progress=lambda done, total: told.append((done, total)),
    )
    assert found == penstock.combine(data, tmp_path / "local") == penstock.open(*data).fingerprint
    check(place, tmp_path / "local")
    assert empty(tmp_path / "scratch") and told[-1][0] == told[-1][1] > 0
    assert list(penstock.open(place.url, storage=place.storage).features.names) == FEATURES["names"]


@pytest.mark.parametrize("is_renamed", [False, True])
def test_shards_of_the_same_bucket_are_copied_on_the_server(
    place: Place, other: Place, s3_server: str, data: list[Path], tmp_path: Path, is_renamed: bool
) -> None:
    if is_renamed:  # a dataset of this machine that was copied there: names without a hash
        for name, content in tree(data[0]).items():
            other.put(name, content)
    else:
        penstock.combine([data[0]], other.url, storage=place.storage)
    with fault_proxy(s3_server, lambda method, path, number: None) as proxy:
        penstock.combine([other.url], place.url, storage=Storage(endpoint=proxy.address, region="us-east-1"))
        moved = [
            path
            for method, path in proxy.requests
            if method in ("GET", "POST") and ".bin" in path and "/features" not in path
        ]
        parts = [path for method, path in proxy.requests if method == "PUT" and "partNumber" in path]
    assert not [path for path in moved if not path.partition("?")[0].endswith(".crc")] and not parts
    assert bool(moved) == is_renamed
    penstock.combine([data[0]], tmp_path / "local")
    check(place, tmp_path / "local")


@pytest.mark.parametrize("workers", [1, 2])
def test_combined_into_a_folder_from_a_bucket(place: Place, data: list[Path], tmp_path: Path, workers: int) -> None:
    penstock.combine([data[1]], place.url, storage=place.storage)
    out = tmp_path / "out"
    found = penstock.combine([data[0], place.url], out, storage=place.storage, workers=workers)
    assert found == penstock.combine(data, tmp_path / "local")
    assert tree(out) == tree(tmp_path / "local") and penstock.verify(out) and not penstock.verify(out).notices
    assert sorted(each.name for each in out.iterdir() if each.name.startswith(".")) == []
    penstock.combine([place.url], out, storage=place.storage, overwrite=True, scratch=tmp_path / "scratch")
    assert penstock.open(out).fingerprint == penstock.open(data[1]).fingerprint and penstock.verify(out)
    assert empty(tmp_path / "scratch") and not penstock.verify(out).notices


@pytest.mark.parametrize("workers", [1, 2])
def test_appended_in_a_bucket(place: Place, other: Place, data: list[Path], tmp_path: Path, workers: int) -> None:
    penstock.combine([data[0]], place.url, storage=place.storage)
    penstock.combine([data[1]], other.url, storage=place.storage)
    before = place.files()
    told: list[tuple[int, int]] = []
    options: dict[str, Any] = {"storage": place.storage, "scratch": tmp_path / "scratch", "workers": workers}
    found = penstock.append(place.url, [other.url, data[1]], lambda *done: told.append(done), **options)
    penstock.combine([data[0], data[1], data[1]], tmp_path / "local")
    assert found == penstock.open(tmp_path / "local").fingerprint
    check(place, tmp_path / "local")
    after = place.files()
    assert {name: after[name] for name in before if name != "dataset.json"} == {
        name: content for name, content in before.items() if name != "dataset.json"
    }
    assert told[-1] == (2 * len(penstock.open(data[1]).shards),) * 2 and empty(tmp_path / "scratch")
    grown = penstock.open(place.url, storage=place.storage)
    first = range(len(penstock.open(data[0]).shards))
    assert grown.select(list(first)).fingerprint == penstock.open(data[0]).fingerprint
    assert penstock.append(place.url, [other.url, data[1]], resume=True, **options) == found and place.files() == after


def test_appended_to_a_folder_from_a_bucket(place: Place, data: list[Path], tmp_path: Path) -> None:
    penstock.combine([data[1]], place.url, storage=place.storage)
    local = tmp_path / "local"
    penstock.combine([data[0]], local)
    penstock.append(data[0], [place.url, data[1]], storage=place.storage, scratch=tmp_path / "scratch")
    penstock.append(local, [data[1], data[1]])
    assert tree(data[0]) == tree(local) and penstock.verify(data[0]) and empty(tmp_path / "scratch")
    before = tree(local)
    penstock.append(local, place.url, storage=place.storage, resume=True)
    assert tree(local) == before


def values(count: int) -> dict[str, Any]:
    return {
        "score": None,
        "label": [f"x{n % 5}" if n % 7 else None for n in range(count)],
        "place": np.arange(2 * count, dtype="i4").reshape(count, 2),
    }


@pytest.mark.parametrize("workers", [1, 2])
def test_annotated_in_a_bucket(place: Place, data: list[Path], tmp_path: Path, workers: int) -> None:
    penstock.combine([data[0]], place.url, storage=place.storage)
    told: list[tuple[int, int]] = []
    options: dict[str, Any] = {"storage": place.storage, "scratch": tmp_path / "scratch", "workers": workers}
    found = penstock.annotate(place.url, values(COUNT), lambda *done: told.append(done), **options)
    assert found == penstock.annotate(data[0], values(COUNT))
    check(place, data[0])
    assert told[-1] == (len(penstock.open(data[0]).shards),) * 2 and empty(tmp_path / "scratch")
    columns = penstock.open(place.url, storage=place.storage).columns
    assert list(columns) == ["label", "place"] and columns["place"][:].tolist() == values(COUNT)["place"].tolist()
    for wrong, said in (
        ({"a": [1, 2]}, f"column a: 2 values, the dataset has {COUNT} documents"),
        ({"a": None}, "no column a"),
    ):
        with pytest.raises(InvalidArgumentError, match=f"^{place.url}: .*{said}"):
            penstock.annotate(place.url, wrong, **options)


def test_annotated_by_several_processes_here(data: list[Path], tmp_path: Path) -> None:
    penstock.combine([data[0]], tmp_path / "copy")
    assert penstock.annotate(data[0], values(COUNT)) == penstock.annotate(tmp_path / "copy", values(COUNT), workers=2)
    assert tree(data[0]) == tree(tmp_path / "copy") and penstock.verify(data[0])
    assert not [each for each in data[0].iterdir() if each.name.startswith(".")]


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("way", ["there to there", "there to here", "here to there", "here to here"])
def test_converted(place: Place, other: Place, data: list[Path], tmp_path: Path, way: str, workers: int) -> None:
    begin, end = way.split(" to ")
    penstock.combine([data[0]], other.url, storage=place.storage)
    path: Any = other.url if begin == "there" else data[0]
    out: Any = place.url if end == "there" else tmp_path / "out"
    options: dict[str, Any] = {"workers": workers}
    if way != "here to here":
        options |= {"storage": place.storage, "scratch": tmp_path / "scratch"}
    told: list[tuple[int, int]] = []
    found = penstock.convert(path, out, "ids", progress=lambda *done: told.append(done), **options)
    assert found == penstock.convert(data[0], tmp_path / "local", "ids") == penstock.open(data[0]).fingerprint
    if end == "there":
        check(place, tmp_path / "local")
    else:
        assert tree(out) == tree(tmp_path / "local") and penstock.verify(out)
    assert empty(tmp_path / "scratch") and told[-1][0] == told[-1][1] > 0
    with pytest.raises(InvalidArgumentError, match="its layout is ids already"):
        penstock.convert(
            out, tmp_path / "again", "ids", storage=options.get("storage") if end == "there" else None, workers=workers
        )
