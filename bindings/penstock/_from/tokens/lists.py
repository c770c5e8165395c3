"""A column of lists of integers in tables of Arrow, with other columns as metadata."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from penstock._base.errors import InvalidArgumentError
from penstock._base.words import excerpt
from penstock._from.tokens.reader import (
    ENTRY_BYTES,
    TOKEN,
    Input,
    Part,
    check_integers,
    damaged,
    kept_columns,
    needed,
    one_column,
)
from penstock._from.tokens.records import PART_BYTES

_ROWS = 1 << 14  # of a part


class ListColumn:
    """What documents are made of: rows of a table.

    Attributes:
        column: the name of the column of tokens.
        metadata: names of columns that become entries.
        fields: as of Reader.
    """

    def __init__(self, given: Input, schema: Any) -> None:
        """Looks at a schema.

        Raises:
            InvalidArgumentError: no such column, or one that does not hold lists of integers.
            CorruptionError: a column's name is no UTF-8.
        """
        self._types = needed("pyarrow", given.name).types
        self._compute = needed("pyarrow.compute", given.name)
        try:
            names = list(dict.fromkeys(schema.names))
        except UnicodeDecodeError as error:
            raise damaged(given.name, error) from error
        self.column = one_column(given.name, names, given.column)
        self.metadata = kept_columns(given.name, names, self.column, given.metadata)
        for name in self.columns:
            if schema.names.count(name) > 1:
                raise InvalidArgumentError(f"{given.name}: several columns are called {excerpt(name)!r}: rename them")
        self._type = self._type_of(schema, given.name)
        self.fields = {TOKEN: check_integers(given.name, np.dtype(self._type.to_pandas_dtype()))}
        self._item_bytes = np.dtype(self.fields[TOKEN]).itemsize

    @property
    def columns(self) -> list[str]:
        """All that are read."""
        return [self.column, *self.metadata]

    def check_schema(self, schema: Any, path: str) -> None:
        """Refuses a file whose columns are others than the first one's."""
        missing = [name for name in self.columns if name not in schema.names]
        if missing:
            raise InvalidArgumentError(f"{path}: no column {excerpt(missing[0])!r}, which the files before it have")
        if self._type_of(schema, path) != self._type:
            raise InvalidArgumentError(
                f"{path}: {self.column} has other integers than {self._type} of the files before"
            )

    def bytes(self, rows: int, records: int) -> int:
        """That so many documents with so many tokens take, about."""
        return rows * ENTRY_BYTES + records * self._item_bytes

    def records(self, table: Any, path: str) -> int:
        """Tokens of a batch."""
        return int(self._compute.sum(self._lengths(table.column(self.column), path)).as_py() or 0)

    def parts(self, table: Any, path: str) -> Iterator[Part]:
        """Rows of a batch, few at a time."""
        rows = max(1, min(_ROWS, PART_BYTES // max(1, table.nbytes // max(1, table.num_rows))))
        for begin in range(0, table.num_rows, rows):
            yield self._part(table.slice(begin, rows), path)

    def _part(self, table: Any, path: str) -> Part:
        column = table.column(self.column)
        lengths = self._lengths(column, path).to_numpy(zero_copy_only=False).astype(np.int64)
        values = column.flatten()
        if values.null_count:
            raise InvalidArgumentError(f"{path}: a token of {excerpt(self.column)!r} is null")
        tokens = values.to_numpy(zero_copy_only=False)
        return Part(lengths, {TOKEN: tokens}, self._entries(table, path) if self.metadata else None)

    def _entries(self, table: Any, path: str) -> list[dict[str, Any]]:
        columns = []
        for name in self.metadata:
            try:
                columns.append(table.column(name).to_pylist())
            except UnicodeDecodeError as error:
                raise damaged(f"{path}: column {excerpt(name)!r}", error) from error
            except Exception as error:  # days and time zones that Python has not, and whatever knows time zones
                raise InvalidArgumentError(
                    f"{path}: column {excerpt(name)!r} has a value that Python has not: {excerpt(error)}: leave it out "
                    "of metadata"
                ) from error
        return [dict(zip(self.metadata, row, strict=True)) for row in zip(*columns, strict=True)]

    def _lengths(self, column: Any, path: str) -> Any:
        if column.null_count:
            raise InvalidArgumentError(f"{path}: a row of {excerpt(self.column)!r} is null: leave such rows out")
        return self._compute.list_value_length(column)

    def _type_of(self, schema: Any, path: str) -> Any:
        kind, types = schema.field(self.column).type, self._types
        is_list = types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)
        if not is_list or not types.is_integer(kind.value_type):
            raise InvalidArgumentError(f"{path}: {excerpt(self.column)!r} holds {kind}: lists of integers are wanted")
        return kind.value_type
