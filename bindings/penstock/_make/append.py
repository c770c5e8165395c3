"""Shards for a dataset that is there: those of other datasets, behind its own."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from penstock import _native
from penstock._base.errors import InvalidArgumentError
from penstock._data.anndata.together import check_notes
from penstock._data.open import refuse_foreign
from penstock._make.combining import is_native, made
from penstock._make.executors import Here, executor_of, is_far
from penstock._make.folders import folder_of, refuse_storage
from penstock._make.growing_folder import GrowingFolder
from penstock._make.shardwise import ShardRecipe, TakenShard, tasks_of
from penstock._make.stored import Stored, fingerprint_of, joined_tokenizer, stored
from penstock._places.paths import PathLike, as_paths, local_path
from penstock._places.remote import is_address, shown
from penstock._places.storage import Storage

if TYPE_CHECKING:
    from penstock._make.pools import Executor

_NOT_OURS = "it can be opened as one with others of its kind, but not appended on disk"


def append(
    path: PathLike,
    more: PathLike | Iterable[PathLike],
    progress: Callable[[int, int], None] | None = None,
    *,
    resume: bool = False,
    workers: int | Executor = 1,
    storage: Storage | None = None,
    scratch: PathLike | None = None,
) -> str:
    """Adds the shards of other datasets at the end of a dataset; those that are there keep their place and their names.

    Files are hard-linked, else reflinked or copied, and one rename publishes the longer dataset: whoever has it open
    reads on what was opened. The first shards have the fingerprint that the dataset had, so a `Loader` with
    on_mismatch="grown" takes its states.

    In a bucket, shards that lie in the same bucket are copied on its server, and all others pass through this machine;
    the manifest is replaced if nobody else did meanwhile. What a run left there that did not end, the same call goes on
    with.

    Args:
        path: the dataset's folder, or its address in a bucket: s3://, gs:// or az://.
        more: the folder or address of another dataset, or several, in this order; they stay as they are.
        progress: called with (shards done, shards in all); may raise to stop, which leaves the dataset as it was.
        resume: do nothing if the dataset ends with these shards already: for a command that may be run twice. Not of a
            dataset to itself, which may end so before.
        workers: processes that bring shards into a bucket; 1: this one alone. Or an executor, such as
            penstock.ray.Cluster. A folder of this machine gets all of this process.
        storage: how addresses are reached.
        scratch: where shards are that pass through this machine; None: that of temporary files. What comes from an
            address to a folder of this machine is there whole; None: beside that folder.

    Returns:
        The fingerprint, which is that of opening all of them as one.

    Raises:
        InvalidArgumentError: mode, layout, fields, codec, columns, features or tokenizer differ, `path` says its
            tokenizer and one of `more` does not, a writer is at work, someone else has published
            there, `path` is among `more` with resume=True. Nothing was published then.
        IoError: something cannot be read or written.

    Warns:
        UserWarning: as `combine`.

    Example:
        >>> import os, penstock, tempfile
        >>> folder = tempfile.mkdtemp()
        >>> corpus, more = os.path.join(folder, "corpus"), os.path.join(folder, "more")
        >>> for path, tokens in ((corpus, [1, 2, 3]), (more, [4, 5])):
        ...     with penstock.Writer(path, {"token": "u2"}, "boundaries") as writer:
        ...         writer.append(token=tokens)
        >>> before = penstock.open(corpus)
        >>> _ = penstock.append(corpus, more)
        >>> after = penstock.open(corpus)
        >>> len(before.shards), len(after.shards), after.windows(5)[0]["token"].tolist()
        (1, 2, [1, 2, 3, 4, 5])
        >>> after.select([0]).fingerprint == before.fingerprint
        True
    """
    executor = executor_of(workers)
    given = as_paths(more)
    if not given:
        raise InvalidArgumentError(f"append: no datasets to be added to {path!s}")
    if resume and any(_is_same(path, each) for each in given):
        raise InvalidArgumentError(
            f"append: {shown(os.fspath(path))} to itself with resume=True: nothing tells whether that was done before: "
            "leave resume out, or append a copy that penstock.combine makes"
        )
    folder = folder_of(path, storage, scratch, inputs=given, puts_aside=True)
    if not folder.is_here:
        return _in_bucket(path, given, progress, resume, executor, storage, scratch)
    refuse_foreign(folder.path, _NOT_OURS)
    sources = [stored(each, storage, _NOT_OURS) for each in given]
    target = stored(path, None, _NOT_OURS)
    check_notes("append", [target.dataset, *(each.dataset for each in sources)])
    if is_native(folder, Here(), given):
        refuse_storage(folder.path, None, scratch)
    elif _is_done(target, sources, resume):
        return target.dataset.fingerprint
    with ExitStack() as brought:
        above = folder.beside if scratch is None else scratch
        here = [brought.enter_context(each.at_hand(above, lambda count: None)) for each in sources]
        return _native.append(folder.path, here, bool(resume), progress)


def _is_same(one: PathLike, other: PathLike) -> bool:
    if is_address(one) or is_address(other):
        return str(one).rstrip("/") == str(other).rstrip("/")
    return Path(local_path(one)).resolve() == Path(local_path(other)).resolve()


def _is_done(target: Stored, sources: Sequence[Stored], resume: bool) -> bool:
    """True if `resume` is given and the dataset ends with all of these already.

    Raises:
        InvalidArgumentError: They cannot be part of it.
    """
    joined_tokenizer([target, *sources], appends=True)
    added = [shard for each in sources for shard in each.shards]
    if not resume or len(added) >= len(target.shards):
        return False
    return fingerprint_of(target.shards[-len(added) :]) == fingerprint_of(added)


def _in_bucket(
    path: PathLike,
    given: Sequence[PathLike],
    progress: Callable[[int, int], None] | None,
    resume: bool,
    executor: Executor,
    storage: Storage | None,
    scratch: PathLike | None,
) -> str:
    target, sources = stored(path, storage, _NOT_OURS), [stored(each, storage, _NOT_OURS) for each in given]
    if _is_done(target, sources, resume):
        return target.dataset.fingerprint
    check_notes("append", [target.dataset, *(each.dataset for each in sources)])
    said = {"tokenizer": joined_tokenizer([target, *sources], appends=True)}
    if is_far(executor):
        sources = [each.absolute() for each in sources]
    stay = [TakenShard(0, shard, stays=True) for shard in target.shards]
    tasks = [*stay, *(each._replace(source=each.source + 1) for each in tasks_of(sources))]
    recipe = ShardRecipe(
        [target, *sources], tasks, said, counts_shards=True, goes_on="the same again goes on with them"
    )
    folder = GrowingFolder(target.path, storage, scratch)
    return made(recipe, folder, executor, resume=True, overwrite=True, progress=progress)
