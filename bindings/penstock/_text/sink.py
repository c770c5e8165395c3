"""Where tokens go: shard k of task k, one after the other, and what an earlier run left."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock._words import counted

from .errors import UsageError

if TYPE_CHECKING:
    from penstock._writer import ShardInfo, Writer

    from .pool import Result


def refuse_file(out: str) -> None:
    """Says that a file is where a new dataset is to be made, or above it.

    Raises:
        UsageError: One is.
    """
    for path in (Path(out), *Path(out).parents):
        if path.exists():
            if not path.is_dir():
                raise UsageError(f"{path} is a file: choose another --out")
            return


class ShardFolder:
    """A dataset's folder while shards of tasks are made in it by whoever: what is there, what is kept, the publishing.

    Attributes:
        run: name of the run that all its writers belong to.
        replaces: whether a published dataset is there, to be replaced.
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

        Raises:
            UsageError: Something is there, and neither `resume` nor `overwrite` says what to do.
            penstock.InvalidArgumentError: Another run is at work in the folder.
        """
        from penstock import _native

        refuse_file(path)
        self.run = _native.unique_run() if run is None else run
        self._held = _native.Run(path, self.run)
        try:
            self._look(path, tokenizer, resume=resume, overwrite=overwrite)
            if clean:
                _native.clean(path, True, self.run)
        except BaseException:
            self._held.close()
            raise

    def _look(self, path: str, tokenizer: dict[str, Any] | None, *, resume: bool, overwrite: bool) -> None:
        from penstock._writer import finished_shards

        self._path = path
        self._published = (Path(path) / "dataset.json").exists()
        self.replaces = self._published and overwrite
        self._tasks: dict[int, dict[str, Any]] = {}
        self._tokenizer = tokenizer
        self._finished: dict[int, ShardInfo] = {}
        self._stale: set[int] = set()
        if self._published and not (resume or overwrite):
            raise UsageError(f"{path} holds a dataset already: replace it with --overwrite, or choose another --out")
        finished = finished_shards(path, overwrite=self.replaces)
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
        from penstock._errors import Error
        from penstock._writer import finished_shards

        with suppress(Error):
            return bool(finished_shards(self._path, overwrite=self.replaces))
        return False

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

    def kept_tokens(self, number: int) -> int:
        """Tokens of a shard that is kept."""
        return self._finished[number].records

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
        from penstock._writer import commit

        self._wait()
        too_many = [number for number in self._finished if number >= shards]
        if self.replaces or not self._published:
            if too_many:
                self._remove(too_many)
            tasks = [self._tasks[number] for number in range(shards)]
            commit(
                self._path,
                self._tokenizer,
                shards=shards,
                overwrite=self.replaces,
                tasks=tasks,
                run=self.run,
                features=features,
            )
        elif too_many:
            self._refuse_to_change()

    def left_behind(self) -> str:
        """What a run leaves that ends in the middle, and how to go on. Waits for the shard that is being synced."""
        from penstock._errors import Error
        from penstock._writer import finished_shards

        with suppress(Exception):  # the error that ended the run is the one to tell
            self._wait()
        kept = 0
        with suppress(Error):
            there = finished_shards(self._path, overwrite=self.replaces)
            kept = sum(each.number not in self._stale or self._tasks.get(each.number) == each.task for each in there)
        stays = "the old dataset stays" if self.replaces else "nothing was published"
        if not kept:
            return f"{stays}; no shard was finished: start again"
        shards = f"{counted(kept, 'finished shard')} {'is' if kept == 1 else 'are'} kept"
        options = "--resume --overwrite" if self.replaces else "--resume"
        return f"{stays}; {shards}: go on with {options}"

    def close(self) -> None:
        """Lets the folder go. Finished shards stay. May be called twice."""
        self._held.close()

    def dataset_bytes(self) -> int:
        """Bytes on disk, side files included."""
        return sum(path.stat().st_size for path in Path(self._path).rglob("*") if path.is_file())

    def _remove(self, numbers: list[int]) -> None:
        from penstock._writer import remove_shards

        self._wait()  # else the shard before this one still holds the folder's lock
        remove_shards(self._path, numbers, overwrite=self.replaces, run=self.run)
        for number in numbers:
            del self._finished[number]

    def _refuse_to_change(self) -> None:
        raise UsageError(
            f"{self._path} holds a dataset made of other input or options: replace it with --overwrite,"
            " or choose another --out"
        )

    def _wait(self) -> None:
        """Waits for a shard that is being synced."""


class ShardSink(ShardFolder):
    """Writes one shard at a time while the one before is synced. One thread at a time."""

    def __init__(
        self,
        path: str,
        *,
        dtype: str,
        codec: str | None,
        layout: str,
        tokenizer: dict[str, Any] | None,
        resume: bool = False,
        overwrite: bool = False,
        run: str | None = None,
        clean: bool = False,
        loss: bool = False,
    ) -> None:
        """Holds the folder, as `ShardFolder`.

        Args:
            path: The dataset's folder.
            dtype: Of the field `token`, as "u2".
            codec: Of the metadata; "boundaries": documents without; None: a token stream without documents.
            layout: Of the spans.
            tokenizer: What the manifest says of it.
            resume: As of `ShardFolder`.
            overwrite: As of `ShardFolder`.
            run: As of `ShardFolder`.
            clean: As of `ShardFolder`.
            loss: Whether there is a field `loss` beside `token`, u1.
        """
        self._writer: Writer | None = None
        self._number = -1
        self._syncing: Future[None] | None = None
        super().__init__(path, tokenizer=tokenizer, resume=resume, overwrite=overwrite, run=run, clean=clean)
        self._executor = ThreadPoolExecutor(1, "penstock-sync")
        self._options: dict[str, Any] = {
            "fields": {"token": dtype, "loss": "u1"} if loss else {"token": dtype},
            "metadata": codec,
            "layout": layout,
            "overwrite": self.replaces,
            "run": self.run,
        }

    def append(self, number: int, result: Result) -> None:
        """Adds a batch of task `number`; tasks come in order.

        Raises:
            penstock.Error: It cannot be written.
        """
        if self._writer is None:
            self._writer = self._begin(number)
        lengths, ids, loss = result.encoded
        fields: dict[str, Any] = {"token": ids} if loss is None else {"token": ids, "loss": loss}
        self._writer.append_batch(lengths, encoded=result.entries, **fields)

    def finish(self, task: dict[str, Any]) -> None:
        """Ends the shard; it is synced while the next one begins."""
        writer = self._writer
        assert writer is not None
        self._wait()  # may raise: `close` then gives up this shard
        self._writer = None
        writer.set_task(task)
        self.made(self._number, task)
        self._syncing = self._executor.submit(writer.commit)

    def close(self) -> None:
        """Gives up what is not finished. Finished shards stay. May be called twice."""
        writer, self._writer = self._writer, None
        self._executor.shutdown(wait=True)
        if writer is not None:
            writer.abort()
        super().close()

    def _begin(self, number: int) -> Any:
        from penstock._writer import Writer

        self.make_room(number)
        self._number = number
        return Writer(self._path, **self._options, shard=number)

    def _wait(self) -> None:
        if self._syncing is not None:
            self._syncing.result()
            self._syncing = None
