"""A dataset's folder while shards of tasks are made in it: what an earlier run left, what is kept, the publishing."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock._base.errors import PUBLISHED
from penstock._base.words import counted
from penstock._make.errors import TooManySkippedError, UsageError, WorkerError
from penstock._make.notes import LIST
from penstock._places.scratch import remove_dead

if TYPE_CHECKING:
    from penstock import _native
    from penstock._make.bucket_folder import BucketFolder
    from penstock._make.workers import Pool
    from penstock._make.writer import ShardInfo
    from penstock._places.paths import PathLike
    from penstock._places.storage import Storage

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT)


def refuse_file(out: str) -> None:
    """Says that a file is where a new dataset is to be made, or above it.

    Raises:
        UsageError: One is.
        penstock.IoError: What is there cannot be looked at.
    """
    from penstock._places.paths import looking_at

    with looking_at(out):
        for path in (Path(out), *Path(out).parents):
            if path.exists():
                if not path.is_dir():
                    raise UsageError(f"{path} is a file: choose another --out")
                return


def manifest_stamp(out: str) -> tuple[int, int] | None:
    """What tells the published manifest of a folder of this machine from another one; None: there is none.

    Raises:
        penstock.IoError: It cannot be looked at.
    """
    from penstock._make.bucket_folder import is_bucket
    from penstock._places.paths import looking_at

    if is_bucket(out):
        return None
    with suppress(FileNotFoundError, NotADirectoryError), looking_at(out):
        found = (Path(out) / "dataset.json").stat()
        return found.st_ino, found.st_mtime_ns
    return None


def write_beside(path: Path, data: bytes) -> None:
    """Writes a small file whole, or not at all.

    Raises:
        penstock.IoError: It cannot be written.
    """
    from penstock._base.errors import IoError

    partial = path.with_name(f".{path.name}.partial")
    try:
        with partial.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    except OSError as error:
        with suppress(OSError):
            partial.unlink(missing_ok=True)
        raise IoError(error.errno, f"{path}: {error.strerror}", str(path)) from error


class ShardFolder:
    """A dataset's folder while workers make shards of tasks in it: what is there, what is kept, the publishing.

    Attributes:
        path: of the folder, or its address in a bucket.
        run: name of the run that all its writers belong to.
        replaces: whether a published dataset is there, to be replaced.
        has_list: whether this run put a list of skipped documents there; else one that is there goes at the publishing.
    """

    def __init__(
        self,
        path: str,
        *,
        tokenizer: dict[str, Any] | None = None,
        resume: bool = False,
        overwrite: bool = False,
        run: str | None = None,
        clean: bool = False,
        storage: Storage | None = None,
    ) -> None:
        """Holds the folder for this run until `close`, and looks at what is there; writes nothing yet.

        Args:
            path: The dataset's folder.
            tokenizer: What the manifest says of it.
            resume: Keep finished shards whose task is the same.
            overwrite: Replace what is there: a published dataset when the new one is published, finished shards of a
                run that did not end when the first shard is begun (with `resume`: go on with them).
            run: Name of the run; None: one of its own.
            clean: Remove what other runs left unfinished.
            storage: How a bucket is reached, which nobody holds: a second run is refused when it publishes.

        Raises:
            UsageError: Something is there, and neither `resume` nor `overwrite` says what to do.
            penstock.InvalidArgumentError: Another run is at work in the folder; this process is a worker that imports a
                script without a guard.
        """
        from penstock import _native
        from penstock._make.bucket_folder import BucketFolder, is_bucket

        if "multiprocessing.process" in sys.modules:
            from penstock._make.workers import refuse_in_workers_import  # which imports multiprocessing

            refuse_in_workers_import()
        self.run = _native.unique_run() if run is None else run
        self.has_list = False
        self._storage = storage
        self._bucket: BucketFolder | None = None
        self._held: _native.Run | None = None
        if is_bucket(path):
            self._bucket = BucketFolder(path, storage)
        else:
            refuse_file(path)
            self._held = _native.Run(path, self.run)
        try:
            self._look(path, tokenizer, resume=resume, overwrite=overwrite)
            if clean:
                self.clean()
        except BaseException:
            ShardFolder.close(self)  # what is derived of it is not made yet
            raise

    def clean(self) -> None:
        """Removes what is unfinished; its writers are known to have ended.

        Raises:
            penstock.Error: It cannot be removed.
        """
        from penstock import _native

        if self._bucket is None:
            _native.clean(self.path, True, self.run)
        else:
            self._bucket.clean()

    def clean_after(self) -> None:
        """Removes what writers of this run left unfinished, which are known to have ended. Raises nothing.

        In a bucket it stays: a restart of this run has the same folders, and may be finishing them.
        """
        from penstock import _native
        from penstock._base.errors import Error

        if self._bucket is None:
            with suppress(Error):  # what ended the run is the error to tell
                _native.clean(self.path, self.replaces, self.run)

    def end_workers(self, pool: Pool, scratch: PathLike | None) -> None:
        """Kills the workers of this run, and removes what they left unfinished, here and in `scratch`."""
        is_under_way = pool.pending()
        pool.close()
        if is_under_way:
            remove_dead(scratch)
        self.clean_after()

    def read_note(self, name: str) -> bytes | None:
        """A small file beside the shards, which no dataset is made of; None: there is none.

        Raises:
            OSError: It cannot be read.
        """
        if self._bucket is not None:
            found = self._bucket.bucket.get(name)
            return None if found is None else found[0]
        file = Path(self.path) / name
        return file.read_bytes() if file.exists() else None

    def write_note(self, name: str, data: bytes) -> None:
        """Writes it, over what is there.

        Raises:
            OSError: It cannot be written.
        """
        if self._bucket is None:
            write_beside(Path(self.path) / name, data)
        else:
            self._bucket.bucket.put(name, data)

    def remove_note(self, name: str) -> None:
        """Removes it if it is there. In a bucket that does not answer it stays; nobody takes it for a part of it."""
        self.remove_notes([name])

    def remove_notes(self, names: Sequence[str]) -> None:
        """The same of several."""
        from penstock._base.errors import Error

        if self._bucket is None:
            for name in names:
                (Path(self.path) / name).unlink(missing_ok=True)
        elif names:
            with suppress(Error):
                self._bucket.impatient().bucket.remove(names)

    def notes(self) -> set[str]:
        """Names of files beside the shards; in a bucket those that were there when the run began."""
        if self._bucket is not None:
            return {name for name in self._bucket.sizes if "/" not in name}
        with suppress(FileNotFoundError), os.scandir(self.path) as there:
            return {each.name for each in there if each.is_file()}
        return set()

    def _there(self) -> list[ShardInfo]:
        """Finished shards, as they are now. Does not wait long for a bucket."""
        from penstock._make.writer import finished_shards, shard_infos

        if self._bucket is None:
            return finished_shards(self.path, overwrite=self.replaces)
        return shard_infos(each.shard for each in self._bucket.impatient().finished(self.replaces))

    def _look(self, path: str, tokenizer: dict[str, Any] | None, *, resume: bool, overwrite: bool) -> None:
        from penstock._make.writer import finished_shards

        self.path = path
        bucket = self._bucket
        self._is_done = False
        self._before = manifest_stamp(path)
        self._published = bucket.is_published if bucket else self._before is not None
        self.replaces = self._published and overwrite
        self._tasks: dict[int, dict[str, Any]] = {}
        self._tokenizer = tokenizer
        self._finished: dict[int, ShardInfo] = {}
        self._stale: set[int] = set()
        if self._published and not (resume or overwrite):
            raise UsageError(f"{path} holds a dataset already: replace it with --overwrite, or choose another --out")
        finished = finished_shards(path, overwrite=self.replaces, storage=self._storage)
        self._finished = {shard.number: shard for shard in finished}
        if self._finished and not (resume or overwrite):
            raise UsageError(
                f"{path} holds {counted(len(self._finished), 'finished shard')} of a run that did not end:"
                " go on with --resume, or start anew with --overwrite"
            )
        self._useless = [] if resume else list(self._finished)  # to be removed when the first shard is begun
        self._stale.update(self._useless)

    @property
    def stays(self) -> bool:
        """Whether a published dataset is there and is not to be replaced: it can only be found to be the same."""
        return self._published and not self.replaces

    def made_with(self, options: dict[str, Any]) -> int:
        """How many finished shards there were that may be kept and were made with these options, and maybe more."""
        tasks = [shard.task for number, shard in self._finished.items() if number not in self._stale]
        return sum(isinstance(task, dict) and options.items() <= task.get("options", {}).items() for task in tasks)

    def any_finished(self) -> bool:
        """Whether any finished shard is there now that is not published."""
        from penstock._base.errors import Error

        with suppress(Error):
            return bool(self._there())
        return False

    def has(self, number: int) -> bool:
        """Whether shard `number` is there, finished, and not to be removed."""
        return number in self._finished and number not in self._stale

    def may_keep(self, number: int, options: dict[str, Any]) -> bool:
        """Whether shard `number` is there and was made with the same options; of what input, `keep` will say."""
        shard = self._finished.get(number)
        if shard is None or number in self._stale or not isinstance(shard.task, dict):
            return False
        return bool(shard.task.get("options") == options)

    def keep(self, number: int, task: dict[str, Any]) -> bool:
        """Whether shard `number` was made of this very task; else it is replaced when it is begun."""
        if self._finished[number].task == task:
            self._tasks[number] = task
            return True
        self._stale.add(number)
        return False

    def task_of(self, number: int) -> dict[str, Any]:
        """The description of the task that finished shard `number` was made of."""
        task = self._finished[number].task
        return task if isinstance(task, dict) else {}

    def kept_tokens(self, number: int) -> int:
        """Tokens of a shard that is kept."""
        return self._finished[number].records

    def kept_documents(self, number: int) -> int:
        """Documents of a shard that is kept; 0 of a token stream."""
        return self._finished[number].spans

    def make_room(self, number: int) -> None:
        """Removes what is in the place of shard `number`, which is to be made now.

        Raises:
            UsageError: A published dataset is there, and it is not to be replaced.
        """
        if self._published and not self.replaces:
            self._refuse_to_change()
        if self._useless:
            self._remove(self._useless)
            self._useless = []
        elif number in self._finished:
            self._remove([number])

    def made(self, number: int, task: dict[str, Any]) -> None:
        """Notes the task of a shard that is finished, or soon is."""
        self._tasks[number] = task

    def publish(self, shards: int, features: Any = None) -> None:
        """Publishes the dataset of the first `shards` shards, all of which are written or kept, with its features."""
        from penstock._make.writer import commit_since

        self._wait()
        if not (self.has_list or self.stays) and LIST in self.notes():
            self.remove_note(LIST)
        too_many = [number for number in self._finished if number >= shards]
        if self.replaces or not self._published:
            if too_many:
                self._remove(too_many)
            tasks = [self._tasks[number] for number in range(shards)]
            commit_since(
                self._bucket,
                self.path,
                self._tokenizer,
                shards,
                self.replaces,
                tasks,
                self.run,
                features,
                self._storage,
            )
            self._is_done = True
        elif too_many:
            self._refuse_to_change()

    def left_behind(self) -> str:
        """What a run leaves that ends in the middle, and how to go on. Waits for the shard that is being synced."""
        from penstock._base.errors import Error

        with suppress(Exception):  # the error that ended the run is the one to tell
            self._wait()
        with suppress(Error):  # the commit itself may have failed after the rename
            self._is_done = self._is_done or manifest_stamp(self.path) != self._before
        if self._is_done:
            return PUBLISHED
        if self.stays:
            return "the dataset that is there stays as it is"
        kept = 0
        with suppress(Error):
            there = self._there()
            kept = sum(each.number not in self._stale or self._tasks.get(each.number) == each.task for each in there)
        stays = "the old dataset stays" if self.replaces else "nothing was published"
        if not kept:
            return f"{stays}; no shard was finished: start again"
        shards = f"{counted(kept, 'finished shard')} {'is' if kept == 1 else 'are'} kept"
        options = "--resume --overwrite" if self.replaces else "--resume"
        return f"{stays}; {shards}: go on with {options}"

    @contextmanager
    def told_at_the_end(self) -> Iterator[None]:
        """Lets what ends the run say what is kept and how to go on. The folder may be closed inside.

        Raises:
            KeyboardInterrupt, WorkerError, TooManySkippedError, penstock.IoError: As inside, with these words.
        """
        from penstock._base.errors import IoError

        try:
            yield
        except KeyboardInterrupt:
            raise KeyboardInterrupt(f"interrupted: {self.left_behind()}") from None
        except WorkerError as error:
            raise WorkerError(f"{error}: {self.left_behind()}") from error
        except TooManySkippedError as error:
            raise TooManySkippedError(f"{error}; {self.left_behind()}") from error
        except IoError as error:  # of the output, which may be full or lost for a while: inputs have other errors
            room = "make room; " if error.errno in _NO_ROOM else ""
            if PUBLISHED in str(error):
                raise
            raise IoError(error.errno, f"{error}: {room}{self.left_behind()}", error.filename) from error

    def remove_made(self) -> None:
        """Removes the finished shards of this run, which are of no use."""
        from penstock._make.writer import remove_shards

        self._wait()
        numbers = [] if self.stays else [each.number for each in self._there()]
        remove_shards(self.path, numbers, overwrite=self.replaces, run=self.run, storage=self._storage)

    def close(self) -> None:
        """Lets the folder go. Finished shards stay. May be called twice."""
        if self._held is not None:
            self._held.close()

    def dataset_bytes(self) -> int:
        """Bytes of all files, side files included."""
        if self._bucket is not None:
            return sum(self._bucket.bucket.sizes().values())
        return sum(path.stat().st_size for path in Path(self.path).rglob("*") if path.is_file())

    def _remove(self, numbers: list[int]) -> None:
        from penstock._make.writer import remove_shards

        self._wait()  # else the shard before this one still holds the folder's lock
        remove_shards(self.path, numbers, overwrite=self.replaces, run=self.run, storage=self._storage)
        for number in numbers:
            del self._finished[number]

    def _refuse_to_change(self) -> None:
        raise UsageError(
            f"{self.path} holds a dataset made of other input or options: replace it with --overwrite,"
            " or choose another --out"
        )

    def _wait(self) -> None:
        """Waits for a shard that is being synced."""
