"""MDS: uncompressed folders are read in place; compressed shards are unpacked one by one; columns become metadata."""

from __future__ import annotations

import errno
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from penstock._base.errors import CorruptionError, InvalidArgumentError, NotFoundError
from penstock._base.words import excerpt
from penstock._from.tokens.in_place import InPlace
from penstock._from.tokens.mds_columns import Columns
from penstock._from.tokens.reader import (
    FileReader,
    Input,
    Part,
    Piece,
    Reader,
    damaged,
    is_own_name,
    kept_columns,
    one_column,
)
from penstock._from.tokens.unpack import copy, unpack
from penstock._places.scratch import Scratch
from penstock._places.stores.location import Location, location_of

_INDEX = "index.json"
_MOST = 1 << 32  # bytes of a shard, which has offsets of 4


def open_mds(given: Input) -> Reader:
    """A folder, as its shards want it."""
    folder = given.at.folder(_INDEX)
    if folder.beside(_INDEX).is_missing():
        return InPlace(given)
    shards = _shards_of(folder, given)
    if given.metadata == () and not any(shard.get("compression") for shard in shards):
        return InPlace(given)
    return Folder(given, folder, shards)


class Folder(FileReader):
    """Shards that are read one after the other, each as a folder of its own: a unit is a shard."""

    def __init__(self, given: Input, folder: Location, shards: list[dict[str, Any]]) -> None:
        """Unpacks the first shard, which says the types.

        Raises:
            InvalidArgumentError: a column that there is not, or that is pickled; a package is missing.
            CorruptionError: index.json or a shard is not as it says.
        """
        self._given = given
        self._folder = folder
        self._shards = shards
        self._name = f"{given.name}/{_INDEX}"
        names = shards[0].get("column_names") if shards else None
        if not isinstance(names, list) or not all(isinstance(each, str) for each in names):
            raise CorruptionError(f"{self._name}: a shard says no column_names")
        tokens = one_column(given.name, names, given.column)
        kept = kept_columns(given.name, names, tokens, given.metadata)
        self._columns = Columns(given.name, shards, kept) if kept else None
        with _Unpacked(self, 0) as (first, _):
            self.fields = dict(first.fields)
        self.has_documents = True
        self.has_metadata = bool(kept)
        self.sources = [folder.beside(_INDEX), *(self.file(number) for number in range(len(shards)))]

    def place(self, unit: int) -> str:
        """As of Reader."""
        return f"shard {unit:,}"

    def pieces(self, most_bytes: int) -> Iterator[Piece]:
        """As of Reader: a piece is a shard."""
        for number in range(len(self._shards)):
            yield Piece(number, number + 1, self.raw_bytes(number))

    def parts(self, piece: Piece) -> Iterator[Part]:
        """As of Reader."""
        for number in range(piece.begin, piece.end):
            with _Unpacked(self, number) as (opened, raw):
                entries = None if self._columns is None else self._columns.entries(raw)
                for each in opened.pieces(1 << 62):
                    for part in opened.parts(each):
                        assert part.lengths is not None
                        rows = None if entries is None else [next(entries) for _ in range(len(part.lengths))]
                        yield Part(part.lengths, part.fields, rows)

    def file(self, number: int) -> Location:
        """That of a shard, as it lies there."""
        said = self._shards[number].get("zip_data" if self.compression(number) else "raw_data")
        name = said.get("basename") if isinstance(said, dict) else None
        if not is_own_name(name):
            raise CorruptionError(f"{self._name}: {excerpt(name)!r} names no file of its folder")
        return self._folder.beside(str(name))

    def compression(self, number: int) -> str:
        """Of a shard, as "zstd"; "": none."""
        said = self._shards[number].get("compression") or ""
        return str(said).partition(":")[0]

    def packed(self, number: int) -> dict[str, Any]:
        """What index.json says of a shard's compressed file."""
        said = self._shards[number].get("zip_data")
        return said if isinstance(said, dict) else {}

    def raw_bytes(self, number: int) -> int:
        """Of a shard without compression."""
        raw = self._shards[number].get("raw_data")
        size = raw.get("bytes") if isinstance(raw, dict) else None
        if not isinstance(size, int) or not 0 < size < _MOST:
            raise CorruptionError(f"{self._name}: shard {number:,} says no bytes of raw_data below 4 GiB")
        return size

    def alone(self, number: int) -> dict[str, Any]:
        """What an index.json says of the unpacked shard."""
        shard = {**self._shards[number], "compression": None, "zip_data": None}
        raw = {"basename": "shard.00000.mds", "bytes": self.raw_bytes(number), "hashes": {}}
        return {"shards": [{**shard, "raw_data": raw, "hashes": []}], "version": 2}

    @property
    def given(self) -> Input:
        """As it was opened."""
        return self._given


class _Unpacked:
    """One shard of a folder as a folder of its own, in temporary files. Gives its reader, and the shard's file."""

    def __init__(self, folder: Folder, number: int) -> None:
        self._of = folder
        self._number = number
        self._scratch: Scratch | None = None

    def __enter__(self) -> tuple[InPlace, Path]:
        self._scratch = Scratch()  # which also removes those of killed processes
        try:
            return self._make(self._scratch.path)
        except BaseException:
            self._scratch.close()
            raise

    def __exit__(self, *error: object) -> None:
        if self._scratch is not None:
            self._scratch.close()

    def _make(self, scratch: Path) -> tuple[InPlace, Path]:
        of, number, raw = self._of, self._number, scratch / "shard.00000.mds"
        given, source, kind = of.given, of.file(number), of.compression(number)
        if source.is_missing():
            raise NotFoundError(errno.ENOENT, f"{source.name}: no such file, which index.json names", source.path)
        if kind:
            unpack(source, kind, of.packed(number), of.raw_bytes(number), raw)
        elif here := source.on_disk():
            raw.symlink_to(here[0].resolve())
        else:
            copy(source, of.raw_bytes(number), raw)
        (scratch / _INDEX).write_text(json.dumps(of.alone(number)))
        try:
            opened = InPlace(Input(location_of(scratch), "mds", given.column, (), given.dtype, given.boundary))
        except (CorruptionError, InvalidArgumentError) as error:
            said = str(error).replace(str(raw), source.name).replace(str(scratch), given.name)
            raise type(error)(said) from None
        return opened, raw


def _shards_of(folder: Location, given: Input) -> list[dict[str, Any]]:
    name = f"{given.name}/{_INDEX}"
    try:
        with folder.beside(_INDEX).open() as file:
            index = json.loads(file.read())
    except (ValueError, RecursionError) as error:
        raise damaged(name, error) from error
    shards = index.get("shards") if isinstance(index, dict) else None
    if not isinstance(shards, list) or not all(isinstance(each, dict) for each in shards) or not shards:
        raise CorruptionError(f"{name}: it lists no shards")
    return shards
