"""Rows of Arrow as JSON in native code: the bytes that Python's json makes of the same rows."""

from __future__ import annotations

import json
import random
import struct
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from penstock import _native
from penstock._data import codecs

TEXTS = [None, "", "a", 'q"\\/\n\t\x00\x1f\x7f', "é€😀\u2028", "x" * 40 + "é", "ed\ud7ff\ue000\uffff"]
KINDS = {
    pa.string(): "utf8",
    pa.large_string(): "large_utf8",
    pa.int8(): "int",
    pa.int16(): "int",
    pa.int32(): "int",
    pa.int64(): "int",
    pa.uint8(): "uint",
    pa.uint16(): "uint",
    pa.uint32(): "uint",
    pa.uint64(): "uint",
    pa.float32(): "float",
    pa.float64(): "float",
    pa.bool_(): "bool",
}


def values_of(kind: pa.DataType, generator: random.Random, count: int) -> list[Any]:
    if KINDS[kind].endswith("utf8"):
        return generator.choices(TEXTS, k=count)
    if kind == pa.bool_():
        return generator.choices([None, True, False], k=count)
    width = kind.bit_width
    if KINDS[kind] == "float":
        found = [struct.unpack("f" if width == 32 else "d", generator.randbytes(width // 8))[0] for _ in range(count)]
        return [value if abs(value) < float("inf") else None for value in found]
    low, high = (-(1 << (width - 1)), (1 << (width - 1)) - 1) if KINDS[kind] == "int" else (0, (1 << width) - 1)
    return [generator.choice([None, low, high, generator.randrange(low, high + 1)]) for _ in range(count)]


def column_of(name: str, column: pa.Array) -> tuple[Any, ...]:
    validity, *offsets, data = column.buffers()
    is_text = bool(offsets)
    size = 0 if is_text or column.type == pa.bool_() else column.type.bit_width // 8
    return (name, KINDS[column.type], size, validity, offsets[0] if is_text else None, data, column.offset)


def cut(entries: tuple[Any, Any]) -> list[bytes]:
    ends = [0, *entries[1].tolist()]
    return [entries[0][begin:end].tobytes() for begin, end in pairwise(ends)]


def compare(batch: pa.RecordBatch) -> None:
    columns = [column_of(name, batch.column(index)) for index, name in enumerate(batch.schema.names)]
    found = _native.rows_json(columns, batch.num_rows)
    assert found is not None
    codec = codecs.get("json")
    assert codec is not None
    rows = batch.to_pylist()
    assert cut(found[0]) == [json.dumps(row, sort_keys=True).encode() for row in rows]
    assert cut(found[1]) == [codec.encode(row) for row in rows]


def test_rows_are_what_json_makes_of_them() -> None:
    generator = random.Random(2)
    for _ in range(60):
        count = generator.randrange(1, 70)
        kinds = generator.sample(list(KINDS), generator.randrange(len(KINDS) + 1)) or [pa.int8()]
        names = [f'{generator.choice(["é", "z", "A", "b", "😀", "~"])}{number}"\n' for number in range(len(kinds))]
        arrays = [pa.array(values_of(kind, generator, count), kind) for kind in kinds]
        batch = pa.record_batch(arrays, names=names)
        compare(batch)
        begin = generator.randrange(count + 1)
        compare(batch.slice(begin, generator.randrange(count - begin + 1)))


def test_what_json_has_no_bytes_for_is_left_to_python() -> None:
    for value in (float("nan"), float("inf")):
        assert _native.rows_json([column_of("a", pa.array([1.5, value]))], 2) is None
    latin = pa.array([b"\xe9"], pa.binary())
    assert _native.rows_json([("a", "utf8", 0, None, latin.buffers()[1], latin.buffers()[2], 0)], 1) is None
    with pytest.raises(ValueError, match="stands twice"):
        _native.rows_json([column_of("a", pa.array([1]))] * 2, 1)


def test_buffers_that_are_empty_may_be_missing() -> None:
    for column in (pa.nulls(3, pa.string()), pa.array(["", ""]), pa.array([], pa.string()), pa.nulls(2, pa.int32())):
        compare(pa.record_batch([column], names=["a"]))
    ends = pa.py_buffer(bytes(8))
    found = _native.rows_json([("a", "utf8", 0, None, ends, None, 0)], 1)
    assert found is not None
    assert cut(found[1]) == [b'{"a":""}']


def test_fill_is_what_json_makes_of_a_number() -> None:
    numbers = np.array([0, 9, 10, 2**32, 2**64 - 1], np.uint64)
    found = cut(_native.fill(b'{"path":"a","size":', numbers, b"}"))
    codec = codecs.get("json")
    assert codec is not None
    assert found == [codec.encode({"path": "a", "size": int(number)}) for number in numbers]
