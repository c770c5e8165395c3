"""Datasets for the tests of the loader, each beside a plain model of what must come out of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import penstock

FIELDS = np.dtype([("token", "<u2"), ("weight", "<f4")])


@dataclass(frozen=True)
class Entry:
    """A span as it lies in the stream: records [start, stop) of all shards end to end."""

    shard: int
    number: int
    start: int
    stop: int
    metadata: Any

    @property
    def raw(self) -> bytes:
        return json.dumps(self.metadata, separators=(",", ":")).encode()


@dataclass
class Model:
    """What a dataset holds, as plain arrays and lists."""

    records: np.ndarray
    spans: list[Entry] = field(default_factory=list)
    knows_offset: bool = True

    def window(self, index: int, window: int, lookahead: int = 0) -> np.ndarray:
        return self.records[index * window : (index + 1) * window + lookahead]

    def window_spans(self, index: int, window: int, lookahead: int = 0) -> list[tuple[Any, ...]]:
        """(start, stop, begins, ends, offset, id, metadata) of the window's spans, by looking at all of them."""
        begin, end = index * window, (index + 1) * window + lookahead
        found = []
        for span in self.spans:
            start, stop = max(span.start, begin), min(span.stop, end)
            if start >= stop:
                continue
            offset = start - span.start if self.knows_offset else None
            place = (start - begin, stop - begin, span.start >= begin, span.stop <= end, offset)
            found.append((*place, (span.shard, span.number), span.metadata))
        return found


def records_of(count: int, seed: int = 0, dtype: np.dtype[Any] = FIELDS) -> np.ndarray:
    random = np.random.default_rng(seed)
    records = np.zeros(count, dtype)
    for name in dtype.names or ():
        base, shape = dtype[name].subdtype or (dtype[name], ())
        values = random.random((count, *shape)) if base.kind == "f" else random.integers(0, 200, (count, *shape))
        records[name] = values.astype(base)
    return records


def columns_of(records: np.ndarray) -> dict[str, np.ndarray]:
    return {name: records[name] for name in records.dtype.names or ()}


def raw_tokens(path: Path, count: int, dtype: str = "u2", seed: int = 0) -> tuple[penstock.Dataset, np.ndarray]:
    tokens = np.random.default_rng(seed).integers(0, 60_000, count).astype(dtype)
    tokens.tofile(path)
    return penstock.open(path, dtype=dtype), tokens


def compact(
    folder: Path, shards: Sequence[Sequence[int]], seed: int = 0, codec: str = "json"
) -> tuple[penstock.Dataset, Model]:
    """Documents of the given lengths (0 too), shard by shard, each with an entry, or boundaries alone."""
    paths, pieces, spans, at = [], [], [], 0
    for shard, lengths in enumerate(shards):
        path = folder / f"compact-{shard}"
        with penstock.Writer(path, fields=FIELDS, metadata=codec) as writer:
            for number, length in enumerate(lengths):
                records = records_of(length, seed * 100_003 + shard * 1009 + number)
                metadata: Any = {"shard": shard, "number": number, "text": "x" * (number % 7)}
                if codec == "boundaries":
                    metadata = None
                writer.append(**columns_of(records), metadata=metadata)
                pieces.append(records)
                spans.append(Entry(shard, number, at, at + length, metadata))
                at += length
        paths.append(path)
    return penstock.open(*paths), Model(np.concatenate(pieces), spans)


def ids(folder: Path, shards: Sequence[Sequence[int]], entries: int = 5) -> tuple[penstock.Dataset, Model]:
    """Records that each carry an id; `shards` holds the ids, which may repeat and interleave."""
    paths, pieces, spans, at = [], [], [], 0
    for shard, numbers in enumerate(shards):
        path = folder / f"ids-{shard}"
        records = records_of(len(numbers), seed=77 + shard)
        with penstock.Writer(path, fields=FIELDS, metadata="json", layout="ids") as writer:
            given = [writer.entry({"shard": shard, "concept": number}) for number in range(entries)]
            writer.append(
                **columns_of(records), metadata_id=np.asarray([given[number] for number in numbers], np.uint32)
            )
        start = 0
        for stop in range(1, len(numbers) + 1):
            if stop == len(numbers) or numbers[stop] != numbers[start]:
                metadata = {"shard": shard, "concept": int(numbers[start])}
                spans.append(Entry(shard, int(numbers[start]), at + start, at + stop, metadata))
                start = stop
        pieces.append(records)
        paths.append(path)
        at += len(numbers)
    return penstock.open(*paths), Model(np.concatenate(pieces), spans, knows_offset=False)


def token_stream(folder: Path, count: int) -> tuple[penstock.Dataset, Model]:
    records = records_of(count, seed=5)
    with penstock.Writer(folder / "stream", fields=FIELDS, metadata=None) as writer:
        writer.append(**columns_of(records))
    return penstock.open(folder / "stream"), Model(records)


def opaque(folder: Path, count: int) -> tuple[penstock.Dataset, Model]:
    spans = []
    with penstock.Writer(folder / "opaque", fields=None, metadata="json") as writer:
        for number in range(count):
            spans.append(Entry(0, number, 0, 0, {"number": number, "list": list(range(number % 5))}))
            writer.append(metadata=spans[-1].metadata)
    return penstock.open(folder / "opaque"), Model(np.zeros(0, FIELDS), spans)


