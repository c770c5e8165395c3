"""The jobs of `penstock write` where each task is done as a whole: it reads its documents and makes its shard."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from penstock._base.errors import InvalidArgumentError
from penstock._from.text.documents import DocumentReader
from penstock._from.text.inputs import Input
from penstock._from.text.pool import Work, make_tokenizer, process_batch
from penstock._from.text.raw import Columns, RawDocument
from penstock._from.text.sink import append_result
from penstock._from.text.skip_list import name_of_task
from penstock._from.text.skipping import SkippedOfTask, described, names_of
from penstock._from.text.tasks import Batch, Task, cut
from penstock._make.errors import InputError
from penstock._make.folder import Folder
from penstock._make.writer import Writer

if TYPE_CHECKING:
    import numpy.typing as npt


class Piece(NamedTuple):
    """The documents of one task, and where they begin.

    Attributes:
        number: Of the task.
        input: Number of the input that the first document is in.
        input_begins: Number of that input's first document, over all inputs.
        first_document: Its number, over all inputs.
        documents: How many there are.
        size_bytes: What they count, together.
    """

    number: int
    input: int
    input_begins: int
    first_document: int
    documents: int
    size_bytes: int


class Measure(NamedTuple):
    """A job: what each document of input `input` counts when tasks are cut. The answer is u4 or u8 [documents]."""

    input: int


class Digest(NamedTuple):
    """A job: the answer is the Task of a piece."""

    piece: Piece


class Make(NamedTuple):
    """A job: make the shard of a piece. The answer is a Made."""

    piece: Piece


class Made(NamedTuple):
    """A shard that is finished, the seconds that its tokenizer took, and what its description says of skipped ones."""

    task: Task
    tokens: int
    tokenizing_seconds: float
    skipped: dict[str, Any] | None = None


@dataclass
class ShardWork:
    """All that a worker needs to know, wherever it is: paths are absolute.

    Attributes:
        inputs: In their order.
        work: How documents become tokens.
        task_bytes: After which a task ends.
        options: That decide a shard's bytes, for `shard.json`.
        folder: Where the shards go.
        writing: Keyword arguments of its Writer, beside the shard.
    """

    inputs: list[Input]
    work: Work
    task_bytes: int
    options: dict[str, Any]
    folder: Folder
    writing: dict[str, Any]
    _tokenizer: Any = field(default=None, repr=False)

    def begin(self) -> Callable[[Measure | Digest | Make], Any]:
        """What is called for each job."""

        def work(job: Measure | Digest | Make) -> Any:
            if isinstance(job, Measure):
                return self._measure(job.input)
            return self._digest(job.piece) if isinstance(job, Digest) else self._make(job.piece)

        return work

    def place(self, job: Measure | Digest | Make) -> str:
        """The first document."""
        if isinstance(job, Measure):
            return self.inputs[job.input].name
        return f"document {job.piece.first_document + 1:,}"

    def _measure(self, number: int) -> npt.NDArray[Any]:
        columns = self.work.columns
        if not self.work.skips:  # else it may be what is damaged
            columns = columns._replace(metadata=())  # it counts nothing, and reading it takes time
        reader = self._reader(slice(number, number + 1), columns, 0)
        sizes = np.fromiter((each.size_bytes() for each in reader.documents()), np.uint64)
        return sizes.astype(np.uint32) if sizes.max(initial=0) < 1 << 32 else sizes

    def _reader(self, inputs: slice, columns: Columns, first_number: int) -> DocumentReader:
        chosen = self.inputs[inputs]
        for each in chosen[:1]:
            if each.path is not None and not each.refused and not each.path.exists():
                raise InputError(f"{each.name}: not there on {platform.node()}: {_SHARED}")
        return DocumentReader(chosen, columns, first_number, skips=self.work.skips, first_input=inputs.start)

    def _documents(self, piece: Piece) -> Iterator[RawDocument]:
        reader = self._reader(slice(piece.input, None), self.work.columns, piece.input_begins)
        return islice(reader.documents(piece.first_document), piece.documents)

    def _digest(self, piece: Piece) -> Task:
        return _only([batch.completed for batch in self._batches(piece)], piece)

    def _batches(self, piece: Piece) -> Iterator[Batch]:
        names = self._names if self.work.skips else None
        return cut(self._documents(piece), self.task_bytes, piece.number, names)

    @property
    def _names(self) -> dict[str, str]:
        return names_of(self.inputs)

    def _make(self, piece: Piece) -> Made:
        try:
            return self._write(piece)
        except InvalidArgumentError:
            made = self._made_before(piece)
            if made is None:
                raise
            return made

    def _write(self, piece: Piece) -> Made:
        if not self.folder.is_there():
            raise InputError(f"{self.folder.path}: not there on {platform.node()}: {_SHARED}")
        self._tokenizer = self._tokenizer or make_tokenizer(self.work.tokenizer)
        tokens, seconds, completed = 0, 0.0, []
        skipped = SkippedOfTask(piece.number, self._names)
        with Writer(self.folder, **self.writing, shard=piece.number) as writer:
            for batch in self._batches(piece):
                result = process_batch(self._tokenizer, self.work, batch.documents)
                append_result(writer, result)
                skipped.add(batch.documents, result.skipped)
                tokens += len(result.encoded.ids)
                seconds += result.tokenizing_seconds
                completed.append(batch.completed)
            task = _only(completed, piece)
            said = skipped.said(task)
            if said is not None:
                self.folder.write_note(name_of_task(piece.number), skipped.data())
            writer.set_task(described(task, self.options, said))
        return Made(task, tokens, seconds, said)

    def _made_before(self, piece: Piece) -> Made | None:
        """The shard, if an earlier attempt at this task finished it and was killed before it could say so."""
        there = self.folder.finished(self.writing["overwrite"], now=True)
        for found in (each for each in there if each.number == piece.number):
            task, there = self._digest(piece), found.task
            said = there.get("skipped") if self.work.skips and isinstance(there, dict) else None
            if there == described(task, self.options, said) and (said is None or said["places"] == task.places):
                return Made(task, found.records, 0.0, said)
        return None


_SHARED = "inputs and --out must be where all nodes of the cluster have them, at the same path"


def _only(completed: list[Task | None], piece: Piece) -> Task:
    """The one task that the documents of a piece are.

    Raises:
        InputError: They are others than they were when tasks were cut.
    """
    tasks = [each for each in completed if each is not None]
    if len(tasks) != 1 or (tasks[0].documents, tasks[0].size_bytes) != (piece.documents, piece.size_bytes):
        raise InputError(f"the inputs changed while they were read, from document {piece.first_document + 1:,} on")
    return tasks[0]
