"""penstock.shuffle on several workers: the bytes of one process, whatever the dataset. See test_verbs.py too."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest
from _datasets import with_everything
from test_shuffle import files, lengths_of, write

SHARD = 5000


def shuffle(data: Path, out: Path, **options: Any) -> str:
    return penstock.shuffle(data, out, **{"seed": 3, "shard_size": SHARD, "memory": 1 << 20, **options})


@pytest.mark.parametrize("memory", [1 << 17, 1 << 30])
@pytest.mark.parametrize("what", [{"documents": True}, {"window": 64}])
def test_the_bytes_are_those_of_one_process(tmp_path: Path, what: dict[str, Any], memory: int) -> None:
    data = with_everything(tmp_path / "in", 8000)
    one = shuffle(data, tmp_path / "one", **what)
    told: list[tuple[int, int]] = []
    many = shuffle(
        data,
        tmp_path / "many",
        workers=2,
        memory=memory,
        progress=lambda done, total: told.append((done, total)),
        **what,
    )
    assert many == one
    assert files(tmp_path / "many") == files(tmp_path / "one")
    assert len(penstock.open(tmp_path / "many").shards) > 5
    assert told[-1][0] == told[-1][1] > 0 and told == sorted(told)
    assert [each.name for each in tmp_path.iterdir() if each.name.startswith(".")] == []


@pytest.mark.parametrize("codec", ["boundaries", None])
@pytest.mark.parametrize("window", [1, 100, 5000])
def test_other_datasets_and_windows(tmp_path: Path, window: int, codec: str | None) -> None:
    data = write(tmp_path / "in", [*lengths_of(300), 1], codec)
    shuffle(data, tmp_path / "one", window=window)
    shuffle(data, tmp_path / "many", window=window, workers=2)
    assert files(tmp_path / "many") == files(tmp_path / "one")


def test_entries_that_do_not_fit_into_memory(tmp_path: Path) -> None:
    with penstock.Writer(tmp_path / "in", {"token": "u2"}, "raw", shard_size=40_000) as writer:
        for number in range(60):
            tokens = np.full(20_000 if number % 17 == 3 else 10, number, "u2")
            writer.append(token=tokens, metadata=b"e" * (30_000 if number % 13 == 1 else 5))
    shuffle(tmp_path / "in", tmp_path / "one", documents=True, memory=1 << 17)
    (tmp_path / "scratch").mkdir()
    shuffle(tmp_path / "in", tmp_path / "many", documents=True, memory=1 << 17, workers=2, scratch=tmp_path / "scratch")
    assert files(tmp_path / "many") == files(tmp_path / "one")
    assert not list((tmp_path / "scratch").iterdir())


def test_opaque_and_empty_datasets(tmp_path: Path) -> None:
    with penstock.Writer(tmp_path / "in", None, "json", shard_size=100) as writer:
        for number in range(200):
            writer.append({"number": number})
    with penstock.Writer(tmp_path / "empty", {"token": "u2"}, "json"):
        pass
    for name in ("in", "empty"):
        shuffle(tmp_path / name, tmp_path / f"{name}-one", documents=True, shard_size=500)
        shuffle(tmp_path / name, tmp_path / f"{name}-many", documents=True, shard_size=500, workers=2)
        assert files(tmp_path / f"{name}-many") == files(tmp_path / f"{name}-one")


def test_finished_shards_are_kept_by_either(tmp_path: Path) -> None:
    data = with_everything(tmp_path / "in", 8000)
    shuffle(data, tmp_path / "whole", documents=True)
    shards = sorted(each.name for each in (tmp_path / "whole").glob("0*"))
    for number, (workers, kept) in enumerate([(2, shards[:3]), (1, shards[:3]), (2, shards[1:4]), (1, shards[1:4])]):
        out = tmp_path / f"out{number}"
        out.mkdir()
        for name in kept:
            shutil.copytree(tmp_path / "whole" / name, out / name)
        before = {name: (out / name / "shard.json").stat().st_ino for name in kept}
        with pytest.raises(penstock.InvalidArgumentError, match="resume"):
            shuffle(data, out, documents=True, workers=workers)
        with pytest.raises(penstock.InvalidArgumentError, match="made of another input or with other options"):
            shuffle(data, out, documents=True, workers=workers, resume=True, seed=4)
        shuffle(data, out, documents=True, workers=workers, resume=True)
        assert files(out) == files(tmp_path / "whole")
        assert {name: (out / name / "shard.json").stat().st_ino for name in kept} == before
        assert shuffle(data, out, documents=True, workers=workers, resume=True) == penstock.open(out).fingerprint
        with pytest.raises(penstock.InvalidArgumentError, match="made of another input or with other options"):
            shuffle(data, out, documents=True, workers=workers, resume=True, shard_size=SHARD // 2)


def test_damage_is_not_laundered(tmp_path: Path) -> None:
    data = write(tmp_path / "in", lengths_of(300))
    stream = sorted(data.glob("0*/stream.bin"))[2]
    content = bytearray(stream.read_bytes())
    content[100] ^= 4
    stream.write_bytes(content)
    with pytest.raises(penstock.CorruptionError, match=f"{stream.parent.name}/stream.bin"):
        shuffle(data, tmp_path / "out", documents=True, workers=2)
    assert not (tmp_path / "out").exists()


def test_what_cannot_be_is_refused_in_words(tmp_path: Path) -> None:
    data = write(tmp_path / "in", lengths_of(2000))
    for options, words in [
        ({"workers": 0}, "workers=0"),
        ({"workers": "head:6379"}, "workers='head:6379': a number, or an executor"),
        ({"workers": 2.0}, "workers=2.0: a number, or an executor"),
        ({"memory": 1 << 16, "window": 64, "shard_size": 1}, "need more than 65,536 bytes of memory: give"),
        ({"memory": 100}, "memory of 100 bytes, must be at least 65,536"),
    ]:
        with pytest.raises(penstock.InvalidArgumentError, match=words):
            shuffle(data, tmp_path / "out", **{"workers": 2, "window": 64, **options})
        assert not (tmp_path / "out").exists()
