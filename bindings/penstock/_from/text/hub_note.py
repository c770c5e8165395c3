"""The commits of the Hub that a run reads, noted beside its shards until the dataset is published."""

from __future__ import annotations

from penstock._make.folder import Folder
from penstock._places.stores.hub_files import Pins

_NAME = ".hub-revisions"


class HubNote:
    """The note of a run: one that goes on with it reads the same commits, though a branch moved in between."""

    def __init__(self, pins: Pins) -> None:
        """`pins` are complete when the run begins."""
        self._pins = pins

    @staticmethod
    def read(folder: Folder) -> Pins:
        """The commits that an unfinished run in the folder read; nothing where there is none. Raises OSError."""
        return Pins.of_note(folder.read_note(_NAME))

    def write(self, folder: Folder) -> None:
        """Writes it. Raises OSError."""
        folder.write_note(_NAME, self._pins.note())

    def remove(self, folder: Folder) -> None:
        """Removes it."""
        folder.remove_notes([_NAME])
