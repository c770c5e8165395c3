"""What an import asks of one input, whatever its format: how it can be cut, and what documents or tokens it has."""

from __future__ import annotations

import hashlib
import importlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from penstock._base.errors import CorruptionError, InvalidArgumentError
from penstock._base.extras import install_for
from penstock._base.words import excerpt
from penstock._places.stores.location import Location

AUTO = "auto"  # of a format: penstock.open finds it out
TOKEN = "token"
ENTRY_BYTES = 16  # where a document begins, in the index of the dataset
COLUMNS = ("tokens", "input_ids")  # where tokens are, unless a name is given
_LONGEST_NAME = 255  # bytes, on all file systems that are usual

Tokens = npt.NDArray[Any]


class Boundary(NamedTuple):
    """The token that bounds documents.

    Attributes:
        by: "end_of_document", it is a document's last token; or "begin_of_document", its first.
        token: its number.
    """

    by: str
    token: int

    @property
    def behind(self) -> int:
        """Tokens from it to where a document begins."""
        return 1 if self.by == "end_of_document" else 0


@dataclass(frozen=True)
class Input:
    """One input and how it is read. Pickled into the processes that read.

    Attributes:
        at: a file or folder.
        format: one of `formats.FORMATS`, or AUTO.
        column: where the tokens are, in formats that have columns; None: as COLUMNS says.
        metadata: names of what becomes the document's entry; None: all.
        dtype: of a token, where the file does not say it.
        boundary: the token that bounds documents, of a format without them.
    """

    at: Location
    format: str
    column: str | None = None
    metadata: tuple[str, ...] | None = ()
    dtype: str | None = None
    boundary: Boundary | None = None

    @property
    def name(self) -> str:
        """Of the file or folder, as messages have it: an address without its password or signature."""
        return self.at.name


class Piece(NamedTuple):
    """Units [begin, end) of an input, whatever its format counts: documents, records, batches.

    Attributes:
        begin: the first unit.
        end: the one behind the last.
        bytes: that they hold, about.
        at: records before the first unit, where the reader wants to know them.
    """

    begin: int
    end: int
    bytes: int
    at: int = 0


class Part(NamedTuple):
    """Documents that follow one another.

    Attributes:
        lengths: records of each document [d]; None: tokens without documents.
        fields: of all documents, end to end: name to [records].
        entries: what is kept with each document [d]; None: nothing.
    """

    lengths: npt.NDArray[Any] | None
    fields: dict[str, Tokens]
    entries: list[dict[str, Any]] | None


class Reader(Protocol):
    """One opened input. One thread at a time."""

    @property
    def fields(self) -> dict[str, str]:
        """Types of a record as they lie there, the token first."""

    @property
    def has_documents(self) -> bool:
        """Whether it says where documents begin."""

    @property
    def has_metadata(self) -> bool:
        """Whether something is kept with each document."""

    def place(self, unit: int) -> str:
        """The unit in words, where documents are not counted from the input's beginning; "": they are."""

    def identity(self) -> str:
        """What tells its content from others': sizes and samples."""

    def files(self) -> list[str]:
        """Those of this machine that it is made of."""

    def pieces(self, most_bytes: int) -> Iterator[Piece]:
        """All of it, in order, in pieces of at most so many bytes where units are not longer."""

    def parts(self, piece: Piece) -> Iterator[Part]:
        """What a piece holds, few documents at a time."""

    def close(self) -> None:
        """Lets its files go."""


class FileReader:
    """A Reader of files that it opens itself, of which none stays open.

    Attributes:
        sources: all of them.
    """

    sources: Sequence[Location]

    def identity(self) -> str:
        """Their sizes and samples of what they hold; the names do not count."""
        found = hashlib.sha256()
        for each in self.sources:
            found.update(each.sample())
        return found.hexdigest()

    def files(self) -> list[str]:
        """As of Reader."""
        return [str(path) for each in self.sources for path in each.on_disk()]

    def close(self) -> None:
        """As of Reader."""


def needed(module: str, what: str) -> Any:
    """A module that a package of the extra `formats` has.

    Raises:
        ModuleNotFoundError: it is not installed; the message says what to install.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        package = module.partition(".")[0]
        if error.name != package:
            raise
        raise ModuleNotFoundError(
            f"{excerpt(what)}: reading it needs the package {package}: {install_for(module)}", name=package
        ) from None


def check_integers(path: str, dtype: np.dtype[Any]) -> str:
    """The type of tokens as text.

    Raises:
        InvalidArgumentError: it is none of integers.
    """
    if dtype.kind not in "iu":
        raise InvalidArgumentError(f"{path}: tokens of type {dtype}: integers are wanted")
    return dtype.newbyteorder("<").str


def one_column(path: str, names: Sequence[str], given: str | None) -> str:
    """The name of what holds the tokens.

    Raises:
        InvalidArgumentError: there is none of this name, or none of the usual ones.
    """
    if given is not None:
        if given not in names:
            raise InvalidArgumentError(f"{path}: no column {excerpt(given)!r}: there are {excerpt(', '.join(names))}")
        return given
    for name in COLUMNS:
        if name in names:
            return name
    raise InvalidArgumentError(
        f"{path}: no column is called {' or '.join(COLUMNS)}: say with column which has the tokens, of "
        f"{excerpt(', '.join(names))}"
    )


def kept_columns(path: str, names: Sequence[str], tokens: str, wanted: tuple[str, ...] | None) -> list[str]:
    """Names of what goes to documents' entries.

    Raises:
        InvalidArgumentError: there is none of a name, or it is that of the tokens.
    """
    others = [name for name in names if name != tokens]
    if wanted is None:
        return others
    for name in wanted:
        if name not in others:
            raise InvalidArgumentError(
                f"{path}: no column {excerpt(name)!r} beside {excerpt(tokens)!r} for metadata: there are "
                f"{excerpt(', '.join(others)) or 'none'}"
            )
    return list(wanted)


def is_own_name(name: object) -> bool:
    """Whether it names a file of the folder in which it is said."""
    if not isinstance(name, str) or name in ("", ".", "..") or "/" in name or "\0" in name:
        return False
    try:
        return len(os.fsencode(name)) <= _LONGEST_NAME
    except UnicodeEncodeError:
        return False


def damaged(path: str, error: object) -> CorruptionError:
    """What a library says of a file that it cannot read, on one line."""
    said = excerpt(" ".join(str(error).split())) or type(error).__name__
    return CorruptionError(f"{path}: damaged or cut off: {said}")
