"""Features of datasets in buckets: of a Writer and of a commit, replaced, and removed where publishing fails."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest
from _fault_servers import fault_proxy
from _places import Place
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


def check(place: Place, names: list[str]) -> None:
    dataset = penstock.open(place.url, storage=place.storage)
    assert list(dataset.features.names) == names
    assert penstock.verify(place.url, storage=place.storage)
    manifest = json.loads(place.files()["dataset.json"])
    named = {*(each["name"] for each in manifest["shards"]), manifest["features"]["folder"]}
    assert {name.split("/")[0] for name in place.files() if "/" in name} == named


def test_a_new_dataset_replaces_them(place: Place, tmp_path: Path) -> None:
    """That they have the bytes of local ones: test_verbs.py."""
    write(place.url, features=FEATURES, storage=place.storage, scratch=tmp_path / "scratch")
    check(place, FEATURES["names"])
    columns = penstock.open(place.url, storage=place.storage).features.columns
    assert columns["length"][:].tolist() == FEATURES["length"].tolist()
    assert [columns["kind"].categories[code] for code in columns["kind"][:]] == FEATURES["kind"]
    write(place.url, features=FEATURES["names"], storage=place.storage, overwrite=True)
    check(place, FEATURES["names"])
    assert not penstock.open(place.url, storage=place.storage).features.columns
    write(place.url, storage=place.storage, overwrite=True)
    assert penstock.open(place.url, storage=place.storage).features is None
    assert not [name for name in place.files() if name.startswith("features")]


@pytest.mark.parametrize(("how", "file"), [("a writer", "columns.bin"), ("a commit", "dataset.json")])
def test_where_they_cannot_be_uploaded_nothing_is_published(place: Place, s3_server: str, how: str, file: str) -> None:
    def fault(method: str, path: str, number: int) -> str | None:
        return "503" if method == "PUT" and "/features-" in path and file in path else None

    def publish(storage: Storage) -> None:
        if how == "a writer":
            write(place.url, features=FEATURES, storage=storage, overwrite=True)
        else:
            penstock.commit(place.url, shards=2, storage=storage, features=FEATURES)

    for number in range(2 if how == "a commit" else 0):
        write(place.url, storage=place.storage, shard=number)
    with fault_proxy(s3_server, fault) as proxy, pytest.raises(IoError, match="features-"):
        publish(Storage(endpoint=proxy.address, region="us-east-1", deadline=0.5))
    assert "dataset.json" not in place.files()
    publish(place.storage)
    check(place, FEATURES["names"])
