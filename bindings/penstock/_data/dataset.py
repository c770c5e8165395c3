"""Datasets, opened in place: what makes views of them, and datasets of some of their shards."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from penstock import _native
from penstock._base.errors import InvalidArgumentError
from penstock._base.words import counted, warn_caller
from penstock._data.bounds import Bounds, document_bounds
from penstock._data.chosen_documents import ChosenDocuments
from penstock._data.dataset_of_cells import DatasetOfCells
from penstock._data.document_view import DocumentView
from penstock._data.packed import resolve as resolve_packed
from penstock._data.packed_view import PackedView
from penstock._data.sides import check_side
from penstock._data.spans import Metadata
from penstock._data.stored_columns import names_of
from penstock._data.token_documents import find as find_documents
from penstock._data.view import View
from penstock._data.view_arguments import tells_of_view
from penstock._data.where import choose, refuse_words
from penstock._data.window_view import WindowView, positive
from penstock._places.paths import PathLike

if TYPE_CHECKING:
    from penstock._data.h5ad_in_place import FilesInPlace


class Dataset(DatasetOfCells):
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
        super().__init__(native, reopen, in_place)
        self._count = 1  # datasets that were opened as this one
        self._by_token: dict[Bounds, Dataset] = {}
        self._bounds: Bounds | None = None  # the token that tells its documents
        self._doubt: str | None = None  # of the side of that token

    @tells_of_view(called="windows")
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
    ) -> View[Dataset]:
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
        window, lookahead = positive("window", window), positive("lookahead", lookahead, 0)
        if phase not in (None, "random"):
            raise InvalidArgumentError(f"phase={phase!r}: must be None or 'random'")
        bounds = document_bounds(self.dtype, end_of_document, begin_of_document)
        if bounds is not None:
            self._check_side(bounds)
        phase_window = 0 if phase is None else window
        return WindowView(self, metadata, names_of(columns), (), window, lookahead, phase_window, bounds)

    @tells_of_view(called="documents")
    def documents(
        self,
        *,
        columns: Sequence[str] = (),
        metadata: Metadata = True,
        end_of_document: int | None = None,
        begin_of_document: int | None = None,
    ) -> View[Dataset]:
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
        return DocumentView(dataset, metadata, names_of(columns), ())

    @tells_of_view(called="packed")
    def packed(
        self,
        window: int,
        *,
        lookahead: int = 0,
        fit: str = "best",
        fill: str = "pad",
        buffer: int | None = None,
        refill: int | None = None,
        group: int | None = None,
        long: str = "split",
        multiple_of: int = 1,
        max_document: int | None = None,
        cut: str | None = None,
        max_documents: int | None = None,
        table: PathLike | None = None,
        columns: Sequence[str] = (),
        metadata: Metadata = True,
        end_of_document: int | None = None,
        begin_of_document: int | None = None,
    ) -> View[Dataset]:
        """The view of rows of `window` records that are filled with documents, whole ones or cut.

        Within each group of documents that follow one another in a shard, documents go into rows by decreasing length,
        equal ones in their order. So rows are a function of the dataset and these arguments alone, and those of old
        shards stay when shards are appended. Documents without records are in no row.

        Args:
            window: records of a row.
            lookahead: records of a row behind these, of documents as they are: with 1 the last record has a label, too.
            fit: "best": a document goes into the row with the least room that holds it; "first": into the first row
                that does. With fill="exact" "best" or "next", see there.
            fill: "pad": documents are whole and what is left of a row is padding. "exact": rows are filled to the last
                record, and the last document of each is cut there; its rest is in no row. With fit="next" documents
                come in their order. With fit="best" the longest one of a buffer that the row has room for comes next,
                and where none fits the shortest is cut. The last documents of a shard, which fill no row, are in none.
            buffer: with fill="exact" and fit="best": documents among which one is looked for, 1,000 by default.
            refill: with it: how many documents come into the buffer together when it has fewer; 128 by default.
            group: documents of one shard that are packed together, 65,536 by default; not with fill="exact".
            long: what becomes of a document longer than a row: "split" into pieces of a row and the rest; "truncate",
                its first `window` records; "drop", left out; "refuse", an error.
            multiple_of: each document is padded to a multiple of this number of records.
            max_document: the most records of a document in a row, at most `window`; None: those of the row.
            cut: what becomes of a document longer than `max_document`: "split" into pieces of that length and the rest
                (the default), or "truncate".
            max_documents: the most sequences of a row, as `cu_seqlens` counts them: its documents or pieces, and what
                is left of it. Batches of B rows then have no more than B times as many: give a loader that as its own
                `max_documents`.
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
        filling: Any = {"fit": fit, "fill": fill, "buffer": buffer, "refill": refill, "group": group, "long": long}
        limits: Any = {"multiple_of": multiple_of, "max_document": max_document, "cut": cut}
        limits |= {"max_documents": max_documents, "table": table, "lookahead": lookahead}
        rows = resolve_packed(window, **filling, **limits)
        dataset = self._told_by(end_of_document, begin_of_document)
        return PackedView(dataset, metadata, names_of(columns), (), rows)

    def where(self, condition: str = "", **words: NoReturn) -> ChosenDocuments:
        """The documents that a condition on their columns chooses; views of them are made as those of the dataset are.

        Args:
            condition: such as `score > 0.8 and lang in ('en', 'de')`: comparisons, `in`, `is null`, `and`, `or`, `not`.

        Raises:
            InvalidArgumentError: no condition, in words that say at which character; no such column; types that do not
                compare; a dataset without columns, or in the ids layout. TypeError: keyword arguments.
        """
        refuse_words(words)
        return ChosenDocuments(self, choose(self._native, condition))

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
        selected._cache, selected._count = self._cache, self._count
        return selected

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
        check_side(self, bounds)

    def __len__(self) -> int:
        """Records of the stream; entries of opaque documents."""
        return self.spans if self.mode == "opaque" else self.records

    def __reduce__(self) -> Any:
        """Pickles as the way to open it again; the content is compared then."""
        return _reopen, (*self._reopen, self.fingerprint)

    def __repr__(self) -> str:
        """Path, kind and size."""
        what = counted(self.spans, "entry") if self.mode == "opaque" else counted(self.records, "record")
        if self._has_cells:
            genes = "" if (number := self._genes()) is None else f" of {counted(number, 'gene')}"
            what = f"{counted(self.spans, 'cell')}{genes}, {what}"
        shards = counted(len(self._native.shards()), "shard")
        told = "" if self._bounds is None else f", {self._bounds.by}={self._bounds.value}"
        return f"Dataset({self.path!r}, {self.kind}, {self.mode}, {what}, {shards}{told})"


def _select(dataset: Dataset, numbers: Sequence[int]) -> Dataset:
    return dataset.select(numbers)


def _by_token(dataset: Dataset, bounds: Bounds) -> Dataset:
    if bounds not in dataset._by_token:
        native, said = find_documents(dataset._native, bounds)
        found = Dataset(native, (_by_token, (dataset, bounds)))
        found._cache, found._count, found._bounds, found._doubt = dataset._cache, dataset._count, bounds, said
        dataset._by_token[bounds] = found
    return dataset._by_token[bounds]


def _reopen(function: Callable[..., Dataset], arguments: tuple[Any, ...], fingerprint: str) -> Dataset:
    dataset = function(*arguments)
    if dataset.fingerprint != fingerprint:
        raise InvalidArgumentError(
            f"{dataset.path}: its content has changed since it was pickled: fingerprint {fingerprint} then, "
            f"{dataset.fingerprint} now"
        )
    return dataset
