"""Text recipes as `penstock write` makes them, of parts that tests choose."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from penstock._from.text.batches import Tokenizing, make_tokenizer
from penstock._from.text.documents import DocumentReader
from penstock._from.text.recipe import TextFormat, TextRecipe
from penstock._from.text.skipping import Limit
from penstock._from.text.summary import WrittenText
from penstock._make.executors import Here, Processes, executor_of
from penstock._make.fed import FedRun
from penstock._make.folders import folder_of
from penstock._make.place import Numbered, Place
from penstock._make.run import Run
from penstock._make.shard_work import Make, ShardWork

OPTIONS: dict[str, Any] = {"a": 1}


def recipe(
    reader: DocumentReader, work: Tokenizing, out: Path, task_bytes: int, limit: Limit | None = None, **options: Any
) -> TextRecipe:
    """Tokens of two bytes with JSON entries; `options` in the place of OPTIONS."""
    tokenizer = make_tokenizer(work.tokenizer)
    format = TextFormat("u2", "json", "compact", tokenizer.manifest_entry())
    return TextRecipe(reader, work, tokenizer, format, folder_of(out), task_bytes, options or OPTIONS, limit)


def by_batches(made: TextRecipe, workers: int = 2, **given: Any) -> WrittenText:
    """Fed by this process."""
    FedRun(made, folder_of(made.summary.path), executor_of(workers), **given).make()
    return made.summary


class Far(Processes):
    """Processes that stand for those of other machines."""

    is_far = True


class Near:
    """Tasks one after another in this process, as several workers do them: what needs no process of its own."""

    is_far = False

    def pool(self, work: Any) -> Any:
        return Here().pool(work)


def by_tasks(made: TextRecipe, workers: int = 2, **given: Any) -> WrittenText:
    """By whole tasks, as on a cluster."""
    Run(made, folder_of(made.summary.path), Far(workers), **given).make()
    return made.summary


def make_shard(made: TextRecipe, task: Any) -> Any:
    """What a worker answers that is to make the shard of one task."""
    work = ShardWork(made, Place(folder_of(made.summary.path), "r", overwrite=False))
    (answer,) = work.begin()(Make([Numbered(task.number, task)]))
    return answer
