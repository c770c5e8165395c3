"""A collection as a user gave it: opened, counted, told from others, and read by whom."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock import _native
from penstock._load.collections.fetching import Fetcher, Hooks
from penstock._load.collections.identity import fingerprint_of, is_opener, length_of
from penstock._load.collections.threads import ThreadReader

if TYPE_CHECKING:
    from penstock._load.collections.processes import ProcessReader


class Given:
    """A collection, or the function that opens it, which is called here.

    Attributes:
        opened: the collection of this process.
        count: observations.
    """

    def __init__(self, collection: Any, hooks: Hooks) -> None:
        """Nothing is read.

        Raises:
            InvalidArgumentError: it is no collection.
        """
        self._collection, self._hooks = collection, hooks
        self._opens = is_opener(collection)
        self.opened = collection() if self._opens else collection
        self.count = length_of(self.opened, hooks.fetch_callback is not None)

    def identity(self, fingerprint: str | None) -> _native.SourceIdentity:
        """The identity that a state has of it; see `fingerprint_of`."""
        return _native.SourceIdentity(
            fingerprint=fingerprint_of(self.opened, self.count, fingerprint),
            shards=0,
            records=self.count,
            view='{"kind":"collection"}',
        )

    def reader(self, threads: int, processes: int) -> ThreadReader | ProcessReader:
        """Who reads it: this process, by a thread or when asked, or so many others.

        Raises:
            InvalidArgumentError: what other processes need does not pickle.
        """
        if processes == 0:
            return ThreadReader(Fetcher(self.opened, self.count, self._hooks), threads)
        from penstock._load.collections.processes import Opening, ProcessReader  # 12 ms with multiprocessing

        opening = Opening(self._collection, self._opens, self.count, self._hooks)
        opening.pickled()  # refuses what does not pickle
        return ProcessReader(opening, processes, threads)
