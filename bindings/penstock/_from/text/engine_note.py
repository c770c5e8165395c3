"""A note beside unfinished shards: the engine that computed their ids. Those of another one are made again."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock._make.shard_folder import ShardFolder

_FILE = ".text-engine"


class EngineNote:
    """Of one run. One thread at a time."""

    def __init__(self, shards: ShardFolder, engine: str) -> None:
        """Of a run with this engine; empty: tokenizers, whose ids need no note."""
        self._shards = shards
        self._folder = shards.folder
        self._engine = engine
        self._is_there = False

    def check(self) -> None:
        """Keeps no shard of another engine.

        Raises:
            penstock.IoError: The note cannot be read.
        """
        if self._shards.stays or not self._shards.made_with(None):
            return
        found = self._folder.read_note(_FILE)
        self._is_there = found is not None
        if found is not None and found.decode("utf-8", "replace") != self._engine:
            self._shards.drop_all()

    def write(self) -> None:
        """Before a first shard is finished; again: nothing.

        Raises:
            penstock.IoError: It cannot be written.
        """
        if self._engine and not self._is_there:
            self._is_there = True
            self._folder.write_note(_FILE, self._engine.encode())

    def remove(self) -> None:
        """When the shards are published, or there are none.

        Raises:
            penstock.IoError: It cannot be removed.
        """
        if self._is_there:
            self._is_there = False
            self._folder.remove_notes([_FILE])
