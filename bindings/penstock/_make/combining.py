"""Datasets of the shards of others: several as one, and the other layout."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from penstock import _native
from penstock._base.arguments import one_of
from penstock._base.errors import CorruptionError, InvalidArgumentError
from penstock._data.open import refuse_foreign
from penstock._make.executors import Here, executor_of, is_far
from penstock._make.folder import Folder
from penstock._make.folders import folder_of
from penstock._make.run import Run
from penstock._make.shardwise import Convert, ShardRecipe, tasks_of
from penstock._make.stored import Stored, joined_tokenizer, stored
from penstock._places.paths import PathLike, as_paths, local_path
from penstock._places.remote import far_of
from penstock._places.storage import Storage

if TYPE_CHECKING:
    from penstock._make.pools import Executor

_NOT_COMBINED = "it can be opened as one with others of its kind, but not combined on disk"
_NOT_CONVERTED = "it has no layout of spans to be converted"


def combine(
    inputs: Iterable[PathLike],
    out: PathLike,
    *,
    resume: bool = False,
    overwrite: bool = False,
    progress: Callable[[int, int], None] | None = None,
    workers: int | Executor = 1,
    storage: Storage | None = None,
    scratch: PathLike | None = None,
) -> str:
    """One dataset of the shards of several, in order, without re-encoding.

    On this machine files are hard-linked, reflinked or copied. Into a bucket, shards that lie in the same bucket are
    copied on its server; all others pass through this machine, one at a time for each worker.

    Args:
        inputs: the datasets' folders, or their addresses.
        out: the new dataset's folder, or its address in a bucket: s3://, gs:// or az://.
        resume: keep the finished shards that a run left that was killed, where they are the same.
        overwrite: replace a dataset that is there, once the new one is whole, and what such a run left.
        progress: called with (bytes done, bytes in all) now and then; may raise to stop, which leaves nothing new on
            this machine, and finished shards where an address is given.
        workers: processes; 1: this one alone. Or an executor, such as penstock.ray.Cluster.
        storage: how addresses are reached.
        scratch: where shards are that pass through this machine; None: in the new dataset's folder, or that of
            temporary files.

    Returns:
        The fingerprint: that of opening the inputs as one.

    Raises:
        InvalidArgumentError: Mode, layout, fields, codec or tokenizer differ, or something is at `out`, or someone else
            has published there.
        IoError: Something cannot be read or written; the message says if the dataset is published.
    """
    if isinstance(inputs, (str, os.PathLike)):
        raise InvalidArgumentError(f"inputs {str(inputs)!r}: a list of datasets is wanted")
    given = as_paths(inputs)
    folder = folder_of(out, storage, scratch, inputs=given, puts_aside=True)
    executor = executor_of(workers)
    if is_native(folder, executor, given):
        paths = [local_path(each) for each in given]
        for path in paths:
            refuse_foreign(path, _NOT_COMBINED)
        return _native.combine(paths, folder.path, resume, overwrite, progress)
    if not given:
        raise InvalidArgumentError("combine: no datasets")
    sources = [stored(each, storage, _NOT_COMBINED) for each in given]
    said = {"tokenizer": joined_tokenizer(sources), "features": sources[0].dataset.features}
    if is_far(executor):
        sources = [each.absolute() for each in sources]
    recipe = ShardRecipe(sources, tasks_of(sources), said)
    return made(recipe, folder, executor, resume=resume, overwrite=overwrite, progress=progress)


def convert(
    path: PathLike,
    out: PathLike,
    layout: str,
    *,
    resume: bool = False,
    overwrite: bool = False,
    progress: Callable[[int, int], None] | None = None,
    workers: int | Executor = 1,
    storage: Storage | None = None,
    scratch: PathLike | None = None,
) -> str:
    """The dataset in the other layout, "compact" or "ids", at `out`. The bytes do not depend on `workers`.

    Shards of an address pass through this machine, one at a time for each worker.

    Args:
        path: the dataset's folder, or its address.
        out: the new dataset's folder, or its address in a bucket: s3://, gs:// or az://.
        layout: "compact" or "ids".
        resume: keep the finished shards of a run that did not end, where they are of this dataset.
        overwrite: replace a dataset that is there, once the new one is whole, and what a run left that was killed.
        progress: called with (bytes done, bytes in all) after each shard; may raise to stop.
        workers: processes; 1: this one alone. Or an executor, such as penstock.ray.Cluster.
        storage: how addresses are reached.
        scratch: where shards are that are being converted; None: in the new dataset's folder, or that of temporary
            files.

    Returns:
        The fingerprint, which stays.

    Raises:
        InvalidArgumentError: It has this layout or none, or an empty document cannot be expressed in it; someone else
            has published at `out`.
        CorruptionError: Its bytes are not what its manifest says.
        IoError: Something cannot be read or written; finished shards are kept if `resume` could keep them.
    """
    one_of("layout", layout, ("compact", "ids"))
    folder = folder_of(out, storage, scratch, inputs=[path], puts_aside=True)
    executor = executor_of(workers)
    if is_native(folder, executor, [path]) and not (resume or progress):
        text = local_path(path)
        refuse_foreign(text, _NOT_CONVERTED)
        return _native.convert(text, folder.path, layout, overwrite)
    source = stored(path, storage, _NOT_CONVERTED)
    _check_layout(source, layout)
    fingerprint, features = source.dataset.fingerprint, source.dataset.features
    said = {"tokenizer": source.tokenizer, "features": features}
    if is_far(executor):
        source = source.absolute()
    recipe = ShardRecipe([source], tasks_of([source]), said, Convert(layout))
    found = made(recipe, folder, executor, resume=resume, overwrite=overwrite, progress=progress)
    if found != fingerprint:
        raise CorruptionError(f"{folder.path}: fingerprint {found}, that of {source.path} is {fingerprint}")
    return found


def is_native(folder: Folder, executor: Executor, inputs: Iterable[Any] = ()) -> bool:
    """True if native code does all of it in this process: nothing lies at an address."""
    return folder.is_here and executor == Here() and not far_of(inputs)


def made(recipe: ShardRecipe, folder: Folder, executor: Executor, **options: Any) -> str:
    """Makes the dataset; its fingerprint."""
    return Run(recipe, folder, executor, **options).make().fingerprint


def _check_layout(source: Stored, layout: str) -> None:
    dataset = source.dataset
    if dataset.mode != "stream":
        raise InvalidArgumentError(f"{source.path}: mode {dataset.mode}: only streams with metadata have a layout")
    if dataset.layout == layout:
        raise InvalidArgumentError(f"{source.path}: its layout is {layout} already")
