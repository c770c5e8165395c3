"""Parquet files with a column of lists of integers: a unit is a row group."""

from __future__ import annotations

from collections.abc import Iterator

from penstock._base.errors import CorruptionError, Error
from penstock._base.words import excerpt
from penstock._from.tokens.lists import ListColumn
from penstock._from.tokens.reader import FileReader, Input, Part, Piece, damaged, needed

_ROWS = 1 << 12  # that are decoded at once


class ParquetReader(FileReader):
    """One file."""

    def __init__(self, given: Input) -> None:
        """Reads its footer.

        Raises:
            CorruptionError: no Parquet file.
            InvalidArgumentError: no such column, or one that does not hold lists of integers.
        """
        pyarrow, parquet = needed("pyarrow", given.name), needed("pyarrow.parquet", given.name)
        self._errors = (pyarrow.ArrowException, OSError, UnicodeDecodeError)  # the last of columns' names
        self.sources = [given.at]
        self._path = given.name
        try:
            self._file = parquet.ParquetFile(given.at.open())
        except Error:
            raise
        except self._errors as error:
            raise CorruptionError(f"{given.name}: no Parquet file that can be read: {excerpt(error)}") from error
        self._lists = ListColumn(given, self._file.schema_arrow)
        self.fields = self._lists.fields
        self.has_documents = True
        self.has_metadata = bool(self._lists.metadata)

    def place(self, unit: int) -> str:
        """As of Reader."""
        return f"row group {unit:,}"

    def pieces(self, most_bytes: int) -> Iterator[Piece]:
        """As of Reader: a piece is a row group."""
        for number in range(self._file.metadata.num_row_groups):
            group = self._file.metadata.row_group(number)
            if not group.num_rows:
                continue
            chunks = (group.column(each) for each in range(group.num_columns))
            try:
                values = sum(
                    each.num_values for each in chunks if f"{each.path_in_schema}.".startswith(f"{self._lists.column}.")
                )
            except UnicodeDecodeError as error:
                raise damaged(self._path, error) from error
            yield Piece(number, number + 1, self._lists.bytes(group.num_rows, values))

    def parts(self, piece: Piece) -> Iterator[Part]:
        """As of Reader."""
        groups = list(range(piece.begin, piece.end))
        try:
            columns = self._lists.columns
            for batch in self._file.iter_batches(_ROWS, row_groups=groups, columns=columns, use_threads=False):
                yield from self._lists.parts(batch, self._path)
        except Error:
            raise
        except self._errors as error:
            raise damaged(self._path, error) from error

    def close(self) -> None:
        """As of Reader."""
        self._file.close()
