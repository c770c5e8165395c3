"""Columns for a dataset that is there: added, replaced, removed."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock import _native
from penstock._base.errors import InvalidArgumentError
from penstock._base.words import excerpt
from penstock._data import dtype as _dtype
from penstock._data.column_values import ColumnValues, column_types, infer, types_json
from penstock._data.metadata_columns import columns_of_metadata
from penstock._data.open import refuse_foreign
from penstock._make.combining import is_native, made
from penstock._make.executors import executor_of, is_far
from penstock._make.folder import Folder
from penstock._make.folders import folder_of
from penstock._make.notes import LIST
from penstock._make.shardwise import Annotate, ShardRecipe, tasks_of
from penstock._make.stored import Stored, stored
from penstock._places.paths import PathLike
from penstock._places.storage import Storage

if TYPE_CHECKING:
    from penstock._make.pools import Executor

_NOT_OURS = "columns are kept beside a dataset's own shards"


def annotate(
    path: PathLike,
    columns: Mapping[str, Any] | None = None,
    progress: Callable[[int, int], None] | None = None,
    *,
    from_metadata: Sequence[str] = (),
    workers: int | Executor = 1,
    storage: Storage | None = None,
    scratch: PathLike | None = None,
) -> str:
    """Adds columns to a dataset, replaces some, removes others; its records, its metadata and its fingerprint stay.

    So a job goes on from its state. Files are hard-linked into shards of the next generation, and one rename puts these
    in the place of the old ones: a process that has the dataset open must open it again. In a bucket each shard passes
    through this machine, and the manifest is replaced if nobody else did meanwhile; what a run left there that did not
    end, the same call goes on with.

    Args:
        path: the dataset's folder, or its address in a bucket: s3://, gs:// or az://.
        columns: by name: values [documents, trailing axes…], whose type the column gets; strings, or a pandas
            Categorical of strings or numbers (taken as their text), for a category, None where a document has none;
            None alone removes the column; None for `columns`: those of `from_metadata` alone.
        progress: called with (shards done, shards in all); may raise to stop, which leaves the dataset as it was.
        from_metadata: keys of the documents' metadata that become columns, as ["url", "score"]. The type follows from
            all values: a category of texts, bool, i8 or f8. Where some documents have none, numbers and booleans are f8
            with NaN. "score:f4" says a type; "year:category" makes texts of all values; "a.b" is the key b in a.
        workers: processes; 1: this one alone. Or an executor, such as penstock.ray.Cluster.
        storage: how a bucket is reached.
        scratch: where shards of a bucket are while they are annotated; None: that of temporary files.

    Returns:
        The fingerprint.

    Raises:
        InvalidArgumentError: another number of values, a type that no column has, no such column, no documents, a
            writer at work, someone else has published there meanwhile; a key that no metadata has, or whose values are
            of several kinds.
        IoError: it cannot be read or written.

    Examples:
        >>> import os, penstock, tempfile
        >>> path = os.path.join(tempfile.mkdtemp(), "corpus")
        >>> with penstock.Writer(path, {"token": "u2"}, "boundaries") as writer:
        ...     writer.append_batch(lengths=[2, 1], token=[1, 2, 3])
        >>> _ = penstock.annotate(path, {"language": ["en", "de"], "score": [0.5, 0.25]})
        >>> penstock.open(path).documents(columns=["score"])[1].columns["score"].item()
        0.25
        >>> with penstock.Writer(path, {"token": "u2"}, "json", overwrite=True) as writer:
        ...     writer.append(token=[1, 2], metadata={"lang": "en", "year": 2024})
        ...     writer.append(token=[3], metadata={"lang": "de"})
        >>> _ = penstock.annotate(path, from_metadata=["lang", "year:f4"])
        >>> len(penstock.open(path).where("lang = 'en' and year > 2020"))
        1
    """
    executor = executor_of(workers)
    folder = folder_of(path, storage, scratch)
    columns = {**({} if columns is None else columns)}
    if from_metadata:
        columns |= _of_metadata(path, from_metadata, columns, progress, storage)
    removed = [name for name, values in columns.items() if values is None]
    given = {name: values for name, values in columns.items() if values is not None}
    types = column_types({name: infer(name, values) for name, values in given.items()})
    packer = ColumnValues(types)
    added = []
    for number, each in enumerate(types):
        values = given[each.name]
        count = len(values)
        if each.is_category:
            array, names = packer.codes(number, values, count)
        else:
            names, array = [], np.ascontiguousarray(_dtype.fit(values, each.dtype, each.name, "document"))
        added.append((types_json([each]), names, each.declared is not None, array))
    if is_native(folder, executor):
        refuse_foreign(folder.path, _NOT_OURS)
        return _native.annotate(folder.path, added, removed, progress)
    source = stored(path, storage, _NOT_OURS)
    return _in_tasks(source, folder_of(source.path, storage, scratch), added, removed, progress, executor)


def _of_metadata(
    path: PathLike,
    keys: Sequence[str],
    given: Mapping[str, Any],
    progress: Callable[[int, int], None] | None,
    storage: Storage | None,
) -> dict[str, Any]:
    if isinstance(keys, str):
        raise InvalidArgumentError(f'from_metadata={keys!r:.80}: a list of names is wanted, such as ["url"]')
    dataset = stored(path, storage, _NOT_OURS).dataset
    shards = len(dataset.shards)

    def read(done: int, total: int) -> None:
        if progress is not None:
            progress(0, shards)  # which may raise to stop

    values = columns_of_metadata(dataset, keys, read)
    for name in values:
        if name in given:
            raise InvalidArgumentError(f"column {excerpt(name)}: its values are given, and it is in from_metadata=")
    return values


def _in_tasks(
    source: Stored,
    folder: Folder,
    added: Sequence[tuple[str, list[str], bool, Any]],
    removed: Sequence[str],
    progress: Callable[[int, int], None] | None,
    executor: Executor,
) -> str:
    if is_far(executor):
        source = source.absolute()
    _check(source, folder, [(json.loads(each[0])[0][0], each[3]) for each in added], removed)
    tasks, first = [], 0
    for each in tasks_of([source]):
        end = first + each.shard.entries
        tasks.append(each._replace(values=[array[first:end] for *_, array in added]))
        first = end
    recipe = ShardRecipe(
        [source],
        tasks,
        {"tokenizer": source.tokenizer, "features": source.dataset.features},
        Annotate([(types, names, declared) for types, names, declared, _ in added], removed),
        counts_shards=True,
        goes_on="the same again goes on with them",
    )
    return made(recipe, folder, executor, resume=True, overwrite=True, progress=progress)


def _check(source: Stored, folder: Folder, added: Sequence[tuple[str, Any]], removed: Sequence[str]) -> None:
    """The checks that native code makes of a whole dataset."""
    entries = sum(each.entries for each in source.shards)
    for name, array in added:
        if len(array) != entries:
            left_out = f": {LIST} lists those that `penstock write` left out" if folder.read_note(LIST) else ""
            raise InvalidArgumentError(
                f"{source.path}: column {excerpt(name)}: {len(array):,} values, the dataset has {entries:,} "
                f"documents{left_out}"
            )
    for name in removed:
        if name not in source.dataset.columns:
            raise InvalidArgumentError(f"{source.path}: there is no column {excerpt(name)} to be removed")
