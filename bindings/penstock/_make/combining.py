"""Datasets of the shards of others: several as one, the other layout, some of the documents."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from penstock import _native
from penstock._base.arguments import one_of
from penstock._base.errors import CorruptionError, Error, InvalidArgumentError
from penstock._data.anndata.together import check_notes
from penstock._data.open import open as open_dataset
from penstock._data.open import refuse_foreign
from penstock._make.chosen_shards import Chosen, chosen_tasks
from penstock._make.executors import Here, executor_of, is_far
from penstock._make.folder import Folder
from penstock._make.folders import folder_of
from penstock._make.run import Run
from penstock._make.shardwise import Change, Convert, ShardRecipe, TakenShard, tasks_of
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
        resume: keep the finished shards that a run left that was killed, where they are the same; do nothing if it had
            published.
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

    Warns:
        UserWarning: the imports that cells are of noted other uns or other forms of columns: the first's hold for all.
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
        _check_notes(paths)
        return _native.combine(paths, folder.path, resume, overwrite, progress)
    if not given:
        raise InvalidArgumentError("combine: no datasets")
    sources = [stored(each, storage, _NOT_COMBINED) for each in given]
    check_notes("combine", [each.dataset for each in sources])
    said = {"tokenizer": joined_tokenizer(sources), "features": sources[0].dataset.features}
    if is_far(executor):
        sources = [each.absolute() for each in sources]
    recipe = ShardRecipe(sources, tasks_of(sources), said)
    return made(recipe, folder, executor, resume=resume, overwrite=overwrite, progress=progress)


def _check_notes(paths: Sequence[str]) -> None:
    try:
        datasets = [open_dataset(each) for each in paths]
        with_features = [each for each in datasets if each.features is not None]
    except (Error, OSError):
        return  # the writer, which reads them next, says what is wrong
    check_notes("combine", with_features)


def convert(
    path: PathLike,
    out: PathLike,
    layout: str | None = None,
    *,
    where: str | None = None,
    without: npt.ArrayLike = (),
    resume: bool = False,
    overwrite: bool = False,
    progress: Callable[[int, int], None] | None = None,
    workers: int | Executor = 1,
    storage: Storage | None = None,
    scratch: PathLike | None = None,
) -> str:
    """The dataset in the other layout, or without some of its documents, at `out`.

    The bytes do not depend on `workers`. Shards of an address pass through this machine, one at a time for each worker.

    Args:
        path: the dataset's folder, or its address.
        out: the new dataset's folder, or its address in a bucket: s3://, gs:// or az://.
        layout: "compact" or "ids"; or
        where: a condition on columns, as `dataset.where` takes it: documents that it does not choose are left out. The
            others keep their order, metadata, columns and shard.
        without: numbers of documents that are left out, or a mask [documents]; without `layout`, as `where`.
        resume: keep the finished shards of a run that did not end, where they are of this dataset.
        overwrite: replace a dataset that is there, once the new one is whole, and what a run left that was killed.
        progress: called with (bytes done, bytes in all) after each shard; may raise to stop.
        workers: processes; 1: this one alone. Or an executor, such as penstock.ray.Cluster.
        storage: how addresses are reached.
        scratch: where shards are that are being converted; None: in the new dataset's folder, or that of temporary
            files.

    Returns:
        The fingerprint, which another layout does not change.

    Raises:
        InvalidArgumentError: It has this layout or none, or an empty document cannot be expressed in it; a condition
            or numbers that cannot be, or by which all documents or none are left out; someone else has published at
            `out`.
        CorruptionError: Its bytes are not what its manifest says.
        IoError: Something cannot be read or written; finished shards are kept if `resume` could keep them.

    Examples:
        >>> import os, penstock, tempfile
        >>> folder = tempfile.mkdtemp()
        >>> path, good = os.path.join(folder, "corpus"), os.path.join(folder, "good")
        >>> with penstock.Writer(path, {"token": "u2"}, columns={"score": "f4"}) as writer:
        ...     for score in (0.25, 0.75, 0.5):
        ...         writer.append(token=[1, 2, 3], columns={"score": score})
        >>> _ = penstock.convert(path, good, where="score >= 0.5")
        >>> penstock.open(good).columns["score"][:].tolist()
        [0.75, 0.5]
    """
    leaves_out = where is not None or np.size(without) > 0
    if (layout is None) != leaves_out:
        raise InvalidArgumentError("what is converted: give layout=; or where= or without=, to leave documents out")
    if layout is not None:
        one_of("layout", layout, ("compact", "ids"))
    folder = folder_of(out, storage, scratch, inputs=[path], puts_aside=True)
    executor = executor_of(workers)
    if layout is not None and is_native(folder, executor, [path]) and not (resume or progress):
        text = local_path(path)
        refuse_foreign(text, _NOT_CONVERTED)
        return _native.convert(text, folder.path, layout, overwrite)
    source = stored(path, storage, _NOT_CONVERTED)
    if layout is None:
        tasks: Sequence[TakenShard] = chosen_tasks(source, where, without)
        change: Change = Chosen()
    else:
        _check_layout(source, layout)
        tasks, change = tasks_of([source]), Convert(layout)
    fingerprint, features = source.dataset.fingerprint, source.dataset.features
    said = {"tokenizer": source.tokenizer, "features": features}
    if is_far(executor):
        source = source.absolute()
    recipe = ShardRecipe([source], tasks, said, change)
    found = made(recipe, folder, executor, resume=resume, overwrite=overwrite, progress=progress)
    if layout is not None and found != fingerprint:
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
