"""The run of an import: look at the inputs, keep what an earlier run made of them, make the other shards, publish."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from penstock._base.errors import InvalidArgumentError
from penstock._data.anndata.opened import Input as Named
from penstock._from.cells.identity import Stamps
from penstock._from.tokens.cutting import Task
from penstock._from.tokens.plan import Plan
from penstock._from.tokens.work import Job, Working
from penstock._make.folder import Folder
from penstock._make.shard_folder import ShardFolder

if TYPE_CHECKING:
    from penstock._make.workers import Executor, Pool


@dataclass
class ImportedTokens:
    """What an import made.

    Attributes:
        path: the dataset's folder or address.
        documents: of the dataset; 0 of tokens without documents.
        records: of the dataset.
        shards: of the dataset.
        kept_shards: those among them that an earlier run had made.
        fields: of a record, with their types.
        codec: of documents' entries: "json", "boundaries" or None, tokens without documents.
        seconds: that it took.
        notes: what may be another result than was wanted.
    """

    path: str
    documents: int = 0
    records: int = 0
    shards: int = 0
    kept_shards: int = 0
    fields: dict[str, str] = field(default_factory=dict)
    codec: str | None = None
    seconds: float = 0.0
    notes: list[str] = field(default_factory=list)


class Run:
    """One import. One thread."""

    def __init__(
        self,
        plan: Plan,
        folder: Folder,
        workers: int | Executor,
        progress: Callable[[int, int], None] | None,
    ) -> None:
        """Writes nothing yet."""
        self._plan = plan
        self._folder = folder
        self._out = folder.path
        self._workers = workers
        self._progress = progress
        self._total = sum(task.bytes for task in plan.tasks)
        self._bytes = 0
        self._pool: Pool | None = None
        self._stamps = Stamps([Named(path, "") for path in plan.files])

    def run(self, resume: bool, overwrite: bool) -> ImportedTokens:
        """Imports everything."""
        shards = ShardFolder(self._folder, resume=resume, overwrite=overwrite)
        with shards.told_at_the_end():
            try:
                return self._write(shards)
            except BaseException:
                self._end_workers(shards)
                if not shards.any_finished():
                    self._stamps.remove(self._folder)
                raise
            finally:
                self._end_workers(shards)
                shards.close()

    def _write(self, shards: ShardFolder) -> ImportedTokens:
        plan = self._plan
        done = ImportedTokens(self._out, shards=len(plan.tasks), fields=plan.fields, codec=plan.codec)
        there = shards.made_with(plan.identity())
        if there and not shards.stays:
            self._stamps.check(self._folder, there)
        waiting = [task for task in plan.tasks if not self._keep(shards, task, done)]
        for task in waiting:
            shards.make_room(task.number)
        if waiting:
            self._folder.make()
            self._stamps.write(self._folder)
            self._make(shards, waiting, done)
            self._stamps.check_unchanged()
        shards.publish(len(plan.tasks))
        self._stamps.remove(self._folder)
        return done

    def _keep(self, shards: ShardFolder, task: Task, done: ImportedTokens) -> bool:
        """Whether its shard is there.

        Raises:
            InvalidArgumentError: a shard is there that was made of other input.
        """
        if not shards.may_keep(task.number, self._plan.identity()):
            return False
        if not shards.keep(task.number, self._plan.description(task)):
            raise InvalidArgumentError(
                f"{self._plan.inputs[task.runs[0].source].name}: shard {task.number} of {self._out} was made of other "
                "input: go on with that, or start anew with --overwrite and without --resume"
            )
        done.kept_shards += 1
        done.records += shards.kept_tokens(task.number)
        done.documents += shards.kept_documents(task.number)
        self._bytes += task.bytes
        return True

    def _make(self, shards: ShardFolder, tasks: list[Task], done: ImportedTokens) -> None:
        plan = self._plan
        work = Working(plan.fields, plan.codec, self._folder, shards.run, shards.replaces)
        jobs = (
            Job(task, {run.source: plan.inputs[run.source] for run in task.runs}, plan.description(task))
            for task in tasks
        )
        for task, made in zip(tasks, self._answers(work, jobs, len(tasks)), strict=True):
            shards.made(task.number, plan.description(task))
            done.records += made.records
            done.documents += made.documents
            self._bytes += task.bytes
            if self._progress is not None:
                self._progress(self._bytes, self._total)

    def _answers(self, work: Working, jobs: Iterable[Job], count: int) -> Iterator[Any]:
        """What the work says to each of `count` jobs, in order."""
        if isinstance(self._workers, int) and (self._workers == 1 or count <= 1):
            yield from map(work.begin(), jobs)
            return
        from penstock._make.workers import executor_of, results_of  # which import multiprocessing

        self._pool = executor_of(self._workers).pool(work)
        yield from results_of(self._pool, jobs)

    def _end_workers(self, shards: ShardFolder) -> None:
        if self._pool is not None:
            shards.end_workers(self._pool)
            self._pool = None
