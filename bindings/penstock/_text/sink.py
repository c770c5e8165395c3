"""Where tokens go: shard k of task k, one after the other, and what an earlier run left."""

from __future__ import annotations

import shutil
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .errors import InputError, UsageError, counted

if TYPE_CHECKING:
    from .pool import Result


class ShardSink:
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
    ) -> None:
        """Looks at what is there; writes nothing yet.

        Args:
            path: The dataset's folder.
            dtype: Of the field `token`, as "u2".
            codec: Of the metadata; None: a token stream.
            layout: Of the spans.
            tokenizer: What the manifest says of it.
            resume: Keep finished shards whose task is the same.
            overwrite: Remove what is there when the first shard is begun.

        Raises:
            UsageError: Something is there, and neither `resume` nor `overwrite` says what to do.
        """
        import penstock

        self._path = path
        self._options: dict[str, Any] = {"fields": {"token": dtype}, "metadata": codec, "layout": layout}
        self._tokenizer = tokenizer
        self._published = (Path(path) / "dataset.json").exists()
        self._overwrite = overwrite
        self._finished: dict[int, Any] = {}
        self._writer: penstock.Writer | None = None
        self._number = -1
        self._executor = ThreadPoolExecutor(1, "penstock-sync")
        self._syncing: Future[None] | None = None
        if self._published and not (resume or overwrite):
            raise UsageError(f"{path} holds a dataset already: replace it with --overwrite, or choose another --out")
        if Path(path).is_dir():
            self._finished = {shard.number: shard.task for shard in penstock.finished_shards(path)}
        if self._finished and not (resume or overwrite):
            raise UsageError(
                f"{path} holds {counted(len(self._finished), 'finished shard')} of a run that did not end:"
                " go on with --resume, or start anew with --overwrite"
            )

    def may_keep(self, number: int, options: dict[str, Any]) -> bool:
        """Whether shard `number` is there and was made with the same options; of what input, `keep` will say."""
        task = None if self._overwrite else self._finished.get(number)
        return isinstance(task, dict) and task.get("options") == options

    def keep(self, number: int, task: dict[str, Any]) -> bool:
        """Whether shard `number` was made of this very task; if so it stays."""
        if self._finished[number] != task:
            self._remove(number)
            return False
        return True

    def append(self, number: int, result: Result) -> None:
        """Adds a batch of task `number`; tasks come in order.

        Raises:
            penstock.Error: It cannot be written.
        """
        if self._writer is None:
            self._writer = self._begin(number)
        lengths, ids = result.encoded
        metadata = {} if result.metadata is None else {"metadata": self._entries(result.metadata)}
        self._writer.append_batch(lengths, token=ids, **metadata)

    def finish(self, task: dict[str, Any]) -> None:
        """Ends the shard; it is synced while the next one begins."""
        writer, self._writer = self._writer, None
        assert writer is not None
        self._wait()
        writer.set_task(task)
        self._syncing = self._executor.submit(writer.commit)

    def publish(self, shards: int) -> None:
        """Publishes the dataset of the first `shards` shards, all of which are written or kept."""
        import penstock

        self._wait()
        for number in [number for number in self._finished if number >= shards]:
            self._remove(number)
        if not self._published:
            penstock.commit(self._path, tokenizer=self._tokenizer)

    def close(self) -> None:
        """Gives up what is not finished. Finished shards stay. May be called twice."""
        writer, self._writer = self._writer, None
        self._executor.shutdown(wait=True)
        if writer is not None:
            writer.abort()

    def dataset_bytes(self) -> int:
        """Bytes on disk, side files included."""
        return sum(path.stat().st_size for path in Path(self._path).rglob("*") if path.is_file())

    def _begin(self, number: int) -> Any:
        import penstock

        if self._overwrite:
            self._clear()
        elif number in self._finished:
            self._remove(number)
        elif self._published:
            self._refuse_to_change()
        return penstock.Writer(self._path, **self._options, shard=number)

    def _clear(self) -> None:
        self._overwrite = False
        if self._published:
            (Path(self._path) / "dataset.json").unlink()  # first: what it does not name does not exist
            self._published = False
        for number in list(self._finished):
            self._remove(number)

    def _remove(self, number: int) -> None:
        if self._published:
            self._refuse_to_change()
        shard = Path(self._path) / f"{number:05d}"
        # Renamed first: a folder that is half removed must not look like a finished shard.
        shutil.rmtree(shard.rename(shard.with_name(f".partial-removed-{shard.name}")))
        del self._finished[number]

    def _refuse_to_change(self) -> None:
        raise UsageError(
            f"{self._path} holds a dataset made of other input or options: replace it with --overwrite,"
            " or choose another --out"
        )

    def _wait(self) -> None:
        if self._syncing is not None:
            self._syncing.result()
            self._syncing = None

    def _entries(self, metadata: list[dict[str, Any]]) -> list[Any]:
        if self._options["metadata"] != "raw":
            return metadata
        (name,) = metadata[0] if metadata else ("",)
        values = [each[name] for each in metadata]
        wrong = next((value for value in values if not isinstance(value, str)), None)
        if len(values) and (wrong is not None or None in values):
            raise InputError(f'--codec raw stores text: column "{name}" holds {wrong!r:.60}: use --codec json')
        return [value.encode() for value in values]
