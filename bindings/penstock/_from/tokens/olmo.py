"""What OLMo's .csv.gz says of documents beside their places: id, source, location."""

from __future__ import annotations

import csv
import gzip
import itertools
import zlib
from collections.abc import Iterator
from typing import Any

from penstock._base.errors import InvalidArgumentError
from penstock._base.words import excerpt
from penstock._from.tokens.reader import Input, damaged

_COLUMNS = {"id": 2, "source": 3, "location": 4}


class Rows:
    """Rows of one .csv.gz."""

    def __init__(self, path: str, names: tuple[str, ...]) -> None:
        """Opens nothing yet."""
        self._path = path
        self._names = names

    @classmethod
    def of(cls, given: Input, dataset: Any) -> Rows | None:
        """Of an input that keeps some of it; None: it keeps nothing.

        Raises:
            InvalidArgumentError: the format has no metadata of this name.
        """
        has = list(_COLUMNS) if dataset.kind == "olmo" and not dataset._native.is_remote else []
        wanted = tuple(has) if given.metadata is None else given.metadata
        for name in wanted:
            if name not in has:
                there = f"there are {', '.join(has)}" if has else f"{dataset.kind} has none that is read"
                raise InvalidArgumentError(f"{given.name}: no metadata {excerpt(name)!r}: {there}")
        if not wanted:
            return None
        return cls(dataset.shards[0].name.removesuffix(".npy") + ".csv.gz", wanted)

    def entries(self, begin: int, end: int) -> Iterator[dict[str, Any]]:
        """Of documents [begin, end). Reads the file from its beginning."""
        try:
            with gzip.open(self._path, "rt", encoding="utf-8", newline="") as file:
                for number, row in enumerate(itertools.islice(csv.reader(file), begin, end), begin):
                    if len(row) <= max(_COLUMNS[name] for name in self._names):
                        raise InvalidArgumentError(
                            f"{self._path}: row {number:,} has {len(row)} columns: start, end, "
                            f"{', '.join(_COLUMNS)} are wanted for metadata"
                        )
                    yield {name: row[_COLUMNS[name]] for name in self._names}
        except (OSError, EOFError, zlib.error, csv.Error, UnicodeDecodeError) as error:
            raise damaged(self._path, error) from error
