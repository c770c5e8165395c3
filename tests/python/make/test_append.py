"""append: shards of other datasets behind those of one, as links; refusals, two at a time, resuming.

What goes together, columns, features and combine: tests/native/writer/derived/joining_test.cpp; copies between file
systems: crash/driver.py; buckets: test_verbs_in_buckets.py.
"""

from __future__ import annotations

import subprocess
import sys
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest
from _places import tree


def write(path: Path, count: int, first: int = 0) -> Path:
    with penstock.Writer(path, {"token": "u2"}, "json") as writer:
        for number in range(first, first + count):
            writer.append(token=[number] * (number % 5), metadata={"number": number})
    return path


def numbers(path: Any) -> list[int]:
    dataset = path if isinstance(path, penstock.Dataset) else penstock.open(path)
    return [row.spans[0].metadata["number"] for row in dataset.documents()]


def check(path: Path, wanted: list[int]) -> None:
    report = penstock.verify(path)
    assert numbers(path) == wanted and report.ok and not report.notices


def test_the_shards_come_last_as_links_and_the_first_ones_stay(tmp_path: Path) -> None:
    corpus, one, two = write(tmp_path / "c", 40), write(tmp_path / "a", 30, 40), write(tmp_path / "b", 20, 70)
    before, files = penstock.open(corpus), tree(corpus)
    told: list[tuple[int, int]] = []
    fingerprint = penstock.append(corpus, [one, two], lambda *done: told.append(done))
    after = penstock.open(corpus)
    assert told == [(1, 2), (2, 2)] and fingerprint == after.fingerprint
    assert fingerprint == penstock.concatenate([before, *map(penstock.open, (one, two))]).fingerprint
    assert after.select([0]).fingerprint == before.fingerprint
    assert [each.name for each in after.shards] == ["00000", "00001.1", "00002.1"]
    assert all(tree(corpus)[name] == data for name, data in files.items() if name != "dataset.json")
    assert (corpus / "00001.1/stream.bin").samefile(one / "00000/stream.bin")
    check(corpus, list(range(90)))
    penstock.append(corpus, one)
    check(corpus, [*range(90), *range(40, 70)])
    assert penstock.verify(one).ok and penstock.verify(two).ok


def test_who_has_it_open_reads_on(tmp_path: Path) -> None:
    corpus, more = write(tmp_path / "c", 400), write(tmp_path / "a", 100, 400)
    dataset, late = penstock.open(corpus), penstock.open(corpus)
    with penstock.Loader(dataset.windows(8), 4, seed=1, epochs=1, framework="numpy", prefetch=1) as loader:
        first = [batch["token"].copy() for batch in islice(loader, 5)]
        penstock.append(corpus, more)
        penstock.append(corpus, more)
        rest = [batch["token"].copy() for batch in loader]
    whole = penstock.open(corpus).select([0]).windows(8)
    with penstock.Loader(whole, 4, seed=1, epochs=1, framework="numpy") as again:
        for found, batch in zip([*first, *rest], again, strict=True):
            np.testing.assert_array_equal(found, batch["token"])
    assert numbers(late) == list(range(400))  # it opens its files now


def test_what_is_no_dataset_of_this_machine_is_refused_and_nothing_is_written(tmp_path: Path) -> None:
    corpus, nowhere = write(tmp_path / "c", 9), tmp_path / "not there"
    np.arange(99, dtype="u2").tofile(tmp_path / "raw.bin")
    before = tree(corpus)

    def stop(done: int, total: int) -> None:
        raise RuntimeError("stop")

    refused: list[tuple[type[Exception], str, Any]] = [
        (penstock.InvalidArgumentError, "penstock: .* not appended on disk", (corpus, tmp_path / "raw.bin")),
        (penstock.InvalidArgumentError, "penstock: .* not appended on disk", (tmp_path / "raw.bin", corpus)),
        (penstock.InvalidArgumentError, "is not written to", ("https://example.org/c", corpus)),
        (penstock.InvalidArgumentError, "no datasets to be added", (corpus, [])),
        (penstock.NotFoundError, "not there", (corpus, nowhere)),
        (penstock.NotFoundError, "not there", (nowhere, corpus)),
        (RuntimeError, "stop", (corpus, [corpus, corpus], stop)),
    ]
    for kind, words, given in refused:
        with pytest.raises(kind, match=words):
            penstock.append(*given)
        assert tree(corpus) == before and not nowhere.exists()
    with pytest.raises(ValueError, match="a list of datasets is wanted"):
        penstock.combine(corpus, tmp_path / "out")  # type: ignore[arg-type]
    with pytest.raises(RuntimeError, match="stop"):
        penstock.combine([corpus], tmp_path / "out", progress=stop)
    assert not (tmp_path / "out/dataset.json").exists()


