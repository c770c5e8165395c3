"""Text, token ids and conversations as a recipe: documents are cut into tasks by their bytes, and tokenized.

Here one process reads and feeds workers, so that an input is read once and one large task has all workers
(`penstock._make.fed`). On a cluster each task is done as a whole where it lands: inputs are measured first.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from penstock._base.words import counted
from penstock._from.engines.engine import EngineError
from penstock._from.text.batches import Processor, Result, Tokenizing
from penstock._from.text.block import Documents
from penstock._from.text.documents import DocumentReader
from penstock._from.text.empty import Empty
from penstock._from.text.engine_note import EngineNote
from penstock._from.text.pieces import Cutter, Piece
from penstock._from.text.skip_list import SkipList, name_of_task
from penstock._from.text.skipping import Limit, SkippedOfTask, described, names_of
from penstock._from.text.summary import WrittenText
from penstock._from.text.tasks import Batch, Task, cut, first_of
from penstock._from.text.untrained import Untrained
from penstock._make.base_recipe import Workshop
from penstock._make.errors import InputError, UsageError
from penstock._make.fed import FedRecipe, FedRun, Item
from penstock._make.folder import Folder
from penstock._make.place import SHARED, Made, Numbered
from penstock._make.writer import Writer

if TYPE_CHECKING:
    import numpy.typing as npt

    from penstock._from.text.tokenizing import DocumentTokenizer


class Measure(NamedTuple):
    """What workers look at before there are tasks: what each document of input `input` counts. u4 or u8 [documents]."""

    input: int


class MadeText(NamedTuple):
    """What a worker says of a whole task: seconds in the tokenizer, documents without tokens of their own."""

    tokenizing_seconds: float
    empty: Empty


@dataclass(frozen=True)
class TextFormat:
    """What the dataset is like.

    Attributes:
        dtype: of a token, as "u2".
        codec: of the metadata; "boundaries": documents without; None: a token stream without documents.
        layout: of the spans.
        tokenizer: what the manifest says of it.
        loss: whether there is a field `loss` beside `token`, u1.
    """

    dtype: str
    codec: str | None
    layout: str
    tokenizer: dict[str, Any] | None
    loss: bool = False


class TextRecipe(FedRecipe):
    """Documents of inputs. One thread at a time.

    Attributes:
        summary: of what is written so far.
        note: that is kept beside unfinished shards.
    """

    compares = True

    def __init__(
        self,
        reader: DocumentReader,
        work: Tokenizing,
        tokenizer: DocumentTokenizer,
        format: TextFormat,
        folder: Folder,
        task_bytes: int,
        options: dict[str, Any],
        limit: Limit | None = None,
    ) -> None:
        """Reads nothing yet.

        Args:
            reader: of the inputs.
            work: how documents become tokens.
            tokenizer: the one that it says, of this process.
            format: what the dataset is like.
            folder: where it goes.
            task_bytes: of input text, after which a task ends.
            options: that decide a shard's bytes, for shard.json.
            limit: how many documents may be left out; None: any number.
        """
        self._reader = reader
        self._inputs = list(reader.inputs)
        self._work = work
        self._folder = folder
        self._task_bytes = task_bytes
        self._options = options
        self._limit = limit
        self._tokenizer = tokenizer
        self._processor: Processor | None = None
        self._skipped: SkipList | None = None
        self._run: Workshop | None = None
        self._manifest = format.tokenizer
        self._read_documents = 0
        self._untrained = Untrained()
        self._added, self._empty = tokenizer.added, Empty()
        self.fields = {"token": format.dtype, "loss": "u1"} if format.loss else {"token": format.dtype}
        self.metadata = format.codec
        self.layout = format.layout
        self.summary = WrittenText(
            folder.path,
            dtype=format.dtype,
            codec=format.codec,
            engine=tokenizer.engine,
            slow_because="" if work.columns.ids is not None else tokenizer.slow_because,
        )
        self.note = EngineNote(tokenizer.engine)
        self.told: Callable[[int, int, WrittenText], None] = lambda done, total, summary: None
        self.measured: Callable[[int, int], None] = lambda done, total: None

    def __getstate__(self) -> dict[str, Any]:
        """For the workers: without what only this process has. They may have another working directory."""
        own: dict[str, Any] = {
            "_work": self._work,
            "_tokenizer": None,
            "_processor": None,
            "_skipped": None,
            "_added": self._added,
        }
        if self._is_fed:  # which read nothing: addresses may hold what is not pickled
            return own
        inputs = [replace(each, path=each.path and each.path.absolute()) for each in self._inputs]
        kept = ("_folder", "_task_bytes", "_options", "fields", "metadata", "layout")
        return {**own, **{name: self.__dict__[name] for name in kept}, "_inputs": inputs}

    def identity(self) -> dict[str, Any]:
        return self._options

    # ---- workers: batches that are fed, and whole tasks

    def look(self, item: Documents | Measure) -> Result | npt.NDArray[Any]:
        if isinstance(item, Measure):
            return self._measure(item.input)
        return self._process(item)

    def place_of(self, item: Documents | Measure) -> str:
        return self._inputs[item.input].name if isinstance(item, Measure) else item[0].place()

    def place(self, task: Piece) -> str:
        return f"document {task.first_document + 1:,}"

    def size(self, task: Piece) -> int:
        return task.size_bytes

    def describe(self, number: int, task: Piece) -> None:
        """Nothing: who reads the documents knows what tells them."""

    def _process(self, documents: Documents) -> Result:
        self._processor = self._processor or Processor(self._work, self._tokenizer)
        return self._processor.process(documents)

    def for_thread(self) -> TextRecipe:
        """The same for another thread of this process."""
        other = copy(self)
        other._processor = Processor(self._work, self._tokenizer.for_thread())
        return other

    def _measure(self, number: int) -> npt.NDArray[Any]:
        columns = self._work.columns
        if not self._work.skips:  # else it may be what is damaged
            columns = columns._replace(metadata=())  # it counts nothing, and reading it takes time
        reader = self._reader_of(slice(number, number + 1), columns, 0)
        sizes = np.concatenate([np.empty(0, np.uint64), *(some.sizes() for some in reader.read())])
        return sizes.astype(np.uint32) if sizes.max(initial=0) < 1 << 32 else sizes

    def _reader_of(self, inputs: slice, columns: Any, first_number: int) -> DocumentReader:
        chosen = self._inputs[inputs]
        for each in chosen[:1]:
            if each.path is not None and not each.refused and not each.path.exists():
                raise InputError(f"{each.name}: not there on {platform.node()}: {SHARED}")
        return DocumentReader(chosen, columns, first_number, skips=self._work.skips, first_input=inputs.start)

    def _batches(self, piece: Piece) -> Iterator[Batch]:
        reader = self._reader_of(slice(piece.input, None), self._work.columns, piece.input_begins)
        documents = first_of(reader.read(piece.first_document), piece.documents)
        return cut(documents, self._task_bytes, piece.number, self._names)

    @property
    def _names(self) -> dict[str, str] | None:
        """What inputs are called in the list of skipped documents; None: there is none."""
        return names_of(self._inputs) if self._work.skips else None

    def see(self, each: Numbered) -> Task:
        return _only([batch.completed for batch in self._batches(each.task)], each.task)

    def is_made_of(self, each: Numbered, seen: Task, found: Any) -> bool:
        if self._skipped is not None:
            return self._skipped.is_made_of(seen, self._options, found)
        said = found.get("skipped") if self._work.skips and isinstance(found, dict) else None
        return bool(found == described(seen, self._options, said)) and (said is None or said["places"] == seen.places)

    def refusal(self, each: Numbered, path: str) -> None:
        """None: it is made again."""

    def make(self, task: Piece, writer: Writer) -> MadeText:
        seconds, completed, empty = 0.0, [], Empty()
        skipped = SkippedOfTask(task.number, names_of(self._inputs))
        for batch in self._batches(task):
            result = self._process(batch.documents)
            append_result(writer, result)
            skipped.add(batch.documents, result.skipped)
            empty = empty.of_batch(batch.documents, result, self._added)
            seconds += result.tokenizing_seconds
            completed.append(batch.completed)
        whole = _only(completed, task)
        said = skipped.said(whole)
        if said is not None:
            self._folder.write_note(name_of_task(task.number), skipped.data())
        writer.set_task(described(whole, self._options, said))
        return MadeText(seconds, empty)

    # ---- this process

    def prepare(self, run: Workshop) -> None:
        self._run = run
        self._skipped = SkipList(run.shards, self._inputs, self._work.skips, self._limit)
        self.note.check(run.shards)
        others, names = run.shards.of_other_options(self._options)
        if others:
            are = "is" if others == 1 else "are"
            self.summary.notes.append(
                f"{counted(others, 'finished shard')} {are} of other options ({', '.join(names)}): made anew"
            )
        if not run.is_fed:
            self._pieces = list(self._cut(run))
            if not self._pieces:
                raise InputError("there are no documents in the input: nothing was written")
            self._skipped.know_total(sum(each.documents for each in self._pieces))

    def _cut(self, run: Workshop) -> Iterator[Piece]:
        if not all(each.rereadable for each in self._inputs):
            raise UsageError("standard input and pipes are on this machine alone: save them to a file first")
        inputs = len(self._inputs)
        cutter = Cutter(self._task_bytes)
        for done, sizes in enumerate(run.map(map(Measure, range(inputs)), inputs), 1):
            yield from cutter.add(sizes)
            self.measured(done, inputs)
        yield from cutter.end()

    def plan(self) -> Iterable[Piece]:
        return self._pieces

    def took(self, made: Made) -> None:
        summary, skipped = self.summary, self._skips
        said = made.task.get("skipped")
        summary.shards += 1
        summary.tokens += made.records
        summary.documents += made.task["documents"] - (0 if said is None else int(said["documents"]))
        if made.is_kept:
            summary.kept_shards += 1
            skipped.know(made.number, said)
        elif not self._is_fed:  # else that is counted by batches
            skipped.know(made.number, said)
            summary.new_tokens += made.records
            summary.text_bytes += made.task["bytes"]
            if isinstance(made.value, MadeText):
                summary.tokenizing_seconds += made.value.tokenizing_seconds
                self._empty = self._empty.joined(made.value.empty)
        summary.skipped = skipped.count

    def finish(self, results: Sequence[Made]) -> Mapping[str, Any]:
        if not results:
            raise InputError("there are no documents in the input: nothing was written")
        if self._is_fed:
            self._skips.know_total(self._read_documents)
        self._skips.end()
        self.summary.workers = 0 if self._run is None else self._run.started
        self.summary.notes += [*self._untrained.notes(), *self._empty.notes(self._added, self.summary.skipped)]
        self.summary.notes += self._skips.notes()
        return {"tokenizer": self._manifest}

    def published(self) -> None:
        self._skips.clean()
        self.summary.skipped = self._skips.count

    def gave_up(self, run: Workshop, error: BaseException) -> None:
        if isinstance(error, EngineError):
            run.shards.remove_made(self._options)
            self._skips.clean()

    @property
    def _is_fed(self) -> bool:
        return self._run is not None and self._run.is_fed

    @property
    def _skips(self) -> SkipList:
        assert self._skipped is not None
        return self._skipped

    # ---- what is fed

    def feed(self, run: FedRun) -> Generator[Item, None, None]:
        self._reader.while_waiting = run.check
        try:
            yield from self._items(run)
        finally:
            self._reader.close()

    def _items(self, run: FedRun) -> Iterator[Item]:
        names = self._names
        batches = cut(self._reader.read(), self._task_bytes, names=names)
        while (batch := next(batches, None)) is not None:
            if not run.shards.may_keep(batch.task, self._options):
                yield Item(batch.task, batch.documents, batch.size_bytes, batch.completed)
            elif batch.completed is not None:
                task, shard = batch.completed, run.shards.finished(batch.task)
                if self._skips.is_made_of(task, self._options, shard.task):
                    self._read_documents += task.documents
                    run.keep(Made(shard.number, shard.task, shard.records, shard.spans, is_kept=True))
                    self.observe()
                    continue
                run.shards.drop(batch.task)
                if not self._reader.rereadable:
                    raise InputError(
                        f"shard {task.number:,} was made of other input, and standard input cannot be read again:"
                        " start anew with --overwrite"
                    )
                batches.close()
                batches = cut(self._reader.read(task.first_document), self._task_bytes, task.number, names)

    def append(self, item: Item, answer: Result, writer: Writer) -> None:
        append_result(writer, answer)
        self._skips.add(item.documents, answer.skipped)
        self._untrained.add(item.documents, answer)
        self._empty = self._empty.of_batch(item.documents, answer, self._added)
        self._read_documents += len(item.documents)
        summary = self.summary
        summary.new_tokens += len(answer.encoded.ids)
        summary.text_bytes += item.bytes
        summary.tokenizing_seconds += answer.tokenizing_seconds
        summary.skipped = self._skips.count

    def describe_fed(self, item: Item) -> dict[str, Any]:
        return self._skips.finish(item.task, self._options)

    def observe(self) -> None:
        self.told(self._reader.consumed_bytes(), self._reader.total_bytes, self.summary)


def append_result(writer: Writer, result: Result) -> None:
    """Adds a batch of documents to a writer of tokens.

    Raises:
        penstock.Error: It cannot be written.
    """
    lengths, ids, loss = result.encoded
    fields: dict[str, Any] = {"token": ids} if loss is None else {"token": ids, "loss": loss}
    if result.entries is not None:
        writer.append_batch(lengths, encoded=(result.entries.data, result.entries.ends), **fields)
    elif writer.keeps_documents:
        writer.append_batch(lengths, **fields)
    else:
        writer.append_batch(**fields)


def _only(completed: list[Task | None], piece: Piece) -> Task:
    """The one task that the documents of a piece are.

    Raises:
        InputError: They are others than they were when tasks were cut.
    """
    tasks = [each for each in completed if each is not None]
    if len(tasks) != 1 or (tasks[0].documents, tasks[0].size_bytes) != (piece.documents, piece.size_bytes):
        raise InputError(f"the inputs changed while they were read, from document {piece.first_document + 1:,} on")
    return tasks[0]
