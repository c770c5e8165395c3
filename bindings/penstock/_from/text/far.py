"""Inputs at an address: files of servers and buckets."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from penstock._places.remote import Address
from penstock._places.stores.addresses import stores_of
from penstock._places.stores.hub_files import HubAddress
from penstock._places.stores.read_ahead import FarReader


class FarFiles:
    """Files that are reached alike. Travels to other processes, where each opens its own stores."""

    def __init__(self, addresses: Sequence[Address]) -> None:
        """Opens nothing yet."""
        self._addresses = list(addresses)
        self._stores: list[Any] | None = None
        self._mutex = threading.Lock()

    def __reduce__(self) -> tuple[Any, ...]:
        return FarFiles, (self._addresses,)

    def store(self, number: int) -> Any:
        """That of a file.

        Raises:
            penstock.InvalidArgumentError: What reads it is not installed; one address lies in another.
        """
        with self._mutex:
            if self._stores is None:
                self._stores = stores_of(self._addresses)
            return self._stores[number]

    def size(self, number: int) -> int:
        """Bytes of a file; of one at a commit, which never changes, those that were told first.

        Raises:
            penstock.Error: It is not there, or cannot be reached.
        """
        address = self._addresses[number]
        return address.size if isinstance(address, HubAddress) else int(self.store(number).size(address.path))

    def path(self, number: int) -> str:
        """Of a file, as its store has it."""
        return self._addresses[number].path


class FarFile:
    """One of them: what is asked of a Path."""

    def __init__(self, files: FarFiles, number: int) -> None:
        """Opens nothing."""
        self._files = files
        self._number = number

    def __str__(self) -> str:
        """The address, without secrets."""
        return self._files.path(self._number)

    def absolute(self) -> FarFile:
        """It is one."""
        return self

    def is_file(self) -> bool:
        """Who opens it finds out."""
        return True

    def exists(self) -> bool:
        """Who opens it finds out."""
        return True

    def size(self) -> int:
        """Bytes.

        Raises:
            penstock.Error: It is not there, or cannot be reached.
        """
        return self._files.size(self._number)

    def head(self, size: int) -> bytes:
        """The first bytes, at most `size`, of a file that is not empty.

        Raises:
            penstock.Error: As `size`.
        """
        return bytes(self._files.store(self._number).read(str(self), 0, min(size, self.size())))

    def open(self, mode: str = "rb") -> FarReader:
        """Its bytes.

        Raises:
            penstock.Error: As `size`.
        """
        assert mode == "rb"
        return FarReader(self._files.store(self._number), str(self), self.size())
