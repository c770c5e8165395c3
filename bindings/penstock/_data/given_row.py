"""Row: one row of a batch that is under way, as functions of `penstock.columns.PerRow` get it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from penstock._base.errors import InvalidArgumentError
from penstock._base.words import counted
from penstock._data.fields import leaves


class RowSpan(NamedTuple):
    """A run of records of the row to which one metadata entry is attached; as `Span`, with the entry decoded."""

    start: int
    stop: int
    begins: bool
    ends: bool
    offset: int | None
    id: tuple[int, int]
    metadata: Any


@dataclass(frozen=True)
class RowFacts:
    """Facts of a row beside its records.

    Attributes:
        index: of the observation in its view.
        observation: its number in the whole view, which with `seed` and `epoch` seeds the generator.
        epoch: in which it is met.
        source: the name of the mixture's source; "" where there is one view.
        seed: of its source.
    """

    index: int
    observation: int
    epoch: int
    source: str
    seed: int


class Row(Mapping[str, npt.NDArray[Any]]):
    """One row: a mapping from fields to NumPy arrays [records, trailing axes…], read-only, of the stored types.

    They are the records with the lookahead, as all other columns are made of them: after
    `penstock.columns.FillInTheMiddle`. They stay valid as long as anyone holds them.

    Attributes:
        index: of the observation in its view, as in `batch.indices`.
        epoch: as in `batch.epochs`.
        source: the name of the mixture's source; "" where there is one view.
        spans: the spans of the row, as `RowSpan`; none where the view was made with metadata=False.
    """

    __slots__ = ("_facts", "_fields", "spans")

    def __init__(self, fields: Mapping[str, npt.NDArray[Any]], facts: RowFacts, spans: Sequence[RowSpan]) -> None:
        """Takes a row's arrays, its facts and its spans."""
        self._fields, self._facts = fields, facts
        self.spans = spans

    @property
    def index(self) -> int:
        """Number of the observation in its view."""
        return self._facts.index

    @property
    def epoch(self) -> int:
        """Number of the epoch in which it is met."""
        return self._facts.epoch

    @property
    def source(self) -> str:
        """The name of the mixture's source; "" where there is one view."""
        return self._facts.source

    @property
    def metadata(self) -> Any:
        """The decoded entry of a document: that of its only span.

        Raises:
            InvalidArgumentError: it has no span, or several.
        """
        if len(self.spans) != 1:
            raise InvalidArgumentError(f"{counted(len(self.spans), 'entry')} of metadata here: look at .spans")
        return self.spans[0].metadata

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        """The field `name`: [records, trailing axes…]."""
        return self._fields[name]

    def __iter__(self) -> Iterator[str]:
        """Names of fields."""
        return iter(self._fields)

    def __len__(self) -> int:
        """How many fields there are."""
        return len(self._fields)

    def __repr__(self) -> str:
        """Fields, with their shapes, and which row it is."""
        fields = ", ".join(f"{name} {list(each.shape)}" for name, each in self._fields.items())
        return f"Row({fields}; observation {self.index} in epoch {self.epoch})"


def fields_of(
    stored: npt.NDArray[np.uint8], dtype: np.dtype[Any] | None, visible: np.dtype[Any] | None, apart: bool, length: int
) -> dict[str, npt.NDArray[Any]]:
    """The fields of a row by name, over its stored bytes.

    Args:
        stored: uint8 [bytes].
        dtype: of a stored record.
        visible: of a record as users know it; None: there are no records.
        apart: whether each field's values lie end to end, one field behind the other.
        length: records.
    """
    if visible is None or dtype is None:
        return {}
    if not apart:
        records = stored.view(dtype)
        found = {}
        for leaf in leaves(visible):
            array: Any = records
            for part in leaf.name.split("."):
                array = array[part]
            found[leaf.name] = array
        return found
    found, at = {}, 0
    for leaf in leaves(visible):
        bytes_ = leaf.base.itemsize * int(np.prod(leaf.dims, dtype=np.int64)) * length
        found[leaf.name] = stored[at : at + bytes_].view(leaf.base).reshape(length, *leaf.dims)
        at += bytes_
    return found
