"""Recipes: the seam between a source of data and the run that makes shards of it."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from penstock._base.errors import InvalidArgumentError
from penstock._base.words import excerpt
from penstock._make.place import Made, Numbered, Place

if TYPE_CHECKING:
    from penstock._make.folder import Folder
    from penstock._make.shard_folder import ShardFolder
    from penstock._make.writer import Writer


class Workshop(Protocol):
    """The run that makes a recipe, as the recipe sees it in the run's own process.

    Attributes:
        folder: where the dataset goes.
        shards: the run's view of it.
    """

    folder: Folder
    shards: ShardFolder

    def map(self, items: Iterable[Any], count: int | None = None) -> Iterator[Any]:
        """The workers' answers (`BaseRecipe.look`) to the items, in order; `count` of them, if that is known."""

    def aside(self, what: str) -> AbstractContextManager[Path]:
        """A folder that all workers see, for what is put aside until it is left."""

    @property
    def is_far(self) -> bool:
        """True if workers may be on other machines."""

    @property
    def is_fed(self) -> bool:
        """True if this process reads the source and workers make no shards."""

    @property
    def started(self) -> int:
        """How many workers there are."""

    def expect(self, count: int) -> None:
        """So much more is to be done than tasks count."""

    def passed(self, count: int) -> None:
        """So much more is done."""


class BaseRecipe(ABC):
    """A source as a run knows it. Users derive from `penstock.Recipe`, which documents the first methods.

    Attributes:
        fields: of a record, as of `penstock.Writer`; the next three likewise.
    """

    fields: Any = None
    metadata: Any = "boundaries"
    columns: Any = None
    layout: str = "compact"

    # ---- as of penstock.Recipe

    @abstractmethod
    def plan(self) -> Iterable[Any]:
        """The tasks, in the order of their shards."""

    @abstractmethod
    def make(self, task: Any, writer: Writer) -> Any:
        """In a worker: appends all documents of a task."""

    def identity(self) -> Any:
        """Options that a kept shard must have been made with, as JSON; None: descriptions hold them."""
        return {}

    def files(self) -> Sequence[str]:
        """Paths of this machine that tasks read."""
        return ()

    def finish(self, results: Sequence[Made]) -> Mapping[str, Any]:
        """Further keys of the manifest; results are in the order of tasks."""
        return {}

    def size(self, task: Any) -> int:
        """The task's share of `progress`."""
        return 1

    def place(self, task: Any) -> str:
        """Where a task begins, for messages."""
        return excerpt(repr(task))

    def identify(self, task: Any) -> Any:
        """A JSON value that only this task has."""
        return task

    # ---- what a run asks beside

    def describe(self, number: int, task: Any) -> Any:
        """The task in shard.json, as JSON, with `identity` as its "options" unless that is None.

        None where only `make` knows; it then calls `writer.set_task`.

        Raises:
            InvalidArgumentError: What tells the task is no JSON.
        """
        description = {"version": 1, "number": number, "task": self.identify(task), "options": self.identity()}
        try:
            return json.loads(json.dumps(description, allow_nan=False))  # as it is read again
        except (TypeError, ValueError) as error:
            raise InvalidArgumentError(
                f"task {number:,}, {excerpt(repr(task))}: {error}: a task must be JSON, or identify() must say "
                "what tells one from others"
            ) from None

    # ---- for a source that must be looked at before tasks or descriptions are known

    compares: bool = False
    """True if only `see`, which reads a task's input, tells whether a finished shard was made of it."""

    files_decide: bool = False
    """True if nothing is kept unless `files` are known to be unchanged, since descriptions hold samples only."""

    goes_on: str | None = None
    """How to go on with a run that did not end; None: with `resume`."""

    def for_thread(self) -> BaseRecipe:
        """Itself, or what each thread but the first of several needs of its own; called there, before `begin`."""
        return self

    def begin(self) -> None:  # noqa: B027 - most have nothing to do
        """Called once in each worker, before all else."""

    def prepare(self, run: Workshop) -> None:  # noqa: B027
        """Called before `plan`, here: may have workers `look` at things, by `run.map`."""

    def look(self, item: Any) -> Any:
        """In a worker: what `run.map` asked for."""
        raise NotImplementedError

    def place_of(self, item: Any) -> str:
        """The item's name, for messages."""
        return excerpt(repr(item))

    def see(self, each: Numbered) -> Any:  # noqa: B027
        """In a worker: what of a task's input decides the bytes."""

    def is_made_of(self, each: Numbered, seen: Any, found: Any) -> bool:
        """True if a shard with the description `found` was made of this very task, for which `see` gave `seen`."""
        return bool(found == self.describe(each.number, each.task))

    def refusal(self, each: Numbered, path: str) -> InvalidArgumentError | None:
        """The error where a finished shard was made of another input; None: it is made again."""
        return InvalidArgumentError(
            f"{self.place(each.task)}: shard {each.number} of {path} was made of other input: go on with that, or "
            "start anew with --overwrite and without --resume"
        )

    @contextmanager
    def comparing(self, run: Workshop, there: Sequence[Numbered]) -> Iterator[Iterable[Numbered]]:
        """Around the look at finished shards: what workers `see`."""
        yield there

    @contextmanager
    def making(self, run: Workshop, waiting: Sequence[Numbered]) -> Iterator[Iterable[Sequence[Numbered]]]:
        """Around the making of shards: what a worker does at once, one task, or several that are made together."""
        yield ([each] for each in waiting)

    def took(self, made: Made) -> Any:
        """Called here for each shard, those that are kept first, then in order; what `finish` gets as its value."""
        return made.value

    def published(self) -> None:  # noqa: B027
        """Called when the dataset is there."""

    def gave_up(self, run: Workshop, error: BaseException) -> None:  # noqa: B027
        """Called when an error ended the run, whose workers have ended too; may raise penstock.Error."""

    def writer_options(self, task: Any) -> dict[str, Any]:
        """In a worker: keyword arguments of the `Writer` of a task's shard."""
        names = ("fields", "metadata", "columns", "layout")
        return {name: getattr(self, name) for name in names}

    def make_all(self, together: Sequence[Numbered], place: Place) -> list[Made]:
        """In a worker: makes the shards of tasks that belong together."""
        return [
            place.write(number, self.describe(number, task), self.writer_options(task), partial(self.make, task))
            for number, task in together
        ]
