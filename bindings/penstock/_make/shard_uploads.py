"""Finished shards on their way into a bucket: from a scratch folder, one after the other, on a thread of its own."""

from __future__ import annotations

import json
import os
import queue
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent import futures
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from penstock import _native
from penstock._base.errors import InvalidArgumentError, IoError
from penstock._make.bucket_look import (
    MANIFEST,
    SHARD_MANIFEST,
    BucketLook,
    features_name,
    moved_name,
    name_of_bytes,
    shard_name,
)
from penstock._make.bucket_publish import publish, put_features
from penstock._make.folder import Taker
from penstock._places.attempts import in_one_operation, of_one_operation
from penstock._places.bucket_requests import Stopped
from penstock._places.paths import PathLike
from penstock._places.scratch import Scratch, remove_tree
from penstock._places.uploads import Bucket

MOST_WAITING = 2  # shards that are finished and not uploaded: what they take is disk
_MOST_COPIED = 2 << 30  # bytes of a file that a server copies within the time that it has for a request
_COPIES_AT_ONCE = 4
_LOOK = 0.2  # seconds between two looks whether the waiting was ended
_LAST_SECONDS = 5.0  # that abort() waits for the request under way

Queue = queue.SimpleQueue[tuple[Future[None], Callable[[], None]] | None]


@dataclass
class _Progress:
    shards: list[tuple[str, bytes]] = field(default_factory=list)  # uploaded, (name, text of shard.json)
    mine: list[str] = field(default_factory=list)  # folders begun, and not there before
    ending: str | None = None  # the folder whose shard.json is being put: whether it arrives is not known
    sent: int = 0  # bytes
    to_send: int = 0  # of all that was begun


