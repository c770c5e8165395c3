"""Columns of Arrow as the buffers that they lie in: each row is what the reader of rows gives, byte for byte."""

from __future__ import annotations

import datetime
import decimal
import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from penstock._from.text.block import Block, Documents, Listed
from penstock._from.text.inputs import expand_inputs
from penstock._from.text.parquet_rows import ParquetInput
from penstock._from.text.raw import Columns
from penstock._from.text.reading import Extractor

TEXTS = ["", "a", "\x00\x1f\x7f", 'quo"te\\', "é", "\u2028\u2029", "東京", "\U0001f600", "x" * 70, "\ufeff", "a\nb"]
FLOATS = [0.0, -0.0, 1.5, 0.1, 1 / 3, 1e15, 1e16, 1e-4, 1e-5, 5e-324, 1.7976931348623157e308]
DAY = datetime.datetime(2026, 11, 25, 12, 30, 1, 5)


def integers(kind: str) -> list[int]:
    limits = np.iinfo(kind)
    return [int(limits.min), int(limits.max), 0, 5, int(limits.max) // 2]


FAST: dict[str, tuple[list[Any], Any]] = {
    **{kind: (integers(kind), getattr(pyarrow, kind)()) for kind in ("int8", "int16", "int32", "int64")},
    **{kind: (integers(kind), getattr(pyarrow, kind)()) for kind in ("uint8", "uint16", "uint32", "uint64")},
    "float32": ([float(np.float32(each)) for each in FLOATS[:9]], pyarrow.float32()),
    "float64": (FLOATS, pyarrow.float64()),
    "bool": ([True, False], pyarrow.bool_()),
    "string": (TEXTS, pyarrow.string()),
    "large_string": (TEXTS, pyarrow.large_string()),
}
SLOW: dict[str, tuple[list[Any], Any]] = {
    "float16": ([np.float16(1.5), np.float16(0.1)], pyarrow.float16()),
    "date": ([DAY.date()], pyarrow.date32()),
    "time": ([DAY.time()], pyarrow.time64("us")),
    "timestamp": ([DAY], pyarrow.timestamp("us")),
    "decimal": ([decimal.Decimal("12.30")], pyarrow.decimal128(10, 2)),
    "list": ([[], [1, 2]], pyarrow.list_(pyarrow.int32())),
    "struct": ([{"a": 1, "b": "é"}], pyarrow.struct([("a", pyarrow.int8()), ("b", pyarrow.string())])),
    "dictionary": (["a", "b"], pyarrow.dictionary(pyarrow.int8(), pyarrow.string())),
    "null": ([None], pyarrow.null()),
}
IDS = [pyarrow.list_, pyarrow.large_list, lambda kind: pyarrow.list_(kind, 3)]


def column(random: random.Random, kind: tuple[list[Any], Any], rows: int, nulls: float) -> Any:
    values, of = kind
    return pyarrow.array([None if random.random() < nulls else random.choice(values) for _ in range(rows)], of)


def ids(random: random.Random, of: Any, rows: int) -> Any:
    kind = str(of.value_type)
    size = 3 if pyarrow.types.is_fixed_size_list(of) else None
    most = int(np.iinfo(kind).max)
    return pyarrow.array(
        [[random.choice([0, 1, most]) for _ in range(size or random.randrange(5))] for _ in range(rows)], of
    )


def both(table: Any, path: Path, columns: Columns) -> tuple[Documents, Documents]:
    """The rows as the reader of text gives them, and one by one; of each batch the second half."""
    pyarrow.parquet.write_table(table, path, row_group_size=40)
    opened = ParquetInput(expand_inputs([str(path)])[0], columns)
    (batch,) = pyarrow.parquet.read_table(path).combine_chunks().to_batches()
    batch = batch.slice(len(batch) // 3)
    block = opened._block(batch, 7)
    rows = Listed(list(opened.rows(batch, 7, 0)))
    opened.close()
    return rows if block is None else block, rows


def compare(found: Documents, rows: Documents, columns: Columns, codec: str) -> None:
    assert bytes(found.digested()) == rows.digested()
    assert found.sizes().tolist() == rows.sizes().tolist()
    for mine, its in zip(found, rows, strict=True):
        assert mine[:4] == its[:4] and mine.metadata == its.metadata
        assert bytes(mine.payload) == bytes(its.payload)
    one, other = (Extractor(columns, codec).extract(each) for each in (found, rows))
    assert one.payload.pieces() == other.payload.pieces()
    assert (one.entries and one.entries.pieces()) == (other.entries and other.entries.pieces())
    assert {index: str(error) for index, error in one.errors.items()} == {
        index: str(error) for index, error in other.errors.items()
    }


@pytest.mark.parametrize("codec", ["json", "msgpack"])
@pytest.mark.parametrize("nulls", [0, 0.3, 1])
def test_metadata_of_every_type_is_that_of_the_rows(tmp_path: Path, codec: str, nulls: float) -> None:
    chance = random.Random(f"{codec} {nulls}")
    columns = Columns("text", None, None, "file")
    for name, kind in {**FAST, **SLOW}.items():
        text = column(chance, FAST[chance.choice(["string", "large_string"])], 60, 0)
        table = pyarrow.table({name: column(chance, kind, 60, nulls), "text": text, '"é\\': pyarrow.nulls(60, kind[1])})
        found, rows = both(table, tmp_path / "a.parquet", columns)
        assert isinstance(found, Block) == (name in FAST), name
        compare(found, rows, columns, codec)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), b"\xff", None])
def test_rows_that_json_or_text_cannot_hold_are_those_of_the_rows(tmp_path: Path, value: Any) -> None:
    columns = Columns("text", None, None, "file")
    values = [b"a", value, "é".encode()] if isinstance(value, bytes) or value is None else [1.5, value, 2.5]
    made = pyarrow.array(values * 9)
    if isinstance(value, bytes):  # in the text: metadata that is no UTF-8 is an error of the reader
        made = pyarrow.Array.from_buffers(pyarrow.string(), len(made), made.buffers())
        table = pyarrow.table({"text": made, "n": [1] * 27})
    else:
        table = pyarrow.table({"text": ["x"] * 27, "n": made.cast(pyarrow.string()) if value is None else made})
    found, rows = both(table, tmp_path / "a.parquet", columns)
    compare(found, rows, columns, "json")


def test_ids_of_every_type_are_those_of_the_rows(tmp_path: Path) -> None:
    chance = random.Random(1)
    columns = Columns("text", "ids", (), "file")
    kinds = [getattr(pyarrow, f"{sign}int{bits}")() for sign in ("", "u") for bits in (8, 16, 32, 64)]
    for make in IDS:
        for kind in kinds:
            table = pyarrow.table({"ids": ids(chance, make(kind), 60)})
            found, rows = both(table, tmp_path / "a.parquet", columns)
            compare(found, rows, columns, "")
