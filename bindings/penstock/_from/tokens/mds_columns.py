"""Columns of MDS beside the tokens, as documents' metadata: numbers, text, JSON."""

from __future__ import annotations

import json
import mmap
import struct
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from penstock._base.errors import CorruptionError, InvalidArgumentError
from penstock._base.words import excerpt

_NUMBERS = {
    "int": "i8",
    **{f"{kind}{bits}": f"{kind[0]}{bits // 8}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)},
}
_NUMBERS.update({f"float{bits}": f"f{bits // 8}" for bits in (16, 32, 64)})
_TEXTS: dict[str, Callable[[str], Any]] = {
    "str": str, "str_int": int, "str_float": float, "str_decimal": str, "json": json.loads
}  # fmt: skip


class Columns:
    """How samples of a folder's shards are read."""

    def __init__(self, path: str, shards: list[dict[str, Any]], kept: list[str]) -> None:
        """Checks that all shards have the same columns.

        Raises:
            InvalidArgumentError: one that is wanted is pickled, or no number, text or JSON.
            CorruptionError: shards that differ.
        """
        self._path = path
        first = shards[0]
        names, encodings = first.get("column_names"), first.get("column_encodings")
        sizes = first.get("column_sizes")
        for shard in shards:
            if any(shard.get(key) != first.get(key) for key in ("column_names", "column_encodings", "column_sizes")):
                raise CorruptionError(f"{path}: the columns of its shards differ")
        if not all(isinstance(each, list) and len(each) == len(names or ()) for each in (names, encodings, sizes)):
            raise CorruptionError(f"{path}: its shards say no names, encodings and sizes of columns")
        assert isinstance(names, list) and isinstance(encodings, list) and isinstance(sizes, list)
        self._columns = [
            (name, size, _decoder(path, name, encoding) if name in kept else None)
            for name, encoding, size in zip(names, encodings, sizes, strict=True)
        ]
        self._kept = kept

    def entries(self, shard: Path) -> Iterator[dict[str, Any]]:
        """Of each sample of an unpacked shard, whose offsets were checked when it was opened."""
        with shard.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            (count,) = struct.unpack_from("<I", data)
            offsets = np.frombuffer(data[4 : 4 * (count + 2)], "<u4").tolist()
            for begin, end in pairwise(offsets):
                yield self._entry(data[begin:end], shard)

    def _entry(self, sample: bytes, shard: Path) -> dict[str, Any]:
        variable = [name for name, size, _ in self._columns if size is None]
        at, found = 4 * len(variable), dict[str, Any]()
        try:
            told = iter(struct.unpack_from(f"<{len(variable)}I", sample))
            for name, size, decode in self._columns:
                length = next(told) if size is None else int(size)
                if length < 0 or at + length > len(sample):
                    raise ValueError(f"column {name!r} goes past the sample's end")
                if decode is not None:
                    found[name] = decode(sample[at : at + length])
                at += length
        except (ValueError, TypeError, struct.error) as error:
            raise CorruptionError(f"{self._path}: a sample of {shard.name} cannot be read: {excerpt(error)}") from None
        return {name: found[name] for name in self._kept}


def _decoder(path: str, name: str, encoding: Any) -> Callable[[bytes], Any]:
    if encoding in _NUMBERS:
        dtype = np.dtype("<" + _NUMBERS[encoding])
        return lambda data: np.frombuffer(data, dtype, 1)[0].item()
    if encoding in _TEXTS:
        convert = _TEXTS[encoding]
        return lambda data: convert(data.decode())
    why = "pickled, and penstock unpickles nothing" if encoding == "pkl" else f"of {excerpt(encoding)}"
    raise InvalidArgumentError(
        f"{path}: column {excerpt(name)!r} is {why}: metadata are numbers, str and json; leave it out"
    )