def test_two_at_a_time_one_is_refused_and_nothing_is_lost(tmp_path: Path) -> None:
    corpus, one, two = write(tmp_path / "c", 9), write(tmp_path / "a", 3, 9), write(tmp_path / "b", 3, 12)

    def other(done: int, total: int) -> None:
        with pytest.raises(penstock.InvalidArgumentError, match="another writer is at work in this folder"):
            penstock.append(corpus, two)

    penstock.append(corpus, one, other)
    check(corpus, list(range(12)))
    penstock.append(corpus, two)
    check(corpus, list(range(15)))


def test_many_at_a_time_each_lands_once_or_says_that_it_did_not(tmp_path: Path) -> None:
    corpus = write(tmp_path / "c", 9)
    program = """
import sys, time, penstock
for _ in range(200):
    try:
        penstock.append(*sys.argv[1:])
        break
    except penstock.InvalidArgumentError as error:
        assert "at work" in str(error), error
        time.sleep(0.01)
"""
    parts = [write(tmp_path / f"{k}", 2, 10 * k) for k in range(1, 4)]
    children = [subprocess.Popen([sys.executable, "-c", program, corpus, part]) for part in parts]
    assert [child.wait(120) for child in children] == [0] * 3
    found = numbers(corpus)
    assert found[:9] == list(range(9)) and sorted(found[9:]) == [10, 11, 20, 21, 30, 31]
    check(corpus, found)


def test_resume_does_nothing_where_it_was_done(tmp_path: Path) -> None:
    corpus, more = write(tmp_path / "c", 9), write(tmp_path / "a", 3, 9)
    fingerprint = penstock.append(corpus, more, resume=True)
    check(corpus, list(range(12)))
    before = tree(corpus)
    assert penstock.append(corpus, more, resume=True) == fingerprint and tree(corpus) == before
    same = write(tmp_path / "s", 9)
    penstock.append(same, corpus, resume=True)  # the first shard is no end
    check(same, [*range(9), *range(12)])


def test_what_is_appended_to_itself_is_there_twice_and_columns_can_be_added_after(tmp_path: Path) -> None:
    corpus = write(tmp_path / "c", 9)
    penstock.append(corpus, corpus)
    penstock.annotate(corpus, {"score": np.arange(18)})
    assert [each.name for each in penstock.open(corpus).shards] == ["00000.2", "00001.2"]
    check(corpus, [*range(9), *range(9)])


def test_resuming_what_is_appended_to_itself_is_refused_since_nothing_tells_whether_it_was_done(tmp_path: Path) -> None:
    corpus, more = write(tmp_path / "c", 9), write(tmp_path / "a", 3, 9)
    (tmp_path / "link").symlink_to(corpus)
    before = tree(corpus)
    for given in (corpus, f"{corpus}/", [more, corpus], f"file://{corpus}", tmp_path / "link"):
        with pytest.raises(penstock.InvalidArgumentError, match=r"to itself with resume=True.*leave resume out"):
            penstock.append(corpus, given, resume=True)
    with pytest.raises(penstock.InvalidArgumentError, match="to itself with resume=True"):
        penstock.append("s3://bucket/corpus", "s3://bucket/corpus/", resume=True)
    assert tree(corpus) == before
