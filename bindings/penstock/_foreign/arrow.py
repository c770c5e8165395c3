"""Folders that `save_to_disk` of Hugging Face's datasets wrote, and .arrow files: a unit is a record batch."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from penstock._errors import CorruptionError, InvalidArgumentError
from penstock._words import excerpt

from .lists import ListColumn
from .reader import Input, Part, Piece, damaged, digest_of, is_own_name, needed


class ArrowReader:
    """One split. Files are mapped: what is not asked for is not read."""

    def __init__(self, given: Input) -> None:
        """Opens the first file.

        Raises:
            InvalidArgumentError: a folder of splits; no such column; it does not hold lists of integers.
            CorruptionError: a file cannot be read.
        """
        self._pyarrow = needed("pyarrow", given.path)
        self._ipc = needed("pyarrow.ipc", given.path)
        self._given = given
        self._paths = _files_of(given.path)
        with self._open(self._paths[0]) as opened:
            self._lists = ListColumn(given, opened.schema)
        self.fields = self._lists.fields
        self.has_documents = True
        self.has_metadata = bool(self._lists.metadata)
        self.unit = "record batch"

    def identity(self) -> str:
        """Sizes and samples."""
        return digest_of(self._paths)

    def files(self) -> list[str]:
        """As of Reader."""
        return self._paths

    def pieces(self, most_bytes: int) -> Iterator[Piece]:
        """As of Reader: a piece is a batch."""
        number = at = 0
        for path in self._paths:
            for batch in self._batches(path):
                self._check(batch, path, full=False)
                count = self._lists.records(batch, path)
                yield Piece(number, number + 1, self._lists.bytes(batch.num_rows, count), at)
                number, at = number + 1, at + count

    def parts(self, piece: Piece) -> Iterator[Part]:
        """As of Reader."""
        number = 0
        for path in self._paths:
            for batch in self._batches(path):
                if piece.begin <= number < piece.end:
                    self._check(batch, path, full=True)
                    yield from self._lists.parts(batch, path)
                number += 1
                if number >= piece.end:
                    return

    def close(self) -> None:
        """As of Reader: no file stays open."""

    def _batches(self, path: str) -> Iterator[Any]:
        with self._open(path) as opened:
            self._lists.check_schema(opened.schema, path)
            try:
                for batch in _batches_of(opened):
                    yield batch.select(self._lists.columns)
            except (self._pyarrow.ArrowException, OSError) as error:
                raise damaged(path, error) from error

    def _check(self, batch: Any, path: str, full: bool) -> None:
        """Refuses a batch that lies, which would have memory read that is not its own; `full`: looks at all of it."""
        try:
            batch.validate(full=full)
        except self._pyarrow.ArrowException as error:
            raise damaged(path, error) from error

    def _open(self, path: str) -> Any:
        try:
            mapped = self._pyarrow.memory_map(path)
            try:
                return self._ipc.open_stream(mapped)
            except self._pyarrow.ArrowInvalid:
                mapped.seek(0)
                return self._ipc.open_file(mapped)
        except (self._pyarrow.ArrowException, OSError) as error:
            raise CorruptionError(f"{path}: no file of Arrow that can be read: {excerpt(error)}") from error


def _batches_of(opened: Any) -> Iterator[Any]:
    """Of a stream, or of a file."""
    if hasattr(opened, "num_record_batches"):
        return (opened.get_batch(number) for number in range(opened.num_record_batches))
    return iter(opened)


def _files_of(path: str) -> list[str]:
    """Of a folder those that its state.json names, in order."""
    folder = Path(path)
    if not folder.is_dir():
        return [path]
    if (folder / "dataset_dict.json").exists():
        splits = _json(folder / "dataset_dict.json").get("splits")
        names = ", ".join(map(str, splits)) if isinstance(splits, list) else "none"
        raise InvalidArgumentError(
            f"{path}: a folder of splits ({excerpt(names)}): import one of them, {path.rstrip('/')}/SPLIT"
        )
    files = _json(folder / "state.json").get("_data_files")
    if files == []:
        raise InvalidArgumentError(f"{path}: it has no rows: {folder / 'state.json'} names no files")
    if not isinstance(files, list):
        raise CorruptionError(f"{folder / 'state.json'}: it names no files under _data_files")
    found = []
    for each in files:
        name = each.get("filename") if isinstance(each, dict) else None
        if not is_own_name(name):
            raise CorruptionError(f"{folder / 'state.json'}: {excerpt(each)} names no file of its folder")
        found.append(str(folder / str(name)))
    return found


def _json(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise damaged(str(path), error) from error
    if not isinstance(found, dict):
        raise CorruptionError(f"{path}: no JSON object")
    return found
