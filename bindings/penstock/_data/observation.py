"""Observation: one window or document, read by itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast

import numpy.typing as npt

from penstock._base.errors import InvalidArgumentError
from penstock._base.words import counted
from penstock._data.batch import Batch
from penstock._data.spans import Spans


class Observation(Mapping[str, Any]):
    """One window or document: a mapping from field names to NumPy arrays, with `records` and `spans`."""

    def __init__(self, batch: Batch) -> None:
        """The only row of `batch`."""
        if not isinstance(batch, Batch):
            _refuse_mapping(batch)
        self._batch = batch

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        """The field `name`: [records, trailing axes…], contiguous."""
        array = self._row(self._batch[name], name in self._batch._layout.flat)
        # Inside of records with more than this field it is neither contiguous nor aligned, and torch refuses it then.
        # Of one record, NumPy calls it contiguous all the same.
        whole = len(array) > 1 and array.flags.c_contiguous and array.flags.aligned
        return array if whole else array.copy()

    def __iter__(self) -> Iterator[str]:
        """Names of fields."""
        return iter(self._batch)

    def __len__(self) -> int:
        """How many fields there are."""
        return len(self._batch)

    @property
    def records(self) -> npt.NDArray[Any]:
        """The records, structured: [records]."""
        return self._row(self._batch.records, self._batch._layout.ragged)

    @property
    def inputs(self) -> npt.NDArray[Any]:
        """As `Batch.inputs`, of this row."""
        return cast("npt.NDArray[Any]", self._batch.inputs[0])

    @property
    def labels(self) -> npt.NDArray[Any]:
        """As `Batch.labels`, of this row."""
        return cast("npt.NDArray[Any]", self._batch.labels[0])

    @property
    def spans(self) -> Spans:
        """Its metadata entries.

        Raises:
            InvalidArgumentError: the view was made with metadata=False.
        """
        return self._batch.spans

    @property
    def columns(self) -> Mapping[str, Any]:
        """Values of its documents' columns: of a document one, of a window [spans, …]."""
        found = self._batch.columns
        return {name: values[0] for name, values in found.items()} if self._batch._layout.ragged else found

    @property
    def metadata(self) -> Any:
        """The decoded entry of a document: that of its only span.

        Raises:
            InvalidArgumentError: it has no span, or several; the view was made without metadata.
        """
        if len(self.spans) != 1:
            raise InvalidArgumentError(f"{counted(len(self.spans), 'entry')} of metadata here: look at .spans")
        return self.spans[0].metadata

    @staticmethod
    def _row(array: Any, flat: bool) -> npt.NDArray[Any]:
        # Documents are flat, so a batch of one is the document itself.
        return cast("npt.NDArray[Any]", array if flat else array[0])

    def __repr__(self) -> str:
        """Fields with their lengths, and spans."""
        fields = ", ".join(f"{name} {list(self[name].shape)}" for name in self)
        spans = "without spans" if self._batch._layout.metadata is False else counted(len(self.spans), "span")
        return f"Observation({fields}; {spans})"


def _refuse_mapping(given: Any) -> None:
    # torch's default_collate makes a mapping of stacked fields and tries to call it what its elements are; a TypeError
    # makes it a dict.
    if isinstance(given, Mapping) and not given:
        raise InvalidArgumentError(
            "observations without fields (opaque documents) cannot be collated: give a collate_fn that takes their "
            "metadata, or use penstock.Loader"
        )
    raise TypeError(f"an Observation is made of a Batch, not of {type(given).__name__}")
