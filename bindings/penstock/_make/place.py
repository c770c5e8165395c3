"""Where a run's shards go, and what of them is known."""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from penstock._make.errors import InputError
from penstock._make.folder import Folder
from penstock._make.writer import Writer

SHARED = "inputs and --out must be where all nodes of the cluster have them, at the same path"


class Numbered(NamedTuple):
    """A task, and the number of the shard that it becomes."""

    number: int
    task: Any


class Made(NamedTuple):
    """A shard of a task.

    Attributes:
        number: of the shard.
        task: the task's description, as shard.json has it.
        records: of the shard.
        documents: of the shard; 0 of a token stream.
        value: what `Recipe.make` gave; of a shard that is kept what `Recipe.see` gave.
        is_kept: whether an earlier run had made it.
    """

    number: int
    task: Any
    records: int
    documents: int
    value: Any = None
    is_kept: bool = False


@dataclass
class Place:
    """Where shards of one run go.

    Attributes:
        folder: of the dataset.
        run: name of the run that all writers belong to.
        overwrite: whether a published dataset is there, to be replaced.
    """

    folder: Folder
    run: str
    overwrite: bool

    def write(self, number: int, task: Any, options: Mapping[str, Any], make: Callable[[Writer], Any]) -> Made:
        """Makes shard `number` of what `make` appends; `task` and `options` are the Writer's.

        Raises:
            InputError: The folder is not on this machine.
            penstock.Error: As the Writer.
        """
        if not self.folder.is_there():
            raise InputError(f"{self.folder.path}: not there on {platform.node()}: {SHARED}")
        writer = Writer(self.folder, **options, shard=number, run=self.run, overwrite=self.overwrite, task=task)
        with writer:
            value = make(writer)
        return Made(number, writer.task, writer.records, writer.documents, value)
