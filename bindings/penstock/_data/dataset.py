"""Datasets, opened in place, and views of them: sequences of windows or documents."""

from __future__ import annotations

import functools
import json
import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, cast, overload

import numpy as np
import numpy.typing as npt

from penstock import _native
from penstock._base.arguments import index as index_of
from penstock._base.errors import CorruptionError, Error, InvalidArgumentError
from penstock._base.words import counted, excerpt, warn_caller
from penstock._data import codecs
from penstock._data import dtype as _dtype
from penstock._data.arrays import Bounds, document_bounds, leaves, plan_layout, token_leaf
from penstock._data.batch import Batch, read_view
from penstock._data.cell_views import Cells
from penstock._data.cell_views import resolve as resolve_cells
from penstock._data.cells import Form
from penstock._data.features import Features
from penstock._data.observation import Observation
from penstock._data.packed import Packed, Packing, make_table, packing_of
from penstock._data.packed import resolve as resolve_packed
from penstock._data.padded import Padded
from penstock._data.padded import resolve as resolve_padded
from penstock._data.part import Split, Steps, add_selection, add_slice
from penstock._data.part import native as native_part
from penstock._data.part import words as part_words
from penstock._data.spans import Decode, Metadata, check_metadata
from penstock._data.stored_columns import Columns
from penstock._data.token_documents import doubt, refuse_other_side, shard_names
from penstock._data.token_documents import find as find_documents
from penstock._places.paths import PathLike

if TYPE_CHECKING:
    from penstock._data.h5ad_in_place import FilesInPlace

_MOST_SIDES = 64  # shards of which a record is read to see on which side of documents a token stands


class Shard(NamedTuple):
    """One shard, or one file of a foreign dataset."""

    name: str
    records: int
    spans: int
    entries: int
    size_bytes: int


