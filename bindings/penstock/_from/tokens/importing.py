"""`penstock.import_tokens`: what it takes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from penstock._base.arguments import index
from penstock._base.errors import InvalidArgumentError
from penstock._base.words import excerpt
from penstock._data.dtype import numpy_dtype
from penstock._data.token_documents import doubt, refuse_other_side, untold
from penstock._from.tokens.formats import inputs_of
from penstock._from.tokens.in_place import InPlace
from penstock._from.tokens.plan import make_plan
from penstock._from.tokens.reader import Boundary, Input
from penstock._from.tokens.recipe import ImportedTokens, TokenRecipe
from penstock._make.executors import Processes, Threads, executor_of, is_far
from penstock._make.folders import folder_of
from penstock._make.run import Run
from penstock._places.paths import PathLike, as_paths
from penstock._places.remote import far_of
from penstock._places.storage import Storage

if TYPE_CHECKING:
    from penstock._make.pools import Executor


def import_tokens(
    inputs: PathLike | Iterable[PathLike],
    out: PathLike,
    *,
    format: str | None = None,
    column: str | None = None,
    metadata: Sequence[str] | str = (),
    dtype: str | None = None,
    end_of_document: int | None = None,
    begin_of_document: int | None = None,
    shard_size: int = 1 << 30,
    workers: int | Executor = 1,
    resume: bool = False,
    overwrite: bool = False,
    storage: Storage | None = None,
    scratch: PathLike | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> ImportedTokens:
    """Makes a dataset of token files of other formats: all that `penstock.open` reads in place, and what it cannot.

    The bytes written are the same for any `workers`. Tokens that have no documents become a token stream, others a
    document each. docs/foreign.md says what each format loses.

    Args:
        inputs: a file, a folder, a glob or an address, or several of them, end to end.
        out: the dataset's folder, or its address in a bucket.
        format: of all inputs: "raw" (.bin and .npy of bare tokens, llm.c), "megatron", "datatrove", "olmo", "litdata",
            "mds", "huggingface" (a folder of save_to_disk), "parquet" or "webdataset"; None: as name and content say.
        column: what holds the tokens, in formats that have columns; None: "tokens" or "input_ids".
        metadata: names of columns or keys that become the documents' metadata, as JSON; "all": all of them.
        dtype: "u1", "u2" or "u4": of a token, where the file does not say it; else the type that the dataset stores.
        end_of_document: the token that ends a document, for inputs without documents: it stays the document's last.
            nanoGPT's files have it.
        begin_of_document: the token with which a document begins, likewise. llm.c's and modded-nanogpt's files have it.
        shard_size: bytes of tokens that a shard is made of; a file that cannot be cut is not.
        workers: how many; 1: this process alone. Threads where native code makes the shards (files of bare tokens,
            Megatron's, datatrove's and others of this machine, without metadata, into a folder of it), else processes.
            Or an executor, such as penstock.ray.Cluster.
        resume: keep the finished shards of a run that did not end and had the same inputs and options.
        overwrite: replace a dataset that is there, once the new one is whole.
        storage: how addresses are reached.
        scratch: where shards of a bucket are until they are uploaded.
        progress: called with (bytes done, bytes in all) as shards are finished; may raise to stop.

    Returns:
        Counts.

    Raises:
        InvalidArgumentError: an input or option that cannot be; a token that does not fit; something is at `out`; the
            inputs begin with the token that is to end documents and do not end with it, or the reverse: documents lie
            on its other side.
        CorruptionError: an input is damaged or truncated.
        NotFoundError: an input is not there.
        IoError: the dataset cannot be written; finished shards are kept.
        ModuleNotFoundError: the format needs a package of the extra `formats`.
        RuntimeError: a worker process was killed; finished shards are kept.

    Examples:
        >>> import numpy as np, os, penstock, tempfile
        >>> folder = tempfile.mkdtemp()
        >>> np.array([5, 6, 0, 7, 0, 8], "u2").tofile(os.path.join(folder, "train.bin"))
        >>> out = os.path.join(folder, "corpus")
        >>> penstock.import_tokens(os.path.join(folder, "train.bin"), out, dtype="u2", end_of_document=0).documents
        3
        >>> [each["token"].tolist() for each in penstock.open(out).documents()]
        [[5, 6, 0], [7, 0], [8]]
    """
    begin = time.perf_counter()
    given = as_paths(inputs)
    if not given:
        raise InvalidArgumentError("inputs: the list is empty: give at least one")
    kept = _kept(metadata)
    if dtype is not None:
        numpy_dtype(dtype)  # which refuses what is none
    boundary = _boundary(end_of_document, begin_of_document)
    most = index("shard_size", shard_size, 1)
    executor = executor_of(workers)
    folder = folder_of(out, storage if far_of([out]) else None, scratch)  # storage may be for inputs alone
    found = inputs_of(given, format, column, kept, dtype, boundary, storage)
    if is_far(executor):  # on other machines, where the working directory is another
        folder = folder.absolute()
        found = [replace(each, at=each.at.absolute()) for each in found]
    if any(each.at.folder("index.json").is_same(folder.path) for each in found):
        raise InvalidArgumentError(f"{folder.path} is an input: choose another folder for the new dataset")
    options = {
        "column": column,
        "metadata": "all" if kept is None else list(kept),
        "end_of_document": end_of_document,
        "task_bytes": most,
        **({} if begin_of_document is None or boundary is None else {"begin_of_document": boundary.token}),
    }
    plan = make_plan(found, options, dtype, most)
    sides = None if boundary is None else _sides(plan.inputs, boundary)
    if plan.is_native and folder.is_here and isinstance(executor, Processes):
        executor = Threads(executor.count)
    run = Run(TokenRecipe(plan), folder, executor, resume=resume, overwrite=overwrite, progress=progress)
    made = run.make()
    done = ImportedTokens(
        made.path, made.documents, made.records, made.shards, made.kept_shards, plan.fields, plan.codec
    )
    if boundary is not None and sides is not None:
        done.notes += _notes(sides, boundary, done.documents <= len(plan.inputs))
    done.seconds = time.perf_counter() - begin
    return done


def _kept(metadata: Sequence[str] | str) -> tuple[str, ...] | None:
    """Names of what is kept of documents; None: all.

    Raises:
        InvalidArgumentError: They are no list of names, each once.
    """
    if metadata == "all":
        return None
    if isinstance(metadata, str):
        raise InvalidArgumentError(f'metadata={metadata!r:.80}: a list of names is wanted, or "all"')
    kept = tuple(metadata)
    for name in kept:
        if not isinstance(name, str) or kept.count(name) > 1:
            raise InvalidArgumentError(f"metadata: {excerpt(name)!r}: a list of names is wanted, each once")
    return kept


def _boundary(end: int | None, begin: int | None) -> Boundary | None:
    if end is not None and begin is not None:
        raise InvalidArgumentError(
            f"end_of_document={end!r:.80} and begin_of_document={begin!r:.80}: give one of them, each document has it"
        )
    if end is not None:
        return Boundary("end_of_document", index("end_of_document", end))
    return None if begin is None else Boundary("begin_of_document", index("begin_of_document", begin))


class _Sides(NamedTuple):
    """Whether a file's end has the token on the side that was given, and names of files with it on the other one."""

    told: bool
    other: list[str]


def _sides(inputs: list[Input], boundary: Boundary) -> _Sides:
    """Looks at the ends of all files.

    Raises:
        InvalidArgumentError: documents seem to lie on the other side of the token.
    """
    ends, token = [each for one in inputs for each in InPlace(one).ends()], boundary.token
    if not ends:
        return _Sides(False, [])
    refuse_other_side(inputs[0].name, boundary.by, token, ends[0].first == token, ends[-1].last == token)
    by_end = boundary.by == "end_of_document"
    return _Sides(
        any((each.last if by_end else each.first) == token for each in ends),
        [each.name for each in ends if (each.first if by_end else each.last) == token],
    )


def _notes(sides: _Sides, boundary: Boundary, one_each: bool) -> list[str]:
    """What the ends of files leave open; `one_each`: each input is a document or nothing."""
    said = doubt(boundary.by, boundary.token, sides.other)
    if said is not None:
        return [said]
    if sides.told:
        return []
    if not one_each:
        return [untold(boundary.by, boundary.token)]
    return [f"token {boundary.token:,} occurs nowhere, so each input is one document: is {boundary.by} another?"]
