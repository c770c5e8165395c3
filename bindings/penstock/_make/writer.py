"""Writing datasets: arrays and metadata in, packed records and encoded entries to the native writer."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import numpy.typing as npt

from penstock import _native
from penstock._base.arguments import one_of, shown
from penstock._base.errors import Error, InvalidArgumentError
from penstock._base.words import excerpt
from penstock._data import codecs
from penstock._data import dtype as _dtype
from penstock._data.column_values import ColumnSpec, ColumnValues, column_types, types_json
from penstock._data.features import feature_table
from penstock._data.open import refuse_foreign
from penstock._make import bucket_publish as _bucket_publish
from penstock._make.bucket_folder import BucketFolder, is_bucket
from penstock._make.bucket_writer import BucketWriter
from penstock._places.paths import PathLike, as_paths, local_path
from penstock._places.remote import is_address, refuse_address, scheme_of
from penstock._places.scratch import Scratch
from penstock._places.storage import Storage
from penstock._places.stores import addresses_of, stores_of
from penstock._places.uploads import WRITABLE

_MISSING: Any = object()
_COPY = "write to a folder here, then copy that into the bucket, dataset.json last"


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
        path: PathLike,
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
        self._path, self._closed, self._owner = str(path), False, os.getpid()
        self._columns = ColumnValues(column_types(columns))
        self._dtype = None if fields is None else _dtype.record_dtype(fields)
        if metadata is None and self._columns.types and self._dtype is not None:
            raise InvalidArgumentError(
                "columns are values of documents, and metadata=None writes a token stream without them: leave metadata "
                "out, or columns"
            )
        self._codec = codecs.get(metadata)
        self._documents = 0
        if self._dtype is None and (self._codec is None or metadata == "boundaries"):
            raise InvalidArgumentError("neither fields nor metadata: there is nothing to write")
        if layout not in ("compact", "ids"):
            raise InvalidArgumentError(f'layout "{excerpt(layout)}", expected "compact" or "ids"')
        mode = "opaque" if self._dtype is None else "stream" if self._codec is not None else "tokens"
        if layout == "ids" and mode != "stream":
            raise InvalidArgumentError('layout "ids" needs fields and metadata')
        self._layout = layout
        self._tokenizer = _json_text(tokenizer, "tokenizer")
        number = None if shard is None else _count(shard, "shard")
        if run is not None and not isinstance(run, str):
            raise InvalidArgumentError(f"run={shown(run)}: must be a name")
        self._bucket: BucketWriter | None = None
        if is_bucket(path):
            self._bucket = BucketWriter(str(path), storage, scratch, shard=number, overwrite=overwrite)
        else:
            refuse_storage(path, storage, scratch)
        place: PathLike = str(path) if self._bucket else Path(local_path(path)).absolute()
        self._replaces = (place, storage) if overwrite and shard is None else None
        try:
            self._native = self._make(
                self._bucket.path if self._bucket else local_path(path),
                mode=mode,
                layout=layout if mode == "stream" else "",
                shard_bytes=_count(shard_size, "shard_size"),
                task=_json_text(task, "task"),
                shard=number,
                run=run,
                overwrite=overwrite,
                features=feature_table(features),
            )
        except BaseException:
            if self._bucket is not None:
                self._bucket.abort()
            raise

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
        packed, _ = self._pack(records, fields)
        if metadata_id is not None:
            if metadata is not _MISSING or columns is not None:
                what = "columns" if metadata is _MISSING else "metadata"
                raise InvalidArgumentError(f"{what} and metadata_id: give one of them")
            self._native.append_ids(packed, _ids(metadata_id))
        else:
            encoded = self._encode(metadata)
            self._native.append(packed, encoded, self._columns.pack(columns, None))
        self._documents += 1
        self._upload()

    def append_batch(
        self,
        lengths: npt.ArrayLike | None = None,
        *,
        metadata: Iterable[Any] | None = None,
        encoded: Sequence[bytes] | None = None,
        columns: Mapping[str, Any] | None = None,
        records: npt.ArrayLike | None = None,
        **fields: Any,
    ) -> None:
        """Appends many documents: the same as `append` for each, faster.

        Args:
            lengths: records of each document [d]; None for opaque documents, and for a token stream, which has none.
            metadata: the documents' entries, for the codec; none for the codec "boundaries".
            encoded: instead of metadata: the entries' bytes, as the codec would give them.
            columns: values of each column [d, trailing axes…]; of a category strings, or a pandas Categorical.
            records: all documents' records, as a structured array [sum of lengths].
            **fields: each field's values for all documents, end to end.

        Raises:
            InvalidArgumentError: As `append`; nothing of the batch is written then.
            IoError: It cannot be written; the writer can then only be aborted.
        """
        packed, count = self._pack(records, fields)
        if metadata is not None and encoded is not None:
            raise InvalidArgumentError("metadata and encoded: give one of them")
        if metadata is not None:
            encoded = [self._encode(each, i) or b"" for i, each in enumerate(metadata)]
        elif encoded is None and self._codec is not None and self._codec.name != "boundaries":
            raise InvalidArgumentError(f'no metadata, which the codec "{self._codec.name}" of this writer wants')
        if encoded is not None and self._codec is None:
            raise InvalidArgumentError("metadata for a writer of a token stream (metadata=None)")
        if self._codec is None and lengths is not None:
            raise InvalidArgumentError(
                "lengths of documents, which a token stream (metadata=None) does not keep: leave them out, or leave "
                "metadata=None out of the writer"
            )
        if lengths is None:
            if self._dtype is not None and self._codec is not None:
                raise InvalidArgumentError("lengths of the documents are missing")
            lengths = [count] if self._codec is None else np.zeros(len(encoded or ()), np.uint64)
        counts = _ids(lengths, "lengths")
        if encoded is None and self._codec is not None:
            ends = np.zeros(len(counts), np.uint64)
        else:
            ends = np.cumsum([len(each) for each in encoded or ()], dtype=np.uint64)
        self._native.append_batch(
            packed, counts, b"".join(encoded or ()), ends, self._columns.pack(columns, len(counts))
        )
        self._documents += len(counts)
        self._upload()

    @property
    def keeps_documents(self) -> bool:
        """Whether it keeps where documents begin: not of a token stream (metadata=None)."""
        return self._codec is not None

    @property
    def uploaded(self) -> tuple[int, int]:
        """Bytes that were uploaded, and of all files that are to be: (0, 0) on a local disk."""
        return (0, 0) if self._bucket is None else self._bucket.uploaded

    def _upload(self) -> None:
        if self._bucket is not None:
            self._bucket.advance(self._native)

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
        self._native.set_task(_json_text(task, "task"))

    def commit(self) -> None:
        """Finishes the last shard and publishes the dataset (with `shard=`: only finishes it). Again: nothing.

        Raises:
            InvalidArgumentError: The writer failed before or was aborted.
            IoError: Something cannot be written, synced or uploaded; nothing is published.
        """
        if self._bucket is None:
            self._native.commit()
        else:
            self._bucket.commit(self._native)
        self._closed = True
        if self._replaces is not None:
            remove_list(*self._replaces)
            self._replaces = None

    close = commit

    def abort(self) -> None:
        """Publishes nothing and removes what this writer wrote. Nothing after `commit`."""
        self._closed = True
        self._native.abort()
        if self._bucket is not None:
            self._bucket.abort()

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
        native = self._native
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

    def _pack(self, records: Any, fields: dict[str, Any]) -> tuple[npt.NDArray[np.uint8], int]:
        if self._dtype is None:
            if records is not None or fields:
                raise InvalidArgumentError("records for a writer of opaque documents (fields=None)")
            return np.empty(0, np.uint8), 0
        names = self._dtype.names or ()
        if records is not None:
            array = np.asarray(records)
            if fields or array.dtype.names is None:
                raise InvalidArgumentError(f"records must be one structured array with the fields {', '.join(names)}")
            fields = {name: array[name] for name in array.dtype.names}
        if set(fields) != set(names):
            missing, unknown = set(names) - set(fields), set(fields) - set(names)
            said = [f"missing: {', '.join(sorted(missing))}"] if missing else []
            said += [f"unknown: {', '.join(sorted(unknown))}"] if unknown else []
            raise InvalidArgumentError(f"fields {'; '.join(said)}; this writer has {', '.join(names)}")
        parts = {name: _dtype.fit(fields[name], self._dtype[name], name) for name in names}
        return self._assemble(parts)

    def _assemble(self, parts: dict[str, npt.NDArray[Any]]) -> tuple[npt.NDArray[np.uint8], int]:
        assert self._dtype is not None
        counts = {
            name: len(part) for name, part in parts.items() if part.ndim > len(self._dtype[name].shape)
        }  # the others are one value for all records
        if len(set(counts.values())) > 1:
            raise InvalidArgumentError(f"fields of different lengths: {counts}")
        count = next(iter(counts.values()), 1)
        if len(parts) == 1 and counts:
            return _dtype.as_bytes(next(iter(parts.values()))), count
        packed = np.empty(count, self._dtype)
        for name, part in parts.items():
            packed[name] = part
        return _dtype.as_bytes(packed), count


def _count(value: int, name: str) -> int:
    if not isinstance(value, int | np.integer) or not 0 <= value < 1 << 63:
        raise InvalidArgumentError(f"{name}={shown(value)}, expected a whole number from 0 on")
    return int(value)


def _ids(values: npt.ArrayLike, name: str = "metadata_id") -> npt.NDArray[np.uint64]:
    return np.atleast_1d(_dtype.fit(values, np.dtype("<u8"), name))


def _json_text(value: Any, name: str) -> str:
    try:
        return json.dumps(value, sort_keys=True, allow_nan=False, ensure_ascii=False)
    except (TypeError, ValueError) as error:
        raise InvalidArgumentError(f"{name} {value!r:.200} is no JSON: {error}") from None


@dataclass(frozen=True)
class ShardInfo:
    """A finished shard.

    Attributes:
        number: of its folder.
        task: what its writer said that it was made from; None if nothing.
        records: of the stream.
        spans: documents, or runs of one id.
        entries: of metadata.
        bytes: of its files, without the side files of check values.
    """

    number: int
    task: Any
    records: int
    spans: int
    entries: int
    bytes: int


def finished_shards(path: PathLike, *, overwrite: bool = False, storage: Storage | None = None) -> list[ShardInfo]:
    """The finished shards of a folder by number: the published dataset's, or without one those not published yet.

    In a bucket a number is there twice if two attempts wrote different bytes.

    Args:
        path: the dataset's folder, or its address in a bucket.
        overwrite: of the dataset that is to replace the published one: what `Writer(shard=k, overwrite=True)` wrote.
        storage: how a bucket is reached.

    Raises:
        NotFoundError: No such folder.
        CorruptionError: A shard.json is damaged.
    """
    if is_bucket(path):
        found = [each.shard for each in BucketFolder(str(path), storage).finished(overwrite)]
    else:
        refuse_storage(path, storage)
        found = _native.finished_shards(local_path(path), overwrite)
    return shard_infos(found)


def shard_infos(found: Iterable[Any]) -> list[ShardInfo]:
    """Of what native code says."""
    return [
        ShardInfo(each.number, json.loads(each.task_json), each.records, each.spans, each.entries, each.bytes)
        for each in found
    ]


def commit(
    path: PathLike,
    tokenizer: Mapping[str, Any] | None = None,
    *,
    shards: int | Sequence[int] | None = None,
    overwrite: bool = False,
    tasks: Sequence[Any] | None = None,
    run: str | None = None,
    features: Any = None,
    storage: Storage | None = None,
) -> str:
    """Publishes the shards that several writers (`Writer(shard=k)`) finished.

    Args:
        path: the dataset's folder, or its address in a bucket.
        tokenizer: as for `Writer`.
        shards: how many there must be; without it, all that are there from 0 on without a gap. Or the numbers of all
            that there must be, ascending: a task that had nothing to write leaves a gap.
        overwrite: put them in the place of the published dataset, if there is one: they were written with
            `Writer(shard=k, overwrite=True)`. By one rename; the old shards are removed after it.
        tasks: the task of each shard, which must be that of its `Writer(task=…)`: a shard that something else made is
            refused.
        run: name of the run that the writers belong to, if they named one.
        features: as for `Writer`.
        storage: how a bucket is reached.

    Returns:
        The fingerprint.

    Raises:
        InvalidArgumentError: A shard is missing, shards differ in format, a dataset is published or a writer at work.
        NotFoundError: No finished shard.
        CorruptionError: A shard's files are not as it says.
        IoError: Something cannot be written, synced or removed; the message says if the dataset is published.
    """
    fingerprint = commit_since(None, path, tokenizer, shards, overwrite, tasks, run, features, storage)
    if overwrite:
        remove_list(path, storage)
    return fingerprint


def remove_list(path: PathLike, storage: Storage | None) -> None:
    """Removes the list of what the dataset that was replaced had left out. The new one is published, come what may."""
    from penstock._make.notes import LIST

    with suppress(Error):
        if is_bucket(path):
            BucketFolder(str(path), storage).bucket.remove([LIST])
    with suppress(OSError):
        if not is_bucket(path):
            Path(local_path(path), LIST).unlink(missing_ok=True)


def commit_since(
    seen: BucketFolder | None,
    path: PathLike,
    tokenizer: Mapping[str, Any] | None,
    shards: int | Sequence[int] | None,
    overwrite: bool,
    tasks: Sequence[Any] | None,
    run: str | None,
    features: Any,
    storage: Storage | None,
) -> str:
    """commit(), which in a bucket replaces no dataset but the one that was `seen`; None: the one that it finds."""
    texts = None if tasks is None else [_json_text(task, "task") for task in tasks]
    text, table = _json_text(tokenizer, "tokenizer"), feature_table(features)
    numbers = None if shards is None or isinstance(shards, int) else _ascending(shards)
    count = shards if isinstance(shards, int) else None
    if is_bucket(path):
        folder = BucketFolder(str(path), storage)
        wanted = count if numbers is None else numbers
        return _bucket_publish.commit(folder, text, wanted, overwrite, texts, table, Scratch, seen)
    refuse_storage(path, storage)
    return _native.commit(local_path(path), text, count, overwrite, texts, run, table, numbers)


def _ascending(shards: Sequence[int]) -> list[int]:
    numbers = [_count(each, "shards") for each in shards]
    if any(b <= a for a, b in pairwise(numbers)):
        raise InvalidArgumentError(f"shards={numbers!r:.200}: give the numbers in order, each once")
    return numbers


def remove_shards(
    path: PathLike,
    numbers: Iterable[int],
    *,
    overwrite: bool = False,
    run: str | None = None,
    storage: Storage | None = None,
) -> None:
    """Removes finished shards that are not published.

    Args:
        path: the dataset's folder, or its address in a bucket.
        numbers: of the shards.
        overwrite: of the dataset that is to replace the published one, which stays.
        run: name of the run that removes them.
        storage: how a bucket is reached.

    Raises:
        InvalidArgumentError: A dataset is published and `overwrite` is not given, or a writer is at work.
        NotFoundError: A shard is not there.
    """
    if is_bucket(path):
        return BucketFolder(str(path), storage).remove_shards(numbers, overwrite)
    refuse_storage(path, storage)
    return _native.remove_shards(local_path(path), list(numbers), overwrite, run)


def combine(
    inputs: Iterable[PathLike],
    out: PathLike,
    *,
    resume: bool = False,
    overwrite: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> str:
    """One dataset of the shards of several, in order, without re-encoding: files are hard-linked, reflinked or copied.

    Args:
        inputs: the datasets' folders.
        out: the new dataset's folder.
        resume: keep the finished shards that a run left that was killed, where they are the same.
        overwrite: replace a dataset that is there, once the new one is whole, and what such a run left.
        progress: called with (bytes done, bytes in all) now and then; may raise to stop, which leaves nothing new.

    Returns:
        The fingerprint: that of opening the inputs as one.

    Raises:
        InvalidArgumentError: Mode, layout, fields, codec or tokenizer differ, or something is at `out`.
        IoError: Something cannot be written; the message says if the dataset is published.
    """
    if isinstance(inputs, (str, os.PathLike)):
        raise InvalidArgumentError(f"inputs {str(inputs)!r}: a list of datasets is wanted")
    given = as_paths(inputs)
    for each in given:
        refuse_address(
            each,
            "datasets are combined on this machine alone: copy it here first, or leave them where they are and open "
            "them as one, penstock.open(first, second)",
        )
    refuse_address(out, f"datasets are combined on this machine alone: {_COPY}")
    paths = [local_path(each) for each in given]
    for path in paths:
        refuse_foreign(path, "it can be opened as one with others of its kind, but not combined on disk")
    return _native.combine(paths, local_path(out), resume, overwrite, progress)


def convert(path: PathLike, out: PathLike, layout: str, *, overwrite: bool = False) -> str:
    """The dataset in the other layout, "compact" or "ids", at `out`.

    Args:
        path: the dataset's folder.
        out: the new dataset's folder.
        layout: "compact" or "ids".
        overwrite: replace a dataset that is there, once the new one is whole, and what a run left that was killed.

    Returns:
        The fingerprint, which stays.

    Raises:
        InvalidArgumentError: It has this layout or none, or an empty document cannot be expressed in it.
        CorruptionError: Its bytes are not what its manifest says.
    """
    refuse_address(path, "a layout is converted on this machine alone: copy the dataset here first")
    refuse_address(out, f"a layout is converted on this machine alone: {_COPY}")
    one_of("layout", layout, ("compact", "ids"))
    text = local_path(path)
    refuse_foreign(text, "it has no layout of spans to be converted")
    return _native.convert(text, local_path(out), layout, overwrite)


def verify(
    path: PathLike, progress: Callable[[int, int], None] | None = None, *, storage: Storage | None = None
) -> _native.Report:
    """Reads all of a dataset and names everything that is not as its manifest says.

    Args:
        path: the dataset's folder, or its address.
        progress: called with (bytes done, bytes in all) now and then; may raise to stop.
        storage: how an address is reached.

    Returns:
        Report: true if nothing is wrong; `problems` has a text for each thing that is, with file and byte.
            `notices` names folders that are no part of the dataset, with what to do; they are no problem.

    Raises:
        NotFoundError: No dataset.
        InvalidArgumentError: Files of another format, which have no check values.
    """
    if isinstance(path, str) and is_address(path):
        return _verify_address(path, progress, storage)
    refuse_storage(path, storage)
    text = local_path(path)
    refuse_foreign(
        text,
        "nothing is wrong with it, but it has no checksums to be verified with; `penstock info` checks its size",
    )
    return _native.verify(text, progress)


def _verify_address(url: str, progress: Callable[[int, int], None] | None, storage: Storage | None) -> _native.Report:
    addresses = addresses_of(url, storage)
    if len(addresses) > 1:
        raise InvalidArgumentError(f"{addresses[0].path}, {addresses[1].path}, …: verify one at a time")
    report = _native.verify(addresses[0].path, progress, stores_of(addresses)[0])
    if scheme_of(url) in WRITABLE:
        with suppress(OSError):  # who may read need not be one who may list
            report.notices = BucketFolder(url, storage).notices()
    return report


def refuse_storage(path: Any, storage: Storage | None, scratch: PathLike | None = None) -> None:
    """Refuses what is only for buckets.

    Raises:
        InvalidArgumentError: It is given for a path of this machine.
    """
    for name, value in (("storage", storage), ("scratch", scratch)):
        if value is not None:
            raise InvalidArgumentError(
                f"{name}=…: {str(path)!r:.200} is a path of this machine, no address of a bucket"
            )
