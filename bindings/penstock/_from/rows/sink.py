"""Where a Ray Dataset is written to: task k of the write makes shard k, the driver publishes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy.typing as npt
from ray.data import Datasink as _Datasink

from penstock import _native
from penstock._base.errors import Error, InvalidArgumentError
from penstock._base.words import counted
from penstock._data import codecs
from penstock._data.dtype import record_dtype
from penstock._from.rows.rows import Digest, Rows, Taken
from penstock._make.folders import folder_of
from penstock._make.notes import remove_list
from penstock._make.publishing import publication_of
from penstock._make.writer import Writer
from penstock._places.paths import PathLike

if TYPE_CHECKING:
    from penstock._places.storage import Storage


class Datasink(_Datasink[Any]):  # type: ignore[misc]
    """Writes a Ray Dataset as a penstock dataset: `ds.write_datasink(penstock.ray.Datasink(path, fields=…))`.

    A row is a document. Columns named like fields hold its records, lists of one length; the others are its metadata.
    Task k writes shard k, those without rows none; when all are done the driver publishes the dataset, by one commit.
    A task whose worker was killed is done again; if the first attempt has finished the shard, that stays, and other
    rows than those are an error. With `preserve_order` and a fixed number of blocks the bytes are the same on any
    cluster.

    Args:
        path: the dataset's folder, on a file system that all nodes share, or its address in a bucket.
        fields: as for `penstock.Writer`; None: metadata alone.
        metadata: the codec, as for `penstock.Writer`. "json" and "msgpack" keep an object of all other columns, any
            other codec the value of the only one. "boundaries": documents without metadata, and None: a token stream;
            both refuse other columns.
        storage: how a bucket is reached.
        overwrite: replace a published dataset, which stays until the new one is whole, and finished shards of a write
            that did not end.

    Attributes:
        fingerprint: of the dataset, once it is published.

    Raises:
        InvalidArgumentError: Fields or codec that cannot be.

    Examples:
        >>> import penstock.ray, ray  # doctest: +SKIP
        >>> rows = ray.data.from_items([{"token": [1, 2, 3], "url": "example.org"}])  # doctest: +SKIP
        >>> sink = penstock.ray.Datasink("corpus", fields={"token": "u2"}, metadata="json")  # doctest: +SKIP
        >>> rows.write_datasink(sink)  # doctest: +SKIP
    """

    def __init__(
        self,
        path: PathLike,
        *,
        fields: Mapping[str, npt.DTypeLike] | npt.DTypeLike | None,
        metadata: str | codecs.Codec | npt.DTypeLike | None = "boundaries",
        storage: Storage | None = None,
        overwrite: bool = False,
    ) -> None:
        """Looks at nothing yet."""
        dtype = None if fields is None else record_dtype(fields)
        codec = codecs.get(metadata)
        if dtype is None and (codec is None or metadata == "boundaries"):
            raise InvalidArgumentError("neither fields nor metadata: there is nothing to write")
        self._folder = folder_of(path, storage).absolute()
        self._path = self._folder.path
        self._rows = Rows(dtype, codec)
        self._overwrite = overwrite
        self._run = _native.unique_run()
        self._replaces = False
        self._is_held = False
        self.fingerprint: str | None = None

    def __getstate__(self) -> dict[str, Any]:
        """For the tasks: without what the driver holds."""
        return {**self.__dict__, "_is_held": False}

    def get_name(self) -> str:
        """Of the tasks."""
        return "Penstock"

    # ---- the driver

    def on_write_start(self, schema: Any = None) -> None:
        """Looks at what is there, and keeps other writers away.

        Raises:
            InvalidArgumentError: A dataset or finished shards, without `overwrite`; another writer is at work.
        """
        self._folder.hold(self._run)
        self._is_held = True
        try:
            published = self._folder.is_published
            if published and not self._overwrite:
                raise InvalidArgumentError(f"{self._path} holds a dataset already: overwrite=True replaces it")
            self._replaces = published
            there = self._there()
            if there and not self._overwrite:
                raise InvalidArgumentError(
                    f"{self._path} holds {counted(len(there), 'finished shard')} of a write that did not end: "
                    "overwrite=True removes them"
                )
            self._remove(there)
        except BaseException:
            self._release()
            raise

    def on_write_complete(self, write_result: Any) -> None:
        """Publishes the shards of all tasks that had rows.

        Raises:
            InvalidArgumentError: No task had any; someone else has published meanwhile.
            IoError: It cannot be written; nothing is published.
        """
        tasks = {each["number"]: each for each in write_result.write_returns if each is not None}
        if not tasks:
            raise InvalidArgumentError(f"{self._path}: the Ray Dataset has no rows: nothing was written")
        numbers = sorted(tasks)
        wanted = publication_of(None, numbers, self._replaces, [tasks[each] for each in numbers], self._run, None)
        self.fingerprint = self._folder.publish(wanted)
        if self._replaces:
            remove_list(self._folder)
        self._release()

    def on_write_failed(self, error: Exception) -> None:
        """Removes what was written, as far as no task is at work."""
        with suppress(Error):  # the error that ended the write is the one to tell
            if self._is_held:
                self._folder.clean_after(self._run, self._replaces)
                self._remove(self._there())
        self._release()

    def _there(self) -> list[int]:
        found = self._folder.finished(self._replaces, now=True)
        return sorted({each.number for each in found})

    def _remove(self, numbers: list[int]) -> None:
        if numbers:
            self._folder.remove(numbers, self._replaces, self._run if self._is_held else None)

    def _release(self) -> None:
        self._folder.close()
        self._is_held = False  # what was refused is not this write's to remove

    # ---- a task

    def write(self, blocks: Iterable[Any], ctx: Any) -> dict[str, Any] | None:
        """Writes shard `ctx.task_idx` of all rows of the blocks.

        Returns:
            What shard.json says of the task; None: there were no rows.

        Raises:
            InvalidArgumentError: A column is missing, is no list, does not fit its field; an earlier attempt at the
                task wrote other rows.
        """
        digest = Digest(int(ctx.task_idx))
        writer: Writer | None = None
        is_there = False
        try:
            for block in blocks:
                taken = self._rows.take(block)
                if not len(taken.lengths):
                    continue
                digest.add(taken)
                if writer is None and not is_there:
                    writer = self._writer(digest.number)
                    is_there = writer is None
                if writer is not None:
                    self._append(writer, taken)
            if not digest.documents:
                return None
            task = digest.task()
            if writer is not None:
                writer.set_task(task)
                try:
                    writer.commit()
                except InvalidArgumentError:
                    is_there = digest.number in self._there()
                    if not is_there:
                        raise
        except BaseException:
            if writer is not None:
                writer.abort()
            raise
        if is_there:
            if writer is not None:
                writer.abort()
            self._check_same(task)
        return task

    def _writer(self, number: int) -> Writer | None:
        """That of the shard; None: an earlier attempt has finished it."""
        try:
            return Writer(
                self._folder, self._rows.dtype, self._rows.codec, shard=number, run=self._run, overwrite=self._replaces
            )  # fmt: skip
        except InvalidArgumentError:
            if number in self._there():
                return None
            raise

    def _append(self, writer: Writer, taken: Taken) -> None:
        lengths = None if self._rows.dtype is None or self._rows.codec is None else taken.lengths
        fields: dict[str, Any] = taken.fields
        writer.append_batch(lengths, encoded=taken.entries, **fields)

    def _check_same(self, task: dict[str, Any]) -> None:
        found = self._folder.finished(self._replaces, now=True)
        if any(each.task == task for each in found if each.number == task["number"]):
            return
        raise InvalidArgumentError(
            f"{self._path}: an attempt at task {task['number']:,} that was killed wrote other rows than this one: make "
            "what comes before the write give the same rows each time"
        )
