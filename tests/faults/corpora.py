"""The datasets that faults are put into: one of each layout and format, several pages a file, two shards."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import penstock

DOCUMENTS = 300  # of each of two shards
OURS = ("compact", "numpy", "ids", "tokens", "opaque")
FOREIGN = ("megatron", "raw", "npy")
NAMES = (*OURS, *FOREIGN)


@dataclass(frozen=True)
class Document:
    tokens: np.ndarray[Any, Any]
    entry: Any


def documents(shard: int, seed: int) -> list[Document]:
    """Lengths and sizes of entries do not depend on the seed: datasets of two seeds have files of equal sizes."""
    lengths = np.random.default_rng(7).integers(0, 120, DOCUMENTS)
    tokens = np.random.default_rng([seed, shard])
    return [
        Document(
            tokens.integers(0, 60_000, length).astype("u2"),
            {"n": f"{seed}/{shard}/{number:05}", "pad": "é" * (number % 30)},
        )
        for number, length in enumerate(lengths)
    ]


def make(name: str, folder: Path, seed: int = 0) -> None:
    """Writes the dataset `name` into `folder`."""
    folder.mkdir(parents=True)
    if name in _OURS:
        _ours(name, folder, seed)
    else:
        _FOREIGN[name](folder, seed)


def opened(name: str, folder: Path, checks: str) -> penstock.Dataset:
    if name == "megatron":
        return penstock.open(folder / "tokens", checks=checks)
    if name in FOREIGN:
        return penstock.open(*sorted(map(str, folder.iterdir())), dtype="u2" if name == "raw" else None, checks=checks)
    return penstock.open(folder / "data", checks=checks)


def _numbered(writer: penstock.Writer, document: Document) -> None:
    if len(document.tokens):
        number = writer.entry(document.entry)
        writer.append(token=document.tokens, metadata_id=np.full(len(document.tokens), number, "u4"))


def _weighted(writer: penstock.Writer, document: Document) -> None:
    tokens = document.tokens
    writer.append(token=tokens, weight=tokens / 7, metadata=tokens[:9].astype("f4"))


_TOKEN = {"token": "u2"}
_OURS: dict[str, tuple[Any, Any, Callable[[penstock.Writer, Document], None]]] = {
    "compact": (_TOKEN, "json", lambda writer, each: writer.append(token=each.tokens, metadata=each.entry)),
    "numpy": ({"token": "u2", "weight": "f4"}, penstock.codecs.Numpy("f4"), _weighted),
    "ids": (_TOKEN, "json", _numbered),
    "tokens": (_TOKEN, None, lambda writer, each: writer.append(token=each.tokens)),
    "opaque": (None, "json", lambda writer, each: writer.append(metadata=each.entry)),
}


def _ours(name: str, folder: Path, seed: int) -> None:
    fields, metadata, append = _OURS[name]
    for shard in range(2):
        layout = "ids" if name == "ids" else "compact"
        with penstock.Writer(folder / "data", fields, metadata, layout=layout, shard=shard) as writer:
            for document in documents(shard, seed):
                append(writer, document)
    penstock.commit(folder / "data", shards=2)


def _megatron(folder: Path, seed: int) -> None:
    lengths, tokens, bounds = [], [], [0]
    for document in documents(0, seed):
        half = len(document.tokens) // 2
        parts = [part for part in (document.tokens[:half], document.tokens[half:]) if len(part)]
        lengths += [len(part) for part in parts]
        tokens += parts
        bounds.append(len(lengths))
    np.concatenate(tokens).tofile(folder / "tokens.bin")
    pointers = np.concatenate([[0], np.cumsum(lengths)[:-1]]) * 2
    with (folder / "tokens.idx").open("wb") as file:
        file.write(b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, 8, len(lengths), len(bounds)))
        for array, kind in ((lengths, "i4"), (pointers, "i8"), (bounds, "i8")):
            file.write(np.asarray(array, kind).tobytes())


def _raw(folder: Path, seed: int) -> None:
    for shard in range(2):
        np.concatenate([each.tokens for each in documents(shard, seed)]).tofile(folder / f"{shard}.bin")


def _npy(folder: Path, seed: int) -> None:
    for shard in range(2):
        np.save(folder / f"{shard}.npy", np.concatenate([each.tokens for each in documents(shard, seed)]))


_FOREIGN: dict[str, Callable[[Path, int], None]] = {"megatron": _megatron, "raw": _raw, "npy": _npy}
