"""Writing datasets: arrays and metadata in, packed records and encoded entries to the native writer."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any

import numpy as np
import numpy.typing as npt

from penstock import _native
from penstock._base.arguments import shown
from penstock._base.errors import InvalidArgumentError
from penstock._base.words import excerpt
from penstock._data import codecs
from penstock._data import dtype as _dtype
from penstock._data.column_values import ColumnSpec, ColumnValues, column_types, types_json
from penstock._data.features import feature_table
from penstock._make.folder import Folder
from penstock._make.folders import folder_of
from penstock._make.notes import remove_list
from penstock._make.publishing import count_of, json_text
from penstock._make.record_packing import numbers, pack_records
from penstock._places.paths import PathLike
from penstock._places.storage import Storage

_MISSING: Any = object()


class Writer:
    """Writes one dataset: appends documents, cuts them into shards, publishes everything at the end or nothing.

    Leaving the `with` block commits; an exception in it aborts, which removes what this writer wrote. A killed process
    leaves finished shards and no manifest; the error of opening the folder says how to go on. So does a writer that is
    neither committed nor aborted when it goes, with a RuntimeWarning.

    Args:
        path: the dataset's folder; made if it is not there. `~` is the home folder. Or its address in a bucket:
            s3://, gs:// or az://; each shard is then written here and uploaded.
        fields: mapping from names to dtypes, or a structured dtype; None for opaque documents: metadata alone.
        metadata: "json", "raw", "msgpack", the name of a registered codec, a codec, or a NumPy dtype; "boundaries" for
            documents without metadata, 16 bytes each; None for a token stream, which keeps no documents.
        columns: typed values of each document, apart from its metadata: a mapping from names to a dtype, a (dtype,
            shape) pair, "category" for strings, or a list of strings: the categories in the order of their codes.
        features: what records name by number, such as genes: a list of names, a pandas DataFrame with names as its
            index, a mapping {"names": […], column: values}, or the features of another dataset. Not with `shard`:
            give them to `commit`.
        layout: "compact" (a document is a run of records) or "ids" (each record names its entry).
        shard_size: bytes of records and entries after which a shard ends, between two appends.
        tokenizer: what to note of the tokenizer: name, vocabulary_size, end_of_document, hash.
        overwrite: replace a published dataset, which stays as it is until the new one is committed; finished shards
            that are not published are removed at once (with `shard`: stay), all others when it is committed.
        shard: write only the shard of this number, and do not commit; `commit(path)` gathers shards.
        run: name of the run that this writer belongs to: writers of one run may be at work at the same time, those of
            different runs may not. It is in no published file. None: a run of its own, or with `shard` the run of all
            who name none.
        task: JSON value kept in shard.json: what this shard was made from.
        storage: how a bucket is reached.
        scratch: where the shards of a bucket are until they are uploaded, three at most; None: the folder of temporary
            files.

    Raises:
        InvalidArgumentError: Fields, codec or layout that cannot be; something is there; another writer is at work.
        NotFoundError: No such bucket.
        IoError: The folder cannot be made; the bucket may not be listed.

    Examples:
        >>> import os, tempfile, penstock
        >>> path = os.path.join(tempfile.mkdtemp(), "corpus")
        >>> with penstock.Writer(path, fields={"token": "u2"}, metadata="json") as writer:
        ...     writer.append(token=[1, 2, 3], metadata={"url": "example.org"})
        >>> bool(penstock.verify(path))
        True
    """

    def __init__(
        self,
        path: PathLike | Folder,
        fields: Mapping[str, npt.DTypeLike] | npt.DTypeLike | None = None,
        metadata: str | codecs.Codec | npt.DTypeLike | None = "boundaries",
        *,
        columns: Mapping[str, ColumnSpec] | None = None,
        features: Any = None,
        layout: str = "compact",
        shard_size: int = 1 << 30,
        tokenizer: Mapping[str, Any] | None = None,
        overwrite: bool = False,
        shard: int | None = None,
        run: str | None = None,
        task: Any = None,
        storage: Storage | None = None,
        scratch: PathLike | None = None,
    ) -> None:
        """Makes and locks the folder."""
        self._closed, self._owner = False, os.getpid()
        self._path = path.path if isinstance(path, Folder) else str(path)
        self._columns = ColumnValues(column_types(columns))
        self._dtype = None if fields is None else _dtype.record_dtype(fields)
        self._codec = codecs.get(metadata)
        self._documents = 0
        self._task = task
        mode = self._mode(metadata, layout)
        self._layout = layout
        self._tokenizer = json_text(tokenizer, "tokenizer")
        number = None if shard is None else count_of(shard, "shard")
        if run is not None and not isinstance(run, str):
            raise InvalidArgumentError(f"run={shown(run)}: must be a name")
        folder = path if isinstance(path, Folder) else folder_of(path, storage, scratch)
        self._uploads = folder.uploads(number, overwrite)
        self._replaces = folder.absolute() if overwrite and shard is None else None
        try:
            self._native = self._make(
                folder.path if self._uploads is None else self._uploads.path,
                mode=mode,
                layout=layout if mode == "stream" else "",
                shard_bytes=count_of(shard_size, "shard_size"),
                task=json_text(task, "task"),
                shard=number,
                run=run,
                overwrite=overwrite,
                features=feature_table(features),
            )
        except BaseException:
            if self._uploads is not None:
                self._uploads.abort()
            raise

    def _mode(self, metadata: Any, layout: str) -> str:
        """The dataset's mode.

        Raises:
            InvalidArgumentError: Fields, metadata, columns and layout that do not go together.
        """
        if metadata is None and self._columns.types and self._dtype is not None:
            raise InvalidArgumentError(
                "columns are values of documents, and metadata=None writes a token stream without them: leave metadata "
                "out, or columns"
            )
        if self._dtype is None and (self._codec is None or metadata == "boundaries"):
            raise InvalidArgumentError("neither fields nor metadata: there is nothing to write")
        if layout not in ("compact", "ids"):
            raise InvalidArgumentError(f'layout "{excerpt(layout)}", expected "compact" or "ids"')
        mode = "opaque" if self._dtype is None else "stream" if self._codec is not None else "tokens"
        if layout == "ids" and mode != "stream":
            raise InvalidArgumentError('layout "ids" needs fields and metadata')
        return mode

    def _make(self, path: str, **options: Any) -> _native.DatasetWriter:
        return _native.DatasetWriter(
            path=path,
            fields=json.dumps(_dtype.descr(self._dtype)) if self._dtype is not None else "[]",
            codec="null" if self._codec is None else self._codec.to_json(),
            tokenizer=self._tokenizer,
            columns=types_json(self._columns.types),
            categories=[each.declared or [] for each in self._columns.types],
            **options,
        )

    def append(
        self,
        metadata: Any = _MISSING,
        *,
        columns: Mapping[str, Any] | None = None,
        metadata_id: npt.ArrayLike | None = None,
        records: npt.ArrayLike | None = None,
        **fields: Any,
    ) -> None:
        """Appends one document. What is refused is not written at all, and the writer stays usable.

        Arrays must not change meanwhile on other threads: large ones are written from where they are.

        Args:
            metadata: the document's entry, for its codec; none for "boundaries", nor for a token stream.
            columns: its value of each column; of a category a string, or None.
            metadata_id: in the layout "ids", instead of metadata: what `entry` gave, one for all records or [n].
            records: all fields at once, as a structured array [n].
            **fields: each field's values: [n], [n, dims…] for sub-arrays, or one value for all records.

        Raises:
            InvalidArgumentError: A value does not fit its field, a field is missing or unknown, lengths differ, the
                codec cannot encode the metadata, an id is unknown or of a finished shard.
            IoError: It cannot be written; the writer can then only be aborted.
        """
        packed, _ = pack_records(self._dtype, records, fields)
        if metadata_id is not None:
            if metadata is not _MISSING or columns is not None:
                what = "columns" if metadata is _MISSING else "metadata"
                raise InvalidArgumentError(f"{what} and metadata_id: give one of them")
            self._native.append_ids(packed, numbers(metadata_id, "metadata_id"))
        else:
            encoded = self._encode(metadata)
            self._native.append(packed, encoded, self._columns.pack(columns, None))
        self._appended(1)

    def append_batch(
        self,
        lengths: npt.ArrayLike | None = None,
        *,
        metadata: Iterable[Any] | None = None,
        encoded: Sequence[bytes] | tuple[Any, npt.NDArray[np.uint64]] | None = None,
        columns: Mapping[str, Any] | None = None,
        records: npt.ArrayLike | None = None,
        **fields: Any,
    ) -> None:
        """Appends many documents: the same as `append` for each, faster.

        Args:
            lengths: records of each document [d]; None for opaque documents, and for a token stream, which has none.
            metadata: the documents' entries, for the codec; none for the codec "boundaries".
            encoded: instead of metadata: the entries' bytes, as the codec would give them; or all of them end to end,
                and where each ends, u8 [d].
            columns: values of each column [d, trailing axes…]; of a category strings, or a pandas Categorical.
            records: all documents' records, as a structured array [sum of lengths].
            **fields: each field's values for all documents, end to end.

        Raises:
            InvalidArgumentError: As `append`; nothing of the batch is written then.
            IoError: It cannot be written; the writer can then only be aborted.
        """
        packed, count = pack_records(self._dtype, records, fields)
        joined, ends = self._joined(metadata, encoded)
        if lengths is None:
            if self._dtype is not None and self._codec is not None:
                raise InvalidArgumentError("lengths of the documents are missing")
            lengths = [count] if self._codec is None else np.zeros(len(ends), np.uint64)
        elif self._codec is None:
            raise InvalidArgumentError(
                "lengths of documents, which a token stream (metadata=None) does not keep: leave them out, or leave "
                "metadata=None out of the writer"
            )
        counts = numbers(lengths, "lengths")
        if joined is None and self._codec is not None:
            ends = np.zeros(len(counts), np.uint64)
        self._native.append_batch(
            packed, counts, b"" if joined is None else joined, ends, self._columns.pack(columns, len(counts))
        )
        self._appended(len(counts))

    def _joined(self, metadata: Iterable[Any] | None, encoded: Any) -> tuple[Any, npt.NDArray[np.uint64]]:
        """The entries of a batch end to end (None: there are none to be given), and where each ends."""
        if metadata is not None and encoded is not None:
            raise InvalidArgumentError("metadata and encoded: give one of them")
        if metadata is not None:
            encoded = [self._encode(each, i) or b"" for i, each in enumerate(metadata)]
        if encoded is None and self._codec is not None and self._codec.name != "boundaries":
            raise InvalidArgumentError(f'no metadata, which the codec "{self._codec.name}" of this writer wants')
        if encoded is not None and self._codec is None:
            raise InvalidArgumentError("metadata for a writer of a token stream (metadata=None)")
        if isinstance(encoded, tuple) and len(encoded) == 2 and isinstance(encoded[1], np.ndarray):
            return encoded
        ends = np.cumsum([len(each) for each in encoded or ()], dtype=np.uint64)
        return None if encoded is None else b"".join(encoded), ends

    @property
    def keeps_documents(self) -> bool:
        """False for a token stream (metadata=None), which does not keep where documents begin."""
        return self._codec is not None

    @property
    def documents(self) -> int:
        """Documents that were appended; 0 of a token stream (metadata=None)."""
        return self._documents if self.keeps_documents else 0

    @property
    def records(self) -> int:
        """Records that were appended."""
        return self._native.records

    @property
    def task(self) -> Any:
        """The task that shard.json names in shards that end now."""
        return self._task

    @property
    def is_uploading(self) -> bool:
        """True if its shards go into a bucket."""
        return self._uploads is not None

    @property
    def uploaded(self) -> tuple[int, int]:
        """Bytes that were uploaded, and of all files that are to be: (0, 0) on a local disk."""
        return (0, 0) if self._uploads is None else self._uploads.uploaded

    def _appended(self, documents: int) -> None:
        """Counts what the native writer has taken, and uploads what it has finished."""
        self._documents += documents
        if self._uploads is not None:
            self._uploads.advance(self._native)

    def entry(self, metadata: Any = _MISSING, *, columns: Mapping[str, Any] | None = None) -> int:
        """Adds an entry in the layout "ids".

        Args:
            metadata: for the codec.
            columns: its value of each column.

        Returns:
            Its number, for `append(metadata_id=…)` until the shard ends.

        Raises:
            InvalidArgumentError: Another layout, or the codec cannot encode it.
            IoError: It cannot be written.
        """
        encoded = self._encode(metadata)
        assert encoded is not None or self._codec is None
        return self._native.entry(encoded or b"", self._columns.pack(columns, None))

    def set_task(self, task: Any) -> None:
        """Sets what shard.json keeps as the task of the shards that end from now on: a JSON value."""
        self._native.set_task(json_text(task, "task"))
        self._task = task

    def commit(self) -> None:
        """Finishes the last shard and publishes the dataset (with `shard=`: only finishes it). Again: nothing.

        Raises:
            InvalidArgumentError: The writer failed before or was aborted.
            IoError: Something cannot be written, synced or uploaded; nothing is published.
        """
        if self._uploads is None:
            self._native.commit()
        else:
            self._uploads.commit(self._native)
        self._closed = True
        if self._replaces is not None:
            remove_list(self._replaces)
            self._replaces = None

    close = commit

    def abort(self) -> None:
        """Publishes nothing and removes what this writer wrote. Nothing after `commit`."""
        self._closed = True
        self._native.abort()
        if self._uploads is not None:
            self._uploads.abort()

    def __del__(self) -> None:
        """Says that nothing was published."""
        if getattr(self, "_closed", True) or not hasattr(self, "_native") or os.getpid() != self._owner:
            return
        if self._native.has_failed:  # which its caller was told
            return
        warnings.warn(
            f"{self!r}: it was never closed, so nothing was published: call close(), or write in a with block",
            RuntimeWarning,
            stacklevel=2,
        )
        self._native.leave()

    def __repr__(self) -> str:
        """Where it writes, and how much it has."""
        native = getattr(self, "_native", None)
        if native is None:  # it could not be made, and a report of that shows it
            return "Writer(…)"
        return f"Writer({self._path!r}, {native.records:,} records, finished shards: {native.finished_shards:,})"

    def __enter__(self) -> Writer:
        """The writer."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Commits, or aborts after an exception."""
        if kind is None:
            try:
                self.commit()
            except BaseException:
                self.abort()
                raise
        else:
            self.abort()

    def _encode(self, metadata: Any, within: int = 0) -> bytes | None:
        if self._codec is None:
            if metadata is _MISSING:
                return None
            raise InvalidArgumentError("metadata for a writer of a token stream (metadata=None)")
        if metadata is _MISSING and self._codec.name == "boundaries":
            return b""
        if metadata is _MISSING:
            raise InvalidArgumentError(f'no metadata, which the codec "{self._codec.name}" of this writer wants')
        try:
            encoded = self._codec.encode(metadata)
            if not isinstance(encoded, bytes):
                raise TypeError(f"the encoder gave {type(encoded).__name__}, expected bytes")
        except Exception as error:
            document = self._documents + within
            raise InvalidArgumentError(
                f'metadata of document {document:,} cannot be encoded by the codec "{self._codec.name}": {error}'
            ) from error
        return encoded
