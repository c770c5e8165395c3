"""WebDataset: tar files whose members with the same name up to the first dot are a sample, a document each.

What webdataset's writers put into a tar: key.npy (an array), key.json (an object), key.txt, key.cls (an integer),
key.EXTENSION with bytes as they are; each may be .gz. A unit is a tar, which can only be read from its beginning.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from penstock._base.errors import CorruptionError, InvalidArgumentError
from penstock._base.words import excerpt
from penstock._from.tokens.npy import array_of
from penstock._from.tokens.reader import (
    COLUMNS,
    TOKEN,
    FileReader,
    Input,
    Part,
    Piece,
    check_integers,
    damaged,
)
from penstock._from.tokens.records import PART_BYTES
from penstock._from.tokens.tar_file import TarFile

_BARE = ("bin", "bytes")
_PICKLED = ("pyd", "pickle", "pkl", "pth", "pt")
_MOST = 1 << 32  # bytes of a member that was unpacked
_NOT_BARE = ("json", "jsonl", "npz", "ten", "tb", "mp", "msg", "cbor", "txt", "text", "cls")
_KEY = "__key__"
_SAMPLES = 1 << 12  # of a part

Sample = dict[str, bytes]


class TarReader(FileReader):
    """One tar, plain or packed."""

    def __init__(self, given: Input) -> None:
        """Reads the first sample, which says where the tokens are.

        Raises:
            CorruptionError: no tar that can be read.
            InvalidArgumentError: no member has the tokens, or one is pickled.
        """
        self._given = given
        self.sources = [given.at]
        self._path = given.name
        self._tar = TarFile(given)
        self.has_documents = True
        self.has_metadata = given.metadata != ()
        first = next(self._samples(), None)
        if first is None:
            raise InvalidArgumentError(f"{given.name}: no sample is in it: members are called KEY.EXTENSION")
        self._member, self._key = self._find(first[1])
        self._dtype = None if given.dtype is None else np.dtype(given.dtype)
        self._first: np.dtype[Any] | None = None  # type of tokens
        self.fields = {TOKEN: check_integers(given.name, self._tokens(*first).dtype)}

    def place(self, unit: int) -> str:
        """As of Reader: a tar is one unit."""
        return ""

    def pieces(self, most_bytes: int) -> Iterator[Piece]:
        """As of Reader: a piece is the tar."""
        yield Piece(0, 1, self._given.at.size())

    def parts(self, piece: Piece) -> Iterator[Part]:
        """As of Reader."""
        held: list[npt.NDArray[Any]] = []
        entries: list[dict[str, Any]] = []
        room = PART_BYTES
        for key, sample in self._samples(self._is_wanted):
            tokens = self._tokens(key, sample)
            if held and (tokens.dtype != held[-1].dtype or room <= 0 or len(held) >= _SAMPLES):
                yield self._part(held, entries)
                held, entries, room = [], [], PART_BYTES
            held.append(tokens)
            entries.append(self._entry(key, sample))
            room -= tokens.nbytes
        if held:
            yield self._part(held, entries)

    def _part(self, held: list[npt.NDArray[Any]], entries: list[dict[str, Any]]) -> Part:
        lengths = np.array([len(each) for each in held], np.int64)
        return Part(lengths, {TOKEN: np.concatenate(held)}, None if self._given.metadata == () else entries)

    # ---- members

    def _samples(self, wanted: Callable[[str], bool] = lambda extension: True) -> Iterator[tuple[str, Sample]]:
        """Keys with what their members hold, by extension; members of a sample follow one another.

        Args:
            wanted: of which extensions members are read; others are there, and empty.
        """
        last, sample = None, Sample()
        for path, read in self._tar.members():
            named = _named(path)
            if named is None:
                continue
            key, extension = named
            if key != last and sample:
                yield str(last), sample
                sample = Sample()
            last = key
            if extension in sample:
                raise InvalidArgumentError(f"{self._path}: {excerpt(path)} is there twice")
            sample[extension] = b""
            if wanted(extension):
                data = read()
                sample[extension] = (
                    _unzipped(data, f"{self._path}: {excerpt(path)}") if extension.endswith(".gz") else data
                )
        if sample:
            yield str(last), sample

    def _is_wanted(self, extension: str) -> bool:
        if extension == self._member:
            return True
        return self._given.metadata != () and (extension == "json" or _is_text(extension))

    def _find(self, sample: Sample) -> tuple[str, str | None]:
        """The extension of the member that has the tokens; and of a .json its key.

        Raises:
            InvalidArgumentError: there is none, or it is pickled.
        """
        wanted = self._given.column
        names = (
            (wanted.lower(),) if wanted is not None else (*(f"{each}.npy" for each in COLUMNS), *COLUMNS, "npy", *_BARE)
        )
        for name in names:
            if name in sample:
                if name.rpartition(".")[2] in _PICKLED:
                    raise InvalidArgumentError(
                        f"{self._path}: .{name} is pickled, and penstock unpickles nothing: write .npy"
                    )
                if name.removesuffix(".gz").rpartition(".")[2] in _NOT_BARE:
                    raise InvalidArgumentError(
                        f"{self._path}: .{name} holds no bare tokens: .npy does, bytes of a given dtype, or a list of "
                        ".json, of which column is the key"
                    )
                return name, None
        keys = (wanted,) if wanted is not None else COLUMNS
        if "json" in sample:
            found = _object(sample["json"], self._path)
            for key in keys:
                if key in found:
                    return "json", key
        there = excerpt(", ".join(f".{each}" for each in sample))
        pickled = [each for each in sample if each.rpartition(".")[2] in _PICKLED]
        why = f" (.{pickled[0]} is pickled, and penstock unpickles nothing)" if pickled else ""
        raise InvalidArgumentError(
            f"{self._path}: which member has the tokens? There are {there}{why}: say its extension, or a key of .json, "
            "with column"
        )

    def _tokens(self, key: str, sample: Sample) -> npt.NDArray[Any]:
        """Integers; of another type than those of the sample before, where the file has them so."""
        path = f"{self._path}: {excerpt(key)}.{excerpt(self._member)}"
        found = self._values(sample, path)
        if not len(found):  # NumPy has 64-bit floats for an array of nothing
            return np.empty(0, self._first or np.int64)
        check_integers(path, found.dtype)
        self._first = self._first or found.dtype
        return found

    def _values(self, sample: Sample, path: str) -> npt.NDArray[Any]:
        name = self._member
        if name not in sample:
            raise InvalidArgumentError(f"{path} is missing, which the first sample has")
        if self._key is not None:
            return self._of_json(sample[name], path)
        kind = name.removesuffix(".gz").rpartition(".")[2]
        if kind == "npy":
            return array_of(sample[name], path)
        if self._dtype is None:
            raise InvalidArgumentError(f"{path}: bytes do not say their type: give the dtype, as u2")
        if len(sample[name]) % self._dtype.itemsize:
            raise CorruptionError(
                f"{path}: {len(sample[name]):,} bytes, a multiple of {self._dtype.itemsize} is wanted"
            )
        return np.frombuffer(sample[name], self._dtype.newbyteorder("<"))

    def _of_json(self, data: bytes, path: str) -> npt.NDArray[Any]:
        values = _object(data, path).get(str(self._key))
        if not isinstance(values, list) or not all(type(each) is int for each in values):
            raise InvalidArgumentError(f"{path}: {excerpt(self._key)!r} is no list of integers")
        if any(not 0 <= each < 1 << 63 for each in values):
            raise InvalidArgumentError(f"{path}: {excerpt(self._key)!r} has a number that is no token")
        return np.array(values, np.int64)

    def _entry(self, key: str, sample: Sample) -> dict[str, Any]:
        wanted = self._given.metadata
        if wanted == ():
            return {}
        found: dict[str, Any] = {_KEY: key}
        for name, data in sample.items():
            if _is_text(name):
                found[name] = _text(data, f"{self._path}: {excerpt(key)}.{excerpt(name)}")
        if "json" in sample:
            found.update(_object(sample["json"], f"{self._path}: {excerpt(key)}.json"))
        if self._key is not None:
            found.pop(self._key, None)
        if wanted is None:
            return found
        for name in wanted:
            if name not in found:
                raise InvalidArgumentError(
                    f"{self._path}: {excerpt(key)}: no {excerpt(name)!r} for metadata: there are "
                    f"{excerpt(', '.join(found))}"
                )
        return {name: found[name] for name in wanted}


def _named(path: str) -> tuple[str, str] | None:
    """Key and extension of a member; None of what is in no sample."""
    folder, slash, name = path.rpartition("/")
    key, dot, extension = name.partition(".")
    if not key or not dot or not extension or (key.startswith("__") and key.endswith("__")):
        return None
    return folder + slash + key, extension.lower()  # as webdataset has it


def _is_text(extension: str) -> bool:
    return extension.removesuffix(".gz").rpartition(".")[2] in ("txt", "text", "cls")


def _object(data: bytes, path: str) -> dict[str, Any]:
    try:
        found = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise damaged(path, error) from error
    if not isinstance(found, dict):
        raise InvalidArgumentError(f"{path}: no JSON object")
    return found


def _text(data: bytes, path: str) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise damaged(path, error) from error


def _unzipped(data: bytes, path: str) -> bytes:
    unpacker = zlib.decompressobj(zlib.MAX_WBITS | 16)
    try:
        found = unpacker.decompress(data, _MOST)
    except zlib.error as error:
        raise damaged(path, error) from error
    if not unpacker.eof:
        raise CorruptionError(f"{path}: its gzip data is cut off, or unpacks to more than 4 GiB")
    return found
