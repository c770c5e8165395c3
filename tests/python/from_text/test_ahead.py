"""Inputs that threads read ahead give what one thread gives, and leave nothing behind."""

from __future__ import annotations

import gzip
import itertools
import json
import os
import random
import threading
import time
from collections.abc import Generator, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import penstock
import pyarrow
import pyarrow.parquet
import pytest
import zstandard
from _dirty import entries, files
from penstock._from.text import compression, documents
from penstock._from.text.ahead import _ITEMS, Ahead
from penstock._from.text.documents import DocumentReader
from penstock._from.text.inputs import expand_inputs
from penstock._from.text.raw import Columns, RawDocument
from penstock._make.errors import FileError, InputError

IDS = Columns("text", "ids", ("n",), "file")
SIZES = (4000, 0, 90_000, 1, 30_000)  # documents of each file


@pytest.fixture(autouse=True)
def everything_is_read_ahead_and_nothing_is_left(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(documents, "_FEW_BYTES", 0)
    before = opened()
    yield
    assert threads() == []
    assert opened() == before


def threads() -> list[str]:
    return [each.name for each in threading.enumerate() if each.name.startswith("penstock-")]


def opened() -> set[str]:
    """Files that this process has open, pipes and the like left out."""
    found = set()
    for each in Path("/proc/self/fd").iterdir():
        try:
            found.add(str(each.readlink()))
        except FileNotFoundError:  # that of the listing
            continue
    return {each for each in found if "/in/" in each}


def rows(file: int, count: int) -> list[dict[str, Any]]:
    chosen = random.Random(file)
    return [
        {"ids": [chosen.randrange(60_000) for _ in range((number + 3) % 40)], "n": number} for number in range(count)
    ]


def lines(file: int, count: int) -> bytes:
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows(file, count))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Five files: plain, .gz, .zst, Parquet, plain; several blocks, nothing, or one document."""
    folder = tmp_path_factory.mktemp("ahead") / "in"
    folder.mkdir()
    (folder / "a.jsonl").write_bytes(lines(0, SIZES[0]))
    (folder / "b.jsonl.gz").write_bytes(gzip.compress(lines(1, SIZES[1])))
    (folder / "c.jsonl.zst").write_bytes(zstandard.compress(lines(2, SIZES[2])))
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows(3, SIZES[3])), folder / "d.parquet")
    (folder / "e.jsonl").write_bytes(lines(4, SIZES[4]))
    return folder


def reader_of(inputs: list[Path], files_at_once: int, skips: bool = False) -> DocumentReader:
    reader = DocumentReader(expand_inputs([str(each) for each in inputs], skips=skips), IDS, skips=skips)
    reader.files_at_once = files_at_once
    return reader


def told(found: Iterator[RawDocument]) -> list[tuple[Any, ...]]:
    return [(each.number, each.place(), bytes(each.payload), each.metadata) for each in found]


@pytest.mark.parametrize("count", range(1, 6))
def test_documents_and_numbers_are_those_of_one_thread(folder: Path, count: int) -> None:
    inputs = sorted(folder.iterdir())[:count]
    alone = told(reader_of(inputs, 1).documents())
    assert [each[0] for each in alone] == list(range(sum(SIZES[:count])))
    for files_at_once in (2, 4):
        reader = reader_of(inputs, files_at_once)
        assert told(reader.documents()) == alone
        assert reader.consumed_bytes() == reader.total_bytes
        for first in (SIZES[0] + 5, 3, len(alone) - 1):
            if first < len(alone):
                assert told(itertools.islice(reader.documents(first), 700)) == alone[first : first + 700]


def test_progress_is_of_what_was_taken(folder: Path) -> None:
    reader = reader_of(sorted(folder.iterdir()), 4)
    seen = []
    for some in reader.read():
        time.sleep(0.002)  # others read ahead
        seen.append((some[0].name, reader.consumed_bytes()))
    assert seen == sorted(seen, key=lambda each: each[1])
    first = (folder / "a.jsonl").stat().st_size
    assert all((done <= first) == (name == str(folder / "a.jsonl")) for name, done in seen)


def write(inputs: list[Path], out: Path, workers: int, **more: Any) -> Any:
    return penstock.write(
        inputs, out, ids_column="ids", dtype="u2", metadata=["n"], shard_size=300_000, workers=workers, **more
    )


def test_the_bytes_are_the_same_for_any_number_of_workers(folder: Path, tmp_path: Path) -> None:
    inputs = sorted(folder.iterdir())
    for workers in (1, 2, 5):
        assert write(inputs, tmp_path / str(workers), workers).documents == sum(SIZES)
    assert files(tmp_path / "2") == files(tmp_path / "5") == files(tmp_path / "1")


@pytest.fixture
def damaged(folder: Path, tmp_path: Path) -> list[Path]:
    """The third of five files is cut off, and the fifth too."""
    (tmp_path / "in").mkdir()
    for each in folder.iterdir():
        data = each.read_bytes()
        if each.name == "c.jsonl.zst":
            data = data[: len(data) * 2 // 3]
        if each.name == "e.jsonl":
            data = b"no JSON\n" + data
        (tmp_path / "in" / each.name).write_bytes(data)
    return sorted((tmp_path / "in").iterdir())


def test_damage_is_told_where_the_file_is_read(damaged: list[Path], tmp_path: Path) -> None:
    said = []
    for workers in (1, 2, 4):
        with pytest.raises(ValueError, match=r"c\.jsonl\.zst: the Zstandard data is cut off") as raised:
            write(damaged, tmp_path / f"stop{workers}", workers)
        assert (tmp_path / f"stop{workers}" / "00005").exists()  # of what stands before it
        said.append(str(raised.value).replace(f"stop{workers}", "stop"))
        write(damaged, tmp_path / f"skip{workers}", workers, on_error="skip")
    assert said[0] == said[1] == said[2]
    assert files(tmp_path / "skip1") == files(tmp_path / "skip2") == files(tmp_path / "skip4")
    assert [each["file"] for each in entries(tmp_path / "skip2" / "skipped.jsonl")] == ["c.jsonl.zst", "e.jsonl"]


def test_a_file_that_is_gone_is_told_behind_the_documents_before_it(damaged: list[Path]) -> None:
    reader = reader_of(damaged, 4)
    damaged[1].unlink()
    some = reader.documents()
    assert len(told(itertools.islice(some, SIZES[0]))) == SIZES[0]
    with pytest.raises(InputError, match=r"b\.jsonl\.gz: No such file"):
        next(some)


@pytest.mark.parametrize("number", [0, 5, 50_000])
def test_whoever_stops_early_leaves_no_thread(folder: Path, number: int) -> None:
    reader = reader_of(sorted(folder.iterdir()), 4)
    some = reader.documents()
    assert next(itertools.islice(some, number, None)).number == number
    assert threads()
    other = reader.documents(number)  # the old iteration ends
    assert next(other).number == number
    assert threads()
    begin = time.monotonic()
    reader.close()
    assert threads() == [] and time.monotonic() - begin < 1


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError])
def test_a_run_that_is_ended_leaves_no_thread(folder: Path, tmp_path: Path, error: type[BaseException]) -> None:
    def progress(done: int, total: int, summary: Any) -> None:
        if summary.shards:
            raise error

    with pytest.raises(error):
        write(sorted(folder.iterdir()), tmp_path / "out", 3, progress=progress)
    assert threads() == []


def test_resume_reads_again_from_the_first_shard_that_differs(folder: Path, tmp_path: Path) -> None:
    inputs = sorted(folder.iterdir())
    write(inputs, tmp_path / "whole", 1)
    (tmp_path / "in").mkdir()
    for each in inputs:
        (tmp_path / "in" / each.name).write_bytes(each.read_bytes())
    own = sorted((tmp_path / "in").iterdir())
    own[4].write_bytes(lines(4, 20_000) + b"{}\n")
    with pytest.raises(ValueError, match="ids"):
        write(own, tmp_path / "out", 2)
    own[4].write_bytes(lines(4, 10_000) + lines(5, 1) + lines(6, 500))
    write(own, tmp_path / "out", 2, resume=True)
    write(own, tmp_path / "anew", 1)
    assert files(tmp_path / "out") == files(tmp_path / "anew") != files(tmp_path / "whole")


def test_a_silent_pipe_holds_nothing_back_and_may_be_left(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    pipe = tmp_path / "in" / "pipe"
    os.mkfifo(pipe)
    write_end = os.open(pipe, os.O_RDWR)
    os.write(write_end, lines(7, 3))
    inputs = expand_inputs([str(folder / "a.jsonl"), str(pipe), str(folder / "e.jsonl")], "jsonl")
    reader = DocumentReader(inputs, IDS)
    reader.files_at_once = 4

    class GoneError(Exception):
        pass

    def gone() -> None:
        if time.monotonic() > end:
            raise GoneError

    end = float("inf")
    reader.while_waiting = gone
    some = reader.documents()
    assert [each.number for each in itertools.islice(some, SIZES[0] + 3)] == list(range(SIZES[0] + 3))
    end = time.monotonic()
    with pytest.raises(GoneError):
        next(some)
    assert time.monotonic() - end < 2
    os.close(write_end)


# ---- blocks of lines


@pytest.mark.parametrize("end", [b"", b"\n"])
@pytest.mark.parametrize("kind", ["", "gz", "zst", "pipe"])
def test_blocks_are_whole_lines_however_long_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, end: bytes
) -> None:
    monkeypatch.setattr(compression, "_FEW_BYTES", 700)
    monkeypatch.setattr(compression, "_MANY_BYTES", 3000)
    monkeypatch.setattr(compression, "_SEARCH_BYTES", 100)
    monkeypatch.setattr(compression, "_CHUNK_BYTES", 500)  # as is unpacked at once
    chosen = random.Random(3)
    sizes = [chosen.choice([0, 1, 90, 300, 2_999, 3_000, 9_500, 40_000]) for _ in range(150)]
    data = b"\n".join(bytes([97 + number % 26]) * size for number, size in enumerate(sizes)) + b"\nend" + end
    path = tmp_path / "lines"
    pack = {"gz": gzip.compress, "zst": zstandard.compress}.get(kind, bytes)
    if kind == "pipe":
        os.mkfifo(path)
        writer = threading.Thread(target=path.write_bytes, args=(data,))
        writer.start()
    else:
        path.write_bytes(pack(data))
    opened = compression.ByteInput(path, "lines", kind.replace("pipe", ""))
    if kind == "pipe":
        assert data.startswith(opened.peek()[:5])
    blocks = [bytes(each) for each in opened.whole_lines()]
    if kind == "pipe":
        writer.join()
    opened.close()
    assert b"".join(blocks) == data
    assert len(blocks) > 3 and all(each.endswith(b"\n") for each in blocks[:-1])


# ---- whatever the iterators are of


def test_of_each_iterator_a_few_items_are_made_before_they_are_taken() -> None:
    made, taken, most = itertools.count(), 0, 0

    def numbers(file: int) -> Generator[tuple[int, int], None, None]:
        for number in range(50):
            next(made)
            yield file, number

    ahead = Ahead([partial(numbers, file) for file in range(6)], [True] * 6, 3)
    for file in range(6):
        for number, item in enumerate(ahead.next(lambda: None)):
            assert item == (file, number)
            time.sleep(0.0005)
            taken += 1
            most = max(most, int(repr(made)[6:-1]) - taken)
    ahead.close()
    assert taken == 300 and _ITEMS < most <= 3 * _ITEMS


def test_an_error_comes_behind_its_items_and_only_when_they_are_taken() -> None:
    def fails() -> Generator[int, None, None]:
        yield 1
        raise FileError("damaged", "damaged")

    def slow() -> Generator[int, None, None]:
        for number in range(20):
            time.sleep(0.005)
            yield number

    ahead = Ahead([slow, fails, slow], [True] * 3, 3)
    assert list(ahead.next(lambda: None)) == list(range(20))
    items = ahead.next(lambda: None)
    assert next(items) == 1
    with pytest.raises(FileError, match="damaged"):
        next(items)
    assert list(ahead.next(lambda: None)) == list(range(20))
    ahead.close()


def test_while_it_waits_it_may_be_ended() -> None:
    let = threading.Event()

    def waits() -> Generator[int, None, None]:
        let.wait()
        yield 1

    def stop() -> None:
        let.set()
        raise KeyboardInterrupt

    ahead = Ahead([waits], [True], 2)
    with pytest.raises(KeyboardInterrupt):
        next(ahead.next(stop))
    ahead.close()
