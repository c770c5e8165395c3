"""Writing a dataset into a bucket: what a Writer does beside its native half."""

from __future__ import annotations

import threading
from typing import Any

from penstock._base.errors import InvalidArgumentError
from penstock._base.words import counted
from penstock._make.bucket_look import MANIFEST, BucketLook
from penstock._make.shard_uploads import MOST_WAITING, ShardUploads
from penstock._places.paths import PathLike


class BucketWriter:
    """A Writer's uploads, beside its native half, where the dataset's folder is an address.

    One thread at a time, but abort() may be called while another one waits.

    Attributes:
        path: of the folder on this machine that the native half writes into.
    """

    def __init__(self, folder: BucketLook, scratch: PathLike | None, *, shard: int | None, overwrite: bool) -> None:
        """`folder` is what was seen there.

        Raises:
            InvalidArgumentError: Something is there: a published dataset, finished shards, this shard.
            IoError: The scratch folder cannot be made.
        """
        self._folder = folder
        self._shard = shard
        self._refuse(shard, overwrite)
        # A writer of a whole dataset publishes all shards or none: one that failed is of no use to it.
        self._uploads = ShardUploads(self._folder, scratch, keeps_failed=shard is not None)
        self.path = self._uploads.path
        self._lock = threading.Lock()
        self._begun = 0

    def _refuse(self, shard: int | None, overwrite: bool) -> None:
        folder = self._folder
        if folder.is_published and not overwrite:
            folder.refuse_published()
        there = folder.unpublished()
        if shard is None and there and not overwrite:
            raise InvalidArgumentError(
                f"{folder.url}: an unfinished dataset: no {MANIFEST}, {counted(len(there), 'finished shard')}: go on "
                "where it was begun (with --resume; in Python Writer(shard=…), then commit), or write it anew with "
                "overwrite"
            )
        for each in there:
            if each.number == shard:
                raise InvalidArgumentError(f"{folder.url}: shard {each.name} is finished already")

    def advance(self, native: Any) -> None:
        """After an append: begins to upload what it finished. Waits while too many wait.

        Raises:
            IoError: An upload failed.
        """
        with self._lock:
            finished = native.finished_shards
            while self._begun < finished:
                number = self._begun if self._shard is None else self._shard
                self._begun += 1
                self._uploads.begin(number)
            self._uploads.wait(MOST_WAITING)

    def commit(self, native: Any) -> None:
        """Finishes, uploads what is left, and publishes, unless it is a shard alone.

        Raises:
            InvalidArgumentError: Someone else has published meanwhile; abort() was called.
            IoError: An upload failed; nothing is published.
        """
        native.commit()
        self._uploads.refuse_aborted()
        if not self._uploads.is_open:
            return
        self.advance(native)
        with self._lock:
            self._uploads.wait()
        if self._shard is None:
            self._uploads.publish()
        self._uploads.close()

    def abort(self) -> None:
        """Ends what is under way and removes what was uploaded, but for what is published. Again: nothing."""
        self._uploads.abort()

    @property
    def uploaded(self) -> tuple[int, int]:
        """Bytes sent, more where they were sent again, and bytes of all files whose upload was begun."""
        return self._uploads.uploaded
