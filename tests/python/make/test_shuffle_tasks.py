"""penstock.shuffle by tasks, as workers do it: the bytes of one process, whatever the dataset. More: test_verbs.py."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest
from _datasets import with_everything
from _fault_servers import fault_proxy
from _places import SHARD_BYTES, Place, tree
from _recipes import Near
from penstock import InvalidArgumentError, Storage
from test_shuffle import lengths_of, write

SHARD = 5000
NEAR = Near()


def shuffle(data: Path, out: Any, **options: Any) -> str:
    return penstock.shuffle(data, out, **{"seed": 3, "shard_size": SHARD, "memory": 1 << 20, **options})


def put_large_entries(path: Path) -> Path:
    """Entries and documents that do not fit into memory."""
    with penstock.Writer(path, {"token": "u2"}, "raw", shard_size=40_000) as writer:
        for number in range(60):
            tokens = np.full(20_000 if number % 17 == 3 else 10, number, "u2")
            writer.append(token=tokens, metadata=b"e" * (30_000 if number % 13 == 1 else 5))
    return path


def put_opaque(path: Path) -> Path:
    with penstock.Writer(path, None, "json", shard_size=100) as writer:
        for number in range(200):
            writer.append({"number": number})
    return path


def put_nothing(path: Path) -> Path:
    penstock.Writer(path, {"token": "u2"}, "json").commit()
    return path


def put_windows(codec: str | None) -> Callable[[Path], Path]:
    return lambda path: write(path, [*lengths_of(300), 1], codec)


def put_everything(path: Path) -> Path:
    return with_everything(path, 8000)


@pytest.mark.parametrize(
    ("put", "options", "shards"),
    [
        (put_everything, {"documents": True, "memory": 1 << 30}, 6),
        (put_everything, {"window": 64, "memory": 1 << 17}, 6),
        (put_windows(None), {"window": 1}, 6),
        (put_windows("boundaries"), {"window": 100}, 6),
        (put_windows(None), {"window": 5000}, 2),
        (put_large_entries, {"documents": True, "memory": 1 << 17}, 6),
        (put_opaque, {"documents": True, "shard_size": 500}, 2),
        (put_nothing, {"documents": True}, 1),
    ],
)
def test_the_bytes_are_those_of_one_process(
    tmp_path: Path, put: Callable[[Path], Path], options: dict[str, Any], shards: int
) -> None:
    data, told = put(tmp_path / "in"), []
    (tmp_path / "scratch").mkdir()
    one = shuffle(data, tmp_path / "one", **options)
    given = {"scratch": tmp_path / "scratch", "progress": lambda *done: told.append(done)}
    assert shuffle(data, tmp_path / "many", workers=NEAR, **given, **options) == one
    assert tree(tmp_path / "many") == tree(tmp_path / "one")
    assert len(penstock.open(tmp_path / "many").shards) >= shards
    assert told == sorted(told) and (put is put_nothing or told[-1][0] == told[-1][1] > 0)
    assert not list((tmp_path / "scratch").iterdir())
    assert not [each for each in tmp_path.iterdir() if each.name.startswith(".")]


@pytest.mark.parametrize("kept", [slice(3), slice(1, 4)], ids=["the first", "with a gap"])
@pytest.mark.parametrize("workers", [1, NEAR], ids=["one process", "tasks"])
def test_finished_shards_are_kept_by_either(tmp_path: Path, workers: Any, kept: slice) -> None:
    data, out = put_everything(tmp_path / "in"), tmp_path / "out"
    shuffle(data, tmp_path / "whole", documents=True)
    names = sorted(each.name for each in (tmp_path / "whole").glob("0*"))[kept]
    for name in names:
        shutil.copytree(tmp_path / "whole" / name, out / name)
    given: dict[str, Any] = {"documents": True, "workers": workers}
    before = {name: (out / name / "shard.json").stat().st_ino for name in names}
    with pytest.raises(InvalidArgumentError, match="resume"):
        shuffle(data, out, **given)
    with pytest.raises(InvalidArgumentError, match="made of another input or with other options"):
        shuffle(data, out, **given, resume=True, seed=4)
    shuffle(data, out, **given, resume=True)
    assert tree(out) == tree(tmp_path / "whole")
    assert {name: (out / name / "shard.json").stat().st_ino for name in names} == before
    assert shuffle(data, out, **given, resume=True) == penstock.open(out).fingerprint
    with pytest.raises(InvalidArgumentError, match="made of another input or with other options"):
        shuffle(data, out, **given, resume=True, shard_size=SHARD // 2)


def test_what_cannot_be_is_refused_in_words(tmp_path: Path) -> None:
    data = write(tmp_path / "in", lengths_of(2000))
    for options, words in [
        ({"workers": 0}, "workers=0"),
        ({"workers": "head:6379"}, "workers='head:6379': a number, or an executor"),
        ({"workers": 2.0}, "workers=2.0: a number, or an executor"),
        ({"memory": 1 << 16, "window": 64, "shard_size": 1}, "need more than 65,536 bytes of memory: give"),
        ({"memory": 100}, "memory of 100 bytes, must be at least 65,536"),
    ]:
        with pytest.raises(InvalidArgumentError, match=words):
            shuffle(data, tmp_path / "out", **{"workers": NEAR, "window": 64, **options})
        assert not (tmp_path / "out").exists()


# ---- into a bucket


def test_shards_are_uploaded_and_removed_while_others_are_made(place: Place, tmp_path: Path) -> None:
    scratch, here = tmp_path / "scratch", []

    def fault(method: str, path: str, number: int) -> None:
        if method == "PUT" and path.endswith("shard.json"):
            here.append(len(list(scratch.rglob("stream.bin"))))

    with fault_proxy(place.server, fault) as proxy:
        storage = Storage(endpoint=proxy.address, region="us-east-1")
        shuffle(put_everything(tmp_path / "in"), place.url, documents=True, storage=storage, scratch=scratch)
    # Two that wait, one that is being made; and the conditions that are tried with the first one's shard.json.
    assert len(here) > 8 and max(here) <= 4
    assert sum(name.endswith("stream.bin") for name in place.files()) > 8


def test_one_process_fills_the_gaps(place: Place, tmp_path: Path) -> None:
    data, scratch = with_everything(tmp_path / "in", SHARD_BYTES), tmp_path / "scratch"
    options: dict[str, Any] = {"documents": True, "shard_size": SHARD_BYTES, "storage": place.storage}
    shuffle(data, place.url, scratch=scratch, **options)
    whole = place.files()
    second = sorted({name.partition("/")[0] for name in whole if "/" in name})[1]
    for key in ("dataset.json", *(name for name in whole if name.startswith(("features", f"{second}/")))):
        place.client.delete_object(Bucket="data", Key=f"{place.name}/{key}")
    with pytest.raises(InvalidArgumentError, match="resume"):
        shuffle(data, place.url, scratch=scratch, **options)
    shuffle(data, place.url, scratch=scratch, **options, resume=True)
    assert place.files() == whole and not list(scratch.iterdir())