class Dataset:
    """An opened dataset. No file stays open; opening one of penstock's reads its manifest and nothing else.

    Attributes:
        path: where it is, as it was given, `~` replaced.
        kind: "penstock", "raw", "numpy", "llm.c", "megatron", "datatrove", "olmo", "mds", "litdata" or "h5ad".
        mode: "stream" (records with metadata), "tokens" (records alone) or "opaque" (metadata alone).
        layout: how spans are stored: "compact", "ids" or None.
        fingerprint: 32 hexadecimal digits that tell this content from others.
    """

    def __init__(
        self,
        native: _native.Dataset,
        reopen: tuple[Callable[..., Dataset], tuple[Any, ...]],
        in_place: FilesInPlace | None = None,
    ) -> None:
        """Wraps a native dataset; `reopen` is how another process gets it; `in_place` is of others' files."""
        self._native = native
        self._in_place = in_place
        self._reopen = reopen
        self._cache: _native.CachedStore | None = None
        self._by_token: dict[Bounds, Dataset] = {}
        self._bounds: Bounds | None = None  # the token that tells its documents
        self._doubt: str | None = None  # of the side of that token
        self.path: str = native.path
        self.kind: str = native.kind
        self.mode: str = native.mode
        self.layout: str | None = native.layout
        self.fingerprint: str = native.fingerprint

    @property
    def dtype(self) -> np.dtype[Any] | None:
        """The records' structured dtype; None for opaque documents."""
        text = self._native.schema_json
        return _dtype.from_descr(json.loads(text)) if text else None

    @property
    def codec(self) -> str | None:
        """Name of the metadata's codec; None without metadata."""
        codec = json.loads(self._native.codec_json)
        return None if codec is None else cast(str, codec["name"])

    @property
    def tokenizer(self) -> dict[str, Any] | None:
        """What the writer noted of the tokenizer: name, vocabulary_size, end_of_document, hash."""
        return cast("dict[str, Any] | None", json.loads(self._native.tokenizer_json))

    @property
    def cache_counts(self) -> dict[str, int] | None:
        """What the local cache did since this dataset was opened with `cache=`; None without.

        "hits" and "misses" are pages of 4 KiB, of which "wrong" did not have their check value; "filled" are pages that
        were written, "failed" writes that could not be, and "stopped_by" is the errno after which none are tried, or 0.
        """
        return None if self._cache is None else self._cache.counts

    @functools.cached_property
    def columns(self) -> Columns:
        """Typed values of each document, by name; `columns["plate"][:]` reads one."""
        return Columns(self._native)

    @functools.cached_property
    def features(self) -> Features | None:
        """What records name by number, such as genes: names and columns; None where the dataset has none."""
        if self._in_place is not None:
            return self._in_place.features
        if not self._native.features:
            return None
        # Another Dataset of the same files: features that kept this one, which keeps them, would outlive its last user.
        twin = Dataset(self._native, self._reopen)
        return Features(functools.partial(_open_features, twin), self._native.features_fingerprint)

    @property
    def records(self) -> int:
        """Records of the stream."""
        return self._native.records

    @property
    def spans(self) -> int:
        """Spans (documents) of all shards."""
        return self._native.spans

    @property
    def shards(self) -> list[Shard]:
        """The shards, in the order of the stream."""
        return [Shard(*each) for each in self._native.shards()]

    def windows(
        self,
        window: int,
        lookahead: int = 0,
        *,
        columns: Sequence[str] = (),
        metadata: Metadata = True,
        phase: str | None = None,
        end_of_document: int | None = None,
        begin_of_document: int | None = None,
    ) -> View:
        """The view of windows of `window` records that follow one another.

        Args:
            window: records of an observation.
            lookahead: records that are read after each window: 1 for inputs and labels.
            columns: names of the dataset's columns: `batch.columns[name]` has a value for each span.
            metadata: what is read beside the records: True for spans and their entries, "spans" for spans without
                entries (`span.raw` and `span.metadata` then raise), False for nothing (`batch.spans` then raises; with
                columns, as "spans").
            phase: None: windows begin at record 0. "random": each epoch's begin at another record, so that windows of
                later epochs are cut elsewhere; a hash of the epoch says where. `view[i]` and `view.read` are of epoch
                0.
            end_of_document: the token after which a document ends, where there are no spans that say it (and in their
                place where there are): for what a loader computes of documents (`penstock.columns`).
            begin_of_document: the token with which a document begins, likewise.

        Returns:
            A sequence of (records - lookahead) // window observations of window + lookahead records; with a random
            phase one fewer, of which an epoch leaves out less than two windows' records, other ones each time.

        Raises:
            InvalidArgumentError: no records, a window of 0 or longer than the stream, a `metadata` that cannot be, no
                such column; both ends of documents, one that no token can be, or the wrong one: the stream begins with
                the token that is to end documents and does not end with it, or the reverse.

        Warns:
            UserWarning: a file begins with the token that is to end documents, or ends with the one that begins them.
        """
        window, lookahead = _positive("window", window), _positive("lookahead", lookahead, 0)
        if phase not in (None, "random"):
            raise InvalidArgumentError(f"phase={phase!r}: must be None or 'random'")
        bounds = document_bounds(self.dtype, end_of_document, begin_of_document)
        if bounds is not None:
            self._check_side(bounds)
        return View(
            self,
            "windows",
            window,
            lookahead,
            metadata,
            columns=_names(columns),
            phase_window=0 if phase is None else window,
            bounds=bounds,
        )

    def documents(
        self,
        *,
        columns: Sequence[str] = (),
        metadata: Metadata = True,
        end_of_document: int | None = None,
        begin_of_document: int | None = None,
    ) -> View:
        """The view whose observation i is document i: its records, of any length, and its metadata.

        Args:
            columns: names of the dataset's columns: `batch.columns[name]` has a value for each row.
            metadata: as of `windows`. What tells where a document lies is read in any case.
            end_of_document: of a token stream: the token that ends a document, its last one. All tokens are then read
                once, now; `penstock.import_tokens` does so once for ever.
            begin_of_document: of a token stream: the token with which a document begins, likewise.

        Raises:
            InvalidArgumentError: a token stream without either token, the ids layout (see `penstock.convert`), or no
                such column; a token that occurs nowhere, or is the other side of documents (see `windows`).

        Warns:
            UserWarning: as `windows`.

        Examples:
            >>> import numpy as np, os, penstock, tempfile
            >>> path = os.path.join(tempfile.mkdtemp(), "fineweb.bin")
            >>> np.array([9, 1, 2, 9, 3, 9, 4, 5], "u2").tofile(path)
            >>> view = penstock.open(path, dtype="u2").documents(begin_of_document=9)
            >>> [document["token"].tolist() for document in view]
            [[9, 1, 2], [9, 3], [9, 4, 5]]
        """
        dataset = self._told_by(end_of_document, begin_of_document)
        return View(dataset, "documents", 0, 0, metadata, columns=_names(columns))

    def packed(
        self,
        window: int,
        *,
        fit: str = "best",
        group: int = 65_536,
        long: str = "split",
        multiple_of: int = 1,
        table: PathLike | None = None,
        columns: Sequence[str] = (),
        metadata: Metadata = True,
        end_of_document: int | None = None,
        begin_of_document: int | None = None,
    ) -> View:
        """The view of rows of `window` records that are filled with whole documents.

        Within each group of documents that follow one another in a shard, documents go into rows by decreasing length,
        equal ones in their order. So rows are a function of the dataset and these arguments alone, and those of old
        shards stay when shards are appended. Documents without records are in no row.

        Args:
            window: records of a row.
            fit: "best": a document goes into the row with the least room that holds it; "first": into the first row
                that does.
            group: documents of one shard that are packed together.
            long: what becomes of a document longer than a row: "split" into pieces of a row and the rest; "truncate",
                its first `window` records; "drop", left out; "refuse", an error.
            multiple_of: each document is padded to a multiple of this number of records.
            table: a file that `penstock pack` made of this dataset with these arguments; needed for more than
                10,000,000 documents.
            columns: names of the dataset's columns: `batch.columns[name]` has a value for each span.
            metadata: as of `windows`.
            end_of_document: as of `documents`.
            begin_of_document: as of `documents`.

        Returns:
            A view whose rows are [window]; `batch.spans` has the pieces, records outside of them are padding, 0.
            `inputs` and `labels` are [rows, window]: labels are those within a piece, -100 at its end and in padding.
            `view.waste` is the part that is padding, `view.packing` says more.

        Raises:
            InvalidArgumentError: an argument that cannot be; a dataset without documents of records; a document too
                long for long="refuse"; too many documents to pack now; a table of another dataset or other arguments.

        Examples:
            >>> import os, tempfile, penstock
            >>> path = os.path.join(tempfile.mkdtemp(), "corpus")
            >>> with penstock.Writer(path, fields={"token": "u2"}, metadata="json") as writer:
            ...     for length in (3, 7, 6, 4):
            ...         writer.append(token=range(1, length + 1), metadata=None)
            >>> view = penstock.open(path).packed(10)
            >>> len(view), view.waste, view[0]["token"].tolist()
            (2, 0.0, [1, 2, 3, 4, 5, 6, 7, 1, 2, 3])
            >>> view.read([1]).labels.tolist()
            [[2, 3, 4, 5, 6, -100, 2, 3, 4, -100]]
        """
        rows = resolve_packed(window, fit, group, long, multiple_of, table)
        dataset = self._told_by(end_of_document, begin_of_document)
        return View(dataset, "packed", rows.window, 0, metadata, columns=_names(columns), rows=rows)

    def select(self, shards: Sequence[int]) -> Dataset:
        """Some of the shards, in this order, as a dataset; nothing is read.

        Args:
            shards: their numbers, as `dataset.shards` has them; negative ones count from the end.

        Returns:
            A dataset with the fingerprint that these shards have when they are combined.

        Raises:
            InvalidArgumentError: none, one that is not there, or one that comes twice.
        """
        count = len(self._native.shards())
        numbers = []
        try:
            wanted = [operator.index(each) for each in shards]
        except TypeError:
            raise InvalidArgumentError(f"shards={shards!r:.80}: must be a list of numbers") from None
        for number in wanted:
            if not -count <= number < count:
                raise InvalidArgumentError(f"there is no shard {number}: they are from 0 to {count - 1:,}")
            numbers.append(number % count)
        if self._bounds is not None:  # as if the shards had been selected first: so does a stream that grew
            base, bounds = self._reopen[1]
            return _by_token(base.select(numbers), bounds)
        native = _native.select_shards(self._native, numbers)
        selected = Dataset(native, (_select, (self, numbers)), self._in_place)
        selected._cache = self._cache
        return selected

    def cells(
        self,
        form: str | Form = "csr",
        *,
        value: str = "count",
        genes: Any = None,
        normalize: float | None = None,
        log1p: bool = False,
        columns: Sequence[str] = (),
        metadata: Metadata = False,
    ) -> View:
        """The view of documents that are cells: records {gene, count}, genes ascending, as arrays for training.

        Args:
            form: "csr", "dense", "ranked", "binned", or one of `penstock.cells` with its options.
            value: the field that values are of: the counts, or another layer.
            genes: which genes, by number or name, in this order: they are numbered anew in the batch; None: all.
            normalize: what each cell's values sum up to, over all of its genes; as scanpy's `normalize_total`. None: as
                they are.
            log1p: whether log(1 + value) is taken, after that.
            columns: names of the dataset's columns: `batch.columns[name]` has a value for each cell.
            metadata: as of `windows`.

        Returns:
            A view whose batches have the form's arrays. Its loader's state is that of `documents()`, whatever the form.

        Raises:
            InvalidArgumentError: records that are no cells; unknown genes, or one named twice; an argument that cannot
                be. What no cell may hold is said at the batch that has it: genes that do not ascend, one that the
                dataset does not have, NaN; where values are ranked, binned, normalised or logarithmised, also those
                that are negative or infinite.
        """
        made = resolve_cells(form, value, genes, normalize, log1p, self.dtype, self.features)
        return View(self, "documents", 0, 0, metadata, columns=_names(columns), cells=made)

    def _told_by(self, end: int | None, begin: int | None) -> Dataset:
        """This dataset, or a token stream with the documents that a token tells.

        Raises:
            InvalidArgumentError: as `documents`.
        """
        bounds = document_bounds(self.dtype, end, begin)
        if bounds is None:
            return self
        found = _by_token(self, bounds)
        if found._doubt is not None:
            warn_caller(found._doubt)
        return found

    def _check_side(self, bounds: Bounds) -> None:
        """Looks at the stream's ends and at one record of each shard, or of some of very many.

        See `refuse_other_side` and `doubt`.
        """
        ends = np.cumsum([each.records for each in self.shards])
        begins = np.concatenate([[0], ends[:-1]])
        numbers = np.flatnonzero(ends > begins)
        if len(numbers) > _MOST_SIDES:  # each may be a request
            numbers = numbers[np.linspace(0, len(numbers) - 1, _MOST_SIDES).astype(np.int64)]
        sides = begins[numbers] if bounds.by == "end_of_document" else ends[numbers] - 1
        found = View(self, "windows", 1, 0, False).read([0, self.records - 1, *sides.tolist()])
        has = (found[bounds.field].reshape(2 + len(sides), -1) == bounds.value).all(axis=1).tolist()
        refuse_other_side(self.path, bounds.by, bounds.value, *has[:2])
        said = doubt(bounds.by, bounds.value, shard_names(self._native, numbers[has[2:]].tolist()))
        if said is not None:
            warn_caller(said)

    def check_in_place(self) -> None:
        """Looks whether others' files are still those that were opened.

        Views and loaders do so when they are made, and `view.read` and `view[i]` each time.

        Raises:
            CorruptionError: one was changed, or is gone.
        """
        if self._in_place is not None:
            self._in_place.check()

    def to_anndata(self, indices: npt.ArrayLike | None = None) -> Any:
        """Cells as AnnData in memory: records as X and layers, columns as obs and obsm, features as var.

        X and layers are float32, float64 where counts have 4 bytes or are doubles; without layers explicit zeros stay.
        Needs the extra penstock[cells].

        Args:
            indices: which cells, in this order: integers [n], or a mask; None: all.

        Raises:
            InvalidArgumentError: the dataset has no features or no counts; a cell that is not there.
        """
        from penstock._data.anndata.to_anndata import to_anndata

        return to_anndata(self, indices)

    def __len__(self) -> int:
        """Records of the stream; entries of opaque documents."""
        return self.spans if self.mode == "opaque" else self.records

    def __reduce__(self) -> Any:
        """Pickles as the way to open it again; the content is compared then."""
        return _reopen, (*self._reopen, self.fingerprint)

    def __repr__(self) -> str:
        """Path, kind and size."""
        what = counted(self.spans, "entry") if self.mode == "opaque" else counted(self.records, "record")
        shards = counted(len(self._native.shards()), "shard")
        told = "" if self._bounds is None else f", {self._bounds.by}={self._bounds.value}"
        return f"Dataset({self.path!r}, {self.kind}, {self.mode}, {what}, {shards}{told})"


