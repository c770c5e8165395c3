"""penstock.shuffle into a bucket: shards leave while others are made, and gaps are filled. See test_verbs.py too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import penstock
import pytest
from _datasets import with_everything
from _fault_servers import fault_proxy
from _places import SHARD_BYTES, Place
from penstock import InvalidArgumentError, Storage

pytest.importorskip("obstore")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return with_everything(tmp_path / "in", SHARD_BYTES)


def shuffle(data: Path, out: Any, **options: Any) -> str:
    return penstock.shuffle(data, out, **{"seed": 3, "documents": True, "shard_size": SHARD_BYTES, **options})


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
