"""The one reader: documents of all inputs in their order, not parsed further than cutting them into tasks needs."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from penstock import _native
from penstock._base.errors import Error
from penstock._from.engines.pieces import Pieces
from penstock._from.text import sniff
from penstock._from.text.ahead import Ahead
from penstock._from.text.block import Block, Documents, Known, Listed
from penstock._from.text.compression import ByteInput
from penstock._from.text.far import FarFile
from penstock._from.text.parquet_rows import ParquetInput
from penstock._from.text.raw import Columns, RawDocument, select, unusable
from penstock._make.errors import FileError, InputError, OptionError

if TYPE_CHECKING:
    import numpy.typing as npt

    from penstock._from.text.inputs import Input

_SIZE = 8_319_206_745_301_926_457  # stands for the size of a line that is not known yet
_MANY_BYTES = 4 << 20  # of a document that is a whole file
_FEW_BYTES = 1 << 20  # of a file: it is read when its turn comes, in the time that handing it over would take
_UNPACKERS = {"gz": "gzip -d", "zst": "zstd -d"}


class _Some(NamedTuple):
    """Documents of one input, numbered from 0 over this input, and the bytes of it that were read with them."""

    documents: Documents
    consumed_bytes: int


class DocumentReader:
    """Gives the documents of inputs one after the other. One thread at a time; one iteration at a time.

    Attributes:
        files_at_once: files that are read by threads of their own, ahead of what was given; up to 1: none is.
        most_of_a_file: bytes that are read of a file that is a document; -1: all.
        while_waiting: called every half second that no document comes; may raise.
    """

    def __init__(
        self,
        inputs: Sequence[Input],
        columns: Columns,
        first_number: int = 0,
        *,
        skips: bool = False,
        first_input: int = 0,
    ) -> None:
        """Opens nothing yet.

        Args:
            inputs: In their order.
            columns: What is taken of each document.
            first_number: That of the first document of the first input.
            skips: Give what cannot be read as UNUSABLE documents, and read on.
            first_input: The number of the first input, over all.
        """
        self._inputs = inputs
        self._columns = columns
        self._skips = skips
        self._first_input = first_input
        self._first_numbers = [first_number]  # of each input that was begun
        self._finished_bytes = 0
        self._taken_bytes = 0  # of the input whose documents are given
        self._ahead: Ahead[_Some] | None = None
        self.files_at_once = 1
        self.most_of_a_file = -1
        self.while_waiting: Callable[[], None] = lambda: None

    @property
    def total_bytes(self) -> int:
        """Bytes of all files together, as they lie on disk; 0 where standard input makes that unknown."""
        sizes = [each.size_bytes for each in self._inputs]
        return sum(sizes) if all(each.rereadable for each in self._inputs) else 0

    @property
    def inputs(self) -> Sequence[Input]:
        """What it reads."""
        return self._inputs

    @property
    def rereadable(self) -> bool:
        """Whether `documents` may be called again."""
        return all(each.rereadable for each in self._inputs)

    def consumed_bytes(self) -> int:
        """Bytes of the files that were read for what was given; compressed files count as they lie on disk."""
        return self._finished_bytes + self._taken_bytes

    def close(self) -> None:
        """Ends the iteration. May be called twice."""
        ahead, self._ahead = self._ahead, None
        if ahead is not None:
            ahead.close()

    def documents(self, first: int = 0) -> Iterator[RawDocument]:
        """As `read`, one by one."""
        return chain.from_iterable(self.read(first))

    def read(self, first: int = 0) -> Iterator[Documents]:
        """Documents from number `first` on: 0, one of the first input, or one that was given before.

        Raises:
            InputError: A file that cannot be read or is damaged (not where this skips); a Parquet file without the
                columns asked for (where this skips: the first input).
        """
        self.close()
        index = max((i for i, number in enumerate(self._first_numbers) if number <= first), default=0)
        number = self._first_numbers[index]
        del self._first_numbers[index + 1 :]
        self._finished_bytes, self._taken_bytes = sum(each.size_bytes for each in self._inputs[:index]), 0
        ahead = self._ahead = self._read_ahead(self._inputs[index:])
        try:
            for position, each in enumerate(self._inputs[index:], index):
                if position > index:
                    self._first_numbers.append(number)
                begins = number
                try:
                    for documents, consumed_bytes in ahead.next(self.while_waiting):
                        self._taken_bytes = consumed_bytes
                        end = number + len(documents)
                        if end > first:
                            yield documents.moved(begins)[max(0, first - number) :]
                        number = end
                except (FileError, OptionError) as error:
                    lost = self._lost(error, number, each, position)
                    number += 1
                    if lost.number >= first:
                        yield Listed([lost])
                self._finished_bytes += each.size_bytes if each.rereadable else self._taken_bytes
                self._taken_bytes = 0
        finally:
            ahead.close()

    def _read_ahead(self, inputs: Sequence[Input]) -> Ahead[_Some]:
        begins = [partial(self._read, each) for each in inputs]
        return Ahead(begins, [self._is_ahead(each) for each in inputs], self.files_at_once)

    def _is_ahead(self, source: Input) -> bool:
        """True if threads of their own read it: a pipe is waited for here, where Ctrl-C ends that at once."""
        if self.files_at_once < 2 or not source.rereadable or source.refused:
            return False
        is_far = isinstance(source.path, FarFile)
        if self._is_document(source):  # in memory as a whole
            return is_far and source.size_bytes <= _MANY_BYTES
        return is_far or source.size_bytes >= _FEW_BYTES

    def _is_document(self, source: Input) -> bool:
        return source.format == "text" and self._columns.text_per == "file"

    def _lost(self, error: FileError | OptionError, number: int, source: Input, position: int) -> RawDocument:
        """What stands for all that is not read of a file; raises `error` where that ends the run."""
        is_first = position + self._first_input == 0
        if not self._skips or (isinstance(error, OptionError) and is_first):
            raise error
        if isinstance(error, FileError):
            return unusable(number, source.name, error.at, error.reason)
        return unusable(number, source.name, {}, str(error).removeprefix(f"{source.name}: "))

    def _read(self, source: Input) -> Generator[_Some, None, None]:
        """Of one input; on any thread."""
        if source.refused:
            raise FileError(f"{source.name}: {source.refused}", source.refused)
        opened = (
            ParquetInput(source, self._columns, self._skips)
            if source.format == "parquet"
            else ByteInput(source.path, source.name, source.compression, self.while_waiting, careful=self._skips)
        )
        try:
            for documents in self._documents_of(opened, source):
                yield _Some(documents, opened.consumed())
        except Error as error:  # which names the address
            raise InputError(str(error)) from error
        except OSError as error:
            raise InputError(f"{source.name}: {error.strerror or error}") from error
        finally:
            opened.close()

    def _documents_of(self, opened: ByteInput | ParquetInput, source: Input) -> Iterator[Documents]:
        if isinstance(opened, ParquetInput):
            yield from opened.read(0)
            return
        if not source.rereadable:
            _refuse_no_text(opened, is_lines=source.format == "jsonl" and not self._skips)
        if self._is_document(source):
            payload = opened.file.read(self.most_of_a_file)
            known = built_in_columns(source, len(payload), self._columns.metadata, source.name)
            yield Listed([RawDocument(0, source.name, 0, "text", payload, known)])
        else:
            yield from self._lines(opened, source)

    def _lines(self, opened: ByteInput, source: Input) -> Iterator[Documents]:
        lines = number = 0
        is_json, metadata = source.format == "jsonl", self._columns.metadata
        try:
            for data in opened.whole_lines():
                begins, ends, numbers, count = _native.split_lines(data, is_json, is_json and lines == 0)
                if len(ends):
                    block = Block(number, source.name, source.format, data, begins, ends, numbers + (lines + 1))
                    yield block if is_json or metadata == () else self._with_columns(block, source)
                    number += len(ends)
                lines += count
        except FileError as error:
            error.at = {"line": lines + 1, "rest": True}
            raise

    def _with_columns(self, lines: Block, source: Input) -> Block:
        """Lines of plain text with the metadata that is known of each."""
        place = f"{source.name} line {int(lines.lines[0]):,}"
        known = built_in_columns(source, _SIZE, self._columns.metadata, place) or {}
        of_digest = json.dumps(known, sort_keys=True)
        entry = json.dumps(known, ensure_ascii=False, separators=(",", ":"))
        sizes = lines.sizes()
        return replace(lines, known=Known(_filled(of_digest, '"size": ', sizes), _filled(entry, '"size":', sizes)))


def _filled(text: str, key: str, sizes: npt.NDArray[np.uint64]) -> Pieces:
    """The JSON for each size, in the place of _SIZE behind the key, if it is there; in a path quotes are escaped."""
    before, mark, behind = text.partition(f"{key}{_SIZE}")
    if mark:
        return Pieces(*_native.fill(f"{before}{key}".encode(), sizes, behind.encode()))
    data = text.encode()
    return Pieces(data * len(sizes), np.arange(1, len(sizes) + 1, dtype=np.uint64) * np.uint64(len(data)))


def built_in_columns(
    source: Input, size_bytes: int, wanted: tuple[str, ...] | None, place: str
) -> dict[str, Any] | None:
    """The columns `wanted` (None: all) of a document of plain text; None where none are.

    Raises:
        OptionError: There is no such column.
    """
    if wanted == ():
        return None
    known = {"path": source.published_name, "kind": source.kind, "size": size_bytes}
    return select(known, wanted, lambda reason: OptionError(f"{place}: {reason}"))


def _refuse_no_text(opened: ByteInput, is_lines: bool) -> None:
    """Of what could not be looked into before: a pipe, standard input."""
    head = opened.peek()
    compression = sniff.compression_of(head)
    kind = (
        sniff.Kind(f"compressed ({compression})", f"pipe it through {_UNPACKERS[compression]}") if compression else None
    )
    kind = kind or sniff.kind_of(head) or (sniff.instead_of_lines(head) if is_lines else None)
    if kind is not None:
        raise InputError(f"{opened.name}: {kind.what}: {kind.advice}")
