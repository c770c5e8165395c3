"""Documents as the one reader hands them on: not parsed further than cutting them into tasks needs."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from penstock._errors import Error
from penstock._words import quoted

from . import sniff
from .compression import ByteInput
from .errors import InputError, OptionError
from .far import FarFile

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from .inputs import Input

_PARQUET_ROWS = 1024
_GROUP_ROWS = 1 << 16
_MOST_GROUP_BYTES = 256 << 20
_UNPACKERS = {"gz": "gzip -d", "zst": "zstd -d"}
_BYTES_PER_ID = 4  # what an id of a Parquet column counts as, when tasks are cut
BUILT_IN_COLUMNS = ("path", "kind", "size")  # of plain text


class Columns(NamedTuple):
    """What is taken of a document.

    Attributes:
        text: The column that holds the text, or the conversations.
        ids: The column that holds token ids instead; None where there is text.
        metadata: The columns kept as metadata; None: all others; empty: no metadata.
        text_per: "file" or "line": what one document of plain text is.
        messages: Whether `text` holds conversations.
    """

    text: str
    ids: str | None
    metadata: tuple[str, ...] | None
    text_per: str
    messages: bool = False


class RawDocument(NamedTuple):
    """One document of an input, numbered from 0 over all inputs.

    Attributes:
        line: Counted from 1: the line, or the row of a Parquet file; 0 where the document is the whole file.
        form: "jsonl" (payload: the line), "text" (payload: UTF-8) or "row" (payload: UTF-8, ids, or a conversation as
            JSON).
        metadata: Columns that the reader knows; None where the payload holds them, or where none are kept.
        at_byte: Where it begins in its file, unpacked, if that is known instead of number and line; the number is then
            -1, and that of a row too whose file was not read from its beginning.
    """

    number: int
    name: str
    line: int
    form: str
    payload: bytes | npt.NDArray[np.int64]
    metadata: dict[str, Any] | None
    at_byte: int | None = None

    def place(self) -> str:
        """`document 18,203 (data.jsonl.zst line 18,204)`, counted from 1."""
        if self.at_byte is not None:
            return f"{self.name} at byte {self.at_byte:,}"
        where = {0: ""}.get(self.line, f" {'row' if self.form == 'row' else 'line'} {self.line:,}")
        return f"{self.name}{where}" if self.number < 0 else f"document {self.number + 1:,} ({self.name}{where})"

    def size_bytes(self) -> int:
        """What the document counts when tasks are cut."""
        return len(self.payload) if isinstance(self.payload, bytes) else self.payload.size * _BYTES_PER_ID

    def digested(self) -> bytes:
        """Bytes that tell this document from any other, free of the input's name and of library versions."""
        payload = self.payload if isinstance(self.payload, bytes) else self.payload.tobytes()
        known = b"" if self.metadata is None else json.dumps(self.metadata, sort_keys=True, default=str).encode()
        return b"%d,%d:%b%b" % (len(payload), len(known), payload, known)


