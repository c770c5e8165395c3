"""Shards of several writers, published by one commit: by number, and from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import penstock
import pytest
from penstock._cli.main import main


def write(path: Path, *numbers: int) -> None:
    for number in numbers:
        with penstock.Writer(path, fields={"token": "u2"}, shard=number, task=number) as writer:
            writer.append(token=[number] * 3)


def test_named_shards_are_published_with_gaps_between_them(tmp_path: Path) -> None:
    write(tmp_path, 1, 4, 9)
    with pytest.raises(penstock.InvalidArgumentError, match="shard 00000 is missing"):
        penstock.commit(tmp_path)
    assert penstock.commit(tmp_path, shards=[1, 4, 9], tasks=[1, 4, 9]) == penstock.open(tmp_path).fingerprint
    assert penstock.open(tmp_path).windows(9)[0]["token"].tolist() == [1] * 3 + [4] * 3 + [9] * 3
    assert penstock.verify(tmp_path)
    assert [each.task for each in penstock.finished_shards(tmp_path)] == [1, 4, 9]


@pytest.mark.parametrize(
    ("shards", "words"),
    [
        ([1, 4], "shard 00009 is finished, and is not one of those"),
        ([4, 9], "shard 00001 is finished, and is not one of those"),
        ([1, 4, 5, 9], "shard 00005 is missing"),
        ([0, 1, 4, 9], "shard 00000 is missing"),
        ([1, 4, 9, 10], "shard 00010 is missing"),
        ([], "shard 00001 is finished, and is not one of those"),
        ([4, 1, 9], "give the numbers in order, each once"),
        ([1, 1, 4, 9], "give the numbers in order, each once"),
    ],
)
def test_other_shards_than_those_named_are_refused(tmp_path: Path, shards: list[int], words: str) -> None:
    write(tmp_path, 1, 4, 9)
    with pytest.raises(penstock.InvalidArgumentError, match=words):
        penstock.commit(tmp_path, shards=shards)
    assert not (tmp_path / "dataset.json").exists()


def test_tasks_are_those_of_the_named_shards(tmp_path: Path) -> None:
    write(tmp_path, 1, 4)
    with pytest.raises(penstock.InvalidArgumentError, match="00004: it was made of another input"):
        penstock.commit(tmp_path, shards=[1, 4], tasks=[1, 5])


def test_the_command_publishes_and_says_what_is_missing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path / "out", 0, 1, 3)
    assert main(["commit", str(tmp_path / "out"), "--shards", "4"]) == 2
    assert "shard 00002 is missing" in capsys.readouterr().err
    write(tmp_path / "out", 2)
    assert main(["commit", str(tmp_path / "out"), "--shards", "4", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["shards"], said["records"]) == (4, 12)
    assert main(["commit", str(tmp_path / "out")]) == 2
    assert "there is a published dataset" in capsys.readouterr().err