class View(Sequence[Observation]):
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

    def __init__(
        self,
        dataset: Dataset,
        kind: str,
        window: int,
        lookahead: int,
        metadata: Metadata = True,
        steps: Steps = (),
        columns: tuple[str, ...] = (),
        cells: Cells | None = None,
        phase_window: int = 0,
        bounds: Bounds | None = None,
        rows: Packed | Padded | None = None,
    ) -> None:
        """Made by `Dataset.windows` and its like, and by parts of views, which take `steps` from the whole view."""
        self.dataset = dataset
        self.kind = kind
        self.window = window
        self.lookahead = lookahead
        self.metadata: Metadata = check_metadata(metadata)
        self.columns = columns
        self.cells = cells
        self.phase_window = phase_window
        self.bounds = bounds
        self.rows = rows
        native = dataset._native
        dataset.check_in_place()
        if kind != "documents" and columns and self.metadata is False:
            self.metadata = "spans"  # which the values are of
        self._packing: Packing | None = None
        if kind == "windows":
            self._whole = _native.make_windows(native, window, lookahead, list(columns), phase_window)
        elif isinstance(rows, Packed):
            table = make_table(native, rows)
            self._packing = packing_of(table.header)
            self._whole = _native.make_packed(native, table, list(columns))
        elif isinstance(rows, Padded) and rows.to is not None:
            self._whole = _native.make_documents(native, list(columns), rows.to, rows.long != "truncate")
        else:
            self._whole = _native.make_documents(native, list(columns))
        self._take(steps)

    def _take(self, steps: Steps) -> None:
        # What a view keeps of its files is the whole's, so all parts share it.
        self._steps = steps
        self._source = native_part(self._whole, steps)

    def _part(self, steps: Steps) -> View:
        self.dataset.check_in_place()
        part = object.__new__(type(self))
        part.__dict__.update(self.__dict__)
        part._take(steps)
        return part

    @property
    def dtype(self) -> np.dtype[Any] | None:
        """The records' structured dtype; None for opaque documents."""
        return self.dataset.dtype

    @property
    def _decode(self) -> Decode | None:
        native = self.dataset._native
        try:
            codec = codecs.from_json(native.codec_json)
        except InvalidArgumentError as error:
            raise CorruptionError(f"{native.path}: its metadata codec cannot be: {error}") from None
        if codec is None:
            return None
        name, decode = codec.name, codec.decode

        def decode_entry(data: memoryview, shard: int, entry: int) -> Any:
            try:
                return decode(data)
            except Error:
                raise
            except Exception as error:  # decoders may raise anything for bytes that are not theirs
                raise CorruptionError(
                    f'{native.data_path(shard)}: entry {entry:,} of {data.nbytes:,} bytes is none of codec "'
                    f'{excerpt(name)}": {type(error).__name__}: {excerpt(error)}'
                ) from error

        return decode_entry

    def __len__(self) -> int:
        """How many observations there are."""
        return self._source.size

    @overload
    def __getitem__(self, index: int) -> Observation: ...
    @overload
    def __getitem__(self, index: slice) -> View: ...
    def __getitem__(self, index: int | slice) -> Observation | View:
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
        self.dataset.check_in_place()
        return Observation(read_view(self._source, [at % len(self)], self))

    def read(self, indices: npt.ArrayLike) -> Batch:
        """Observations in bulk, in one call without the GIL.

        Args:
            indices: integers [n] below `len(self)`.

        Returns:
            A batch of n rows, as NumPy arrays.

        Raises:
            InvalidArgumentError: an index beyond the view, or indices that are no integers.
        """
        self.dataset.check_in_place()
        return read_view(self._source, _indices(np.asarray(indices), "indices", "integers [n] wanted"), self)

    def select(self, which: npt.ArrayLike) -> View:
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
            array = _indices(array, "a selection", "integers [n] wanted, or a mask")
        if array.size and array.max() >= len(self):
            raise InvalidArgumentError(
                f"observation {array.max()}: indices of this view are from 0 to {len(self) - 1:,}"
            )
        return self._part(add_selection(self._steps, array))

    def split(self, one_in: int, seed: int = 0) -> tuple[View, View]:
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
        if self.kind != "documents" or self.cells is not None:
            raise InvalidArgumentError(f"{self!r}: padded() is of views of documents: dataset.documents().padded()")
        if self.dtype is None or not self.dtype.names or self._source.fields_apart:
            raise InvalidArgumentError(f"{self!r}: padded() is of documents whose records lie end to end")
        names = [leaf.name for leaf in leaves(self.dtype) if leaf.base.kind not in "SV"]
        rows = resolve_padded(to, multiple_of, side, value, long, names, token_leaf(self.dtype)[0])
        view = View(self.dataset, self.kind, 0, 0, self.metadata, self._steps, self.columns, rows=rows)
        plan_layout(view, torch=None, dtype=None, eager=False)  # says which padding cannot be
        if rows.to is None or rows.long != "drop":
            return view
        return view.select(self.lengths() <= rows.to)

    def lengths(self) -> npt.NDArray[np.int64]:
        """Records of each document, read from the index at once: for `penstock.orders.Bucketed`, for weights.

        Returns:
            int64 [len(self)].

        Raises:
            InvalidArgumentError: no view of documents with records.
        """
        if self.kind != "documents":
            raise InvalidArgumentError(f"{self!r}: lengths() is of views of documents")
        native = self.dataset._native
        count = native.spans
        step = 1 << 22  # Ctrl-C is looked for in between
        parts = [_native.document_lengths(native, first, min(step, count - first)) for first in range(0, count, step)]
        found = np.concatenate(parts).astype(np.int64)
        if self._steps:
            found = found[self.base_indices(np.arange(len(self)))]
        limit = self.rows.to if isinstance(self.rows, Padded) else None
        return found if limit is None else np.minimum(found, limit)

    @property
    def packing(self) -> Packing:
        """Of packed rows: how many documents are in how many rows, what is left out, and the waste."""
        if self._packing is None:
            raise AttributeError(f"{self!r}: packing and waste are of dataset.packed(window)")
        return self._packing

    @property
    def waste(self) -> float:
        """Of packed rows: the part of the whole view that is padding, 0 to 1."""
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
        what = (self.dataset, self.kind, self.window, self.lookahead, self.metadata, self._steps)
        return View, (*what, self.columns, self.cells, self.phase_window, self.bounds, self.rows)

    def __repr__(self) -> str:
        """What it is a view of."""
        how = [f"{self.window}, lookahead={self.lookahead}"] if self.kind == "windows" else []
        if self.phase_window:
            how.append('phase="random"')
        if isinstance(self.rows, Packed):
            how += self.rows.words()
        if self.cells is not None:
            how.append(self.cells.words())
        if self.bounds is not None:
            how.append(f"{self.bounds.by}={self.bounds.value}")
        if self.columns:
            how.append(f"columns={list(self.columns)!r}")
        if self.metadata is not (self.cells is None):
            how.append(f"metadata={self.metadata!r}")
        view = f"{self.dataset!r}.{'cells' if self.cells is not None else self.kind}({', '.join(how)})"
        if isinstance(self.rows, Padded):
            view += f".padded({self.rows.words()})"
        return view + part_words(self._steps, self._whole.size)


