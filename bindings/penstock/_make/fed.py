"""A run whose tasks this process feeds: it reads the source once, workers answer to items, it writes the shards."""

from __future__ import annotations

from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Generator
from concurrent import futures
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from typing import TYPE_CHECKING, Any, NamedTuple

from penstock._make.base_recipe import BaseRecipe
from penstock._make.place import Made
from penstock._make.run import Run, Written
from penstock._make.shard_work import LookWork
from penstock._make.threads import starting

if TYPE_CHECKING:
    from penstock._make.shard_folder import ShardFolder
    from penstock._make.writer import Writer

_LOOK = 0.2  # seconds between two looks at an upload


class Item(NamedTuple):
    """Some documents of one task, which follow one another.

    Attributes:
        number: of the task.
        documents: what workers get.
        bytes: what they count.
        task: the whole task, where this item is its last.
    """

    number: int
    documents: Any
    bytes: int
    task: Any = None


class FedRecipe(BaseRecipe):
    """A source that is read by one process, in order, and perhaps only once; workers `look` at its items."""

    @abstractmethod
    def feed(self, run: FedRun) -> Generator[Item, None, None]:
        """The items of all tasks that are made, in order; of the others it tells `run.keep`."""

    @abstractmethod
    def append(self, item: Item, answer: Any, writer: Writer) -> None:
        """Appends what a worker answered to the writer of the item's shard."""

    @abstractmethod
    def describe_fed(self, item: Item) -> Any:
        """The description for shard.json of the task whose last item was appended."""

    def observe(self) -> None:
        """Called after every item that was read or appended."""


class FedRun(Run):
    """Makes a dataset of a recipe that is fed. One thread.

    Attributes:
        uploading: told of the bytes sent and to be sent, while it waits for a bucket.
    """

    _recipe: FedRecipe
    uploading: Callable[[int, int], None] | None = None
    is_fed = True
    _is_noted = False

    def check(self) -> None:
        """Looks whether all workers are alive. Raises WorkerError."""
        if self._pool is not None:
            self._pool.check()

    def keep(self, made: Made) -> None:
        """The shard of a task is there."""
        self.shards.made(made.number, made.task)
        self._results.append(made._replace(value=self._recipe.took(made)))

    def _make(self) -> Written:
        recipe = self._recipe
        self._results: list[Made] = []
        recipe.prepare(self)
        sink = _Sink(self.shards, recipe, self.uploading)
        read = deque[Item]()
        try:
            with closing(self._fed(read)) as documents:  # what reads them may have threads
                for answer in self.map(documents):
                    item = read.popleft()
                    self._write_notes()
                    recipe.append(item, answer, sink.writer(item.number))
                    if item.task is not None:
                        made = sink.finish(recipe.describe_fed(item))
                        self._results.append(made._replace(value=recipe.took(made)))
                    recipe.observe()
            return self._publish(sorted(self._results, key=lambda made: made.number))
        except BaseException as error:
            self._end_workers()  # before an upload is waited for
            if isinstance(error, KeyboardInterrupt):
                sink.stop_uploading()
            raise
        finally:
            sink.close()

    def _write_notes(self) -> None:
        """Before the first shard is made."""
        if self.notes and not self._is_noted and not self.shards.stays:
            self.folder.make()
            self.shards.clear()  # of which these notes are not true
            for each in self.notes:
                each.write(self.folder)
            self._is_noted = True

    def _fed(self, read: deque[Item]) -> Generator[Any, None, None]:
        with closing(self._recipe.feed(self)) as items:
            for item in items:
                read.append(item)
                yield item.documents
                self._recipe.observe()

    def _work(self) -> LookWork:
        return LookWork(self._recipe)

    def _end_workers(self) -> None:
        pool, self._pool = self._pool, None
        if pool is not None:
            pool.close()  # they write nothing


class _Sink:
    """Writes one shard at a time while the one before is synced. One thread at a time."""

    def __init__(self, shards: ShardFolder, recipe: BaseRecipe, uploading: Callable[[int, int], None] | None) -> None:
        """Begins nothing yet."""
        self._shards = shards
        self._recipe = recipe
        self._uploading = uploading
        self._writer: Writer | None = None
        self._number = -1
        self._ending: Writer | None = None  # whose shard is being synced, or was last
        self._syncing: Future[None] | None = None
        self._executor = ThreadPoolExecutor(1, "penstock-sync")
        shards.waits_for = self._wait

    def writer(self, number: int) -> Writer:
        """The writer of shard `number`; shards come in order."""
        if self._writer is None:
            from penstock._make.writer import Writer

            self._shards.make_room(number)
            self._number = number
            self._writer = Writer(
                self._shards.folder,
                **self._recipe.writer_options(None),
                overwrite=self._shards.replaces,
                run=self._shards.run,
                shard=number,
            )
        return self._writer

    def finish(self, task: Any) -> Made:
        """Ends the shard; it is synced while the next one begins."""
        writer = self._writer
        assert writer is not None
        self._wait()  # may raise, as what follows may: `close` then gives up this shard
        writer.set_task(task)
        with starting():
            self._syncing = self._executor.submit(writer.commit)
        self._writer, self._ending = None, writer
        self._shards.made(self._number, task)
        return Made(self._number, task, writer.records, writer.documents)

    def stop_uploading(self) -> None:
        """Ends the upload of a shard that is under way, and removes what of it is in the bucket.

        It waits a few seconds for the request under way, whatever the server does.
        """
        if self._ending is not None and self._ending.is_uploading:
            self._ending.abort()

    def close(self) -> None:
        """Gives up what is not finished. Finished shards stay."""
        writer, self._writer = self._writer, None
        self._executor.shutdown(wait=True)
        if writer is not None:
            writer.abort()
        if self._ending is not None and self._syncing is not None and self._syncing.exception() is not None:
            self._ending.abort()  # else it holds the folder's lock until it is collected

    def _wait(self) -> None:
        if self._syncing is not None:
            ending = self._ending
            while self._uploading is not None and ending and ending.is_uploading and not self._syncing.done():
                futures.wait([self._syncing], _LOOK)
                self._uploading(*ending.uploaded)
            self._syncing.result()
            self._syncing = None
