"""Random datasets for the second reader: every mode, layout, codec, type, size and kind of column meets the others."""

import random
from pathlib import Path
from typing import Any

import numpy as np
import penstock

SCALARS = [
    "|b1",
    "|i1",
    "<i2",
    "<i4",
    "<i8",
    "|u1",
    "<u2",
    "<u4",
    "<u8",
    "<f2",
    "<f4",
    "<f8",
    "<c8",
    "<c16",
    "|S5",
    "|V3",
]
NAMES = [
    "token",
    "é",
    "数",
    "x y",
    'q"\\',
    "a/b",
    "tab\t",
    "line\u2028",
    "del\x7f",
    "ctl\x01\b\f\n\r\x1f",
    "🙂",
    "</script>",
]
VALUES = ["|b1", "|i1", "<i2", "<i4", "<i8", "|u1", "<u2", "<u4", "<u8", "<f2", "<f4", "<f8"]
SCALARS = [*VALUES, "<c8", "<c16", "|S5", "|V3"]
LENGTHS = [0, 0, 1, 2, 3, 5, 30, 200]
ENTRIES = [0, 0, 0, 1, 2, 3, 4, 7, 8, 9, 9, 15, 16, 17, 33, 40, 64, 127, 128, 129, 200, 240, 241, 1024, 3000]


def fields(chance: random.Random, depth: int = 0) -> list[Any]:
    """NumPy's descr of a record."""
    found: list[Any] = []
    for name in chance.sample(NAMES, chance.choice([1, 1, 2, 3])):
        kind: Any = chance.choice(SCALARS)
        if depth < 2 and chance.random() < 0.2:
            kind = fields(chance, depth + 1)
        shape = [tuple(chance.choice([1, 2, 3]) for _ in range(chance.choice([1, 2])))] if chance.random() < 0.3 else []
        found.append((name, kind, *shape))
    return found


def clean(values: np.ndarray) -> np.ndarray:
    """Bytes of bools made 0 or 1."""
    if values.dtype.names is None:
        if values.dtype.kind == "b":
            values.view("u1")[...] &= 1
        return values
    for name in values.dtype.names:
        clean(values[name])
    return values


def values(chance: random.Random, dtype: np.dtype[Any], count: int) -> np.ndarray:
    """Random bytes as values."""
    return clean(np.frombuffer(chance.randbytes(count * dtype.itemsize), dtype).copy())


def column(chance: random.Random, spec: Any) -> Any:
    if spec == "category":
        return chance.choice([None, *"abcdefg", str(chance.randrange(400))])
    kind, shape = spec if isinstance(spec, tuple) else (spec, ())
    return values(chance, np.dtype(kind), int(np.prod(shape, dtype=int))).reshape(shape)


def entry(chance: random.Random, codec: Any) -> Any:
    """Metadata for a codec, and some of it empty."""
    data = chance.randbytes(chance.choice(ENTRIES))
    if codec == "raw":
        return data
    if codec == "json":
        return {"é": data.hex(), "n": chance.randrange(1 << 60)} if data else None
    return np.frombuffer(data[: len(data) // 4 * 4], "<i4")


def specs(chance: random.Random) -> dict[str, Any]:
    """Columns of a dataset, none of half of them."""
    if chance.random() < 0.5:
        return {}
    kinds = [*VALUES, "category", "category", ("<f4", (3,)), ("|b1", (2, 2))]
    return {name: chance.choice(kinds) for name in chance.sample(NAMES, chance.choice([1, 2, 4]))}


def write(seed: int, path: Path) -> None:
    """Dataset number `seed`."""
    chance = random.Random(seed)
    mode = chance.choice(["compact", "compact", "compact", "ids", "ids", "tokens", "opaque"])
    dtype = None if mode == "opaque" else np.dtype(fields(chance))
    codec: Any = {"tokens": None, "opaque": chance.choice(["raw", "json"])}.get(
        mode, chance.choice(["raw", "json", np.dtype("<i4")])
    )
    if mode == "compact" and chance.random() < 0.2:
        codec = "boundaries"
    columns = {} if mode == "tokens" else specs(chance)
    options: dict[str, Any] = {"shard_size": chance.choice([1 << 30, 1 << 30, 5000, 300])}
    if columns:
        options["columns"] = columns
    if mode == "ids":
        options["layout"] = "ids"
    lengths = [chance.choice(LENGTHS) for _ in range(chance.choice([1, 2, 5, 20, 60]))]
    if chance.random() < 0.2 and dtype is not None and dtype.itemsize < 20:
        lengths += [chance.choice([4095, 4096, 4097, 9000]), 0, 1]
    with penstock.Writer(path, fields=dtype, metadata=codec, **options) as writer:
        ids: list[int] = []
        for length in lengths:
            given: dict[str, Any] = (
                {"columns": {name: column(chance, spec) for name, spec in columns.items()}} if columns else {}
            )
            records = None if dtype is None else values(chance, dtype, length)
            if mode == "ids":
                ids = [writer.entry(entry(chance, codec), **given) for _ in range(chance.choice([1, 2, 4]))]
                writer.append(records=records, metadata_id=[chance.choice(ids) for _ in range(length)])
            elif mode == "tokens" or codec == "boundaries":
                writer.append(records=records, **given)
            elif mode == "opaque":
                writer.append(entry(chance, codec), **given)
            else:
                writer.append(entry(chance, codec), records=records, **given)
