"""Where tokens go: shard k of task k, one after the other."""

from __future__ import annotations

from collections.abc import Callable
from concurrent import futures
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from penstock._make.shard_folder import ShardFolder

if TYPE_CHECKING:
    from penstock._from.text.pool import Result
    from penstock._make.folder import Folder
    from penstock._make.writer import Writer

_LOOK = 0.2  # seconds between two looks at an upload


def append_result(writer: Writer, result: Result) -> None:
    """Adds a batch of documents to a writer of the fields that `fields_of` says.

    Raises:
        penstock.Error: It cannot be written.
    """
    lengths, ids, loss = result.encoded
    fields: dict[str, Any] = {"token": ids} if loss is None else {"token": ids, "loss": loss}
    if writer.keeps_documents:
        writer.append_batch(lengths, encoded=result.entries, **fields)
    else:
        writer.append_batch(**fields)


def fields_of(dtype: str, loss: bool) -> dict[str, str]:
    """Of a record: `token`, and `loss` beside it where conversations say what is trained on."""
    return {"token": dtype, "loss": "u1"} if loss else {"token": dtype}


class ShardSink(ShardFolder):
    """Writes one shard at a time while the one before is synced. One thread at a time."""

    def __init__(
        self,
        folder: Folder,
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
            folder: Where the shards go.
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
        self.uploading: Callable[[int, int], None] | None = (
            None  # told of the bytes sent and to be sent, while it waits
        )
        self._uploads: Writer | None = None
        self._syncing: Future[None] | None = None
        super().__init__(folder, tokenizer=tokenizer, resume=resume, overwrite=overwrite, run=run, clean=clean)
        self._executor = ThreadPoolExecutor(1, "penstock-sync")
        self._options: dict[str, Any] = {
            "fields": fields_of(dtype, loss),
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
        append_result(self._writer, result)

    def finish(self, task: dict[str, Any]) -> None:
        """Ends the shard; it is synced while the next one begins."""
        writer = self._writer
        assert writer is not None
        self._wait()  # may raise: `close` then gives up this shard
        self._writer = None
        writer.set_task(task)
        self.made(self._number, task)
        self._uploads = writer
        self._syncing = self._executor.submit(writer.commit)

    def stop_uploading(self) -> None:
        """Ends the upload of a shard that is under way, and removes what of it is in the bucket.

        It waits a few seconds for the request under way, whatever the server does.
        """
        if self._uploads is not None and self._uploads.is_uploading:
            self._uploads.abort()

    def close(self) -> None:
        """Gives up what is not finished. Finished shards stay. May be called twice."""
        writer, self._writer = self._writer, None
        self._executor.shutdown(wait=True)
        if writer is not None:
            writer.abort()
        super().close()

    def _begin(self, number: int) -> Any:
        from penstock._make.writer import Writer

        self.make_room(number)
        self._number = number
        return Writer(self.folder, **self._options, shard=number)

    def _wait(self) -> None:
        if self._syncing is not None:
            while self.uploading is not None and self._uploads is not None and not self._syncing.done():
                futures.wait([self._syncing], _LOOK)
                self.uploading(*self._uploads.uploaded)
            self._syncing.result()
            self._syncing = None
