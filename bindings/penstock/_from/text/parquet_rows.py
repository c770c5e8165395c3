"""The rows of Parquet files as documents."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock._base.errors import Error
from penstock._base.words import one_line
from penstock._from.text import arrow_buffers
from penstock._from.text.block import Block, Documents, Listed
from penstock._from.text.compression import cannot_open
from penstock._from.text.far import FarFile
from penstock._from.text.raw import BYTES_PER_ID, Columns, RawDocument, select, there_are, unusable
from penstock._make.errors import DocumentError, FileError, InputError, OptionError

if TYPE_CHECKING:
    import numpy.typing as npt

    from penstock._from.text.inputs import Input

_ROWS = 1024  # of a batch, where some may not be used
_BATCH_BYTES = 4 << 20  # of payloads, else
_GROUP_ROWS = 1 << 16
_MOST_GROUP_BYTES = 256 << 20


class _Bad(str):
    """Stands for a value that cannot be used: the reason."""

    __slots__ = ()


class ParquetInput:
    """The rows of one Parquet file."""

    def __init__(self, source: Input, columns: Columns, skips: bool = False) -> None:
        """Reads its footer. One that `skips` gives what cannot be used as UNUSABLE documents, and reads on.

        Raises:
            FileError: It is no Parquet file.
            OptionError: It lacks the columns asked for, or they are of another type.
            InputError: It cannot be reached.
        """
        import pyarrow
        import pyarrow.parquet

        self._source = source
        self._skips = skips
        self._done_rows = 0
        self._errors = (pyarrow.ArrowException, OSError, UnicodeDecodeError)  # the last of columns' names
        try:
            place: Any = source.path
            if isinstance(place, FarFile):
                place = io.BufferedReader(place.open())  # else a read may be short
            self._file: Any = pyarrow.parquet.ParquetFile(place)
        except Error as error:
            raise InputError(str(error)) from error
        except self._errors as error:
            raise self._broken(error, "not a Parquet file that can be read") from error
        self._binary = pyarrow.binary()
        self._types = pyarrow.types
        names = list(self._file.schema_arrow.names)
        self._payload = columns.ids or columns.text
        self._is_ids = columns.ids is not None
        self._is_messages = columns.messages
        if self._payload not in names:
            option = "--ids-column" if self._is_ids else "--messages" if self._is_messages else "--text-column"
            raise self._wrong(f'no column "{self._payload}" for {option}: {there_are(names)}')
        self._metadata = [name for name in names if name != self._payload]
        if columns.metadata is not None:
            self._metadata = list(select(dict.fromkeys(names), columns.metadata, self._wrong))
        self._check_type()

    def _wrong(self, reason: str) -> OptionError:
        return OptionError(f"{self._source.name}: {reason}")

    def _check_type(self) -> None:
        kind = self._file.schema_arrow.field(self._payload).type
        types = self._types
        is_list = types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)
        if self._is_ids:
            if not (is_list and types.is_integer(kind.value_type)):
                raise self._wrong(f'column "{self._payload}" is {kind}, not lists of integers')
        elif self._is_messages:
            if not (is_list and types.is_struct(kind.value_type)):
                raise self._wrong(f'column "{self._payload}" is {one_line(kind)}, not lists of structs')
        elif not (types.is_string(kind) or types.is_large_string(kind)):
            raise self._wrong(f'column "{self._payload}" is {kind}, not strings')

    def _broken(self, error: BaseException, what: str = "damaged Parquet data") -> InputError:
        """Of an error of Arrow: the file is damaged, or cannot be read for reasons of this machine."""
        if isinstance(error, OSError) and isinstance(opening := cannot_open(self._source.name, error), FileError):
            return opening
        reason = f"{what} ({one_line(error)})"
        if isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno is not None):
            return InputError(f"{self._source.name}: {reason}")
        return FileError(f"{self._source.name}: {reason}", reason)

    def consumed(self) -> int:
        """The share of the rows read, as bytes of the file."""
        rows = self._file.metadata.num_rows
        return int(self._source.size_bytes * self._done_rows / rows) if rows else 0

    def close(self) -> None:
        """Closes the file."""
        self._file.close()

    def read(self, number: int) -> Iterator[Documents]:
        """The rows, the first with number `number`. Where this skips, damage costs the rest of its row group alone.

        Raises:
            InputError: The file is damaged, a row cannot be used; not where this skips.
        """
        metadata, columns = self._file.metadata, self._columns()
        every = range(metadata.num_row_groups)
        for groups in [[group] for group in every] if self._skips else [list(every)]:
            end = self._done_rows + sum(metadata.row_group(group).num_rows for group in groups)
            try:
                # One thread where this skips: of several columns that are damaged always the same is named.
                for rows in self._file.iter_batches(self._rows(), groups, columns, use_threads=not self._skips):
                    block = self._block(rows, number)
                    yield from self._listed(rows, number) if block is None else (block,)
                    number += len(rows)
                    self._done_rows += len(rows)
            except Error:
                raise
            except self._errors as error:
                broken = self._broken(error)
                if not self._skips or not isinstance(broken, FileError):
                    raise broken from error
                at = {"row": self._done_rows + 1, "rows": end - self._done_rows}
                yield Listed([unusable(number, self._source.name, at, broken.reason)])
                number += 1
                self._done_rows = end

    def _rows(self) -> int:
        """How many rows are read at once."""
        if self._skips:
            return _ROWS
        each = max((size // max(1, rows) for rows, size in self.groups()), default=0)
        return min(max(_BATCH_BYTES // max(1, each), 16), 1 << 16)

    def _listed(self, rows: Any, number: int) -> Iterator[Documents]:
        """The rows of a record batch one by one; those before one that cannot be used are given before its error."""
        found: list[RawDocument] = []
        try:
            found.extend(self.rows(rows, number, self._done_rows))
        except InputError:
            if found:
                yield Listed(found)
            raise
        yield Listed(found)

    def _block(self, batch: Any, number: int) -> Block | None:
        """The rows of a record batch as they lie in memory; None where one of them needs to be looked at."""
        column = batch.column(batch.schema.get_field_index(self._payload))
        if self._is_messages or not len(batch) or column.null_count:
            return None
        payload = arrow_buffers.ids(column) if self._is_ids else arrow_buffers.text(column)
        known = arrow_buffers.known(batch.select(self._metadata)) if self._metadata else None
        if payload is None or (self._metadata and known is None):
            return None
        data, begins, ends = payload
        lines = np.arange(1, len(batch) + 1, dtype=np.uint64) + np.uint64(self._done_rows)
        return Block(number, self._source.name, "row", data, begins, ends, lines, known, self._is_ids)

    def _columns(self) -> list[str]:
        return [self._payload, *(name for name in self._metadata if name != self._payload)]

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
        except self._errors as error:
            raise self._broken(error) from error
        table = pyarrow.Table.from_batches(batches)
        return table, self._sizes(table.column(self._payload))

    def _sizes(self, column: Any) -> npt.NDArray[np.int64]:
        import pyarrow.compute

        lengths = pyarrow.compute.list_value_length(column) if self._is_ids else pyarrow.compute.binary_length(column)
        sizes: npt.NDArray[np.int64] = lengths.fill_null(0).to_numpy().astype("i8")
        return sizes * (BYTES_PER_ID if self._is_ids else 1)

    def rows(self, rows: Any, number: int, done_rows: int) -> Iterator[RawDocument]:
        """The documents of a record batch whose first row follows `done_rows` others.

        Args:
            rows: The batch.
            number: Of the first document; -1: they have none.
            done_rows: For the rows' numbers.

        Raises:
            InputError: A row cannot be used; not where this skips.
        """
        column = rows.column(rows.schema.get_field_index(self._payload))
        payloads = self._payloads(column)
        known: list[Any] = [None] * len(rows)
        if self._metadata:
            known = _values(rows.select(self._metadata))
        name, is_messages = self._source.name, self._is_messages
        for offset, (payload, metadata) in enumerate(zip(payloads, known, strict=True)):
            line = done_rows + offset + 1
            mine = number + offset if number >= 0 else -1
            if is_messages and payload is not None and type(payload) is not _Bad:
                payload = self._conversation(payload)
            if payload is None or type(payload) is _Bad or type(metadata) is _Bad:
                yield self._bad(mine, line, payload, metadata)
            else:
                kept = None if metadata is None else {key: plain(value) for key, value in metadata.items()}
                yield RawDocument(mine, name, line, "row", payload, kept)

    def _bad(self, number: int, line: int, payload: Any, metadata: Any) -> RawDocument:
        """What stands for a row that cannot be used, where this skips."""
        name = self._source.name
        if payload is None:
            reason = f'column "{self._payload}" is null: drop such rows'
        elif isinstance(payload, _Bad):
            reason = f'column "{self._payload}"{payload}'
        else:
            reason = f"its metadata{metadata}"
        if not self._skips:
            raise DocumentError(f"{name} row {line:,}: {reason}", reason)
        return unusable(number, name, {"row": line}, reason)

    def _payloads(self, column: Any) -> Iterable[Any]:
        if self._is_ids:
            return self._ids(column)
        if not self._is_messages:
            column = column.cast(self._large_or_small(column.type))
        return _values(column)

    def _conversation(self, messages: list[Any]) -> bytes | _Bad:
        """Messages as JSON, without fields that are null: in Parquet each has the fields of all."""
        try:
            return json.dumps(_without_nulls(plain(messages)), ensure_ascii=False).encode()
        except (TypeError, ValueError) as error:
            return _Bad(f": no conversation: {one_line(error)}")

    def _large_or_small(self, kind: Any) -> Any:
        import pyarrow

        return pyarrow.large_binary() if self._types.is_large_string(kind) else self._binary

    def _ids(self, column: Any) -> Iterator[npt.NDArray[np.int64] | _Bad | None]:
        for row in column:
            if not row.is_valid:
                yield None
                continue
            values = row.values
            if values.null_count:
                yield _Bad(" holds a null id")
                continue
            array = values.to_numpy(zero_copy_only=False)
            if array.dtype == np.uint64:  # an id beyond int64 is beyond every token type: it stays too large
                array = np.minimum(array, np.iinfo(np.int64).max)
            yield array.astype(np.int64)


def _values(column: Any) -> list[Any]:
    """The values of an array or a record batch; a _Bad in the place of one that Python cannot hold, as no UTF-8."""
    try:
        found: list[Any] = column.to_pylist()
        return found
    except (ValueError, OverflowError) as error:
        if len(column) == 1:
            return [_Bad(f" cannot be read ({one_line(error)})")]
    return [value for row in range(len(column)) for value in _values(column.slice(row, 1))]


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