def with_everything(path: Path, shard_size: int) -> Path:
    """Shards of 300 documents with entries, columns, a tokenizer and features."""
    rng = np.random.default_rng(0)
    more: dict[str, Any] = {"features": {"names": [f"gene{i}" for i in range(50)], "length": np.arange(50, dtype="u4")}}
    more |= {"columns": {"score": "f4", "label": "category"}, "tokenizer": {"name": "mine", "vocabulary_size": 50}}
    with penstock.Writer(path, {"token": "u2"}, "json", shard_size=shard_size, **more) as writer:
        for number in range(300):
            tokens = rng.integers(0, 50, int(rng.integers(0, 300))).astype("u2")
            values = {"score": number / 7, "label": f"l{number % 3}"}
            writer.append(token=tokens, metadata={"name": "x" * (number % 50)}, columns=values)
    return path


LENGTHS = ((3, 0, 11, 1, 0, 0, 7, 20, 2), (), (5, 1, 1, 9), (13,))
NUMBERS = ((0, 0, 1, 1, 1, 0, 2, 2, 4, 4, 4, 4, 3, 1, 0, 0, 0, 0, 0, 0, 0), (1, 1, 2, 0, 0, 4, 4, 3, 3, 3, 0, 1), (2,))


def numbered(folder: Path) -> penstock.Dataset:
    """Documents with a column, their numbers in their shards."""
    compact(folder, LENGTHS)
    paths = [folder / f"compact-{shard}" for shard in range(len(LENGTHS))]
    for path, lengths in zip(paths, LENGTHS, strict=True):
        penstock.annotate(path, {"number": np.arange(len(lengths))})
    return penstock.open(*paths)


#: Every mode that a view may have: a name, and a function from an empty folder to a small view.
MODES: dict[str, Callable[[Path], penstock.View]] = {
    "raw": lambda folder: raw_tokens(folder / "tokens.bin", 71)[0].windows(6, lookahead=1),
    "compact": lambda folder: compact(folder, LENGTHS)[0].windows(7),
    "ids": lambda folder: ids(folder, NUMBERS)[0].windows(4, lookahead=1),
    "stream": lambda folder: token_stream(folder, 50)[0].windows(5),
    "documents": lambda folder: compact(folder, LENGTHS)[0].documents(),
    "boundaries": lambda folder: compact(folder, LENGTHS, codec="boundaries")[0].windows(7),
    "opaque": lambda folder: opaque(folder, 13)[0].documents(),
    "packed": lambda folder: compact(folder, LENGTHS)[0].packed(9),
    "padded": lambda folder: compact(folder, LENGTHS)[0].documents().padded(multiple_of=4),
    "split": lambda folder: compact(folder, LENGTHS)[0].windows(4).split(3)[0],
    "where": lambda folder: numbered(folder).where("number <> 2 and number < 99").windows(2),
}


def orders() -> dict[str, Any]:
    return {
        "uniform": "uniform",
        "sequential": "sequential",
        "blocks": penstock.orders.Blocks(2, 4),
        "lanes": penstock.orders.Blocks(2, 4, lanes=4),
    }


def orders_of(view: penstock.View) -> dict[str, Any]:
    """Every order, those that have a table of the view's observations too."""
    numbers = np.arange(len(view))
    return {
        **orders(),
        "fetches": penstock.orders.Sequential(fetch=4),
        "bucketed": bucketed(view),
        "weighted": penstock.orders.Weighted(numbers % 3),
        "weighted in blocks": penstock.orders.Weighted(numbers % 4 + 1, block=2, fetch=4, lanes=2),
        "balanced": penstock.orders.Balanced(numbers % 3),
        "custom": penstock.orders.Custom(np.append(numbers[::-1], [0, 0])),
        "asked": penstock.orders.Custom(Turned(len(view)), name="turned", version=1, fetch=5),
        "shares": penstock.orders.Balanced(numbers % 4 - 1, weights=[1, 2, 5], fetch=4),
    }


class Turned:
    """A user's function: the observations from another one on in each epoch."""

    def __init__(self, n: int) -> None:
        self._n = n

    def __call__(self, epoch: int, positions: np.ndarray) -> np.ndarray:
        return (positions + 3 * epoch + 1) % self._n


def bucketed(view: penstock.View) -> penstock.orders.Bucketed:
    """An order of the view by made-up lengths."""
    return penstock.orders.Bucketed(np.arange(len(view)) * 7 % 5, pool=6, bucket=2)


def array(value: Any) -> np.ndarray:
    """A copy as NumPy of a tensor or an array."""
    return np.array(value.numpy() if hasattr(value, "numpy") else value)


def span_tuples(spans: Any, row: int | None = None) -> list[tuple[Any, ...]]:
    return [
        (s.start, s.stop, s.begins, s.ends, s.offset, tuple(s.id), s.metadata) if row is not None
        else (s.row, s.start, s.stop, s.begins, s.ends, s.offset, tuple(s.id), s.raw)
        for s in spans
        if row is None or s.row == row
    ]  # fmt: skip


def snapshot(batch: Any) -> dict[str, Any]:
    """All that a batch offers, copied."""
    found: dict[str, Any] = {name: array(batch[name]) for name in batch}
    found |= {name: array(getattr(batch, name)) for name in ("indices", "epochs", "valid")}
    found |= {"position": batch.position, "spans": span_tuples(batch.spans)}
    for name in ("inputs", "labels", "offsets", "attention_mask", "lengths"):
        try:
            found[name] = array(getattr(batch, name))
        except (penstock.InvalidArgumentError, AttributeError):
            continue
    return found


def assert_same(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert one.keys() == other.keys()
    for name, value in one.items():
        if isinstance(value, np.ndarray):
            assert value.dtype == other[name].dtype, name
            np.testing.assert_array_equal(value, other[name], err_msg=name)
        else:
            assert value == other[name], name


def assert_all_same(one: Sequence[dict[str, Any]], other: Sequence[dict[str, Any]]) -> None:
    assert len(one) == len(other)
    for left, right in zip(one, other, strict=True):
        assert_same(left, right)
