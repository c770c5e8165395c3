"""Cutting documents into tasks, from the input alone: task k becomes shard k, on any worker."""

from __future__ import annotations

import hashlib
from collections.abc import Generator, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from penstock._from.text.block import Block, Documents, Listed
from penstock._from.text.raw import RawDocument
from penstock._make.errors import InputError

_BATCH_BYTES = 1 << 20
_BATCH_DOCUMENTS = 1024  # that are parsed one by one


class Batch(NamedTuple):
    """Documents that follow one another in one task; what a worker gets at once.

    Attributes:
        task: The number of the task.
        size_bytes: What the documents count, together.
        completed: The whole task, where this batch is its last.
    """

    task: int
    documents: Documents
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
    documents: Iterable[Documents], task_bytes: int, first_task: int = 0, names: Mapping[str, str] | None = None
) -> Generator[Batch, None, None]:
    """Cuts documents into batches of tasks. A task ends with the document that brings it to `task_bytes`.

    Args:
        documents: The first one begins a task.
        task_bytes: Bytes of input text, at least 1.
        first_task: Its number.
        names: What inputs are called in `Task.places`, by their names; None: that is not asked for.
    """
    task = _Task(first_task, names)
    waiting: Batch | None = None  # the last one of all completes its task, which only the end of the input tells
    for batch in _batches(documents, lists_first=names is not None):
        ends = np.cumsum(batch.sizes(), dtype=np.uint64)
        at = before = 0
        while at < len(batch):
            left = max(task_bytes - task.size_bytes, 0)
            last = int(np.searchsorted(ends, np.uint64(before + left)))
            end = min(last + 1, len(batch))
            part, size = batch[at:end], int(ends[end - 1]) - before
            task.add(part, size)
            if waiting is not None:
                yield waiting
            waiting = Batch(task.number, part, size, None)
            if last < len(batch):
                yield waiting._replace(completed=task.whole())
                waiting, task = None, _Task(task.number + 1, names)
            at, before = end, int(ends[end - 1])
    if waiting is not None:
        yield waiting._replace(completed=task.whole())


def first_of(documents: Iterable[Documents], count: int) -> Iterator[Documents]:
    """The first `count` of them."""
    for some in documents:
        yield some[:count]
        count -= min(len(some), count)
        if not count:
            return


def _batches(documents: Iterable[Documents], lists_first: bool) -> Iterator[Documents]:
    """The same documents, so many at once as a worker gets.

    The first ones one by one with `lists_first`: they tell wrong options from wrong documents, wherever blocks end.
    """
    listed: list[RawDocument] = []
    size = 0
    try:
        for some in documents:
            if isinstance(some, Block) and not lists_first:
                if listed:
                    yield Listed(listed)
                    listed, size = [], 0
                yield some
                continue
            for number, document in enumerate(some, 1):
                listed.append(document)
                size += document.size_bytes()
                if size >= _BATCH_BYTES or len(listed) >= _BATCH_DOCUMENTS:
                    yield Listed(listed)
                    listed, size, lists_first = [], 0, False
                    if isinstance(some, Block):
                        yield some[number:]
                        break
    except InputError:  # tasks that are whole before it are kept
        if listed:
            yield Listed(listed)
        raise
    if listed:
        yield Listed(listed)


class _Task:
    """A task whose documents come one batch after the other."""

    def __init__(self, number: int, names: Mapping[str, str] | None) -> None:
        """Has none yet."""
        self.number = number
        self.size_bytes = 0
        self._names = names
        self._first = self._documents = 0
        self._digest, self._places = hashlib.sha256(), hashlib.sha256()

    def add(self, documents: Documents, size_bytes: int) -> None:
        """The next ones, which count so much."""
        if self._documents == 0:
            self._first = documents[0].number
            self._places.update(b"%d\0" % self._first)  # the list numbers documents over all inputs
        self._digest.update(documents.digested())
        if self._names is not None:
            self._places.update(documents.places(self._names))
        self._documents += len(documents)
        self.size_bytes += size_bytes

    def whole(self) -> Task:
        """The task, which has all of its documents."""
        places = "" if self._names is None else self._places.hexdigest()
        return Task(self.number, self._first, self._documents, self.size_bytes, self._digest.hexdigest(), places)
