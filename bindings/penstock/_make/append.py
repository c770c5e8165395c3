"""Shards for a dataset that is there: those of other datasets, behind its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from penstock import _native
from penstock._base.errors import InvalidArgumentError
from penstock._data.open import refuse_foreign
from penstock._make.combining import made
from penstock._make.executors import executor_of, is_far
from penstock._make.folders import refuse_storage
from penstock._make.growing_folder import GrowingFolder
from penstock._make.joining import check_together, check_tokenizers, common_tokenizer, ends_with
from penstock._make.shardwise import ShardRecipe, TakenShard, tasks_of
from penstock._make.stored import Stored, stored, told_instead
from penstock._places.paths import PathLike, as_paths, local_path
from penstock._places.remote import is_address
from penstock._places.scratch import Scratch
from penstock._places.storage import Storage
from penstock._places.uploads import check_writable

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
        resume: do nothing if the dataset ends with these shards already: for a command that may be run twice.
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
            there. Nothing was published then.
        IoError: something cannot be read or written.

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
    if is_address(path):
        check_writable(path)
        return _in_bucket(path, given, progress, resume, executor, storage, scratch)
    text, far = local_path(path), [each for each in given if is_address(each)]
    if not far:
        refuse_storage(text, storage, scratch)
    refuse_foreign(text, _NOT_OURS)
    sources = [stored(each, storage, _NOT_OURS) for each in given]
    if not far:
        return _native.append(text, [each.path for each in sources], bool(resume), progress)
    target = Stored(text)
    _check([target, *sources])
    if resume and ends_with(target, [shard for each in sources for shard in each.shards]):
        return target.dataset.fingerprint
    with Scratch(Path(text).absolute().parent if scratch is None else scratch) as folder:
        here = []
        for number, each in enumerate(sources):
            if not each.is_here:
                each.bring_all(folder / str(number), lambda count: None)
            here.append(each.path if each.is_here else str(folder / str(number)))
        with told_instead({copy: each.path for copy, each in zip(here, sources, strict=True)}):
            return _native.append(text, here, bool(resume), progress)


def _check(inputs: Sequence[Stored]) -> None:
    check_together("append", inputs)
    check_tokenizers(inputs)
    common_tokenizer("append", inputs)


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
    _check([target, *sources])
    added = tasks_of(sources)
    if resume and ends_with(target, [each.shard for each in added]):
        return target.dataset.fingerprint
    said = {"tokenizer": common_tokenizer("append", [target, *sources])}
    if is_far(executor):
        sources = [each.absolute() for each in sources]
    stay = [TakenShard(0, shard, stays=True) for shard in target.shards]
    tasks = [*stay, *(each._replace(source=each.source + 1) for each in added)]
    recipe = ShardRecipe(
        [target, *sources], tasks, said, counts_shards=True, goes_on="the same again goes on with them"
    )
    folder = GrowingFolder(target.path, storage, scratch)
    return made(recipe, folder, executor, resume=True, overwrite=True, progress=progress)
