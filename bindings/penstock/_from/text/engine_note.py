"""A note beside unfinished shards: the engine that computed their ids. Those of another one are made again."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock._make.folder import Folder
    from penstock._make.shard_folder import ShardFolder

_NAME = ".text-engine"


class EngineNote:
    """The note of a run."""

    def __init__(self, engine: str) -> None:
        """The note of a run with this engine; empty: tokenizers, whose ids need no note."""
        self._engine = engine
        self._found = ""  # what the note says, where it is there

    def check(self, shards: ShardFolder) -> None:
        """Keeps no shard of another engine, but those of tokenizers. Raises OSError."""
        if shards.stays or not (shards.any_before or shards.replaces):
            return
        found = shards.folder.read_note(_NAME)
        self._found = (found or b"").decode("utf-8", "replace")
        if self._found and self._found != self._engine:
            shards.drop_all()

    def write(self, folder: Folder) -> None:
        """Has it say this engine. Raises OSError."""
        if self._engine == self._found:
            return
        if not self._engine:
            self.remove(folder)
            return
        folder.write_note(_NAME, self._engine.encode())
        self._found = self._engine

    def remove(self, folder: Folder) -> None:
        """Removes it, if it is there. Raises OSError."""
        if self._found:
            self._found = ""
            folder.remove_notes([_NAME])
