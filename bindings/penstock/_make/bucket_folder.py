"""A dataset's folder in a bucket, while shards are made in it: listed when the run begins and when it publishes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, suppress
from pathlib import Path

from penstock._base.errors import Error
from penstock._data.open import open as open_dataset
from penstock._make.bucket_look import BucketLook
from penstock._make.bucket_publish import commit
from penstock._make.bucket_writer import BucketWriter
from penstock._make.folder import Folder, Publication, ShardInfo, shard_infos
from penstock._make.shard_uploads import ShardUploads
from penstock._places.attempts import of_one_operation
from penstock._places.paths import PathLike, local_path
from penstock._places.scratch import Scratch, remove_dead
from penstock._places.storage import Storage
from penstock._places.uploads import Bucket


class BucketFolder(Folder):
    """An address of a bucket, which nobody holds: a second run is refused when it publishes.

    Workers get what was seen when the run began, and list nothing: a shard's folder has a name of its bytes, so it
    does no harm that they do not see each other's.
    """

    is_here = is_live = False

    def __init__(self, url: str, storage: Storage | None, scratch: PathLike | None = None) -> None:
        """Asks nothing yet; `scratch` is where shards are until they are uploaded."""
        self.path = url
        self._storage = storage
        self._scratch = scratch
        self._seen: BucketLook | None = None

    @property
    def beside(self) -> None:
        return None

    def _look(self) -> BucketLook:
        """The look taken when the run began; outside of a run a new one."""
        return self._seen or BucketLook(self.path, self._storage)

    def hold(self, run: str) -> None:
        self._seen = BucketLook(self.path, self._storage)

    def close(self) -> None:
        """Nothing is held."""

    @property
    def is_published(self) -> bool:
        return self._look().is_published

    def version(self) -> None:
        """Nothing: who asks may have been ended by the server's silence."""

    @of_one_operation
    def finished(self, overwrite: bool, *, now: bool = False, is_impatient: bool = False) -> list[ShardInfo]:
        look = self._look()
        if now or is_impatient:
            look = BucketLook(self.path, self._storage, is_impatient=is_impatient)
        return shard_infos(each.shard for each in look.finished(overwrite))

    @of_one_operation
    def remove(self, numbers: Iterable[int], overwrite: bool, run: str | None) -> None:
        gone = BucketLook(self.path, self._storage).remove_shards(numbers, overwrite)
        if self._seen is not None:
            self._seen.forget(gone)

    @of_one_operation
    def clean(self, run: str) -> None:
        self._look().clean()

    def clean_after(self, run: str, replaces: bool) -> None:
        """Nothing: a restart of this run has the same folders, and may be finishing them."""

    @of_one_operation
    def publish(self, publication: Publication) -> str:
        return commit(BucketLook(self.path, self._storage), publication, self._seen)

    def read_note(self, name: str) -> bytes | None:
        found = self._bucket().get(name)
        return None if found is None else found[0]

    def write_note(self, name: str, data: bytes) -> None:
        self._bucket().put(name, data)

    def remove_notes(self, names: Sequence[str]) -> None:
        if names:
            with suppress(Error):
                self._look().impatient().bucket.remove(names)

    def notes(self) -> set[str]:
        return {name for name in self._look().sizes if "/" not in name}

    def absolute(self) -> BucketFolder:
        if self._scratch is not None:
            self._scratch = str(Path(local_path(self._scratch)).absolute())
        return self

    def make(self) -> None:
        """Nothing: a bucket has no folders."""

    def is_there(self) -> bool:
        return True

    def aside(self, run: str, what: str) -> AbstractContextManager[Path]:
        return Scratch(self._scratch)

    def remove_dead(self) -> None:
        remove_dead(self._scratch)

    def uploads(self, shard: int | None, overwrite: bool) -> BucketWriter:
        return BucketWriter(self._look(), self._scratch, shard=shard, overwrite=overwrite)

    def shard_uploads(self) -> ShardUploads:
        return ShardUploads(self._look(), self._scratch)

    def taker(self, run: str, overwrite: bool) -> ShardUploads:
        return self.shard_uploads()

    def texts(self, overwrite: bool) -> dict[int, bytes]:
        return {each.shard.number: each.text for each in self._look().finished(overwrite)}

    def fingerprint(self) -> str:
        return open_dataset(self.path, storage=self._storage).fingerprint

    def size_bytes(self) -> int:
        return sum(self._bucket().sizes().values())

    def _bucket(self) -> Bucket:
        return self._seen.bucket if self._seen is not None else Bucket(self.path, self._storage or Storage())
