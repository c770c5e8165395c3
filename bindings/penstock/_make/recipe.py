"""What a dataset is made of: the seam between a source of data and the run that makes shards of it."""

from __future__ import annotations

import json
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from penstock._base.errors import InvalidArgumentError
from penstock._base.words import excerpt

if TYPE_CHECKING:
    from penstock._make.run import Run
    from penstock._make.shard_work import Place
    from penstock._make.workers import Executor
    from penstock._make.writer import Writer
    from penstock._places.paths import PathLike
    from penstock._places.storage import Storage


class Numbered(NamedTuple):
    """A task, and the number of the shard that it becomes."""

    number: int
    task: Any


class Made(NamedTuple):
    """A shard of a task.

    Attributes:
        number: of the shard.
        task: the task's description, as shard.json has it.
        records: of the shard.
        documents: of the shard; 0 of a token stream.
        value: what `Recipe.make` gave; of a shard that is kept what `Recipe.see` gave.
        is_kept: whether an earlier run had made it.
    """

    number: int
    task: Any
    records: int
    documents: int
    value: Any = None
    is_kept: bool = False


@dataclass
class Written:
    """What a recipe made.

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


class Recipe(ABC):
    """A source of your own: what a dataset is made of, in tasks, each of which becomes one shard.

    Say in `fields`, `metadata`, `columns` and `layout` what the dataset is like, as for `penstock.Writer`; cut the
    source into tasks in `plan`, and append the documents of one task in `make`. `write` then makes the dataset: on this
    process, on several, on a Ray cluster, into a folder or a bucket; what a run that did not end has finished is kept
    with `resume=True`. The bytes are the same on all of them, if `make` appends the same for the same task.

    The recipe is pickled for the workers, and so are tasks and what `make` gives. `make` may be called twice for one
    task, where a worker was lost; an exception in it ends the run, and finished shards stay.

    Attributes:
        fields: of a record, as of `penstock.Writer`.
        metadata: the codec of documents' metadata, as of `penstock.Writer`.
        columns: typed values of documents, as of `penstock.Writer`; None: there are none.
        layout: "compact" or "ids", as of `penstock.Writer`.

    Examples:
        >>> import os, penstock, tempfile
        >>> class Squares(penstock.Recipe):
        ...     fields = {"token": "u4"}
        ...     def plan(self):
        ...         return [10, 20]  # the first number of each shard
        ...     def make(self, task, writer):
        ...         for number in range(task, task + 3):
        ...             writer.append(token=[number, number * number])
        >>> path = os.path.join(tempfile.mkdtemp(), "squares")
        >>> written = Squares().write(path)
        >>> written.shards, written.documents, written.records
        (2, 6, 12)
        >>> penstock.open(path).documents()[3]["token"].tolist()
        [20, 400]
    """

    fields: Any = None
    metadata: Any = "boundaries"
    columns: Any = None
    layout: str = "compact"

    # ---- what a source of one's own says

    @abstractmethod
    def plan(self) -> Iterable[Any]:
        """The tasks, in the order of their shards: small values that pickle, as a path or a range of rows.

        They must follow from the source alone, so that a second run cuts the same ones.
        """

    @abstractmethod
    def make(self, task: Any, writer: Writer) -> Any:
        """Appends all documents of a task to the writer of its shard; what it gives goes to `finish`."""

    def identity(self) -> Any:
        """All that decides the bytes beside the tasks, as JSON: options, a version of the code that makes documents.

        Finished shards of a run whose identity differs are made again.
        """
        return {}

    def files(self) -> Sequence[str]:
        """Paths of this machine that tasks read: `resume` refuses those that are others than when shards were made."""
        return ()

    def finish(self, results: Sequence[Made]) -> Mapping[str, Any]:
        """What the manifest says besides: "tokenizer" and "features", as of `penstock.commit`. Shards are in order."""
        return {}

    def size(self, task: Any) -> int:
        """What the task counts in `progress`."""
        return 1

    def place(self, task: Any) -> str:
        """Where a task begins, for messages."""
        return excerpt(task if isinstance(task, str) else repr(task))

    def describe(self, number: int, task: Any) -> Any:
        """What shard.json says that the shard was made of, as JSON; two tasks that differ are described differently.

        None where only `make` knows; it then calls `writer.set_task`.

        Raises:
            InvalidArgumentError: The task or the identity is no JSON.
        """
        description = {"version": 1, "number": number, "task": task, "options": self.identity()}
        try:
            return json.loads(json.dumps(description, allow_nan=False))  # as it is read again
        except (TypeError, ValueError) as error:
            raise InvalidArgumentError(
                f"task {number:,}, {excerpt(repr(task))}: {error}: tasks and identity() must be JSON, or describe() "
                "must say what tells one from others"
            ) from None

    def write(
        self,
        out: PathLike,
        *,
        workers: int | Executor = 1,
        resume: bool = False,
        overwrite: bool = False,
        storage: Storage | None = None,
        scratch: PathLike | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> Written:
        """Makes the dataset.

        Args:
            out: its folder, or its address in a bucket: s3://, gs:// or az://.
            workers: processes; 1: this one alone. Or an executor, such as penstock.ray.Cluster.
            resume: keep the finished shards of a run that did not end and had the same identity and tasks.
            overwrite: replace a dataset that is there, once the new one is whole.
            storage: how a bucket is reached.
            scratch: where shards of a bucket are until they are uploaded; None: the folder of temporary files.
            progress: called with (done, in all) as shards are finished, by `size`; may raise to stop.

        Raises:
            InvalidArgumentError: There are no tasks; something is at `out`; a file or a finished shard is of another
                source; a task is no JSON.
            IoError: The dataset cannot be written; finished shards are kept.
            RuntimeError: A worker process was killed, or `make` raised something there that is no penstock.Error.
        """
        from penstock._make.folders import folder_of
        from penstock._make.run import Run, checked_workers  # which import what imports this

        begin = time.perf_counter()
        workers = checked_workers(workers)
        folder = folder_of(out, storage, scratch)
        if not isinstance(workers, int):
            folder = folder.absolute()
        run = Run(self, folder, workers, resume=resume, overwrite=overwrite, progress=progress)
        done = run.make()
        done.fingerprint = folder.fingerprint()
        done.seconds = time.perf_counter() - begin
        return done

    # ---- for a source that must be looked at before tasks or descriptions are known

    compares: bool = False
    """Whether `see` has to read a task's input before it is known if a finished shard is made of it."""

    files_decide: bool = False
    """Whether nothing is kept where it is not known that `files` are unchanged, as where descriptions tell samples."""

    def begin(self) -> None:  # noqa: B027 - most have nothing to do
        """Called once in each worker, before all else."""

    def prepare(self, run: Run) -> None:  # noqa: B027
        """Called before `plan`, here: may have workers `look` at things, by `run.map`."""

    def look(self, item: Any) -> Any:
        """In a worker: what `run.map` asked for."""
        raise NotImplementedError

    def place_of(self, item: Any) -> str:
        """What `look` looks at, for messages."""
        return excerpt(repr(item))

    def see(self, each: Numbered) -> Any:  # noqa: B027
        """In a worker: what of a task's input decides the bytes."""

    def is_made_of(self, each: Numbered, seen: Any, found: Any) -> bool:
        """Whether a shard whose description is `found` was made of this very task, of which `see` gave `seen`."""
        return bool(found == self.describe(each.number, each.task))

    def refusal(self, each: Numbered, path: str) -> InvalidArgumentError | None:
        """The error where a finished shard was made of another input; None: it is made again."""
        return InvalidArgumentError(
            f"{self.place(each.task)}: shard {each.number} of {path} was made of other input: go on with that, or "
            "start anew with --overwrite and without --resume"
        )

    @contextmanager
    def comparing(self, run: Run, there: Sequence[Numbered]) -> Iterator[Iterable[Numbered]]:
        """Around the look at finished shards: what workers `see`."""
        yield there

    @contextmanager
    def making(self, run: Run, waiting: Sequence[Numbered]) -> Iterator[Iterable[Sequence[Numbered]]]:
        """Around the making of shards: what a worker does at once, one task, or several that are made together."""
        yield ([each] for each in waiting)

    def took(self, made: Made) -> Any:
        """Called here for each shard, those that are kept first, then in order; what `finish` gets as its value."""
        return made.value

    def published(self) -> None:  # noqa: B027
        """Called when the dataset is there."""

    def writer_options(self, task: Any) -> dict[str, Any]:
        """In a worker: keyword arguments of the `Writer` of a task's shard."""
        names = ("fields", "metadata", "columns", "layout")
        return {name: getattr(self, name) for name in names}

    def make_all(self, together: Sequence[Numbered], place: Place) -> list[Made]:
        """In a worker: makes the shards of tasks that belong together."""
        return [place.write(self, each) for each in together]