def _select(dataset: Dataset, numbers: Sequence[int]) -> Dataset:
    return dataset.select(numbers)


def _by_token(dataset: Dataset, bounds: Bounds) -> Dataset:
    if bounds not in dataset._by_token:
        native, said = find_documents(dataset._native, bounds)
        found = Dataset(native, (_by_token, (dataset, bounds)))
        found._cache, found._bounds, found._doubt = dataset._cache, bounds, said
        dataset._by_token[bounds] = found
    return dataset._by_token[bounds]


def _names(columns: Sequence[str]) -> tuple[str, ...]:
    if isinstance(columns, str) or not all(isinstance(each, str) for each in columns):
        raise InvalidArgumentError(f'columns={columns!r:.80}: a list of names is wanted, such as ["plate"]')
    return tuple(columns)


def concatenate(datasets: Sequence[Dataset]) -> Dataset:
    """Several opened datasets as one, shards in order; those of penstock get the fingerprint that `combine` gives.

    Raises:
        InvalidArgumentError: none, or they differ in mode, fields, codec or layout.
    """
    parts = list(datasets)
    for each in parts:
        if not isinstance(each, Dataset):
            raise InvalidArgumentError(f"concatenate takes opened datasets, not {type(each).__name__}: open it first")
    native = _native.concatenate([each._native for each in parts])
    return Dataset(native, (concatenate, (parts,)), _joined([each._in_place for each in parts]))