class DocumentReader:
    """Reads inputs one after the other. One thread at a time; one iteration at a time."""

    def __init__(self, inputs: Sequence[Input], columns: Columns, first_number: int = 0) -> None:
        """Opens nothing yet; `first_number` is that of the first document of the first input."""
        self._inputs = inputs
        self._columns = columns
        self._first_numbers = [first_number]  # of each input that was begun
        self._finished_bytes = 0
        self._last_bytes = 0  # of the input that was read last
        self._open: ByteInput | ParquetInput | None = None
        self.most_of_a_file = -1  # bytes that are read of a file that is a document; -1: all
        self.while_waiting: Callable[[], None] = lambda: None  # called every half second while a pipe is read

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
    def columns(self) -> Columns:
        """What it takes of a document."""
        return self._columns

    @property
    def rereadable(self) -> bool:
        """Whether `documents` may be called again."""
        return all(each.rereadable for each in self._inputs)

    def consumed_bytes(self) -> int:
        """Bytes of the files read so far; compressed files count as they lie on disk."""
        return self._finished_bytes + (self._open.consumed() if self._open else 0)

    def documents(self, first: int = 0) -> Iterator[RawDocument]:
        """Documents from number `first` on: 0, one of the first input, or one that was given before.

        Raises:
            InputError: A file that cannot be read or is damaged; a Parquet file without the columns asked for.
        """
        index = max((i for i, number in enumerate(self._first_numbers) if number <= first), default=0)
        number = self._first_numbers[index]
        del self._first_numbers[index + 1 :]
        self._finished_bytes = sum(each.size_bytes for each in self._inputs[:index])
        for position, each in enumerate(self._inputs[index:], index):
            if position > index:
                self._first_numbers.append(number)
            for document in self._read(each, number):
                number += 1
                if document.number >= first:
                    yield document
            self._finished_bytes += self._last_bytes

    def _read(self, source: Input, number: int) -> Iterator[RawDocument]:
        opened = (
            ParquetInput(source, self._columns)
            if source.format == "parquet"
            else ByteInput(source.path, source.name, source.compression, self.while_waiting)
        )
        self._open = opened
        try:
            if isinstance(opened, ByteInput) and not source.rereadable:
                _refuse_no_text(opened)
            if isinstance(opened, ParquetInput):
                yield from opened.documents(number)
            elif source.format == "jsonl":
                yield from _json_lines(opened, number)
            else:
                yield from self._text(opened, source, number)
        except Error as error:  # which names the address
            raise InputError(str(error)) from error
        except OSError as error:
            raise InputError(f"{source.name}: {error.strerror or error}") from error
        finally:
            self._last_bytes = source.size_bytes if source.rereadable else opened.consumed()
            self._open = None
            opened.close()

    def _text(self, opened: ByteInput, source: Input, number: int) -> Iterator[RawDocument]:
        if self._columns.text_per == "file":
            payload = opened.file.read(self.most_of_a_file)
            known = built_in_columns(source, len(payload), self._columns.metadata, source.name)
            yield RawDocument(number, source.name, 0, "text", payload, known)
            return
        for line_number, line in enumerate(opened.file, 1):
            payload = line.rstrip(b"\r\n")
            if payload and not payload.isspace():
                place = f"{source.name} line {line_number:,}"
                known = built_in_columns(source, len(payload), self._columns.metadata, place)
                yield RawDocument(number, source.name, line_number, "text", payload, known)
                number += 1


def built_in_columns(
    source: Input, size_bytes: int, wanted: tuple[str, ...] | None, place: str
) -> dict[str, Any] | None:
    """The columns `wanted` (None: all) of a document of plain text; None where none are.

    Raises:
        InputError: There is no such column.
    """
    if wanted == ():
        return None
    return select({"path": source.published_name, "kind": source.kind, "size": size_bytes}, wanted, place)


def _refuse_no_text(opened: ByteInput) -> None:
    """Of what could not be looked into before: a pipe, standard input."""
    head = opened.peek()
    compression = sniff.compression_of(head)
    kind = (
        sniff.Kind(f"compressed ({compression})", f"pipe it through {_UNPACKERS[compression]}") if compression else None
    )
    if kind := kind or sniff.kind_of(head):
        raise InputError(f"{opened.name}: {kind.what}: {kind.advice}")


def _json_lines(opened: ByteInput, number: int) -> Iterator[RawDocument]:
    name = opened.name
    for line_number, line in enumerate(opened.file, 1):
        payload = line.rstrip()
        if payload:
            if line_number == 1 and payload.startswith(b"\xef\xbb\xbf"):
                payload = payload[3:]
            yield RawDocument(number, name, line_number, "jsonl", payload, None)
            number += 1


def there_are(columns: Iterable[str]) -> str:
    """The columns that there are, for a message about one that is not."""
    names = list(columns)
    return f"there are {quoted(names)}" if names else "there are none"


def missing_column(message: str, document: int = 0) -> InputError:
    """The error of a column that is not there: wrong use if the first document lacks it, else the document's fault."""
    return OptionError(message) if document == 0 else InputError(message)


