"""Shards of other datasets behind those of a dataset that is there: links, columns, refusals, two at a time."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest

FIELDS = {"token": "u2"}


def write(path: Path, count: int, first: int = 0, **options: Any) -> Path:
    with penstock.Writer(path, FIELDS, "json", **options) as writer:
        for number in range(first, first + count):
            columns = {"columns": {"plate": f"p{number % 3 + first}", "score": number}} if "columns" in options else {}
            writer.append(token=[number] * (number % 5), metadata={"number": number}, **columns)
    return path


def digests(folder: Path) -> dict[str, str]:
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def numbers(dataset: penstock.Dataset) -> list[int]:
    return [row.spans[0].metadata["number"] for row in dataset.documents()]


@pytest.fixture
def elsewhere() -> Iterator[Path]:
    """A folder of another file system."""
    if not os.access("/dev/shm", os.W_OK):
        pytest.skip("no second file system")
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        yield Path(folder)


def test_the_shards_come_last_as_links_and_the_first_ones_stay(tmp_path: Path) -> None:
    corpus, one, two = write(tmp_path / "c", 40), write(tmp_path / "a", 30, 40), write(tmp_path / "b", 20, 70)
    before, files = penstock.open(corpus), digests(corpus)
    told: list[tuple[int, int]] = []
    fingerprint = penstock.append(corpus, [one, two], lambda *done: told.append(done))
    after = penstock.open(corpus)
    assert told == [(1, 2), (2, 2)]
    assert (
        fingerprint == after.fingerprint == penstock.concatenate([before, *map(penstock.open, (one, two))]).fingerprint
    )
    assert after.select([0]).fingerprint == before.fingerprint and numbers(after) == list(range(90))
    assert [each.name for each in after.shards] == ["00000", "00001.1", "00002.1"]
    assert {name: data for name, data in digests(corpus).items() if name in files and name != "dataset.json"} == {
        name: data for name, data in files.items() if name != "dataset.json"
    }
    assert (corpus / "00001.1/stream.bin").samefile(one / "00000/stream.bin")
    report = penstock.verify(corpus)
    assert report.ok and not report.notices
    assert penstock.verify(one).ok and penstock.verify(two).ok
    penstock.append(corpus, one)
    assert numbers(penstock.open(corpus)) == [*range(90), *range(40, 70)]
    assert penstock.verify(corpus).ok and not penstock.verify(corpus).notices


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


def test_columns_categories_and_features_go_with_them(tmp_path: Path) -> None:
    given: dict[str, Any] = {"columns": {"plate": "category", "score": "i8"}, "features": ["CD4", "GNLY"]}
    corpus, more = write(tmp_path / "c", 9, **given), write(tmp_path / "a", 6, 9, **given)
    penstock.append(corpus, more)
    columns = penstock.open(corpus).columns
    assert columns["score"][:].tolist() == list(range(15))
    names = columns["plate"].categories
    assert names is not None
    assert [names[code] for code in columns["plate"][:]] == [f"p{n % 3 + (0 if n < 9 else 9)}" for n in range(15)]
    features = penstock.open(corpus).features
    assert features is not None and features.names == ["CD4", "GNLY"]
    assert penstock.verify(corpus).ok and not penstock.verify(corpus).notices


def test_what_does_not_go_together_is_refused_and_nothing_is_written(tmp_path: Path) -> None:
    corpus = write(tmp_path / "c", 9)
    fits = write(tmp_path / "fits", 3)
    np.arange(99, dtype="u2").tofile(tmp_path / "raw.bin")
    cases: dict[str, Any] = {
        "layout compact and ids": lambda path: penstock.Writer(path, FIELDS, "json", layout="ids").commit(),
        "token": lambda path: penstock.Writer(path, {"token": "u4"}, "json").commit(),
        "codec": lambda path: penstock.Writer(path, FIELDS, "raw").commit(),
        "column": lambda path: write(path, 3, columns={"plate": "category", "score": "i8"}),
        "features": lambda path: write(path, 3, features=["CD4"]),
    }
    before = digests(corpus)
    for number, (words, make) in enumerate(cases.items()):
        make(tmp_path / f"other{number}")
        with pytest.raises(penstock.InvalidArgumentError, match=f"cannot append .*{words}"):
            penstock.append(corpus, [fits, tmp_path / f"other{number}"])
    for words, path, more in (
        ("no dataset of penstock: .* not appended on disk", corpus, tmp_path / "raw.bin"),
        ("no dataset of penstock: .* not appended on disk", tmp_path / "raw.bin", corpus),
        ("is not written to", "https://example.org/c", corpus),
        ("no datasets to be added", corpus, []),
    ):
        with pytest.raises(penstock.InvalidArgumentError, match=words):
            penstock.append(path, more)
    for path, more in ((corpus, tmp_path / "not there"), (tmp_path / "not there", corpus)):
        with pytest.raises(penstock.NotFoundError):
            penstock.append(path, more)
    assert digests(corpus) == before and not (tmp_path / "not there").exists()


def test_what_a_dataset_says_of_its_tokenizer_stays_said(tmp_path: Path) -> None:
    said = {"name": "t", "vocabulary_size": 50, "end_of_document": 0}
    corpus, silent = write(tmp_path / "c", 9, tokenizer=said), write(tmp_path / "a", 3)
    same, other = write(tmp_path / "b", 3, tokenizer=said), write(tmp_path / "o", 3, tokenizer={"name": "u"})
    before = digests(corpus)
    with pytest.raises(penstock.InvalidArgumentError, match=r"a does not say its own: write it with tokenizer="):
        penstock.append(corpus, [same, silent])
    with pytest.raises(penstock.InvalidArgumentError, match=r"cannot append: .* has tokenizer"):
        penstock.append(corpus, other)
    assert digests(corpus) == before
    penstock.append(corpus, same)
    assert penstock.open(corpus).tokenizer == said
    penstock.append(silent, same)  # said none: says none
    assert penstock.open(silent).tokenizer is None


def test_stopped_it_is_as_it_was(tmp_path: Path) -> None:
    corpus, more = write(tmp_path / "c", 9), write(tmp_path / "a", 30)
    before = digests(corpus)

    def stop(done: int, total: int) -> None:
        raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        penstock.append(corpus, [more, more], stop)
    assert digests(corpus) == before


def test_two_at_a_time_one_is_refused_and_nothing_is_lost(tmp_path: Path) -> None:
    corpus, one, two = write(tmp_path / "c", 9), write(tmp_path / "a", 3, 9), write(tmp_path / "b", 3, 12)
    program = "import sys, penstock; penstock.append(*sys.argv[1:])"
    reached, go = threading.Event(), threading.Event()

    def wait(done: int, total: int) -> None:
        reached.set()
        assert go.wait(60)

    first = threading.Thread(target=penstock.append, args=(corpus, one, wait))
    first.start()
    assert reached.wait(60)
    second = subprocess.run([sys.executable, "-c", program, corpus, two], capture_output=True, text=True, timeout=120)
    go.set()
    first.join(60)
    assert second.returncode == 1 and "another writer is at work in this folder" in second.stderr
    assert numbers(penstock.open(corpus)) == list(range(12))
    subprocess.run([sys.executable, "-c", program, corpus, two], check=True, timeout=120)
    assert numbers(penstock.open(corpus)) == list(range(15)) and penstock.verify(corpus).ok


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
    parts = [write(tmp_path / f"{k}", 2, 10 * k) for k in range(1, 5)]
    children = [subprocess.Popen([sys.executable, "-c", program, corpus, part]) for part in parts]
    assert [child.wait(120) for child in children] == [0] * 4
    found = numbers(penstock.open(corpus))
    assert found[:9] == list(range(9)) and sorted(found[9:]) == [10, 11, 20, 21, 30, 31, 40, 41]
    assert penstock.verify(corpus).ok and not penstock.verify(corpus).notices


def test_resume_does_nothing_where_it_was_done(tmp_path: Path) -> None:
    corpus, more = write(tmp_path / "c", 9), write(tmp_path / "a", 3, 9)
    fingerprint = penstock.append(corpus, more, resume=True)
    assert numbers(penstock.open(corpus)) == list(range(12))
    before = digests(corpus)
    assert penstock.append(corpus, more, resume=True) == fingerprint and digests(corpus) == before
    same = write(tmp_path / "s", 9)
    penstock.append(same, corpus.parent / "c", resume=True)  # the first shard is no end
    assert numbers(penstock.open(same)) == [*range(9), *range(12)]


def test_between_file_systems_files_are_copied(tmp_path: Path, elsewhere: Path) -> None:
    corpus, more = write(tmp_path / "c", 9), write(elsewhere / "a", 3, 9)
    if corpus.stat().st_dev == more.stat().st_dev:
        pytest.skip("the test's folder is of the same file system")
    penstock.append(corpus, more)
    assert numbers(penstock.open(corpus)) == list(range(12)) and penstock.verify(corpus).ok
    assert (corpus / "00001.1/stream.bin").stat().st_nlink == 1


def test_what_is_appended_to_itself_is_there_twice_and_columns_can_be_added_after(tmp_path: Path) -> None:
    corpus = write(tmp_path / "c", 9)
    penstock.append(corpus, corpus)
    penstock.annotate(corpus, {"score": np.arange(18)})
    assert numbers(penstock.open(corpus)) == [*range(9), *range(9)]
    assert [each.name for each in penstock.open(corpus).shards] == ["00000.2", "00001.2"]
    assert penstock.verify(corpus).ok and not penstock.verify(corpus).notices
