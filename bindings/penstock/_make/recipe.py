"""`penstock.Recipe`: a source of one's own."""

from __future__ import annotations

import json
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from penstock._base.errors import InvalidArgumentError
from penstock._base.words import excerpt
from penstock._data import codecs
from penstock._data.column_values import column_types, types_json
from penstock._data.dtype import descr, record_dtype
from penstock._make.base_recipe import BaseRecipe
from penstock._make.executors import executor_of
from penstock._make.folders import folder_of
from penstock._make.python_words import said_in_python
from penstock._make.run import Run, Written

if TYPE_CHECKING:
    from penstock._make.place import Made
    from penstock._make.pools import Executor
    from penstock._make.writer import Writer
    from penstock._places.paths import PathLike
    from penstock._places.storage import Storage


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
        """Further keys of the manifest: "tokenizer" and "features", as of `penstock.commit`. Results are in order.

        A result's `value` is what `make` gave; None of a shard that was kept, or that an attempt finished whose worker
        was lost before it could say so.
        """
        return {}

    def size(self, task: Any) -> int:
        """The task's share of `progress`."""
        return 1

    def place(self, task: Any) -> str:
        """Where a task begins, for messages."""
        return excerpt(task if isinstance(task, str) else repr(task))

    def identify(self, task: Any) -> Any:
        """A JSON value for `shard.json` that only this task has, where the task itself is not JSON."""
        return task

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
            resume: keep the finished shards of a run that did not end and had the same identity, format and tasks.
            overwrite: replace a dataset that is there, once the new one is whole.
            storage: how a bucket is reached.
            scratch: where shards of a bucket are until they are uploaded; None: the folder of temporary files. Not for
                a folder of this machine.
            progress: called with (done, in all) as shards are finished, by `size`; may raise to stop.

        Raises:
            InvalidArgumentError: There are no tasks; something is at `out`; a file or a finished shard is of another
                source; a task is no JSON.
            IoError: The dataset cannot be written; finished shards are kept.
            RuntimeError: A worker process was killed, or `make` raised something there that is no penstock.Error.
        """
        begin = time.perf_counter()
        executor, folder = executor_of(workers), folder_of(out, storage, scratch)
        run = Run(_Source(self), folder, executor, resume=resume, overwrite=overwrite, progress=progress)
        with said_in_python():
            done = run.make()
        done.seconds = time.perf_counter() - begin
        return done


class _Source(BaseRecipe):
    """A user's recipe as a run knows it: names of the user's own meet none of the run's."""

    files_decide = True

    def __init__(self, recipe: Recipe) -> None:
        self._recipe = recipe

    def plan(self) -> Iterable[Any]:
        tasks = self._recipe.plan()
        if not isinstance(tasks, Iterable):
            raise InvalidArgumentError(f"plan() gave {tasks!r:.80}: a list of tasks is wanted, or another iterable")
        return tasks

    def make(self, task: Any, writer: Writer) -> Any:
        value = self._recipe.make(task, writer)
        if isinstance(value, Iterator):  # nothing of it has run
            raise InvalidArgumentError(
                f"make() gave {value!r:.80}: it has a yield, or returns an iterator: append documents to its writer"
            )
        return value

    def files(self) -> Sequence[str]:
        paths = self._recipe.files()
        if isinstance(paths, str):
            raise InvalidArgumentError(f"files() gave {paths!r:.80}: a list of paths is wanted")
        return paths

    def finish(self, results: Sequence[Made]) -> Mapping[str, Any]:
        return self._recipe.finish(results)

    def size(self, task: Any) -> int:
        return self._recipe.size(task)

    def place(self, task: Any) -> str:
        return self._recipe.place(task)

    def identify(self, task: Any) -> Any:
        return self._recipe.identify(task)

    def identity(self) -> Any:
        """The recipe's, and what else decides the bytes: the format."""
        recipe, codec = self._recipe, codecs.get(self._recipe.metadata)
        identity = recipe.identity()
        try:
            json.dumps(identity, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise InvalidArgumentError(f"identity() gave {identity!r:.200}, which is no JSON: {error}") from None
        return {
            "recipe": type(recipe).__qualname__,
            "identity": identity,
            "fields": None if recipe.fields is None else descr(record_dtype(recipe.fields)),
            "metadata": None if codec is None else json.loads(codec.to_json()),
            "columns": json.loads(types_json(column_types(recipe.columns))),
            "layout": recipe.layout,
        }

    def writer_options(self, task: Any) -> dict[str, Any]:
        return {name: getattr(self._recipe, name) for name in ("fields", "metadata", "columns", "layout")}
