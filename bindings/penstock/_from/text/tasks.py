"""Cutting documents into tasks, from the input alone: task k becomes shard k, on any worker."""

from __future__ import annotations

import hashlib
from collections.abc import Generator, Iterable, Mapping
from typing import Any, NamedTuple

from penstock._from.text.raw import RawDocument

_BATCH_BYTES = 1 << 20
_BATCH_DOCUMENTS = 1024


class Batch(NamedTuple):
    """Documents that follow one another in one task; what a worker gets at once.

    Attributes:
        task: The number of the task.
        size_bytes: What the documents count, together.
        completed: The whole task, where this batch is its last.
    """

    task: int
    documents: list[RawDocument]
    size_bytes: int
    completed: Task | None


class Task(NamedTuple):
    """One whole task: which documents, how many bytes of input text, and their SHA-256.

    `places` is the SHA-256 of the first one's number, and of where in which file each is; empty where that was not
    asked for.
    """

    number: int
    first_document: int
    documents: int
    size_bytes: int
    sha256: str
    places: str = ""

    def description(self, options: dict[str, Any]) -> dict[str, Any]:
        """What `shard.json` keeps of it; equal for equal input and options, whatever the inputs are called."""
        return {
            "version": 1,
            "number": self.number,
            "documents": self.documents,
            "bytes": self.size_bytes,
            "sha256": self.sha256,
            "options": options,
        }


def cut(
    documents: Iterable[RawDocument], task_bytes: int, first_task: int = 0, names: Mapping[str, str] | None = None
) -> Generator[Batch, None, None]:
    """Cuts documents into batches of tasks. A task ends with the document that brings it to `task_bytes`.

    Args:
        documents: The first one begins a task.
        task_bytes: Bytes of input text, at least 1.
        first_task: Its number.
        names: What inputs are called in `Task.places`, by their names; None: that is not asked for.
    """
    number, first, count, size = first_task, 0, 0, 0
    digest, places = hashlib.sha256(), hashlib.sha256()
    batch: list[RawDocument] = []
    batch_bytes = 0
    for document in documents:
        if count == 0:
            first = document.number
            places.update(b"%d\0" % first)  # the list numbers documents over all inputs
        document_bytes = document.size_bytes()
        digest.update(document.digested())
        if names is not None:
            places.update(f"{names[document.name]}\0{document.line}\0".encode("utf-8", "backslashreplace"))
        batch.append(document)
        batch_bytes += document_bytes
        size += document_bytes
        count += 1
        if size >= task_bytes:
            yield Batch(number, batch, batch_bytes, _task(number, first, count, size, digest, places, names))
            number, count, size, batch, batch_bytes = number + 1, 0, 0, [], 0
            digest, places = hashlib.sha256(), hashlib.sha256()
        elif batch_bytes >= _BATCH_BYTES or len(batch) >= _BATCH_DOCUMENTS:
            yield Batch(number, batch, batch_bytes, None)
            batch, batch_bytes = [], 0
    if count:
        yield Batch(number, batch, batch_bytes, _task(number, first, count, size, digest, places, names))


def _task(number: int, first: int, count: int, size: int, digest: Any, places: Any, names: Any) -> Task:
    return Task(number, first, count, size, digest.hexdigest(), "" if names is None else places.hexdigest())
