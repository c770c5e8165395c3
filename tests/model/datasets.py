"""The generator's datasets: small ones of every layout and format, each beside its plain content.

A family has three members: `a` and `b` of tokens u2, and `c` of u4 with tokens beyond 65,535. All have three shards or
files of odd sizes, documents without records and ones that are longer than a window.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import penstock
from contents import Content, Shard

END = 7  # the token that ends a document, where one does
GENES = 90  # of cells
KINDS = ("news", "code", None, "a longer name")
COLUMNS = {"kind": "category", "score": "f4", "pair": ("<i2", (2,))}
SIZES = {"a": (15, 1, 23), "b": (6, 19, 8), "c": (11, 4, 13)}  # documents of each shard


@dataclass(frozen=True)
class Made:
    """A member of a family on disk.

    Attributes:
        paths: of its shards or files one by one, and
        whole: of all of them together, relative to the folder of all datasets.
        content: of all shards.
        hints: what `penstock.open` must be told.
        window: how long a window of it is.
    """

    paths: tuple[str, ...]
    whole: tuple[str, ...]
    content: Content
    hints: dict[str, Any]
    window: int = 24


def fields_of(family: str, token: str) -> np.dtype[Any]:
    if family == "many":
        inner = np.dtype([("x", "<i2"), ("y", "<f8" if token == "<u2" else "<f4")])
        return np.dtype(
            [("loss", "u1"), ("token", token), ("flag", "?"), ("pair", inner), ("grid", "u1", (2, 2)), ("tag", "S3")]
        )
    if family == "cells":
        return np.dtype([("gene", token), ("count", "<u2" if token == "<u4" else "u1")])
    return np.dtype(
        [("token", token), *([("weight", "<f4" if token == "<u2" else "<f8")] if family in ("compact", "ids") else [])]
    )


def random_records(random: np.random.Generator, count: int, dtype: np.dtype[Any]) -> np.ndarray:
    records = np.zeros(count, dtype)
    for name in dtype.names or ():
        records[name] = _values(random, count, dtype[name], name)
    return records


def _values(random: np.random.Generator, count: int, dtype: np.dtype[Any], name: str) -> np.ndarray:
    base, shape = dtype.subdtype or (dtype, ())
    if base.names:
        return random_records(random, count, base)
    if base.kind == "f":
        return random.random((count, *shape)).astype(base)
    if base.kind == "S":
        return np.array([b"", b"x", b"abc"], base)[random.integers(0, 3, count)]
    if name == "loss":
        return random.integers(0, 3, count).astype(base)
    most = {"token": 120_000 if base.itemsize == 4 else 60_000, "x": 30_000}.get(name, 2 if base.kind == "b" else 200)
    values = random.integers(1, most, (count, *shape))
    if name == "token":
        values[1:-1][random.random(len(values[1:-1])) < 0.12] = END  # neither the first nor the last of a file
    return values.astype(base)


def lengths_of(random: np.random.Generator, count: int, long: bool) -> list[int]:
    if long:
        return [int(each) for each in random.choice([0, 0, 1, 3, 40, 500, 700, 4100], count // 2)]
    return [int(each) for each in random.choice([0, 0, 1, 2, 3, 5, 8, 12, 13, 23, 24, 25, 31, 60], count)]


def metadata_of(random: np.random.Generator, member: str, shard: int, number: int, length: int) -> dict[str, Any]:
    a, b, c, d = sorted(random.integers(0, length + 3, 4).tolist())
    # In order, falling, overlapping and far beyond the end, empty, none at all.
    answers = [[[a, b], [c, d]], [[c, d], [a, b]], [[a, c], [b, 1 << 40]], [[a, a], [b, d]], []][number % 5]
    return {
        "member": member,
        "number": [shard, number],
        "quality": number * 0.25 - shard,
        "answers": answers,
        "text": "é" * (number % 5),
    }


def documents(random: np.random.Generator, family: str, member: str, shard: int) -> tuple[Shard, list[dict[str, Any]]]:
    """A shard of documents, and what the writer is given for each."""
    dtype = fields_of(family, "<u4" if member == "c" else "<u2")
    lengths = lengths_of(random, SIZES[member][shard], family == "long")
    most = 600 if family == "long" else 28
    while sum(lengths) < 4 * most:  # every shard has some windows
        lengths.append(most)
    stops = np.cumsum(lengths).tolist()
    starts = [0, *stops[:-1]]
    records = random_records(random, stops[-1], dtype)
    if family == "cells":
        for start, stop in zip(starts, stops, strict=True):
            records["gene"][start:stop] = np.sort(random.choice(GENES, stop - start, replace=False))
            records["count"][start:stop] = random.integers(0, 6, stop - start)
    bounds_only = family in ("boundaries", "megatron")
    metadata = [
        None if bounds_only else metadata_of(random, member, shard, number, length)
        for number, length in enumerate(lengths)
    ]
    raws = [
        b"" if bounds_only else json.dumps(each, separators=(",", ":"), ensure_ascii=False).encode()
        for each in metadata
    ]
    columns = _columns(random, len(lengths)) if family in ("many", "long", "cells") else {}
    given = [
        {
            **{name: records[name][start:stop] for name in dtype.names or ()},
            "metadata": metadata[number],
            **({"columns": {name: values[number] for name, values in columns.items()}} if columns else {}),
        }
        for number, (start, stop) in enumerate(zip(starts, stops, strict=True))
    ]
    ids = tuple(range(len(lengths)))
    return Shard(records, tuple(starts), tuple(stops), ids, tuple(raws), tuple(metadata), columns), given


def _columns(random: np.random.Generator, count: int) -> dict[str, list[Any]]:
    return {
        "kind": [KINDS[number % len(KINDS)] for number in range(count)],
        "score": random.random(count).astype(np.float32).tolist(),
        "pair": random.integers(-300, 300, (count, 2)).tolist(),
    }


def _written(folder: Path, family: str, member: str, random: np.random.Generator) -> Made:
    codec = "boundaries" if family in ("boundaries", "megatron") else "json"
    shards, paths = [], []
    for number in range(3):
        shard, given = documents(random, family, member, number)
        path = folder / f"{member}-{number}"
        columns = COLUMNS if shard.columns else None
        with penstock.Writer(path, fields=shard.records.dtype, metadata=codec, columns=columns) as writer:
            for each in given:
                writer.append(**each)
        shards.append(shard)
        paths.append(path)
    content = Content(tuple(shards), "stream", codec=codec)
    return _combined(folder / member, paths, content, 504 if family == "long" else 24)


def _combined(whole: Path, paths: list[Path], content: Content, window: int = 24) -> Made:
    """All shards under one manifest: by append, as a dataset grows."""
    penstock.combine(paths[:1], whole)
    for each in paths[1:]:
        penstock.append(whole, each)
    root = whole.parents[1]
    return Made(
        tuple(str(each.relative_to(root)) for each in paths), (str(whole.relative_to(root)),), content, {}, window
    )


def _ids(folder: Path, family: str, member: str, random: np.random.Generator) -> Made:
    """Runs of entries that repeat; the last record of a shard and the first of the next may have the same number."""
    shards, paths = [], []
    dtype = fields_of(family, "<u4" if member == "c" else "<u2")
    for number in range(3):
        runs = [
            (int(entry), int(length))
            for entry, length in zip(
                random.integers(0, 4, SIZES[member][number] + 12),
                random.choice([1, 1, 2, 5, 9, 20, 50], 40),
                strict=False,
            )
        ]
        of_record = np.repeat([entry for entry, _ in runs], [length for _, length in runs]).astype(np.uint32)
        records = random_records(random, len(of_record), dtype)
        entries = [metadata_of(random, member, number, entry, 9) for entry in range(4)]
        path = folder / f"{member}-{number}"
        with penstock.Writer(path, fields=dtype, metadata="json", layout="ids") as writer:
            given = [writer.entry(each) for each in entries]
            writer.append(
                **{n: records[n] for n in dtype.names or ()}, metadata_id=np.array(given, np.uint32)[of_record]
            )
        cuts = [0, *(np.flatnonzero(np.diff(of_record)) + 1).tolist(), len(of_record)]
        ids = tuple(int(of_record[at]) for at in cuts[:-1])
        raws = tuple(json.dumps(entries[each], separators=(",", ":"), ensure_ascii=False).encode() for each in ids)
        shards.append(
            Shard(records, tuple(cuts[:-1]), tuple(cuts[1:]), ids, raws, tuple(entries[each] for each in ids))
        )
        paths.append(path)
    return _combined(folder / member, paths, Content(tuple(shards), "stream", ids=True, codec="json"))


def _tokens(folder: Path, family: str, member: str, random: np.random.Generator) -> Made:
    shards, paths = [], []
    for number in range(3):
        records = random_records(
            random, 41 + 20 * SIZES[member][number], fields_of(family, "<u4" if member == "c" else "<u2")
        )
        path = folder / f"{member}-{number}"
        with penstock.Writer(path, fields=records.dtype, metadata=None) as writer:
            writer.append(token=records["token"])
        shards.append(Shard(records))
        paths.append(path)
    return _combined(folder / member, paths, Content(tuple(shards), "tokens"))


def _files(folder: Path, family: str, member: str, random: np.random.Generator) -> Made:
    """Bare tokens or .npy, in files that are opened in place."""
    shards, paths = [], []
    kind = "<u4" if member == "c" else "<u2"
    for number in range(3):
        records = random_records(random, 35 + 19 * SIZES[member][number], fields_of(family, kind))
        path = folder / f"{member}-{number}.{'bin' if family == 'raw' else 'npy'}"
        records["token"].tofile(path) if family == "raw" else np.save(path, records["token"])
        shards.append(Shard(records))
        paths.append(str(path.relative_to(folder.parent)))
    hints = {"dtype": kind} if family == "raw" else {}
    return Made(tuple(paths), tuple(paths), Content(tuple(shards), "tokens"), hints)


def _megatron(folder: Path, family: str, member: str, random: np.random.Generator) -> Made:
    """As Megatron writes it: a file of tokens beside an index of sequences and documents."""
    made = _written(folder, family, member, random)
    shards, paths = [], []
    for number, path in enumerate(made.paths):
        penstock.export(folder.parent / path, folder / f"{member}-{number}_text", to="megatron")
        paths.append(f"{folder.name}/{member}-{number}_text")
        shards.append(_in_megatron(made.content.shards[number]))
    return Made(tuple(paths), tuple(paths), Content(tuple(shards), "stream"), {})


def _in_megatron(shard: Shard) -> Shard:
    # Tokens from 2**31 on do not occur: u4 becomes i4, as Megatron has no u4.
    token = "<i4" if shard.records.dtype["token"].itemsize == 4 else "<u2"
    return Shard(shard.records.astype(np.dtype([("token", token)])), shard.starts, shard.stops, shard.ids, shard.raws)


def _opaque(folder: Path, family: str, member: str, random: np.random.Generator) -> Made:
    shards, paths = [], []
    for number in range(3):
        count = 3 * SIZES[member][number]
        entries = [metadata_of(random, member, number, i, 5) for i in range(count)]
        columns = _columns(random, count)
        path = folder / f"{member}-{number}"
        with penstock.Writer(path, fields=None, metadata="json", columns=COLUMNS) as writer:
            for i, each in enumerate(entries):
                writer.append(metadata=each, columns={name: values[i] for name, values in columns.items()})
        raws = tuple(json.dumps(each, separators=(",", ":"), ensure_ascii=False).encode() for each in entries)
        nothing = (0,) * count
        none = np.zeros(0, np.dtype([]))
        shards.append(Shard(none, nothing, nothing, tuple(range(count)), raws, tuple(entries), columns))
        paths.append(path)
    return _combined(folder / member, paths, Content(tuple(shards), "opaque", codec="json"))


MAKERS: dict[str, Callable[[Path, str, str, np.random.Generator], Made]] = {
    "compact": _written,
    "many": _written,
    "long": _written,
    "boundaries": _written,
    "ids": _ids,
    "tokens": _tokens,
    "raw": _files,
    "npy": _files,
    "megatron": _megatron,
    "opaque": _opaque,
    "cells": _written,
}


def make(root: Path, family: str, member: str) -> Made:
    """A member of a family below `root`: the same bytes wherever it is made."""
    folder = root / family
    folder.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng([list(MAKERS).index(family), ord(member)])
    return MAKERS[family](folder, family, member, random)
