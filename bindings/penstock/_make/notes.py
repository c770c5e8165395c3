"""Small files beside the shards of a dataset, of which it is not made."""

from __future__ import annotations

from contextlib import suppress

from penstock._base.errors import Error
from penstock._make.folder import Folder

LIST = "skipped.jsonl"
"""The list of documents that `penstock write` left out."""


def remove_list(folder: Folder) -> None:
    """Removes the list of what the dataset that was replaced had left out. The new one is published, come what may."""
    with suppress(Error, OSError):
        folder.remove_notes([LIST])
