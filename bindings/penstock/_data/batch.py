"""Batch: what a loader gives at one step, and what reading a view gives."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from penstock._base.errors import InvalidArgumentError
from penstock._base.words import excerpt
from penstock._data.batch_arrays import BatchArrays
from penstock._data.cells import Csr
from penstock._data.dtype import RESERVED_NAMES
from penstock._data.job_text import state_of
from penstock._data.spans import Spans
from penstock._data.sparse import csr_of

# What is asked of a mapping by habit, and is an attribute; of tokens only where there are some.
_ATTRIBUTES = {name: f"batch.{name}" for name in RESERVED_NAMES}
_OF_TOKENS = {
    **dict.fromkeys(("inputs", "labels", "input_ids", "targets"), "batch.inputs, batch.labels"),
    "attention_mask": "batch.attention_mask of view.padded(), whose rows are padded documents",
}


class Batch(BatchArrays, Mapping[str, Any]):
    """A mapping from field names to arrays, and what goes with them.

    Rows are windows ([rows, length, …]) or documents (flat: [records, …], row i is `offsets[i]:offsets[i + 1]`).
    Arrays are torch tensors or NumPy arrays, as the loader was told; they are views of the batch's memory, which stays
    valid as long as anyone holds one of them.
    """

    __slots__ = ()

    # --- the mapping of fields

    def __getitem__(self, name: str) -> Any:
        """The field `name`: [rows, length, trailing axes…], or [records, trailing axes…] of documents."""
        if name not in self._layout.types:
            inside = [each for each in self._layout.types if each.startswith(f"{name}.")]
            there = inside or list(self._layout.types)
            what = f"ask for {', '.join(there)}" if inside else f"the fields are {', '.join(there)}"
            if use := self._instead_of(name):
                raise KeyError(f"no field {name}: use {use}; {what if there else 'there are no fields'}")
            raise KeyError(f"no field {excerpt(name)}: {what if there else 'opaque documents have none'}")
        return self._cached(name, self._field)

    def _instead_of(self, name: str) -> str | None:
        """What has what is asked for as a field `name` by habit; None: nothing has it."""
        if name == "attention_mask" and "attention_mask" in self._layout.column_of:
            return "batch.attention_mask"
        if name in _OF_TOKENS:
            return _OF_TOKENS[name] if self._layout.has_tokens else None
        return _ATTRIBUTES.get(name)

    def __iter__(self) -> Iterator[str]:
        """Names of fields, in the order of the records."""
        return iter(self._layout.types)

    def __len__(self) -> int:
        """How many fields there are."""
        return len(self._layout.types)

    def __bool__(self) -> bool:
        """Always true: opaque documents have no fields, and are something all the same."""
        return True

    # --- the attributes

    @property
    def inputs(self) -> Any:
        """The first `window` records of each row, of the field `token` or the only integer field: [rows, window].

        Of packed rows all of them; of padded documents [rows, T].
        """
        return self._cached("inputs", self._labels)

    @property
    def labels(self) -> Any:
        """The token after each of `inputs`: [rows, window]; -100 in rows that are not valid or count in no loss.

        That is where `loss_mask` is false, and with `penstock.columns.Labels(cross_document=False)` where the target
        is of another document. Of packed rows and padded documents also where a document ends, and in padding.
        """
        return self._cached("labels", self._labels)

    @property
    def records(self) -> npt.NDArray[Any]:
        """The records as read: a structured NumPy array, not copied; [rows, length], or [records] of documents.

        With NumPy, fields of the type that is stored are the same memory. One that is asked for in another type of as
        many bytes (tokens of u4 as int32) is, too, where it is all of its record, rows lie end to end and there is no
        lookahead.
        """
        if self._layout.sliced:
            raise InvalidArgumentError(
                "this batch has no records: its rows are a context-parallel rank's part; ask for fields by name"
            )
        if self._layout.records_differ:
            raise InvalidArgumentError(
                "this batch has no records: its sources have records of different types; ask for fields by name"
            )
        if self._layout.record_dtype is None:
            raise InvalidArgumentError("opaque documents have no records: they are in spans")
        dtype = self._layout.record_dtype
        return self._cached("records", lambda _: self._native.records(dtype))  # type: ignore[no-any-return]

    @property
    def columns(self) -> Mapping[str, Any]:
        """The columns that the view and the loader were asked for, by name; read-only.

        Those of documents, `documents(columns=…)`: [rows, trailing axes…], 0 and in categories -1 where padded. Of
        windows, `windows(…, columns=…)`: [spans, trailing axes…], a value for each of `spans`. Then what the loader's
        `columns=` named.
        """
        return self._cached("columns", lambda _: MappingProxyType(self._columns()))  # type: ignore[no-any-return]

    @property
    def obs(self) -> Any:
        """The columns of documents as a pandas DataFrame, made at each call: of cells a row for each, as AnnData's obs.

        Categories are those of the dataset, the same in each batch; as codes they are in `columns`. Padded rows, whose
        index is -1, have none. The index is `indices`, of windows 0, 1, … Columns of arrays are left out.

        Raises:
            ModuleNotFoundError: pandas is not installed.
        """
        names = [name for name in self._layout.value_types if len(self.columns[name].shape) == 1]
        # By name: a batch needs no pandas.
        frames = importlib.import_module("penstock._data.frames")
        index = self.indices if self._layout.ragged else None
        return frames.frame_of({name: self.columns[name] for name in names}, self._layout.categories, index)

    @property
    def cu_seqlens(self) -> Any:
        """int32: where each sequence of the flattened batch begins, and the end; see `penstock.columns.CuSeqlens`."""
        return self._cached("cu_seqlens", self._sequences)

    @property
    def max_seqlen(self) -> int:
        """Records of the longest sequence of `cu_seqlens`; of windows with `max_documents`, those of the window."""
        return self._cached("max_seqlen", lambda name: int(self._sequences(name)))  # type: ignore[no-any-return]

    @property
    def position_ids(self) -> Any:
        """int32 [rows, window], or [records] of documents: each record's place in its sequence."""
        return self._cached("position_ids", self._sequences)

    @property
    def document_ids(self) -> Any:
        """int32 [rows, window], or [records] of documents: the number of each record's sequence; -1 in padding.

        Counted in the row, from 0; an array of documents, which has no rows, counts through.
        """
        return self._cached("document_ids", self._sequences)

    @property
    def loss_mask(self) -> Any:
        """bool [rows, window], or [records] of documents: whether the record's target counts; false in padding.

        The target is the next record; see `penstock.columns.LossMask`.
        """
        return self._cached("loss_mask", self._loss_mask)

    @property
    def attention_mask(self) -> Any:
        """int64 [rows, T] of padded documents: 1 where there is a record, 0 where there is padding.

        Of ranked and binned cells, what `batch["attention_mask"]` is.
        """
        return self._cached("attention_mask", self._padded)

    @property
    def lengths(self) -> Any:
        """int64 [rows] of padded documents: their records; 0 in rows that are padding."""
        return self._cached("lengths", self._padded)

    @property
    def csr(self) -> Any:
        """A batch of cells as compressed sparse rows [rows, genes]: torch.sparse_csr, or SciPy's csr_matrix.

        Its arrays are `batch["gene"]`, the values and `batch.offsets`, not copied.

        Raises:
            InvalidArgumentError: no batch of `dataset.cells("csr")`; genes of which there may be any number.
        """
        return self._cached("csr", self._csr)

    @property
    def position(self) -> int:
        """The job's position before this batch."""
        return self._native.position

    @property
    def indices(self) -> Any:
        """int64 [rows]: which observation each row is; -1 where padded."""
        return self._cached("indices", lambda _: self._given(self._native.indices()))

    @property
    def epochs(self) -> Any:
        """int64 [rows]: the epoch of each row; -1 where padded."""
        return self._cached("epochs", lambda _: self._given(self._native.epochs()))

    @property
    def sources(self) -> Any:
        """int64 [rows]: number of each row's source in `mixture.names`; 0 where there is one, -1 where padded."""
        return self._cached("sources", lambda _: self._given(self._sources()))

    @property
    def first_records(self) -> Any:
        """int64 [rows]: where each row begins in its dataset's stream; -1 where padded, and of opaque documents."""
        return self._cached("first_records", lambda _: self._given(self._native.first_records()))

    @property
    def positions(self) -> Any:
        """int64 [rows]: the job's position at which each row stands; -1 where padded, and in what a view read."""
        return self._cached("positions", lambda _: self._given(self._native.positions()))

    @property
    def valid(self) -> Any:
        """bool [rows]: false where padded."""
        return self._cached("valid", lambda _: self._given(np.arange(self._native.rows) < self._native.valid))

    @property
    def global_rows(self) -> int:
        """Valid rows of all ranks' batches together: the global batch size, or fewer in a last batch.

        The mean over the global batch is `row_losses.sum() / batch.global_rows`, summed over ranks; where gradients are
        averaged over them, as DDP and FSDP do, `row_losses.sum() * loader.world_size / batch.global_rows`.
        """
        return self._native.of_all

    @property
    def loss_scale(self) -> float:
        """Factor for the mean over this rank's valid rows: valid rows × ranks / `global_rows`.

        Averaged over ranks, as DDP and FSDP average gradients, that is the mean over the global batch. 1.0 where all
        ranks have as many valid rows; 0.0 where this one has none, of which there is no mean: see `global_rows`.
        """
        return self._scale(self._native.valid)

    @property
    def loss_scales(self) -> tuple[float, ...]:
        """The same of each micro-batch, as `Balance.micro_batches` says: their losses so weighed are added up.

        Micro-batches are equal parts of the rows, one after the other. Without any it is (`loss_scale`,).
        """
        native = self._native
        part = native.rows // native.micro_batches
        counts = (min(max(native.valid - k * part, 0), part) for k in range(native.micro_batches))
        return tuple(self._scale(count) for count in counts)

    def _scale(self, rows: int) -> float:
        of_all = self._native.of_all
        return rows * self._native.world_size / of_all if of_all else 0.0

    @property
    def offsets(self) -> Any:
        """[rows + 1] of a batch of documents: row i is records `offsets[i]:offsets[i + 1]`.

        int64; of a batch of cells, compressed sparse rows, of the type of its genes, whose rows they are.
        """
        if not self._layout.ragged:
            raise AttributeError("a batch of windows has no offsets: its rows are of one length")
        return self._cached("offsets", self._offsets)

    @property
    def spans(self) -> Spans:
        """The metadata entries of all rows, by row and start.

        Raises:
            InvalidArgumentError: the view was made with metadata=False, which reads records alone.
        """
        if self._spans is None:
            if self._layout.metadata is False:
                raise InvalidArgumentError(
                    "this batch has no spans: its view was made with metadata=False; metadata=True reads spans and "
                    'their entries, metadata="spans" spans alone'
                )
            self._spans = Spans(self._native.spans(), self._layout.decoders, self._layout.metadata is True)
        return self._spans

    def to(self, device: Any, non_blocking: bool = False) -> Batch:
        """The batch with its tensors on a device; `records` and `spans` stay where they are.

        Args:
            device: as `torch.Tensor.to` takes it.
            non_blocking: whether copies from pinned memory are only enqueued.

        Raises:
            InvalidArgumentError: a batch of NumPy arrays.
        """
        if self._layout.torch is None:
            raise InvalidArgumentError("batch.to(device) moves tensors: this batch is NumPy arrays (framework='torch')")
        moved = Batch(self._native, self._layout, self._job)
        moved._device = (device, non_blocking)
        for name in self._tensor_names():
            array = self[name] if name in self._layout.types else getattr(self, name)
            moved._arrays[name] = moved._moved(array)
        moved._arrays["columns"] = MappingProxyType(moved._columns())
        return moved

    def clone(self) -> Batch:
        """A copy with memory of its own, for another process or a file: it can be pickled, queued and saved.

        It offers what the batch does: fields, attributes, columns, spans with their decoded metadata, `state_dict()`.
        Tensors stay on their device; they are not pinned. `torch.load` needs `weights_only=False`.

        Examples:
            >>> import numpy as np, os, penstock, pickle, tempfile
            >>> path = os.path.join(tempfile.mkdtemp(), "tokens.bin")
            >>> np.arange(1000, dtype=np.uint16).tofile(path)
            >>> view = penstock.open(path, dtype="u2").windows(10, lookahead=1)
            >>> batch = next(penstock.Loader(view, batch_size=4, framework="numpy"))
            >>> again = pickle.loads(pickle.dumps(batch.clone()))
            >>> bool((again.inputs == batch.inputs).all()), again.state_dict() == batch.state_dict()
            (True, True)
        """
        # By name: a copy is a Batch, and modules import each other in no circle.
        return cast("Batch", importlib.import_module("penstock._data.clone").cloned(self))

    def state_dict(self) -> dict[str, Any]:
        """The loader's state after this batch.

        A loop that fetches batches ahead of training saves the one of the batch that was trained last: the loader's own
        state is after the batch that was fetched last, and a resume from it would leave out those between.

        Raises:
            InvalidArgumentError: the batch was read from a view, not given by a loader.
        """
        if self._job is None:
            raise InvalidArgumentError("a batch read from a view has no state: only batches of a loader do")
        return state_of(self._job, self._native.end)

    def __reduce__(self) -> Any:
        """Refuses to be pickled."""
        raise TypeError(
            "a batch does not pickle, its memory is the loader's: pickle batch.clone(), which has copies of its arrays"
        )

    def __repr__(self) -> str:
        """Fields, rows and position."""
        return f"Batch({', '.join(self)}; {self._native.valid} of {self._native.rows} rows, position {self.position})"

    def _csr(self, _: str) -> Any:
        cells = self._layout.cells
        if cells is None or not isinstance(cells.form, Csr):
            raise InvalidArgumentError('this batch is no compressed sparse rows: they are of dataset.cells("csr")')
        if cells.width is None:
            raise InvalidArgumentError(
                "batch.csr: how many genes are there? The dataset does not say: give genes=, as "
                'dataset.cells("csr", genes=range(62710)); batch["gene"], the values and batch.offsets need no number'
            )
        shape = (self._native.rows, cells.width)
        return csr_of(self.offsets, self["gene"], self[cells.value], shape, self._layout.torch)