def select(known: dict[str, Any], wanted: tuple[str, ...] | None, place: str, document: int = 0) -> dict[str, Any]:
    """The columns `wanted` of one document's; None: all of them.

    Raises:
        InputError: One is missing; the message names those that there are. OptionError in `document` 0.
    """
    if wanted is None:
        return known
    try:
        return {name: known[name] for name in wanted}
    except KeyError as error:
        message = f'{place}: no column "{error.args[0]}" for --metadata: {there_are(known)}'
        raise missing_column(message, document) from None


class ParquetInput:
    """The rows of one Parquet file."""

    def __init__(self, source: Input, columns: Columns) -> None:
        """Reads its footer.

        Raises:
            InputError: It is no Parquet file, or lacks the columns asked for.
        """
        import pyarrow
        import pyarrow.parquet

        self._source = source
        self._done_rows = 0
        try:
            place: Any = source.path
            if isinstance(place, FarFile):
                place = io.BufferedReader(place.open())  # else a read may be short
            self._file: Any = pyarrow.parquet.ParquetFile(place)
        except Error as error:
            raise InputError(str(error)) from error
        except (pyarrow.ArrowException, OSError) as error:
            raise InputError(f"{source.name}: not a Parquet file that can be read ({_one_line(error)})") from error
        self._arrow_error: type[Exception] = pyarrow.ArrowException
        self._binary = pyarrow.binary()
        self._types = pyarrow.types
        names = list(self._file.schema_arrow.names)
        self._payload = columns.ids or columns.text
        self._is_ids = columns.ids is not None
        self._is_messages = columns.messages
        if self._payload not in names:
            option = "--ids-column" if self._is_ids else "--messages" if self._is_messages else "--text-column"
            raise missing_column(f'{source.name}: no column "{self._payload}" for {option}: {there_are(names)}')
        self._metadata = [name for name in names if name != self._payload]
        if columns.metadata is not None:
            self._metadata = list(select(dict.fromkeys(names), columns.metadata, source.name))
        self._check_type()

    def _check_type(self) -> None:
        kind = self._file.schema_arrow.field(self._payload).type
        types = self._types
        is_list = types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)
        if self._is_ids:
            if not (is_list and types.is_integer(kind.value_type)):
                raise OptionError(f'{self._source.name}: column "{self._payload}" is {kind}, not lists of integers')
        elif self._is_messages:
            if not (is_list and types.is_struct(kind.value_type)):
                raise OptionError(
                    f'{self._source.name}: column "{self._payload}" is {_one_line(kind)}, not lists of structs'
                )
        elif not (types.is_string(kind) or types.is_large_string(kind)):
            raise OptionError(f'{self._source.name}: column "{self._payload}" is {kind}, not strings')

    def consumed(self) -> int:
        """The share of the rows read, as bytes of the file."""
        rows = self._file.metadata.num_rows
        return int(self._source.size_bytes * self._done_rows / rows) if rows else 0

    def close(self) -> None:
        """Closes the file."""
        self._file.close()

    def documents(self, number: int) -> Iterator[RawDocument]:
        """The rows, the first with number `number`."""
        try:
            for rows in self._file.iter_batches(batch_size=_PARQUET_ROWS, columns=self._columns()):
                for document in self.rows(rows, number, self._done_rows):
                    yield document
                    number += 1
                self._done_rows += len(rows)
        except self._arrow_error as error:
            raise self._damaged(error) from error

    def _columns(self) -> list[str]:
        return [self._payload, *(name for name in self._metadata if name != self._payload)]

    def _damaged(self, error: BaseException) -> InputError:
        return InputError(f"{self._source.name}: damaged Parquet data ({_one_line(error)})")

    def groups(self) -> list[tuple[int, int]]:
        """Of each row group: its rows, and the bytes of its payload's column, unpacked."""
        found = []
        for number in range(self._file.metadata.num_row_groups):
            group = self._file.metadata.row_group(number)
            chunks = map(group.column, range(group.num_columns))
            sizes = [each.total_uncompressed_size for each in chunks if self._is_payload(each.path_in_schema)]
            found.append((group.num_rows, sum(sizes)))
        return found

    def _is_payload(self, path: str) -> bool:
        return path == self._payload or path.startswith(f"{self._payload}.")

    def read_group(self, number: int) -> tuple[Any, npt.NDArray[np.int64]]:
        """Rows of one row group from its first on, and what each of them counts when tasks are cut.

        Returns:
            All rows, or of a group that is too large for that some; at least one.
        """
        import pyarrow

        batches, size = [], 0
        try:
            for batch in self._file.iter_batches(_GROUP_ROWS, row_groups=[number], columns=self._columns()):
                batches.append(batch)
                size += batch.nbytes
                if size > _MOST_GROUP_BYTES:
                    break
        except self._arrow_error as error:
            raise self._damaged(error) from error
        table = pyarrow.Table.from_batches(batches)
        return table, self._sizes(table.column(self._payload))

    def _sizes(self, column: Any) -> npt.NDArray[np.int64]:
        import pyarrow.compute

        lengths = pyarrow.compute.list_value_length(column) if self._is_ids else pyarrow.compute.binary_length(column)
        sizes: npt.NDArray[np.int64] = lengths.fill_null(0).to_numpy().astype("i8")
        return sizes * (_BYTES_PER_ID if self._is_ids else 1)

    def rows(self, rows: Any, number: int, done_rows: int) -> Iterator[RawDocument]:
        """The documents of a record batch whose first row follows `done_rows` others.

        Args:
            rows: The batch.
            number: Of the first document; -1: they have none.
            done_rows: For the rows' numbers.
        """
        column = rows.column(rows.schema.get_field_index(self._payload))
        payloads = self._payloads(column)
        known: list[Any] = [None] * len(rows)
        if self._metadata:
            known = rows.select(self._metadata).to_pylist()
        for offset, (payload, metadata) in enumerate(zip(payloads, known, strict=True)):
            line = done_rows + offset + 1
            if payload is None:
                raise InputError(f'{self._source.name} row {line:,}: column "{self._payload}" is null: drop such rows')
            if self._is_messages:
                payload = self._conversation(payload, line)
            kept = None if metadata is None else {name: plain(value) for name, value in metadata.items()}
            yield RawDocument(number + offset if number >= 0 else -1, self._source.name, line, "row", payload, kept)

    def _payloads(self, column: Any) -> Iterable[Any]:
        if self._is_ids:
            return self._ids(column)
        if not self._is_messages:
            column = column.cast(self._large_or_small(column.type))
        given: Iterable[Any] = column.to_pylist()
        return given

    def _conversation(self, messages: list[Any], line: int) -> bytes:
        """Messages as JSON, without fields that are null: in Parquet each has the fields of all."""
        try:
            return json.dumps(_without_nulls(plain(messages)), ensure_ascii=False).encode()
        except TypeError as error:
            raise InputError(
                f'{self._source.name} row {line:,}: column "{self._payload}": no conversation: {_one_line(error)}'
            ) from None

    def _large_or_small(self, kind: Any) -> Any:
        import pyarrow

        return pyarrow.large_binary() if self._types.is_large_string(kind) else self._binary

    def _ids(self, column: Any) -> Iterator[npt.NDArray[np.int64] | None]:
        import numpy as np

        for row in column:
            if not row.is_valid:
                yield None
                continue
            values = row.values
            if values.null_count:
                raise InputError(f'{self._source.name}: column "{self._payload}" holds a null id')
            array = values.to_numpy(zero_copy_only=False)
            if array.dtype == np.uint64:  # an id beyond int64 is beyond every token type: it stays too large
                array = np.minimum(array, np.iinfo(np.int64).max)
            yield array.astype(np.int64)


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_nulls(each) for name, each in value.items() if each is not None}
    return [_without_nulls(each) for each in value] if isinstance(value, list) else value


def plain(value: Any) -> Any:
    """Dates, times and decimals as text: JSON and msgpack have no such types."""
    import datetime
    import decimal

    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, decimal.Decimal):
        return str(value)
    if isinstance(value, dict):
        return {name: plain(each) for name, each in value.items()}
    if isinstance(value, list):
        return [plain(each) for each in value]
    return value


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())[:200]
