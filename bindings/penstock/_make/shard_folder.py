"""A dataset's folder while shards of tasks are made in it: what an earlier run left, what is kept, the publishing."""

from __future__ import annotations

import errno
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from penstock._base.errors import PUBLISHED
from penstock._base.words import NO_MEMORY, counted
from penstock._make.errors import TooManySkippedError, UsageError, WorkerError
from penstock._make.folder import Folder, ShardInfo
from penstock._make.notes import LIST
from penstock._make.publishing import publication_of

if TYPE_CHECKING:
    from penstock._make.pools import Pool

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT)


class ShardFolder:
    """A dataset's folder while workers make shards of tasks in it: what is there, what is kept, the publishing.

    Attributes:
        folder: where the shards go.
        path: of the folder, or its address in a bucket.
        run: name of the run that all its writers belong to.
        replaces: whether a published dataset is there, to be replaced.
        waits_for: waits for a shard that is being synced.
        has_list: whether this run put a list of skipped documents there; else one that is there goes at the publishing.
        goes_on: how to go on with what is kept; None: with the options of commands.
    """

    def __init__(
        self,
        folder: Folder,
        *,
        resume: bool = False,
        overwrite: bool = False,
        run: str | None = None,
        clean: bool = False,
    ) -> None:
        """Holds the folder for this run until `close`, and looks at what is there; writes nothing yet.

        Args:
            folder: Where the shards go.
            resume: Keep finished shards whose task is the same.
            overwrite: Replace what is there: a published dataset when the new one is published, finished shards of a
                run that did not end when the first shard is begun (with `resume`: go on with them).
            run: Name of the run; None: one of its own.
            clean: Remove what other runs left unfinished.

        Raises:
            UsageError: Something is there, and neither `resume` nor `overwrite` says what to do.
            penstock.InvalidArgumentError: Another run is at work in the folder; this process is a worker that imports a
                script without a guard.
        """
        from penstock import _native

        if "multiprocessing.process" in sys.modules:
            from penstock._make.workers import refuse_in_workers_import  # which imports multiprocessing

            refuse_in_workers_import()
        self.folder = folder
        self.path = folder.path
        self.run = _native.unique_run() if run is None else run
        self.has_list = False
        self.goes_on: str | None = None
        self.waits_for: Callable[[], None] = lambda: None
        folder.hold(self.run)
        try:
            self._look(resume=resume, overwrite=overwrite)
            if clean:
                folder.clean(self.run)
        except BaseException:
            self.close()
            raise

    def end_workers(self, pool: Pool) -> None:
        """Kills the workers of this run, and removes what they left unfinished."""
        is_under_way = pool.pending()
        pool.close()
        if is_under_way:
            self.folder.remove_dead()
        self.clean_after()

    def clean_after(self) -> None:
        """Removes what writers of this run left unfinished, which are known to have ended. Raises nothing."""
        self.folder.clean_after(self.run, self.replaces)

    def _there(self) -> list[ShardInfo]:
        """Finished shards, as they are now. Does not wait long for a bucket."""
        return self.folder.finished(self.replaces, now=True, is_impatient=True)

    def _look(self, *, resume: bool, overwrite: bool) -> None:
        path = self.path
        self._is_done = False
        self._before = self.folder.version()
        self._published = self.folder.is_published
        self.replaces = self._published and overwrite
        self._tasks: dict[int, Any] = {}
        self._finished: dict[int, ShardInfo] = {}
        self._stale: set[int] = set()
        if self._published and not (resume or overwrite):
            raise UsageError(f"{path} holds a dataset already: replace it with --overwrite, or choose another --out")
        self._finished = {shard.number: shard for shard in self.folder.finished(self.replaces)}
        if self._finished and not (resume or overwrite):
            raise UsageError(
                f"{path} holds {counted(len(self._finished), 'finished shard')} of a run that did not end:"
                " go on with --resume, or start anew with --overwrite"
            )
        self._useless = [] if resume else list(self._finished)  # to be removed when the first shard is begun
        self._stale.update(self._useless)

    @property
    def stays(self) -> bool:
        """True if a published dataset is there and is not to be replaced: the run can only find it to be the same."""
        return self._published and not self.replaces

    @property
    def any_before(self) -> bool:
        """True if finished shards were there when the run began."""
        return bool(self._finished)

    def made_with(self, options: Any) -> int:
        """How many finished shards there are that may be kept and were made with these options, and maybe more.

        `options` None: with any.
        """
        tasks = [shard.task for number, shard in self._finished.items() if number not in self._stale]
        if not isinstance(options, dict):
            return len(tasks)
        return sum(isinstance(task, dict) and options.items() <= task.get("options", {}).items() for task in tasks)

    def any_finished(self) -> bool:
        """True if a finished shard is there that is not published, or if that cannot be known."""
        from penstock._base.errors import Error, NotFoundError

        if self._is_published():
            return False
        try:
            return bool(self._there())
        except NotFoundError:
            return False
        except Error:
            return True

    def may_keep(self, number: int, options: Any) -> bool:
        """True if shard `number` is there and was made with these options (None: any), of whatever input."""
        if number not in self._finished or number in self._stale:
            return False
        task = self._finished[number].task
        return options is None or (isinstance(task, dict) and bool(task.get("options") == options))

    def of_other_options(self, options: Mapping[str, Any]) -> tuple[int, list[str]]:
        """How many shards are there that `may_keep` refuses for their options, and the names of those that differ."""
        count, names = 0, set[str]()
        for number, shard in self._finished.items():
            mine = shard.task.get("options") if isinstance(shard.task, dict) else None
            if number not in self._stale and isinstance(mine, dict) and mine != options:
                count += 1
                names.update(name for name in {*mine, *options} if mine.get(name) != options.get(name))
        return count, sorted(names)

    def finished(self, number: int) -> ShardInfo:
        """A shard that `may_keep`."""
        return self._finished[number]

    def drop(self, number: int) -> None:
        """Shard `number` is not kept: it is replaced when it is made."""
        self._stale.add(number)

    def drop_all(self) -> None:
        """No finished shard is kept: all are removed when the first one is begun."""
        self._stale.update(self._finished)
        self._useless = list(self._finished)

    def clear(self) -> None:
        """Removes the finished shards of which none is kept."""
        if self._useless and (self.replaces or not self._published):
            self._remove(self._useless)
            self._useless = []

    def make_room(self, number: int) -> bool:
        """Removes what is in the place of shard `number`, which is to be made now; whether anything was.

        Raises:
            UsageError: A published dataset is there, and it is not to be replaced.
        """
        if self._published and not self.replaces:
            self._refuse_to_change()
        is_there = bool(self._useless) or number in self._finished
        self.clear()
        if number in self._finished:
            self._remove([number])
        return is_there

    def made(self, number: int, task: Any) -> None:
        """Notes what a shard is made of that is kept, finished, or soon is."""
        self._tasks[number] = task

    def publish(self, shards: int, tokenizer: Any = None, features: Any = None) -> str:
        """Publishes the dataset of the first `shards` shards, all of which are written or kept; the fingerprint."""
        self.waits_for()
        if not (self.has_list or self.stays) and LIST in self.folder.notes():
            self.folder.remove_notes([LIST])
        too_many = [number for number in self._finished if number >= shards]
        if self.replaces or not self._published:
            if too_many:
                self._remove(too_many)
            tasks = [self._tasks[number] for number in range(shards)]
            fingerprint = self.folder.publish(
                publication_of(tokenizer, shards, self.replaces, tasks, self.run, features)
            )
            self._is_done = True
            return fingerprint
        if too_many:
            self._refuse_to_change()
        return self.folder.fingerprint()  # of what stays

    def _is_published(self) -> bool:
        """True behind the commit, which may have failed or been interrupted after the rename."""
        from penstock._base.errors import Error

        with suppress(Error):
            self._is_done = self._is_done or self.folder.version() != self._before
        return self._is_done

    def left_behind(self) -> str:
        """The shards that an unfinished run leaves, and how to go on. Waits for the shard that is being synced."""
        from penstock._base.errors import Error

        with suppress(Exception):  # the error that ended the run is the one to tell
            self.waits_for()
        if self._is_published():
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
        return f"{stays}; {shards}: {self.goes_on or f'go on with {options}'}"

    @contextmanager
    def told_at_the_end(self) -> Iterator[None]:
        """Lets what ends the run say what is kept and how to go on. The folder may be closed inside.

        Raises:
            KeyboardInterrupt, MemoryError, WorkerError, TooManySkippedError, penstock.IoError: As inside, with these
                words.
        """
        from penstock._base.errors import IoError

        try:
            yield
        except KeyboardInterrupt:
            raise KeyboardInterrupt(f"interrupted: {self.left_behind()}") from None
        except MemoryError as error:
            raise MemoryError(f"{str(error) or NO_MEMORY}: {self.left_behind()}") from error
        except WorkerError as error:
            raise WorkerError(f"{error}: {self.left_behind()}") from error
        except TooManySkippedError as error:
            raise TooManySkippedError(f"{error}; {self.left_behind()}") from error
        except IoError as error:  # of the output, which may be full or lost for a while: inputs have other errors
            room = "make room; " if error.errno in _NO_ROOM else ""
            if PUBLISHED in str(error):
                raise
            raise IoError(error.errno, f"{error}: {room}{self.left_behind()}", error.filename) from error

    def remove_made(self, options: Any = None) -> None:
        """Removes finished shards that are of no use: those made with these options (None: any)."""
        self.waits_for()
        there = [] if self.stays else self._there()
        numbers = [
            each.number
            for each in there
            if options is None or (isinstance(each.task, dict) and each.task.get("options") == options)
        ]
        self.folder.remove(numbers, self.replaces, self.run)

    def close(self) -> None:
        """Lets the folder go. Finished shards stay. May be called twice."""
        self.folder.close()

    def _remove(self, numbers: list[int]) -> None:
        self.waits_for()  # else the shard before this one still holds the folder's lock
        self.folder.remove(numbers, self.replaces, self.run)
        for number in numbers:
            del self._finished[number]

    def _refuse_to_change(self) -> None:
        raise UsageError(
            f"{self.path} holds a dataset made of other input or options: replace it with --overwrite,"
            " or choose another --out"
        )
