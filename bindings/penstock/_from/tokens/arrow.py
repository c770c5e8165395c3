"""Folders that `save_to_disk` of Hugging Face's datasets wrote, and .arrow files: a unit is a record batch."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from penstock._base.errors import CorruptionError, Error, InvalidArgumentError
from penstock._base.words import excerpt
from penstock._from.tokens.lists import ListColumn
from penstock._from.tokens.reader import FileReader, Input, Part, Piece, damaged, is_own_name, needed
from penstock._places.stores.location import Location

_STATE = "state.json"
_SPLITS = "dataset_dict.json"
_END = b"\xff\xff\xff\xff\0\0\0\0"  # of a stream
_FILE = 1 << 32  # units from one file's first batch to that of the next


class ArrowReader(FileReader):
    """One split. Files are mapped: what is not asked for is not read."""

    def __init__(self, given: Input) -> None:
        """Opens the first file.

        Raises:
            InvalidArgumentError: a folder of splits; no such column; it does not hold lists of integers.
            CorruptionError: a file cannot be read.
        """
        self._pyarrow = needed("pyarrow", given.name)
        self._ipc = needed("pyarrow.ipc", given.name)
        self._given = given
        self.sources = _files_of(given)
        with self._open(self.sources[0])[0] as opened:
            self._lists = ListColumn(given, opened.schema)
        self.fields = self._lists.fields
        self.has_documents = True
        self.has_metadata = bool(self._lists.metadata)

    def place(self, unit: int) -> str:
        """As of Reader."""
        return f"record batch {unit % _FILE:,} of {self.sources[unit // _FILE].name}"

    def pieces(self, most_bytes: int) -> Iterator[Piece]:
        """As of Reader: a piece is a batch."""
        for number, file in enumerate(self.sources):
            for unit, batch in enumerate(self._batches(file), number * _FILE):
                self._check(batch, file, full=False)
                count = self._lists.records(batch, file.name)
                yield Piece(unit, unit + 1, self._lists.bytes(batch.num_rows, count))

    def parts(self, piece: Piece) -> Iterator[Part]:
        """As of Reader."""
        file = self.sources[piece.begin // _FILE]
        for number, batch in enumerate(self._batches(file), piece.begin // _FILE * _FILE):
            if number >= piece.end:
                return
            if number >= piece.begin:
                self._check(batch, file, full=True)
                yield from self._lists.parts(batch, file.name)

    def _batches(self, at: Location) -> Iterator[Any]:
        opened, file = self._open(at)
        with opened:
            self._lists.check_schema(opened.schema, at.name)
            try:
                for batch in _batches_of(opened):
                    yield batch.select(self._lists.columns)
                if not hasattr(opened, "num_record_batches"):
                    self._check_end(file, at.name)
            except Error:
                raise
            except (self._pyarrow.ArrowException, OSError) as error:
                raise damaged(at.name, error) from error

    def _check_end(self, file: Any, name: str) -> None:
        """Refuses a stream that just ends, which pyarrow takes for whole, and what lies behind the end mark of one."""
        at = file.tell()
        file.seek(max(0, at - len(_END)))
        if at != file.size() or file.read() != _END:
            raise CorruptionError(
                f"{name}: it does not end where its stream of batches ends: cut off, or several streams "
                "in one file: write it again"
            )

    def _check(self, batch: Any, at: Location, full: bool) -> None:
        """Refuses a batch that lies, which would have memory read that is not its own; `full`: looks at all of it."""
        try:
            batch.validate(full=full)
        except self._pyarrow.ArrowException as error:
            raise damaged(at.name, error) from error

    def _open(self, at: Location) -> tuple[Any, Any]:
        """What gives batches, and the file that it reads."""
        try:
            file = at.open_arrow(self._pyarrow)
            try:
                return self._ipc.open_stream(file), file
            except self._pyarrow.ArrowInvalid:
                file.seek(0)
                return self._ipc.open_file(file), file
        except Error:
            raise
        except (self._pyarrow.ArrowException, OSError) as error:
            raise CorruptionError(f"{at.name}: no file of Arrow that can be read: {excerpt(error)}") from error


def _batches_of(opened: Any) -> Iterator[Any]:
    """Of a stream, or of a file."""
    if hasattr(opened, "num_record_batches"):
        return (opened.get_batch(number) for number in range(opened.num_record_batches))
    return iter(opened)


def _files_of(given: Input) -> list[Location]:
    """Of a folder those that its state.json names, in order."""
    at, name = given.at, given.name
    if not at.may_be_folder() or at.bare.endswith(".arrow"):
        return [at]
    if any((path / _SPLITS).exists() for path in at.on_disk()):
        splits = _json(given, _SPLITS).get("splits")
        names = ", ".join(map(str, splits)) if isinstance(splits, list) else "none"
        raise InvalidArgumentError(
            f"{name}: a folder of splits ({excerpt(names)}): import one of them, {name.rstrip('/')}/SPLIT"
        )
    files = _json(given, _STATE).get("_data_files")
    if files == []:
        raise InvalidArgumentError(f"{name}: it has no rows: its {_STATE} names no files")
    if not isinstance(files, list):
        raise CorruptionError(f"{name}/{_STATE}: it names no files under _data_files")
    found = []
    for each in files:
        file = each.get("filename") if isinstance(each, dict) else None
        if not is_own_name(file):
            raise CorruptionError(f"{name}/{_STATE}: {excerpt(each)} names no file of its folder")
        found.append(at.beside(str(file)))
    return found


def _json(given: Input, name: str) -> dict[str, Any]:
    try:
        with given.at.beside(name).open() as file:
            found = json.loads(file.read())
    except (ValueError, RecursionError) as error:
        raise damaged(f"{given.name}/{name}", error) from error
    if not isinstance(found, dict):
        raise CorruptionError(f"{given.name}/{name}: no JSON object")
    return found
