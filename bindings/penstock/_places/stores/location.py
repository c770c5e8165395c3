"""Files and folders that are read, on this machine or at an address: who reads them does not ask which."""

from __future__ import annotations

import io
import os
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, cast

from penstock import _native
from penstock._base.errors import Error, InvalidArgumentError, IoError, NotFoundError
from penstock._places.paths import PathLike, expand, local_path
from penstock._places.remote import Address, is_address
from penstock._places.storage import Storage
from penstock._places.stores.addresses import addresses_of, stores_of
from penstock._places.stores.read_ahead import FarReader

_AT_ONCE = 1 << 20  # bytes that are read, at least
_SAMPLES = 16
_SAMPLE_BYTES = 1 << 12
_BARE_BYTES = '[["token", "|u1"]]'


@dataclass(frozen=True)
class Location(ABC):
    """A file or folder that is read. Pickles; opens nothing before it is asked to.

    Attributes:
        path: of this machine; or an address, with its password and signature.
        storage: how an address is reached.
    """

    path: str
    storage: Storage | None = None

    @property
    @abstractmethod
    def name(self) -> str:
        """The path as messages have it, without secrets."""

    @property
    @abstractmethod
    def bare(self) -> str:
        """The path as it names the file, without the query of an address."""

    @abstractmethod
    def absolute(self) -> Location:
        """The same from another working directory."""

    @abstractmethod
    def expanded(self) -> list[Location]:
        """The files and folders that a glob of this machine matches, sorted; of what is none, itself.

        Raises:
            NotFoundError: Nothing matches.
        """

    @abstractmethod
    def on_disk(self) -> list[Path]:
        """Its path on this machine, where it lies; none at an address, where who opens it finds out what is there."""

    @abstractmethod
    def open(self) -> BinaryIO:
        """A file that can be sought in.

        Raises:
            NotFoundError: It is not there.
            IoError: It cannot be opened.
        """

    @abstractmethod
    def open_arrow(self, pyarrow: Any) -> Any:
        """The file as pyarrow reads it, mapped where it can be."""

    @abstractmethod
    def sample(self) -> bytes:
        """What tells its content from others': its size and samples."""

    @abstractmethod
    def beside(self, name: str) -> Location:
        """The file of this name in the folder that this is."""

    @abstractmethod
    def folder(self, name: str) -> Location:
        """The folder, where this is the file `name` in it."""

    @abstractmethod
    def ending(self, old: str, new: str) -> Location:
        """The file whose name ends otherwise."""

    def is_missing(self) -> bool:
        """Whether it is known that there is no such file."""
        return any(not path.is_file() for path in self.on_disk())

    def may_be_folder(self) -> bool:
        """Whether it is not known that there is no such folder."""
        return all(path.is_dir() for path in self.on_disk())

    def is_same(self, path: str) -> bool:
        """Whether it is what a path of this machine names."""
        return any(os.path.realpath(each) == os.path.realpath(path) for each in self.on_disk())

    def begins_with(self, head: bytes) -> bool:
        """True if there is a file that begins so; False if it is not there, or cannot be opened."""
        try:
            file = self.open()
        except Error:
            return False
        with file:
            return file.read(len(head)) == head

    def size(self) -> int:
        """Bytes of the file."""
        with self.open() as file:
            return file.seek(0, io.SEEK_END)


class _Named(io.FileIO):
    """A file of this machine, which errors of reading name."""

    def readinto(self, buffer: Any) -> Any:
        try:
            return super().readinto(buffer)
        except OSError as error:
            raise self._named(error) from error

    def readall(self) -> Any:
        try:
            return super().readall()
        except OSError as error:
            raise self._named(error) from error

    def _named(self, error: OSError) -> IoError:
        return IoError(error.errno, f"{self.name}: {error.strerror or error}", str(self.name))


@dataclass(frozen=True)
class _Here(Location):
    """On this machine."""

    @property
    def name(self) -> str:
        return self.path

    @property
    def bare(self) -> str:
        return self.path

    def absolute(self) -> Location:
        return _Here(str(Path(self.path).absolute()))

    def expanded(self) -> list[Location]:
        return [_Here(each) for each in expand(self.path)]

    def on_disk(self) -> list[Path]:
        return [Path(self.path)]

    def open(self) -> BinaryIO:
        try:
            return cast(BinaryIO, io.BufferedReader(_Named(self.path), _AT_ONCE))
        except FileNotFoundError as error:
            raise NotFoundError(error.errno, f"{self.path}: no such file", self.path) from None
        except OSError as error:
            raise IoError(error.errno, f"{self.path}: {error.strerror or error}", self.path) from error

    def open_arrow(self, pyarrow: Any) -> Any:
        return pyarrow.memory_map(self.path)

    def sample(self) -> bytes:
        with self.open() as file:
            size = os.fstat(file.fileno()).st_size
            found = f"{size}\n".encode()
            for number in range(_SAMPLES):
                file.seek(max(0, size - _SAMPLE_BYTES) * number // (_SAMPLES - 1))
                found += file.read(_SAMPLE_BYTES)
        return found

    def beside(self, name: str) -> Location:
        return _Here(str(Path(self.path) / name))

    def folder(self, name: str) -> Location:
        return _Here(str(Path(self.path).parent)) if Path(self.path).name == name else self

    def ending(self, old: str, new: str) -> Location:
        return _Here(self.path.removesuffix(old) + new)


@dataclass(frozen=True)
class _There(Location):
    """At an address."""

    @property
    def name(self) -> str:
        return _native.shown_address(self.path)

    @property
    def bare(self) -> str:
        return self.path.partition("?")[0]

    def absolute(self) -> Location:
        return self

    def expanded(self) -> list[Location]:
        return [self]

    def on_disk(self) -> list[Path]:
        return []

    def open(self) -> BinaryIO:
        address, store = self._opened()
        return cast(BinaryIO, io.BufferedReader(FarReader(store, address.path, store.size(address.path)), _AT_ONCE))

    def open_arrow(self, pyarrow: Any) -> Any:
        return pyarrow.PythonFile(self.open(), mode="r")

    def sample(self) -> bytes:
        address, store = self._opened()
        return _native.open_as("raw", [address.path], _BARE_BYTES, "index", [store]).fingerprint.encode()

    def beside(self, name: str) -> Location:
        return self._named(f"{self.bare.rstrip('/')}/{name}")

    def folder(self, name: str) -> Location:
        return self._named(self.bare.removesuffix("/" + name))

    def ending(self, old: str, new: str) -> Location:
        return self._named(self.bare.removesuffix(old) + new)

    def _named(self, bare: str) -> Location:
        return _There(bare + self.path[len(self.bare) :], self.storage)

    def _opened(self) -> tuple[Address, Any]:
        found = addresses_of(self.path, self.storage)
        if len(found) > 1:
            raise InvalidArgumentError(f"{self.name}: {len(found):,} files: name each, without *, ? and [")
        return found[0], stores_of(found)[0]


def location_of(path: PathLike, storage: Storage | None = None) -> Location:
    """Where what a user names lies; looks at nothing.

    Raises:
        InvalidArgumentError: Neither a path nor an address.
    """
    return _There(path, storage) if is_address(path) else _Here(local_path(path))
