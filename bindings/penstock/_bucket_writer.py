"""Writing a dataset into a bucket: shards are finished in a scratch folder, uploaded, and removed there."""

from __future__ import annotations

import json
import os
import shutil
import threading
import weakref
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from penstock import _native
from penstock._bucket_folder import MANIFEST, SHARD_MANIFEST, BucketFolder, features_name, shard_name
from penstock._errors import InvalidArgumentError, IoError
from penstock._paths import PathLike
from penstock._scratch import Scratch
from penstock._storage import Storage
from penstock._uploads import Stopped
from penstock._words import counted

_MOST_WAITING = 2  # shards that are finished and not uploaded: what they take is disk


@dataclass
class _Uploads:
    """What has been uploaded, in the order of the shards' numbers."""

    shards: list[tuple[str, bytes]] = field(default_factory=list)
    mine: list[str] = field(default_factory=list)  # begun, and not there before
    sent: int = 0  # bytes
    to_send: int = 0  # of all that was begun


class BucketWriter:
    """What a Writer does beside its native half where the dataset's folder is an address. One thread at a time.

    Attributes:
        path: of the folder on this machine that the native half writes into.
    """

    def __init__(
        self, url: str, storage: Storage | None, scratch: PathLike | None, *, shard: int | None, overwrite: bool
    ) -> None:
        """Looks at what is there.

        Raises:
            InvalidArgumentError: Something is there: a published dataset, finished shards, this shard.
            NotFoundError: No such bucket.
            IoError: It may not be listed; the scratch folder cannot be made.
        """
        self.folder = BucketFolder(url, storage)
        self._shard = shard
        self._refuse(shard, overwrite)
        self._scratch = Scratch(scratch)
        self._finalizer = weakref.finalize(self, self._scratch.close)
        self.path = str(self._scratch.path / "dataset")
        self._ready = self._scratch.path / "ready"
        self._ready.mkdir()
        self._uploads = _Uploads()
        self._lock = threading.Lock()
        self._begun = 0
        self._waiting: deque[Future[None]] = deque()
        self._stopped = threading.Event()
        self._owner = os.getpid()
        self._executor = ThreadPoolExecutor(1, "penstock-upload")  # one file after the other, several parts at once

    def _refuse(self, shard: int | None, overwrite: bool) -> None:
        folder = self.folder
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
                self._waiting.append(self._executor.submit(self._upload, number))
                self._begun += 1
            self._wait(_MOST_WAITING)

    def _wait(self, most: int) -> None:
        """Until at most so many are under way. What failed stays, and is raised each time."""
        while self._waiting and (len(self._waiting) > most or self._waiting[0].done()):
            self._waiting[0].result()
            self._waiting.popleft()

    def commit(self, native: Any, tokenizer: str) -> None:
        """Finishes, uploads what is left, and publishes, unless it is a shard alone.

        Raises:
            InvalidArgumentError: Someone else has published meanwhile.
            IoError: An upload failed; nothing is published.
        """
        native.commit()
        if not self._finalizer.alive:
            return
        self.advance(native)
        with self._lock:
            self._wait(0)
        if self._shard is None:
            self.folder.publish(self._uploads.shards, tokenizer, None, self._put_features())
            self._uploads.mine.clear()
        self._end()

    def abort(self) -> None:
        """Ends what is under way and removes what was uploaded, but for what is published. Again: nothing."""
        if os.getpid() != self._owner or not self._finalizer.alive:
            return
        self._stopped.set()
        for each in self._waiting:
            each.cancel()
        self._executor.shutdown(wait=True)
        if self._uploads.mine:
            self.folder.remove_mine(self._uploads.mine)
        self._end()

    def _end(self) -> None:
        self._executor.shutdown(wait=True)
        self._finalizer()

    def _upload(self, number: int) -> None:
        """The finished shard of this number, `shard.json` last."""
        finished = Path(self.path) / f"{number:05}"
        name = shard_name(number, self.folder.generation, finished)
        local = self._ready / name
        finished.rename(local)
        text = (local / SHARD_MANIFEST).read_bytes()
        described = _native.describe_shard(text, self.folder.bucket.address(f"{name}/{SHARD_MANIFEST}"), number)
        if not self._is_there(name, described, len(text)):
            self._uploads.mine.append(name)
            self._uploads.to_send += sum(size for _, size in described.files)
            try:
                for file, _ in described.files:
                    self.folder.bucket.put_file(f"{name}/{file}", local / file, self._passed)
                self.folder.bucket.put(f"{name}/{SHARD_MANIFEST}", text)
            except IoError as error:
                if self._shard is None:  # which publishes all of them or none
                    raise
                raise self._kept(local, error) from None
        self._uploads.shards.append((name, text))
        shutil.rmtree(local, ignore_errors=True)

    def _is_there(self, name: str, described: Any, manifest_bytes: int) -> bool:
        """Whether another attempt left these very bytes."""
        sizes = self.folder.sizes
        files = [*described.files, (SHARD_MANIFEST, manifest_bytes)]
        return all(sizes.get(f"{name}/{file}") == size for file, size in files)

    def _kept(self, local: Path, error: IoError) -> IoError:
        self._scratch.keep()
        return IoError(
            error.errno,
            f"{error}; the shard stays in {local}: copy its files into {self.folder.bucket.address(local.name)}, "
            f"{SHARD_MANIFEST} last, or remove it and write it again",
            error.filename,
        )

    def _passed(self, sent: int) -> None:
        if self._stopped.is_set():
            raise Stopped
        self._uploads.sent += sent

    @property
    def uploaded(self) -> tuple[int, int]:
        """Bytes sent, more where they were sent again, and bytes of all files whose upload was begun."""
        return self._uploads.sent, self._uploads.to_send

    def _put_features(self) -> tuple[str, str] | None:
        """What the native half wrote of them beside the shards."""
        said = json.loads((Path(self.path) / MANIFEST).read_bytes()).get("features")
        if said is None:
            return None
        local = Path(self.path) / said["folder"]
        self._uploads.mine.append(features_name(self.folder.generation, local))
        return self.folder.put_features(local), said["fingerprint"]
