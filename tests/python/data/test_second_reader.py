"""The second reader (_second_reader.py) and penstock read the same bytes as the same dataset."""

import os
import random
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest
from _second_datasets import write
from _second_hashes import crc32c, fingerprint, leaves, xxh3
from _second_reader import Dataset, PackTable, sealed
from penstock._cli.main import main

GOLDEN = Path(__file__).parents[2] / "golden"
ALL, PARTS = 300, 6


def span_tuples(mine: Dataset, a: int, b: int) -> list[tuple]:
    """(row's start, stop, entry, id, offset, begins, ends) of the spans of records [a, b)."""
    found = []
    for first, stop, shard, number, entry in mine.spans_of(a, b):
        begin, end = max(first, a), min(stop, b)
        offset = begin - first if mine.manifest["layout"] == "compact" else None
        found.append((begin - a, end - a, entry, (shard, number), offset, first >= a, stop <= b))
    return found


def tuples_of(batch: penstock.Batch) -> list[tuple]:
    found = []
    for s in batch.spans:
        found.append((s.start, s.stop, bytes(s.raw), tuple(s.id), s.offset, s.begins, s.ends))
    return found


def same_records(theirs: np.ndarray, mine: np.ndarray) -> bool:
    """Leaf by leaf: in the layout ids the engine's records leave a gap where `metadata_id` is."""
    names = theirs.dtype.names == mine.dtype.names
    return names and all(a.tobytes() == b.tobytes() for a, b in zip(leaves(theirs), leaves(mine), strict=True))


def check_window(mine: Dataset, theirs: penstock.Dataset, size: int, lookahead: int, index: int) -> None:
    """Records, spans and columns of one window."""
    names = [name for name, *_ in mine.manifest.get("columns", [])]
    has_spans = mine.manifest["mode"] == "stream"
    view = theirs.windows(size, lookahead, columns=names, metadata=has_spans)
    batch = view.read([index])
    a, b = index * size, (index + 1) * size + lookahead
    assert same_records(batch.records, mine.stream[a:b])
    if not has_spans:
        return
    assert tuples_of(batch) == span_tuples(mine, a, b)
    for name in names:
        wanted = [mine.shards[shard].columns[name][1][number] for _, _, shard, number, _ in mine.spans_of(a, b)]
        assert np.asarray(batch.columns[name]).tobytes() == np.array(wanted).tobytes(), name


def check_documents(mine: Dataset, theirs: penstock.Dataset) -> None:
    """Entries, records and columns of all documents."""
    names = [name for name, *_ in mine.manifest.get("columns", [])]
    view, spans = theirs.documents(columns=names), mine.spans
    assert len(view) == len(spans)
    batch = view.read(range(len(view)))
    if mine.manifest["mode"] == "stream":
        assert batch.offsets.tolist() == [0, *(stop for _, stop, *_ in spans)]
        assert same_records(batch.records, mine.stream)
    assert [bytes(span.raw) for span in batch.spans] == [entry for *_, entry in spans]
    for name, values in mine.columns.items():
        assert np.asarray(batch.columns[name]).tobytes() == values.tobytes(), name


