"""A published dataset in a bucket that gets more shards: those that are there stay under their names."""

from __future__ import annotations

from typing import Any

from penstock._make.bucket_folder import BucketFolder
from penstock._make.bucket_look import BucketLook, Described
from penstock._make.bucket_publish import commit
from penstock._make.folder import Publication, ShardInfo, shard_infos


class GrowingFolder(BucketFolder):
    """Its finished shards are those that are published, and behind them those that are to be published too."""

    _known: list[Described] | None = None  # of the run's look

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_known": None}

    def finished(self, overwrite: bool, *, now: bool = False, is_impatient: bool = False) -> list[ShardInfo]:
        """With `now` only those that are not published."""
        if now or is_impatient:
            look = BucketLook(self.path, self._storage, is_impatient=is_impatient)
            return shard_infos(each.shard for each in self._added(look, len(self._stay())))
        return shard_infos(each.shard for each in self._all())

    def texts(self, overwrite: bool) -> dict[int, bytes]:
        return {each.shard.number: each.text for each in self._all()}

    def publish(self, publication: Publication) -> str:
        look = BucketLook(self.path, self._storage)
        if self._seen is not None and look.version != self._seen.version:  # whose shards may be gone
            look.refuse_other()
        return commit(look, publication, self._seen, self._stay())

    def _all(self) -> list[Described]:
        stay = self._stay()
        return [*stay, *self._added(self._look(), len(stay))]

    def _stay(self) -> list[Described]:
        if self._seen is None:
            return self._look().finished(False)
        self._known = self._known or self._seen.finished(False)
        return self._known

    def _added(self, look: BucketLook, count: int) -> list[Described]:
        return [each for each in look.finished(True) if each.shard.number >= count]
