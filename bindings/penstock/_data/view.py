"""Views: sequences of observations of a dataset. Each kind is a class, which answers for its arrays and documents."""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Generic, NoReturn, overload

import numpy as np
import numpy.typing as npt

from penstock import _native
from penstock._base.arguments import index as index_of
from penstock._base.errors import InvalidArgumentError
from penstock._base.resources import memory_bytes
from penstock._data.arrays import BatchLayout, Wanted, plan_layout
from penstock._data.batch import Batch
from penstock._data.kind import Kind
from penstock._data.observation import Observation
from penstock._data.opened import Opened
from penstock._data.packed import Packing
from penstock._data.part import Split, Steps, Where, add_selection, add_slice, checked_indices, clipped
from penstock._data.part import native as native_part
from penstock._data.part import words as part_words
from penstock._data.spans import Metadata, check_metadata, parts_of
from penstock._data.where import Choice, choose, refuse_words

if TYPE_CHECKING:
    from typing_extensions import Self, TypeVar

    Of = TypeVar("Of", bound=Opened, default=Any)
else:
    from typing import TypeVar

    Of = TypeVar("Of")


class View(Kind, Sequence[Observation], Generic[Of]):
    """A sequence of observations: windows or documents of a dataset. What a loader loads.

    A slice of it and a selection are views too, whose observations are numbered anew; nothing is read for them.

    Examples:
        >>> import numpy as np, penstock, tempfile, os
        >>> path = os.path.join(tempfile.mkdtemp(), "tokens.bin")
        >>> np.arange(1000, dtype=np.uint16).tofile(path)
        >>> view = penstock.open(path, dtype="u2").windows(10)
        >>> held_out, train = view[:20], view[20:]
        >>> len(train), train[0]["token"][0].item(), train.base_indices([0, 79]).tolist()
        (80, 200, [20, 99])

    Attributes:
        dataset: what it is a view of.
        kind: "windows", "documents" or "packed".
        window: records of a window or of a packed row; 0 of documents.
        lookahead: records read after each window.
        metadata: what is read beside the records: True, "spans" or False. No part of a job: its state goes on with
            another one.
        columns: names of the dataset's columns that go with each document; no part of a job either.
        phase_window: how far phases reach, where each epoch begins at another record; else 0.
        cells: what documents that are cells become; None: records. No part of a job either.
        bounds: the token that bounds documents; None: what the dataset says. No part of a job either.
        rows: how documents are packed or padded; None: they are not.
    """

    dataset: Of

    def __init__(self, dataset: Of, metadata: Metadata, columns: tuple[str, ...], steps: Steps) -> None:
        """Made by kinds, which know already what they are; parts of views take `steps` from the whole view."""
        self.dataset = dataset
        self.metadata: Metadata = check_metadata(metadata)
        self.columns = columns
        dataset.check_in_place()
        if self._by_span and columns and self.metadata is False:
            self.metadata = "spans"  # which the values are of
        self._whole = self._make()
        self._take(steps)

    # --- the same view, otherwise

    def _over(self, dataset: Any) -> Self:
        """The same whole view of another dataset."""
        return type(self)(dataset, self.metadata, self.columns, (), *self._own())

    def _of_first_shards(self, count: int) -> View[Any]:
        """The view as it was when its dataset had no more than these shards."""
        whole = self._over(self._growing().select(range(count)))
        return whole._part(clipped(self._steps, whole._source, whole._where))

    def _take(self, steps: Steps) -> None:
        # What a view keeps of its files is the whole's, so all parts share it.
        self._steps = steps
        self._source = native_part(self._whole, steps)

    def _part(self, steps: Steps) -> Self:
        self.dataset.check_in_place()
        part = object.__new__(type(self))
        part.__dict__.update(self.__dict__)
        part._take(steps)
        return part

    @property
    def dtype(self) -> np.dtype[Any] | None:
        """The records' structured dtype; None for opaque documents."""
        return self.dataset.dtype

    # --- observations

    def __len__(self) -> int:
        """How many observations there are."""
        return self._source.size

    @overload
    def __getitem__(self, index: int) -> Observation: ...
    @overload
    def __getitem__(self, index: slice) -> Self: ...
    def __getitem__(self, index: int | slice) -> Observation | Self:
        """One observation, as NumPy arrays; or the view of a slice, which reads nothing.

        Raises:
            IndexError: there is none of this number.
        """
        if isinstance(index, slice):
            return self._part(add_slice(self._steps, index, len(self)))
        try:
            at = operator.index(index)
        except TypeError:
            raise TypeError(
                f"a view is indexed by an integer or a slice, not by {type(index).__name__}: view.select(indices) is "
                "the view of several, view.read(indices) reads them"
            ) from None
        if not -len(self) <= at < len(self):
            raise IndexError(f"observation {at:,} of a view of {len(self):,}")
        return Observation(self._read([at % len(self)]))

    def read(self, indices: npt.ArrayLike) -> Batch:
        """Observations in bulk, in one call without the GIL.

        Args:
            indices: integers [n] below `len(self)`.

        Returns:
            A batch of n rows, as NumPy arrays.

        Raises:
            InvalidArgumentError: an index beyond the view, or indices that are no integers.
        """
        return self._read(checked_indices(np.asarray(indices), "indices", "integers [n] wanted"))

    @functools.cached_property
    def _layout(self) -> BatchLayout:
        """Of the batches that are read here, and by all parts of the view."""
        return plan_layout(self, Wanted())

    def _read(self, indices: npt.ArrayLike) -> Batch:
        self.dataset.check_in_place()
        layout = self._layout
        wanted = np.ascontiguousarray(indices, dtype=np.uint64)
        computed, made = layout.computed.specs, list(layout.makers)
        native = _native.read_rows(self._source, wanted, made, parts_of(self), memory_bytes(), computed)
        return Batch(native, layout)

    def select(self, which: npt.ArrayLike) -> Self:
        """The view of some of the observations, in this order, numbered anew; nothing is read.

        Args:
            which: integers [n] below `len(self)`, each at most once; or a mask, bool [len(self)].

        Raises:
            InvalidArgumentError: an observation that is not there, or is selected twice; neither integers nor a mask of
                this length.

        Examples:
            >>> import numpy as np, penstock, tempfile, os
            >>> path = os.path.join(tempfile.mkdtemp(), "tokens.bin")
            >>> np.arange(1000, dtype=np.uint16).tofile(path)
            >>> view = penstock.open(path, dtype="u2").windows(10)
            >>> [observation["token"][0].item() for observation in view.select([7, 3])]
            [70, 30]
        """
        array = np.asarray(which)
        if array.dtype.kind == "b":
            if array.shape != (len(self),):
                raise InvalidArgumentError(f"a mask of shape {list(array.shape)}: [{len(self)}] wanted")
            array = np.flatnonzero(array)
        else:
            array = checked_indices(array, "a selection", "integers [n] wanted, or a mask")
        if array.size and array.max() >= len(self):
            raise InvalidArgumentError(
                f"observation {array.max()}: indices of this view are from 0 to {len(self) - 1:,}"
            )
        return self._part(add_selection(self._steps, array))

    def where(self, condition: str = "", **words: NoReturn) -> Self:
        """The view of the observations in documents that a condition chooses; see `Dataset.where`.

        Windows are those of which all records, the lookahead's too, are of chosen documents.

        Raises:
            InvalidArgumentError: as `Dataset.where`; windows of a random phase; packed rows, whose documents are chosen
                before: `dataset.where(…).packed(…)`.
            TypeError: keyword arguments.
        """
        refuse_words(words)
        return self._part((*self._steps, self._where(condition)))

    def _where(self, condition: str | Choice) -> Where:
        choice = condition if isinstance(condition, Choice) else choose(self.dataset._native, condition)
        return Where(choice, self._in_documents(choice))

    def split(self, one_in: int, seed: int = 0) -> tuple[Self, Self]:
        """A view to train on and one that is held out: one of each run of `one_in` observations, the same for ever.

        Which one of a run it is depends on (seed, number of the run) alone, so what is held out stays held out when
        shards are appended. Both are views, in the order of this one; nothing is read or kept for them.

        Args:
            one_in: at least 2.
            seed: 64 bits.

        Returns:
            (train, held out).

        Raises:
            InvalidArgumentError: an argument that cannot be; windows of a random phase.

        Examples:
            >>> import numpy as np, penstock, tempfile, os
            >>> path = os.path.join(tempfile.mkdtemp(), "tokens.bin")
            >>> np.arange(1000, dtype=np.uint16).tofile(path)
            >>> train, held_out = penstock.open(path, dtype="u2").windows(10).split(20)
            >>> len(train), len(held_out), set(train.base_indices(range(95))) & set(held_out.base_indices(range(5)))
            (95, 5, set())
        """
        one_in, seed = index_of("one_in", one_in, 2), index_of("seed", seed)
        if self.phase_window > 0:
            raise InvalidArgumentError(
                'split: windows of phase="random" begin elsewhere in each epoch, so none would stay held out: split '
                "dataset.documents(), choose shards by dataset.select, or leave phase= out"
            )
        return (
            self._part((*self._steps, Split(one_in, seed, False))),
            self._part((*self._steps, Split(one_in, seed, True))),
        )

    def padded(
        self,
        to: int | str = "longest",
        *,
        multiple_of: int = 1,
        side: str = "right",
        value: Any = 0,
        long: str = "truncate",
    ) -> View:
        """The same documents, whose batches are rectangles: each field [rows, T, trailing axes…].

        Args:
            to: T: "longest", the records of the batch's longest document, or a number.
            multiple_of: what T is rounded up to; `to` must be a multiple of it.
            side: "right" or "left", where padding is.
            value: what padding is, of the field `token` or the only integer field; or a mapping from fields; else 0.
            long: what becomes of documents of more than `to` records: "truncate", the first ones are read; "drop", they
                are left out, for which the lengths of all documents are read now; "refuse", the error of their batch.

        Returns:
            A view whose batches have beside the fields `attention_mask` (int64 [rows, T], 1 where there is a record),
            `lengths` (int64 [rows]), `inputs` and `labels` [rows, T]: what follows each record, -100 at a document's
            end and in padding. Spans count records from a document's first one, on whichever side padding is. A
            loader's state is that of `documents()`, of the documents that are left.

        Raises:
            InvalidArgumentError: no view of documents; an argument that cannot be.

        Examples:
            >>> import os, tempfile, penstock
            >>> path = os.path.join(tempfile.mkdtemp(), "corpus")
            >>> with penstock.Writer(path, fields={"token": "u2"}, metadata="json") as writer:
            ...     for length in (1, 3):
            ...         writer.append(token=range(1, length + 1), metadata=None)
            >>> batch = penstock.open(path).documents().padded(side="left", value=9).read([0, 1])
            >>> batch["token"].tolist(), batch.attention_mask.tolist(), batch.lengths.tolist()
            ([[9, 9, 1], [1, 2, 3]], [[0, 0, 1], [1, 1, 1]], [1, 3])
            >>> batch.labels.tolist()
            [[-100, -100, -100], [2, 3, -100]]
        """
        raise InvalidArgumentError(f"{self!r}: padded() is of views of documents: dataset.documents().padded()")

    def lengths(self) -> npt.NDArray[np.int64]:
        """Records of each document, read from the index at once: for `penstock.orders.Bucketed`, for weights.

        Returns:
            int64 [len(self)].

        Raises:
            InvalidArgumentError: no view of documents with records.
        """
        raise InvalidArgumentError(f"{self!r}: lengths() is of views of documents")

    @property
    def packing(self) -> Packing:
        """Counts of packed rows: documents, rows, what is left out, and the waste."""
        raise AttributeError(f"{self!r}: packing and waste are of dataset.packed(window)")

    @property
    def waste(self) -> float:
        """The part of packed rows that is padding, 0 to 1."""
        return self.packing.waste

    @overload
    def base_indices(self, indices: int) -> int: ...
    @overload
    def base_indices(self, indices: npt.ArrayLike) -> npt.NDArray[np.int64]: ...
    def base_indices(self, indices: npt.ArrayLike) -> int | npt.NDArray[np.int64]:
        """Which observations of the dataset's whole view these are: what a sub-view counts anew.

        Args:
            indices: an integer, or integers of any shape, below `len(self)`; -1, as in rows of padding, stays -1.

        Returns:
            An integer, or int64 of the same shape.

        Raises:
            InvalidArgumentError: an index beyond the view, or indices that are no integers.
        """
        array = np.asarray(indices)
        if array.size and array.dtype.kind not in "iu":
            raise InvalidArgumentError(f"indices of type {array.dtype}: integers wanted")
        given = np.ascontiguousarray(array, np.int64).reshape(array.shape)
        if array.size and (array.max() >= len(self) or array.min() < -1):
            wrong = array.max() if array.max() >= len(self) else array.min()
            raise InvalidArgumentError(f"observation {wrong}: indices of this view are from 0 to {len(self) - 1:,}")
        found = self._source.base_indices(given)
        return int(found) if found.ndim == 0 else found

    def __reduce__(self) -> Any:
        """Pickles as its dataset and what it is."""
        return type(self), (self.dataset, self.metadata, self.columns, self._steps, *self._own())

    def __repr__(self) -> str:
        """The dataset, and how the view was made."""
        how = self._words()
        if self.bounds is not None:
            how.append(f"{self.bounds.by}={self.bounds.value}")
        if self.columns:
            how.append(f"columns={list(self.columns)!r}")
        if self.metadata is not self._with_metadata:
            how.append(f"metadata={self.metadata!r}")
        return f"{self.dataset!r}.{self._called(', '.join(how))}{part_words(self._steps, self._whole.size)}"