def check(path: Path, chance: random.Random) -> None:
    """Compares all that both tell of a dataset."""
    mine, theirs = Dataset(path), penstock.open(path)
    assert fingerprint(mine) == mine.manifest["fingerprint"] == theirs.fingerprint
    for shard in mine.shards:
        own = sealed((shard.folder / "shard.json").read_bytes())
        same = {**mine.manifest, **shard.stated, "format": "penstock shard"}
        assert all(own[name] == same[name] for name in own if name not in ("values", "task")), shard.folder
    total = len(mine.stream)
    if total:
        assert total == theirs.records
        check_window(mine, theirs, total, 0, 0)
        size = chance.randrange(1, total + 1)
        lookahead = chance.choice([0, min(1, total - size)])
        check_window(mine, theirs, size, lookahead, chance.randrange((total - lookahead) // size))
    if mine.manifest["mode"] == "opaque" or mine.manifest["layout"] == "compact":
        check_documents(mine, theirs)


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """In memory where that can be had: a dataset's fsyncs take longer than all the rest."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else tmp_path) as path:
        yield Path(path)


def test_hashes_are_the_public_ones() -> None:
    assert crc32c(b"123456789") == 0xE3069283
    assert xxh3(b"").hex() == "99aa06d3014798d86001c324468d497f"


@pytest.mark.parametrize(
    "path", sorted(GOLDEN.glob("dataset-v*/**/dataset.json")), ids=lambda p: "-".join(p.parts[-3:-1])
)
def test_golden_datasets_are_read_alike(path: Path) -> None:
    check(path.parent, random.Random(0))


@pytest.mark.parametrize("part", range(PARTS))
def test_random_datasets_are_read_alike(part: int, folder: Path) -> None:
    for seed in range(part, ALL, PARTS):
        path = folder / str(seed)
        write(seed, path)
        try:
            check(path, random.Random(seed))
        except Exception as error:
            raise AssertionError(f"dataset {seed} of _second_datasets.py") from error


PACKED: list[dict[str, Any]] = [
    {"multiple_of": 16},
    {"multiple_of": 4, "fit": "first", "group": 40},
    {"fit": "first", "long": "truncate"},
    {"long": "drop", "lookahead": 2},
    {"max_document": 20, "multiple_of": 8},
    {"max_document": 17, "cut": "truncate", "max_documents": 3},
    {"fill": "exact", "lookahead": 1},
    {"fill": "exact", "fit": "next", "max_document": 30, "cut": "split"},
]


@pytest.mark.parametrize("number", range(len(PACKED)))
def test_pack_tables_are_read_alike(number: int, folder: Path) -> None:
    chance, options = random.Random(number), PACKED[number]
    with penstock.Writer(folder / "corpus", fields={"token": "u2"}, metadata="json", shard_size=3000) as writer:
        for _ in range(300):
            length = chance.choice([0, 1, 5, 16, 17, 30, 63, 64, 65, 66, 200])
            writer.append(None, token=[chance.randrange(1, 60000) for _ in range(length)])
    arguments = [f"--{name.replace('_', '-')}={value}" for name, value in options.items()]
    assert main(["pack", str(folder / "corpus"), "--window=64", f"--out={folder / 'table'}", *arguments]) == 0
    mine, table = Dataset(folder / "corpus"), PackTable((folder / "table").read_bytes())
    view = penstock.open(folder / "corpus").packed(64, table=folder / "table", **options)
    assert table.header["fingerprint"] == mine.manifest["fingerprint"] and table.header["rows"] == len(view)
    records = mine.stream["token"]
    batch = view.read(range(len(view)))
    pieces = [[] for _ in range(len(view))]
    for span in batch.spans:
        pieces[span.row].append((span.start, span.stop))
    for i in range(len(view)):
        row = list(table.row(i, mine.spans))
        assert [(at, at + end - begin) for at, begin, end in row] == pieces[i]
        for at, begin, end in row:
            assert batch.records["token"][i, at : at + end - begin].tolist() == records[begin:end].tolist()


@pytest.mark.parametrize("names", [1, 127, 128, 129, 32768, 32769])
def test_tables_of_categories_are_read_alike(names: int, folder: Path) -> None:
    with penstock.Writer(folder / "corpus", metadata="raw", columns={"name": "category"}) as writer:
        for number in [*range(names), None]:
            writer.append(b"", columns={"name": None if number is None else str(number)})
    mine, view = Dataset(folder / "corpus"), penstock.open(folder / "corpus").documents(columns=["name"])
    assert mine.columns["name"].tolist() == [*range(names), -1]
    assert mine.columns["name"].tolist() == view.read(range(len(view))).columns["name"].tolist()