class ShardUploads(Taker):
    """Uploads what is finished in `path` and removes it there.

    One thread at a time, but abort() may be called while another one waits. Neither abort() nor the end of the process
    waits long for a server that does not answer.

    Attributes:
        shards: (name, text of shard.json) of those that are in the bucket, in the order in which they were begun.
    """

    keeps_files = False  # which may be links

    def __init__(
        self,
        folder: BucketLook,
        scratch: PathLike | None,
        *,
        keeps_failed: bool = False,
        shards: Iterable[tuple[str, bytes]] = (),
    ) -> None:
        """Makes the scratch folder.

        Args:
            folder: where shards go.
            scratch: where the scratch folder is made; None: in that of temporary files.
            keeps_failed: a shard whose upload fails stays in the scratch folder, and the error says where.
            shards: those that are in the bucket already.

        Raises:
            IoError: The scratch folder cannot be made.
        """
        self.folder = folder
        self._keeps_failed = keeps_failed
        self._scratch = Scratch(scratch)
        self.scratch = self._scratch.path
        self._queue: Queue = queue.SimpleQueue()
        self._finalizer = weakref.finalize(self, _end, self._scratch, self._queue)
        self.path = str(self._scratch.path / "dataset")
        self._ready = self._scratch.path / "ready"
        self._ready.mkdir()
        self._progress = _Progress(list(shards))
        self._waiting: deque[Future[None]] = deque()
        self._stopped = threading.Event()
        self._started = False
        self._owner = os.getpid()

    @property
    def shards(self) -> list[tuple[str, bytes]]:
        return self._progress.shards

    @property
    def is_open(self) -> bool:
        """True until close() or abort()."""
        return self._finalizer.alive

    @property
    def uploaded(self) -> tuple[int, int]:
        """Bytes sent, more where they were sent again, and bytes of all files whose upload was begun."""
        return self._progress.sent, self._progress.to_send

    def begin(self, number: int, tell: Callable[[int, int], None] | None = None) -> None:
        """Begins to upload the finished shard of this number. Waits while too many wait, as wait() does.

        Raises:
            IoError: An upload failed.
            InvalidArgumentError: abort() was called.
        """
        if not self._started:
            self._started = True
            threading.Thread(target=_serve, args=(self._queue,), name="penstock-upload", daemon=True).start()
        future: Future[None] = Future()
        self._queue.put((future, lambda: self._upload(number)))
        self._waiting.append(future)
        self.wait(MOST_WAITING, tell)

    @of_one_operation
    def copy(self, number: int, at: str, name: str, text: bytes, files: Sequence[tuple[str, int]]) -> bool:
        bucket = self.folder.bucket
        if not bucket.holds(at) or any(size > _MOST_COPIED for _, size in files):
            return False
        moved = moved_name(number, self.folder.generation, name)
        if moved is None:
            sides = sorted(file for file, _ in files if file.endswith(".crc"))
            crcs = Bucket(f"{at}/{name}", bucket.storage).get_all(sides)
            moved = name_of_bytes(number, self.folder.generation, text, crcs)
        sizes = self.folder.sizes
        if any(sizes.get(f"{moved}/{file}") != size for file, size in [*files, (SHARD_MANIFEST, len(text))]):
            self._progress.mine.append(moved)

            def copied(file: tuple[str, int]) -> None:
                bucket.copy(f"{moved}/{file[0]}", f"{at}/{name}/{file[0]}")

            with futures.ThreadPoolExecutor(_COPIES_AT_ONCE, "penstock-copy") as threads:
                list(threads.map(in_one_operation(copied), files))
            bucket.put(f"{moved}/{SHARD_MANIFEST}", text)
        self.shards.append((moved, text))
        return True

    def wait(self, most: int = 0, tell: Callable[[int, int], None] | None = None) -> None:
        """Until at most so many are under way. What failed stays, and is raised each time.

        Args:
            most: shards.
            tell: called with `uploaded` now and then; may raise.

        Raises:
            IoError: An upload failed.
            InvalidArgumentError: abort() was called.
        """
        while self._waiting and (len(self._waiting) > most or self._waiting[0].done()):
            first = self._waiting[0]
            while not first.done() and not self._stopped.is_set():
                futures.wait([first], _LOOK)
                if tell is not None:
                    tell(*self.uploaded)
            self.refuse_aborted()
            first.result()
            self._waiting.popleft()

    def refuse_aborted(self) -> None:
        """Raises InvalidArgumentError if abort() was called."""
        if self._stopped.is_set():
            raise InvalidArgumentError(f"{self.folder.url}: this writer was aborted")

    @of_one_operation
    def publish(self) -> str:
        """Publishes all shards, with the tokenizer and the features of the dataset.json in `path`; the fingerprint.

        Raises:
            InvalidArgumentError, IoError: As _bucket_publish.publish().
        """
        said = json.loads((Path(self.path) / MANIFEST).read_bytes())
        tokenizer = json.dumps(said["tokenizer"], ensure_ascii=False)
        features = None
        if found := said.get("features"):
            local = Path(self.path) / found["folder"]
            name = features_name(self.folder.generation, local)
            self._progress.mine.append(name)
            put_features(self.folder, name, local)
            features = (name, found["fingerprint"])
        fingerprint = publish(self.folder, self.shards, tokenizer, None, features)
        self._progress.mine.clear()
        return fingerprint

    def abort(self, keep: bool = False) -> None:
        """Ends what is under way and removes what was uploaded, but for what is published. Again: nothing.

        Args:
            keep: Shards that are whole stay.
        """
        if os.getpid() != self._owner or not self._finalizer.alive:
            return
        self._stopped.set()
        under_way = list(self._waiting)
        for each in under_way:
            each.cancel()
        futures.wait(under_way, _LAST_SECONDS)
        kept = {name for name, _ in self.shards} if keep else set()
        removed = set(self._progress.mine) - kept - {self._progress.ending}
        if removed:
            self.folder.remove_mine(removed)
        self._finalizer()

    def close(self) -> None:
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
            failure = self._put(name, text, described, local)
            if failure is not None:
                raise failure
        self.shards.append((name, text))
        remove_tree(local)

    @of_one_operation
    def _put(self, name: str, text: bytes, described: Any, local: Path) -> IoError | None:
        self._progress.mine.append(name)
        self._progress.to_send += sum(size for _, size in described.files)
        try:
            for file, _ in described.files:
                self.folder.bucket.put_file(f"{name}/{file}", local / file, self._passed)
            self._progress.ending = name  # before the look: abort() sees it, or this sees that abort() was called
            self._passed(0)
            self.folder.bucket.put(f"{name}/{SHARD_MANIFEST}", text)
        except IoError as error:
            if not self._keeps_failed or self._stopped.is_set():
                raise
            return self._kept(local, error)
        finally:
            self._progress.ending = None
        return None

    def _is_there(self, name: str, described: Any, manifest_bytes: int) -> bool:
        """True if another attempt left these very bytes."""
        sizes = self.folder.sizes
        files = [*described.files, (SHARD_MANIFEST, manifest_bytes)]
        return all(sizes.get(f"{name}/{file}") == size for file, size in files)

    def _kept(self, local: Path, error: IoError) -> IoError:
        self._scratch.keep()
        return IoError(
            error.errno,
            f"{local}: the shard stays here, its upload failed: {error}; copy its files there, {SHARD_MANIFEST} last, "
            "or remove it and write it again",
            error.filename,
        )

    def _passed(self, sent: int) -> None:
        if self._stopped.is_set():
            raise Stopped
        self._progress.sent += sent


def _serve(waiting: Queue) -> None:
    """Does one thing after the other; holds none of them while it waits, so that their owner can be collected."""
    while (work := waiting.get()) is not None:
        future, action = work
        if future.set_running_or_notify_cancel():
            try:
                action()
            except BaseException as error:
                future.set_exception(error)
            else:
                future.set_result(None)
        del work, future, action


def _end(scratch: Scratch, waiting: Queue) -> None:
    waiting.put(None)
    scratch.close()
