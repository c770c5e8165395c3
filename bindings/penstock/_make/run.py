"""One run that makes a dataset of a recipe: what is kept, who makes the rest, and the publishing."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from penstock._base.errors import Error, InvalidArgumentError
from penstock._base.words import quoted
from penstock._make.base_recipe import BaseRecipe
from penstock._make.errors import InputError, UsageError
from penstock._make.executors import Here, is_far
from penstock._make.folder import Folder
from penstock._make.place import Made, Numbered, Place
from penstock._make.pools import results_of
from penstock._make.shard_folder import ShardFolder
from penstock._make.shard_work import LookWork, Make, See, ShardWork
from penstock._make.stamps import Stamps

if TYPE_CHECKING:
    from penstock._make.pools import Executor, Pool


class Note(Protocol):
    """A note beside the shards while a run is unfinished, which a run that goes on with it reads."""

    def write(self, folder: Folder) -> None:
        """Before a first shard is made."""

    def remove(self, folder: Folder) -> None:
        """Once the dataset is published, or nothing of it is finished."""


_SAID = ("tokenizer", "features")  # by Recipe.finish


@dataclass
class Written:
    """Counts of a dataset that a recipe made.

    Attributes:
        path: the dataset's folder or address.
        fingerprint: of the dataset.
        shards: of the dataset.
        kept_shards: those among them that an earlier run had made.
        documents: of the dataset; 0 of a token stream.
        records: of the dataset.
        seconds: that it took.
    """

    path: str
    fingerprint: str = ""
    shards: int = 0
    kept_shards: int = 0
    documents: int = 0
    records: int = 0
    seconds: float = 0.0


class Run:
    """Makes a dataset of a recipe, once. One thread.

    Attributes:
        folder: where the dataset goes.
        shards: this run's view of it, while the run goes on.
        notes: that are kept while it is unfinished.
    """

    shards: ShardFolder
    notes: Sequence[Note] = ()

    def __init__(
        self,
        recipe: BaseRecipe,
        folder: Folder,
        executor: Executor,
        *,
        resume: bool = False,
        overwrite: bool = False,
        run: str | None = None,
        clean: bool = False,
        progress: Callable[[int, int], None] | None = None,
    ) -> None:
        """Looks at nothing yet; `run` and `clean` as of `ShardFolder`, the others as of `Recipe.write`."""
        # On other machines the working directory is another.
        self.folder = folder.absolute() if is_far(executor) else folder
        self._recipe = recipe
        self._executor = executor
        self._holding: dict[str, Any] = {"resume": resume, "overwrite": overwrite, "run": run, "clean": clean}
        self._progress = progress
        self._stamps: Stamps | None = None
        self._pool: Pool | None = None
        self._here: Pool | None = None  # for what is not worth a pool
        self._bytes = self._total = 0

    def make(self) -> Written:
        """Makes the dataset.

        Raises:
            InvalidArgumentError: Something is there, or another run is at work; there is nothing to be written.
            InputError, penstock.Error, WorkerError: As the recipe and its workers.
        """
        try:
            files = self._recipe.files()
            self._stamps = Stamps(files) if files else None
            self.shards = ShardFolder(self.folder, **self._holding)
            self.shards.goes_on = self._recipe.goes_on
            with self.shards.told_at_the_end():
                try:
                    return self._make()
                except BaseException as error:
                    self._end_workers()
                    with suppress(Error):  # the error that ended the run is the one to tell
                        self._recipe.gave_up(self, error)
                    notes = self._notes()
                    if notes and not self.shards.any_finished():
                        for each in notes:
                            each.remove(self.folder)
                    raise
                finally:
                    self._end_workers()
                    self.shards.close()
        except UsageError as error:
            if isinstance(error, InputError):
                raise
            raise InvalidArgumentError(str(error)) from None

    def _notes(self) -> list[Note]:
        return [*([self._stamps] if self._stamps is not None else []), *self.notes]

    def map(self, items: Iterable[Any], count: int | None = None) -> Iterator[Any]:
        """The workers' answers to the items, in order; `count` of them, if that is known."""
        if self._pool is None and count in (0, 1) and not self.is_far:
            self._here = self._here or Here().pool(self._work())
            yield from results_of(self._here, items)
            return
        self._pool = self._pool or self._executor.pool(self._work())
        yield from results_of(self._pool, items)

    def aside(self, what: str) -> AbstractContextManager[Path]:
        """A folder that all workers see, for what is put aside until it is left."""
        return self.folder.aside(self.shards.run, what)

    @property
    def started(self) -> int:
        """How many workers there are."""
        return 1 if self._pool is None else self._pool.started

    is_fed = False

    @property
    def is_far(self) -> bool:
        """True if workers may be on other machines."""
        return is_far(self._executor)

    def _work(self) -> LookWork:
        return ShardWork(self._recipe, Place(self.folder, self.shards.run, self.shards.replaces))

    def _make(self) -> Written:
        recipe = self._recipe
        known = self._may_keep()
        recipe.prepare(self)
        tasks = [Numbered(number, task) for number, task in enumerate(recipe.plan())]
        if not tasks:
            raise InvalidArgumentError("there are no tasks: nothing was written")
        self._total += sum(recipe.size(each.task) for each in tasks)
        results: list[Made | None] = [None] * len(tasks)
        waiting = self._keep(tasks, results) if known else tasks
        gone = [each.number for each in waiting if self.shards.make_room(each.number)]
        if gone and not self.folder.is_live:
            self._end_workers()  # those that prepared know the bucket as it was, and would refuse to make these again
        if waiting:
            self._make_shards(waiting, results)
        return self._publish([each for each in results if each is not None])

    def _may_keep(self) -> bool:
        """True if finished shards may be kept.

        Raises:
            InvalidArgumentError: an input is another than when they were made.
        """
        if self.shards.stays:
            return True
        there = self.shards.made_with(self._identity())
        if not there or self._stamps is None:
            return bool(there)
        return self._stamps.check(self.folder, there) or not self._recipe.files_decide

    def _identity(self) -> Any:
        """The recipe's, as it is read again from a shard.json."""
        return json.loads(json.dumps(self._recipe.identity()))

    def _keep(self, tasks: list[Numbered], results: list[Made | None]) -> list[Numbered]:
        """Tasks whose shard is not there."""
        recipe, identity = self._recipe, self._identity()
        there = [each for each in tasks if self.shards.may_keep(each.number, identity)]
        numbers = {each.number for each in there}
        waiting = [each for each in tasks if each.number not in numbers]
        with recipe.comparing(self, there) as asked:
            seen = self.map(map(See, asked), len(there)) if recipe.compares else iter([None] * len(there))
            for each, value in zip(there, seen, strict=True):
                shard = self.shards.finished(each.number)
                if recipe.is_made_of(each, value, shard.task):
                    self.shards.made(each.number, shard.task)
                    made = Made(each.number, shard.task, shard.records, shard.spans, value, is_kept=True)
                    self._take(each, made, results)
                    continue
                refusal = recipe.refusal(each, self.folder.path)
                if refusal is not None:
                    raise refusal
                self.shards.drop(each.number)
                waiting.append(each)
        return sorted(waiting, key=lambda each: each.number)

    def _make_shards(self, waiting: list[Numbered], results: list[Made | None]) -> None:
        self.folder.make()
        for each in self._notes():
            each.write(self.folder)
        with self._recipe.making(self, waiting) as together:
            every = iter(waiting)
            try:
                for answer in self.map(map(Make, together), len(waiting)):
                    for made in answer:
                        self.shards.made(made.number, made.task)
                        self._take(next(every), made, results)
            except BaseException:
                self._end_workers()  # before what they read is removed
                raise
        if self._stamps is not None:
            self._stamps.check_unchanged()

    def _take(self, each: Numbered, made: Made, results: list[Made | None]) -> None:
        results[made.number] = made._replace(value=self._recipe.took(made))
        self.passed(self._recipe.size(each.task))

    def expect(self, count: int) -> None:
        """So much more is to be done than tasks count."""
        self._total += count

    def passed(self, count: int) -> None:
        """Tells `progress` that so much more is done."""
        self._bytes += count
        if self._progress is not None:
            self._progress(self._bytes, self._total)

    def _publish(self, results: list[Made]) -> Written:
        said = self._recipe.finish(results)
        if not isinstance(said, Mapping) or not set(said) <= set(_SAID):
            raise InvalidArgumentError(f"finish() gave {said!r:.200}: a dict is wanted of {quoted(_SAID)}, or none")
        fingerprint = self.shards.publish(len(results), said.get("tokenizer"), said.get("features"))
        for each in self._notes():
            each.remove(self.folder)
        self._recipe.published()
        return Written(
            self.folder.path,
            fingerprint,
            shards=len(results),
            kept_shards=sum(each.is_kept for each in results),
            documents=sum(each.documents for each in results),
            records=sum(each.records for each in results),
        )

    def _end_workers(self) -> None:
        pool, self._pool = self._pool, None
        if pool is not None:
            self.shards.end_workers(pool)
