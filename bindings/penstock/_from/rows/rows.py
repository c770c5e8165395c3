"""Blocks of a Ray Dataset as what a Writer appends."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from penstock._base.errors import InvalidArgumentError
from penstock._base.words import quoted
from penstock._data import codecs
from penstock._data import dtype as _dtype
from penstock._from.text.parquet_rows import plain

_OBJECTS = ("json", "msgpack")  # codecs whose entry is an object of all columns


class Taken(NamedTuple):
    """Some documents: `lengths` u8 [documents], the values of each field end to end, entries as bytes."""

    lengths: npt.NDArray[np.uint64]
    fields: dict[str, npt.NDArray[Any]]
    entries: list[bytes] | None


@dataclass
class Digest:
    """What a task was made of, however its rows were cut into blocks."""

    number: int
    documents: int = 0
    _parts: dict[str, Any] = field(default_factory=dict)

    def add(self, taken: Taken) -> None:
        """The next documents."""
        self.documents += len(taken.lengths)
        self._update(":lengths", taken.lengths.astype("<u8").tobytes())
        for name, values in taken.fields.items():
            self._update(name, np.ascontiguousarray(values).tobytes())
        if taken.entries is not None:
            sizes = np.array([len(each) for each in taken.entries], "<u8")
            self._update(":sizes", sizes.tobytes())
            self._update(":entries", b"".join(taken.entries))

    def _update(self, part: str, data: bytes) -> None:
        self._parts.setdefault(part, hashlib.sha256()).update(data)

    def task(self) -> dict[str, Any]:
        """What shard.json says."""
        whole = "".join(f"{name}={self._parts[name].hexdigest()};" for name in sorted(self._parts))
        digest = hashlib.sha256(whole.encode()).hexdigest()
        return {"version": 1, "number": self.number, "documents": self.documents, "sha256": digest}


class Rows:
    """Takes rows apart: columns named like fields, and the others. Pickled with the sink.

    Attributes:
        dtype: of a record; None: there are none.
        codec: of the metadata; None: there is none.
    """

    def __init__(self, dtype: np.dtype[Any] | None, codec: codecs.Codec | None) -> None:
        self.dtype = dtype
        self._names = () if dtype is None else dtype.names or ()
        self._codec = None if codec is None else codec.to_json()

    @property
    def codec(self) -> codecs.Codec | None:
        """Of the metadata."""
        return None if self._codec is None else codecs.from_json(self._codec)

    def take(self, block: Any) -> Taken:
        """The documents of a block: an Arrow table or a DataFrame.

        Raises:
            InvalidArgumentError: A column is missing, too many or no list; a value does not fit its field or codec.
        """
        from ray.data.block import BlockAccessor

        accessor = BlockAccessor.for_block(block)
        rows = accessor.num_rows()
        if not rows:  # a block without rows may have no columns
            return Taken(np.empty(0, np.uint64), {}, None)
        table = accessor.to_arrow()
        columns = list(table.column_names)
        missing = [name for name in self._names if name not in columns]
        if missing:
            raise InvalidArgumentError(f"no column {quoted(missing)} for that field; there are {quoted(columns)}")
        lengths = np.zeros(rows, np.uint64)
        fields: dict[str, Any] = {}
        for at, name in enumerate(self._names):
            assert self.dtype is not None
            found, values = _flat(table, name)
            if at and not np.array_equal(found, lengths):
                row = int(np.flatnonzero(found != lengths)[0])
                raise InvalidArgumentError(
                    f'columns "{self._names[0]}" and "{name}" have lists of {lengths[row]:,} and {found[row]:,} values '
                    "in one row: a record has a value of each"
                )
            lengths, fields[name] = found, _dtype.fit(values, self.dtype[name], name)
        others = [name for name in columns if name not in self._names]
        return Taken(lengths, fields, self._entries(table, others))

    def _entries(self, table: Any, others: list[str]) -> list[bytes] | None:
        codec = self.codec
        if codec is None or codec.name == "boundaries":
            if others:
                kept = "no metadata" if codec is None else "where documents begin alone"
                raise InvalidArgumentError(
                    f"columns {quoted(others)} are no fields, and metadata={codec and codec.name!r} keeps {kept}: give "
                    'metadata="json", or drop them'
                )
            return None
        if codec.name in _OBJECTS:
            values = [plain(row) for row in table.select(others).to_pylist()] if others else [{}] * len(table)
        elif len(others) == 1:
            values = table.column(others[0]).to_pylist()
        else:
            raise InvalidArgumentError(
                f'metadata="{codec.name}" takes one column beside the fields; there are {quoted(others)}'
            )
        return [self._encode(codec, value) for value in values]

    def _encode(self, codec: codecs.Codec, value: Any) -> bytes:
        try:
            return codec.encode(value.encode() if codec.name == "raw" and isinstance(value, str) else value)
        except (TypeError, ValueError, OverflowError) as error:
            raise InvalidArgumentError(
                f'metadata {value!r:.200} cannot be encoded by the codec "{codec.name}": {error}'
            ) from None


def _flat(table: Any, name: str) -> tuple[npt.NDArray[np.uint64], npt.NDArray[Any]]:
    """Lengths of a column's lists [rows], and their values end to end."""
    import pyarrow
    import pyarrow.compute as compute

    column = table.column(name)
    column = column.combine_chunks() if isinstance(column, pyarrow.ChunkedArray) else column
    kind = column.type
    if column.null_count:
        raise InvalidArgumentError(f'column "{name}" has rows without a list: drop them')
    types = pyarrow.types
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        values = column.flatten()
        if values.null_count:
            raise InvalidArgumentError(f'column "{name}" has a list with a null in it: a record has a value of each')
        lengths = compute.list_value_length(column).to_numpy(zero_copy_only=False).astype(np.uint64)
        if types.is_primitive(values.type):
            return lengths, values.to_numpy(zero_copy_only=False)
        return lengths, np.array(values.to_pylist())  # of sub-arrays
    if isinstance(column, pyarrow.ExtensionArray):  # Ray's, of arrays of one shape or of several
        arrays = [np.asarray(each) for each in column.to_numpy(zero_copy_only=False)]
        if all(each.ndim for each in arrays):
            return np.array([len(each) for each in arrays], np.uint64), np.concatenate(arrays)
    raise InvalidArgumentError(f'column "{name}" is {kind}, no lists: a row is a document, all records of it in lists')