def _joined(parts: Sequence[FilesInPlace | None]) -> FilesInPlace | None:
    found = [each for each in parts if each is not None]
    return found[0].joined(found) if found else None


def _open_features(dataset: Dataset) -> Dataset:
    return Dataset(_native.open_features(dataset._native), (_open_features, (dataset,)))


def _reopen(function: Callable[..., Dataset], arguments: tuple[Any, ...], fingerprint: str) -> Dataset:
    dataset = function(*arguments)
    if dataset.fingerprint != fingerprint:
        raise InvalidArgumentError(
            f"{dataset.path}: its content has changed since it was pickled: fingerprint {fingerprint} then, "
            f"{dataset.fingerprint} now"
        )
    return dataset


def _indices(array: npt.NDArray[Any], what: str, wanted: str) -> npt.NDArray[Any]:
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise InvalidArgumentError(f"{what} of shape {list(array.shape)} and type {array.dtype}: {wanted}")
    if array.size and array.min() < 0:
        raise InvalidArgumentError(f"observation {array.min()}: indices begin at 0")
    return array


def _positive(name: str, value: Any, least: int = 1) -> int:
    try:
        number = operator.index(value)
    except TypeError:
        raise InvalidArgumentError(f"{name}={value!r}: must be an integer") from None
    if number < least:
        raise InvalidArgumentError(f"{name}={number}: must be at least {least}")
    if number >= 1 << 64:
        raise InvalidArgumentError(f"{name}={number}: must be below 2^64")
    return number
