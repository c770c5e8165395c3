"""A dataset whose observations lie on the disk in a shuffled order."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock import _native
from penstock._base.arguments import index
from penstock._base.errors import PUBLISHED, CorruptionError, Error, InvalidArgumentError, IoError, NotFoundError
from penstock._base.words import counted
from penstock._make.bucket_look import BucketLook
from penstock._make.combining import is_native
from penstock._make.executors import Here, executor_of, is_far
from penstock._make.folder import Folder
from penstock._make.folders import folder_of
from penstock._make.run import Run
from penstock._make.shard_uploads import ShardUploads
from penstock._make.shuffle_recipe import ShuffleRecipe
from penstock._make.stored import Stored, stored
from penstock._places.paths import PathLike, local_path
from penstock._places.storage import Storage

if TYPE_CHECKING:
    from penstock._make.pools import Executor

_NOT_OURS = "it has no checksums; penstock import makes a dataset of it"


def shuffle(
    path: PathLike,
    out: PathLike,
    *,
    seed: int,
    window: int | None = None,
    documents: bool = False,
    memory: int = 1 << 30,
    scratch: PathLike | None = None,
    shard_size: int = 1 << 30,
    workers: int | Executor = 1,
    resume: bool = False,
    overwrite: bool = False,
    progress: Callable[[int, int], None] | None = None,
    storage: Storage | None = None,
    uploading: Callable[[int, int], None] | None = None,
) -> str:
    """Writes the dataset again with its windows or documents in a shuffled order.

    Observation i of the result is observation `Permutation(n, seed)[i]` of the input. Windows keep their spans: each
    document's piece with its entry, so a document that windows cut becomes several; the records past the last window
    come last. The bytes do not depend on `memory` and `workers`. Finished shards stay after an error or
    Ctrl-C, for `resume`.

    Args:
        path: the dataset's folder, or its address: of the layout "compact", a token stream or opaque documents. What
            lies at an address is first brought whole to this machine: to `scratch`, else beside `out`, or of a bucket
            to the folder of temporary files.
        out: the new dataset's folder, or its address in a bucket: s3://, gs:// or az://. A shard is uploaded while the
            next ones are made.
        seed: of the permutation, 0 to 2^64 - 1.
        window: shuffle windows of this many records; or
        documents: shuffle documents. Exactly one of them.
        memory: bytes to work in, beside 8 MiB for files; at least 64 KiB. Of each worker, if there are several.
        scratch: folder of the scratch file, which takes as much room as what is shuffled; None: `out`. It has no name
            and is gone when the process ends, however that ends. For a bucket also where shards are until they are
            uploaded, three at most; None: the folder of temporary files. Several workers put files aside in a folder
            instead, which is removed in the end; nodes of a cluster must share it.
        shard_size: bytes of records and entries after which a shard ends, between two observations.
        workers: processes; 1: this one alone. Or an executor, such as penstock.ray.Cluster.
        resume: keep the finished shards of an earlier run with the same input, seed, window and shard size.
        overwrite: replace a published dataset, which stays as it is until the new one is whole.
        progress: called with (bytes done, bytes in all) now and then; may raise to stop.
        storage: how addresses are reached.
        uploading: called with (bytes sent, bytes to be sent) now and then while it waits for uploads; may raise to
            stop.

    Returns:
        The fingerprint.

    Raises:
        InvalidArgumentError: No such observations, too little memory (it says how much is needed), another layout,
            something is at `out`, someone else has published there.
        CorruptionError: A checksum or a digest of the input is wrong.
        IoError: It cannot be read, written or uploaded; the disk is full.
        RuntimeError: A worker process was killed; finished shards are kept.

    Examples:
        >>> import os, tempfile, penstock
        >>> folder = tempfile.mkdtemp()
        >>> with penstock.Writer(os.path.join(folder, "a"), fields={"token": "u2"}, metadata="json") as writer:
        ...     for number in range(10):
        ...         writer.append(token=[number] * 3, metadata=number)
        >>> _ = penstock.shuffle(os.path.join(folder, "a"), os.path.join(folder, "b"), seed=1, documents=True)
        >>> view = penstock.open(os.path.join(folder, "b")).documents()
        >>> permutation = penstock.Permutation(10, seed=1)
        >>> [view[i].spans[0].metadata for i in range(10)] == [permutation[i] for i in range(10)]
        True
    """
    if (window is None) == (not documents):
        raise InvalidArgumentError("what is shuffled: give window= or documents=True, one of them")
    executor = executor_of(workers)
    folder = folder_of(out, storage, scratch, inputs=[path], puts_aside=True)
    if is_far(executor) and scratch is None and not is_native(folder, Here(), [path]):
        raise InvalidArgumentError(
            "the nodes of a cluster read the input, and put aside what they shuffle, where all of them see it: name "
            "such a folder with scratch (--scratch)"
        )
    given: dict[str, Any] = {
        "seed": index("seed", seed),
        "window": None if window is None else index("window", window, 1),
        "memory": index("memory", memory),
        "shard_bytes": index("shard_size", shard_size, 1),
        "progress": progress,
    }
    with _brought(stored(path, storage, _NOT_OURS), folder, scratch, progress) as text:
        if executor != Here() or (resume and _has_gaps(folder, overwrite)):
            return _in_tasks(text, folder, given, executor, bool(resume), bool(overwrite))
        with _told_at_the_end(folder, overwrite):
            if not folder.is_here:
                return _Upload(folder.path, storage, scratch, resume, overwrite, uploading).run(text, given)
            return _native.shuffle(
                text,
                folder.path,
                scratch="" if scratch is None else local_path(scratch),
                resume=bool(resume),
                overwrite=bool(overwrite),
                **given,
            )


def _brought(
    source: Stored, folder: Folder, scratch: PathLike | None, tell: Callable[[int, int], None] | None
) -> AbstractContextManager[str]:
    """The input on this machine."""
    done = total = 0

    def passed(count: int) -> None:
        nonlocal done, total
        total = total or sum(each.bytes for each in source.shards)
        done += count
        if tell is not None:
            tell(done, total)

    return source.at_hand(folder.beside if scratch is None else scratch, passed)


def _has_gaps(folder: Folder, overwrite: bool) -> bool:
    """True if finished shards follow an unfinished one, as workers leave them: one process makes them in order."""
    try:
        there = folder.finished(overwrite)
    except NotFoundError:
        return False
    return {each.number for each in there} != set(range(len(there)))


def _in_tasks(
    path: str,
    folder: Folder,
    given: dict[str, Any],
    executor: Executor,
    resume: bool,
    overwrite: bool,
) -> str:
    if is_far(executor):  # on other machines, where the working directory is another
        path = str(Path(path).absolute())
    recipe = ShuffleRecipe({"path": path, **{name: each for name, each in given.items() if name != "progress"}})
    run = Run(recipe, folder, executor, resume=resume, overwrite=overwrite, progress=given["progress"])
    return run.make().fingerprint


@contextmanager
def _told_at_the_end(folder: Folder, overwrite: bool) -> Iterator[None]:
    """Lets what ends a shuffle in one process say what is kept and how to go on."""
    before = folder.version()
    try:
        yield
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"interrupted: {_left_behind(folder, overwrite, before)}") from None
    except IoError as error:
        if PUBLISHED in str(error):
            raise
        raise IoError(error.errno, f"{error}; {_left_behind(folder, overwrite, before)}", error.filename) from error
    except CorruptionError as error:
        raise CorruptionError(f"{error}; {_left_behind(folder, overwrite, before)}") from error


def _left_behind(folder: Folder, overwrite: bool, before: Any) -> str:
    try:
        if folder.version() != before:
            return PUBLISHED
        kept = len(folder.finished(overwrite, now=True, is_impatient=True))
    except Error:
        kept = 0
    if not kept:
        return "nothing was published and nothing is kept"
    shards = f"{counted(kept, 'finished shard')} {'is' if kept == 1 else 'are'} kept"
    return f"nothing was published; {shards}: go on with --resume{' --overwrite' if overwrite else ''}"


class _Upload:
    """A shuffle into a bucket: what is finished there, and where shards go."""

    def __init__(
        self,
        url: str,
        storage: Storage | None,
        scratch: PathLike | None,
        resume: bool,
        overwrite: bool,
        uploading: Callable[[int, int], None] | None,
    ) -> None:
        """Looks at what is there.

        Raises:
            InvalidArgumentError: Something is, and neither `resume` nor `overwrite` says what to do.
        """
        self._folder = BucketLook(url, storage)
        self._scratch = scratch
        self._uploading = uploading
        there = self._folder.unpublished()
        self._is_result = self._folder.is_published and not overwrite  # or it is refused
        if self._is_result and not resume:
            self._folder.refuse_published()
        if there and not (resume or overwrite):
            raise InvalidArgumentError(
                f"{self._folder.url}: an unfinished dataset: {counted(len(there), 'finished shard')} of a run that did "
                "not end: go on with resume (--resume), or begin anew with overwrite (--overwrite)"
            )
        if there and not resume:
            self._folder.remove_shards({each.number for each in there}, overwrite)
            self._folder.look()
        self._kept = self._folder.finished(overwrite) if resume else []

    def run(self, path: str, given: dict[str, Any]) -> str:
        shards = [(each.name, each.text) for each in self._kept]
        with ShardUploads(self._folder, self._scratch, shards=shards) as uploads:
            elsewhere = (
                self._folder.url,
                [each.text for each in self._kept],
                self._is_result,
                lambda number: uploads.begin(number, self._uploading),
            )
            fingerprint = _native.shuffle(
                path,
                uploads.path,
                scratch=str(uploads.scratch),
                resume=False,
                overwrite=False,
                elsewhere=elsewhere,
                **given,
            )
            uploads.wait(tell=self._uploading)
            if not self._is_result:
                uploads.publish()
            return fingerprint
