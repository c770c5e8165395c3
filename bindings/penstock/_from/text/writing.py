"""`penstock.write`: what it takes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock._base.arguments import index
from penstock._base.errors import InvalidArgumentError, IoError
from penstock._from.engines.engine import REFERENCE, EngineError
from penstock._from.text.batches import Tokenizing, make_tokenizer
from penstock._from.text.documents import DocumentReader
from penstock._from.text.hub_note import HubNote
from penstock._from.text.inputs import expand_inputs
from penstock._from.text.recipe import TextFormat, TextRecipe
from penstock._from.text.request import Request
from penstock._from.text.summary import WrittenText
from penstock._from.text.tokenizing import DocumentTokenizer
from penstock._make.errors import InputError, OptionError, UnusableError, UsageError
from penstock._make.executors import Processes, Threads, executor_of, is_far
from penstock._make.fed import FedRun
from penstock._make.folders import folder_of
from penstock._make.python_words import in_python, said_in_python
from penstock._make.run import Run
from penstock._places.hub import is_hub
from penstock._places.paths import PathLike, as_paths
from penstock._places.storage import Storage
from penstock._places.stores.hub_files import Pins

if TYPE_CHECKING:
    from penstock._make.folder import Folder
    from penstock._make.pools import Executor

_MOST_FILES = 4  # that are read at a time
Told = Callable[[int, int, WrittenText], None]


def write(
    inputs: PathLike | Iterable[PathLike],
    out: PathLike,
    *,
    tokenizer: PathLike | None = None,
    format: str | None = None,
    text_column: str = "text",
    ids_column: str | None = None,
    messages: str | None = None,
    text_per: str = "file",
    name: str | None = None,
    prepend: Sequence[str] = (),
    append: Sequence[str] = (),
    post_processor: bool = False,
    special_tokens_in_text: bool = False,
    metadata: str | Sequence[str] | None = "boundaries",
    codec: str | None = None,
    layout: str = "compact",
    dtype: str = "auto",
    tokenizer_engine: str = "auto",
    memory: int = 1 << 30,
    shard_size: int = 1 << 30,
    on_error: str = "stop",
    max_skipped: str | int | None = None,
    workers: int | Executor = 1,
    resume: bool = False,
    overwrite: bool = False,
    run_id: str | None = None,
    clean: bool = False,
    storage: Storage | None = None,
    scratch: PathLike | None = None,
    progress: Told | None = None,
    preparing: Callable[[str, int, int], None] | None = None,
    uploading: Callable[[int, int], None] | None = None,
) -> WrittenText:
    """Makes a dataset of text, conversations, or token ids: JSON lines, Parquet or plain text, also as .gz and .zst.

    The bytes written are the same for any `workers`. `penstock write` is this function.

    Args:
        inputs: a file, an address, a glob or "-" for standard input, or several of them, end to end.
        out: the dataset's folder, or its address in a bucket: s3://, gs:// or az://.
        tokenizer: a tokenizer.json, which text needs; with `messages` the folder of a tokenizer of transformers.
        format: of all inputs: "jsonl", "text" or "parquet"; None: as their suffixes say.
        text_column: the column that holds the text.
        ids_column: the column that holds token ids already made, instead of text.
        messages: the column that holds conversations, lists of {role, content}, instead of text.
        text_per: "file" or "line": what one document of plain text is.
        name: the tokenizer's name in the manifest; None: that of its file.
        prepend: tokens, such as "<s>", put before each document; with `ids_column` numbers as text.
        append: tokens, such as "<|endoftext|>", put after each document.
        post_processor: let the tokenizer add its own special tokens.
        special_tokens_in_text: read <|…|> in a text as the special token of that name.
        metadata: columns kept with each document; "all"; "boundaries": where each begins; None: tokens alone.
        codec: how columns are stored: "json" (None), "msgpack", or "raw", the text of one column as it is.
        layout: "compact", or "ids", which stores the document's number beside each token.
        dtype: of a token: "u1", "u2" or "u4"; "auto": u2 for vocabularies up to 65,536, else u4.
        tokenizer_engine: what computes the ids: "tokenizers"; "gigatoken", which is many times faster and is compared
            with it while it works; or "auto": the fastest that is installed, reads this tokenizer, and agrees.
        memory: bytes that each worker's engine may keep of text that it has seen.
        shard_size: bytes of input text that one shard is made of.
        on_error: of documents that cannot be used: "stop" at the first, or "skip" them and list them in skipped.jsonl.
        max_skipped: the most documents that may be left out, as 1000, or as a share of all, as "0.5%"; None: any.
        workers: threads that tokenize, or processes where an engine or a chat template keeps Python's lock; 1: neither.
            Or an executor, such as penstock.ray.Cluster.
        resume: keep the finished shards of a run that did not end and had the same input and options.
        overwrite: replace a dataset that is there, once the new one is whole.
        run_id: name of this run, where several processes write into one folder together.
        clean: remove what other runs left unfinished in the folder; they must have ended.
        storage: how addresses are reached.
        scratch: where shards of a bucket are until they are uploaded; None: the folder of temporary files. Not for a
            folder of this machine.
        progress: called with (bytes done, bytes in all, what is written so far); 0 where the total is unknown. May
            raise to stop.
        preparing: called with (what is done, done, in all) while none is written; may raise to stop.
        uploading: called with (bytes sent, bytes to be sent) while it waits for uploads; may raise to stop.

    Returns:
        Counts, and how long it took.

    Raises:
        InvalidArgumentError: options or inputs that do not go together; something is at `out`.
        ValueError: a document that cannot be used, with its place; there are none; too many are left out.
        IoError: the dataset cannot be written; finished shards are kept.
        RuntimeError: a worker process was killed, or a worker failed; finished shards are kept.
        ModuleNotFoundError: a package of the extra `text` is not installed.

    Examples:
        >>> import os, penstock, tempfile
        >>> folder = tempfile.mkdtemp()
        >>> path, out = os.path.join(folder, "ids.jsonl"), os.path.join(folder, "corpus")
        >>> with open(path, "w") as file:
        ...     _ = file.write('{"ids": [5, 6, 7], "url": "a"}\\n{"ids": [8], "url": "b"}\\n')
        >>> done = penstock.write(path, out, ids_column="ids", dtype="u2", metadata=["url"])
        >>> done.documents, done.tokens
        (2, 4)
        >>> penstock.open(out).documents()[1].spans[0].metadata
        {'url': 'b'}
    """
    given = {each: value for each, value in locals().items() if each in Request.names()}
    if tokenizer is not None:
        given["tokenizer"] = str(tokenizer)
    paths = [str(each) for each in as_paths(inputs)]
    if not paths:
        raise InvalidArgumentError("inputs: the list is empty: give at least one")
    with said_in_python():
        try:
            done = write_text(
                paths,
                out,
                Request(**given),
                executor_of(workers),
                resume=resume,
                overwrite=overwrite,
                run_id=run_id,
                clean=clean,
                storage=storage,
                scratch=scratch,
                progress=progress,
                preparing=preparing,
                uploading=uploading,
            )
        except UsageError as error:
            raise InvalidArgumentError(str(error)) from None
    done.notes = [in_python(each) for each in done.notes]
    return done


@dataclass
class Source:
    """Inputs that were looked at, and the tokenizer.

    Attributes:
        request: what was asked for.
        reader: of the inputs.
        work: how documents become tokens.
        tokenizer: of this process.
        pins: commits of the inputs that lie on the Hub.
    """

    request: Request
    reader: DocumentReader
    work: Tokenizing
    tokenizer: DocumentTokenizer
    pins: Pins


def source_of(inputs: Sequence[str], request: Request, storage: Storage | None, pins: Pins | None = None) -> Source:
    """Finds the inputs and loads the tokenizer; reads no documents. `pins` as of `expand_inputs`.

    Raises:
        UsageError: No such input, or one that the options are not for.
        penstock.IoError: An address cannot be reached.
    """
    work = Tokenizing(request.tokenizer_options, request.columns, request.entry_codec, request.skips)
    tokenizer = make_tokenizer(work.tokenizer)
    tokenizer.refuse_draws()
    pins = pins or Pins()
    found = expand_inputs(inputs, request.format, storage, skips=request.skips, pins=pins)
    for each in found:
        if each.format == "text" and (work.columns.ids is not None or work.columns.messages):
            option = "--messages" if work.columns.messages else "--ids-column"
            raise UsageError(f"{each.name}: plain text has no columns: {option} is for JSON lines and Parquet")
    return Source(request, DocumentReader(found, work.columns, skips=request.skips), work, tokenizer, pins)


def write_text(
    inputs: Sequence[str],
    out: PathLike,
    request: Request,
    executor: Executor,
    *,
    resume: bool,
    overwrite: bool,
    run_id: str | None,
    clean: bool,
    storage: Storage | None,
    scratch: PathLike | None,
    progress: Told | None,
    preparing: Callable[[str, int, int], None] | None,
    uploading: Callable[[int, int], None] | None,
    noted: Callable[[str], None] = lambda note: None,
) -> WrittenText:
    """As `penstock.write`; messages name options as the command line does, and `noted` is told of each note at once.

    Raises:
        UsageError: Options or inputs that do not go together.
        InputError: A document that cannot be used.
    """
    begin = time.perf_counter()
    index("shard_size", request.shard_size, 1)
    folder = folder_of(out, storage, scratch, inputs=inputs)
    goes_on = resume and any(map(is_hub, inputs))
    source = source_of(inputs, request, storage, HubNote.read(folder) if goes_on else None)
    holding: dict[str, Any] = {"resume": resume, "overwrite": overwrite, "run": run_id, "clean": clean}
    told = (progress, preparing, uploading)
    notes = _Notes(noted)
    notes.add(*source.tokenizer.notes)
    try:
        summary = _make(source, folder, executor, holding, *told)
    except EngineError as error:
        wrong = str(error)  # without the run that it holds, and the memory of its engines
    else:
        wrong = ""
    if wrong:
        source = _without_engine(source, inputs, storage, wrong)
        notes.add(f"all is made again by tokenizers: {wrong}")
        summary = _make(source, folder, executor, {**holding, "resume": True}, *told)
        summary.fell_back = True
    try:
        summary.bytes = folder.size_bytes()
    except IoError as error:
        raise IoError(
            error.errno, f"{folder.path} was written; its size cannot be read: {error}", error.filename
        ) from None
    notes.add(*summary.notes)
    summary.notes = notes.added
    summary.seconds = time.perf_counter() - begin
    return summary


class _Notes:
    """Notes, each of which is told once."""

    def __init__(self, told: Callable[[str], None]) -> None:
        self._told = told
        self.added: list[str] = []

    def add(self, *notes: str) -> None:
        for each in notes:
            if each not in self.added:
                self.added.append(each)
                self._told(each)


def _without_engine(source: Source, inputs: Sequence[str], storage: Storage | None, error: str) -> Source:
    """The same source with the engine whose ids are right.

    Raises:
        EngineError: The engine was asked for by name, or the inputs cannot be read again.
    """
    if source.request.tokenizer_engine != "auto":
        raise EngineError(f"{error}; --tokenizer-engine tokenizers gives its own")
    if not source.reader.rereadable:
        raise EngineError(
            f"{error}; standard input cannot be read again: start anew with --tokenizer-engine tokenizers"
        )
    slow = source_of(inputs, replace(source.request, tokenizer_engine=REFERENCE), storage, source.pins)
    slow.tokenizer.slow_because = error
    return slow


def _make(
    source: Source,
    folder: Folder,
    executor: Executor,
    holding: dict[str, Any],
    progress: Told | None,
    preparing: Callable[[str, int, int], None] | None,
    uploading: Callable[[int, int], None] | None,
) -> WrittenText:
    """One run with one engine.

    Raises:
        EngineError: The engine is wrong; no shard is kept.
    """
    far = is_far(executor)
    if far:
        folder = folder.absolute()
    elif isinstance(executor, Processes) and (source.work.columns.ids is not None or source.tokenizer.shares_threads):
        executor = Threads(executor.count)
    if isinstance(executor, (Threads, Processes)):
        source.reader.files_at_once = min(executor.count, _MOST_FILES)
    recipe = _recipe_of(source, folder, far)
    if progress is not None:
        recipe.told = progress
    if preparing is not None:
        recipe.measured = lambda done, total: preparing("cutting the input into tasks", done, total)
    try:
        if far:
            told = None if progress is None else lambda done, total: progress(done, total, recipe.summary)
            run = Run(recipe, folder, executor, progress=told, **holding)
        else:
            run = fed = FedRun(recipe, folder, executor, **holding)
            fed.uploading = uploading
        run.notes = (recipe.note, *([HubNote(source.pins)] if source.pins.commits else []))
        run.make()
    except UnusableError as error:
        if isinstance(error, OptionError):  # of the first document: the option may be wrong
            raise
        raise InputError(f"{error}; --on-error skip leaves out what cannot be used") from error
    return recipe.summary


def _recipe_of(source: Source, folder: Any, far: bool) -> TextRecipe:
    request, tokenizer, work = source.request, source.tokenizer, source.work
    format = TextFormat(
        tokenizer.dtype,
        request.codec_of_dataset,
        request.layout,
        tokenizer.manifest_entry(),
        request.messages is not None,
    )
    engine = "auto" if tokenizer.engine else REFERENCE
    work = work._replace(tokenizer=replace(work.tokenizer, engine=engine, made_by=tokenizer.engine))
    if far and work.tokenizer.file is not None:  # workers have another working directory
        file = Path(work.tokenizer.file).expanduser()
        if file.exists():
            work = work._replace(tokenizer=replace(work.tokenizer, file=str(file.absolute())))
    identity = request.identity(tokenizer)
    return TextRecipe(source.reader, work, tokenizer, format, folder, request.shard_size, identity, request.limit)
