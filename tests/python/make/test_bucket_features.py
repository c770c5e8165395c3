"""Features of datasets in buckets: of a Writer and of a commit, replaced, and removed where publishing fails."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest
from _fault_servers import fault_proxy
from _places import Place, tree
from penstock import IoError, Storage

pytest.importorskip("obstore")

FEATURES = {
    "names": [f"gene{number}" for number in range(50)],
    "length": np.arange(50, dtype="u4"),
    "kind": ["coding" if number % 3 else "other" for number in range(50)],
}


def write(out: Any, **options: Any) -> None:
    with penstock.Writer(out, {"gene": "u2", "count": "u1"}, "boundaries", **options) as writer:
        for cell in range(100):
            writer.append(gene=np.arange(cell % 50, dtype="u2"), count=np.full(cell % 50, 3, "u1"))


def features_of(files: dict[str, bytes]) -> dict[str, bytes]:
    return {name.partition("/")[2]: data for name, data in files.items() if name.startswith("features")}


def check(place: Place, names: list[str]) -> None:
    dataset = penstock.open(place.url, storage=place.storage)
    assert list(dataset.features.names) == names
    assert penstock.verify(place.url, storage=place.storage)
    manifest = json.loads(place.files()["dataset.json"])
    named = {*(each["name"] for each in manifest["shards"]), manifest["features"]["folder"]}
    assert {name.split("/")[0] for name in place.files() if "/" in name} == named


def test_they_have_the_bytes_of_a_local_write(place: Place, tmp_path: Path) -> None:
    write(tmp_path / "local", features=FEATURES)
    write(place.url, features=FEATURES, storage=place.storage, scratch=tmp_path / "scratch")
    assert features_of(place.files()) == features_of(tree(tmp_path / "local"))
    check(place, FEATURES["names"])
    there, here = penstock.open(place.url, storage=place.storage).features, penstock.open(tmp_path / "local").features
    assert there.columns["length"][:].tolist() == here.columns["length"][:].tolist() == list(range(50))
    assert there.columns["kind"].categories == here.columns["kind"].categories
    assert list((tmp_path / "scratch").iterdir()) == []


def test_a_new_dataset_replaces_them(place: Place) -> None:
    write(place.url, features=FEATURES, storage=place.storage)
    write(place.url, features=FEATURES["names"], storage=place.storage, overwrite=True)
    check(place, FEATURES["names"])
    assert not penstock.open(place.url, storage=place.storage).features.columns
    write(place.url, storage=place.storage, overwrite=True)
    assert penstock.open(place.url, storage=place.storage).features is None
    assert features_of(place.files()) == {}


def test_a_commit_publishes_them(place: Place, tmp_path: Path, s3_server: str) -> None:
    for number in range(2):
        write(place.url, storage=place.storage, shard=number)

    def fault(method: str, path: str, number: int) -> str | None:
        return "503" if method == "PUT" and "/features-" in path and path.endswith("dataset.json") else None

    with fault_proxy(s3_server, fault) as proxy:
        storage = Storage(endpoint=proxy.address, region="us-east-1", deadline=0.5)
        with pytest.raises(IoError, match="features-"):
            penstock.commit(place.url, storage=storage, features=FEATURES)
    assert "dataset.json" not in place.files()
    penstock.commit(place.url, shards=2, storage=place.storage, features=FEATURES)
    check(place, FEATURES["names"])


def test_a_writer_that_cannot_upload_them_publishes_nothing(place: Place, s3_server: str) -> None:
    def fault(method: str, path: str, number: int) -> str | None:
        return "503" if method == "PUT" and "/features-" in path and "columns.bin" in path else None

    with fault_proxy(s3_server, fault) as proxy:
        storage = Storage(endpoint=proxy.address, region="us-east-1", deadline=0.5)
        with pytest.raises(IoError, match="features-"):
            write(place.url, features=FEATURES, storage=storage)
    assert "dataset.json" not in place.files()
    write(place.url, features=FEATURES, storage=place.storage, overwrite=True)
    check(place, FEATURES["names"])
