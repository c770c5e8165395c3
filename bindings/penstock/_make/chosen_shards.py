"""The change of shards that leaves documents out."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from penstock._base.errors import InvalidArgumentError
from penstock._data import codecs
from penstock._data.anndata.forms import Note
from penstock._data.dataset import Dataset
from penstock._data.open import open as open_dataset
from penstock._data.stored_columns import DocumentColumn
from penstock._make.shardwise import TakenShard
from penstock._make.stored import ONLY_SHARD, Stored
from penstock._make.writer import Writer

_RECORDS = 1 << 22  # that are read at once
_DOCUMENTS = 1 << 14  # that are read at once


class Chosen:
    """Some documents of each shard, with metadata and columns, in order.

    Values are their numbers, the shard's digest, and {name: categories} of columns that keep all of theirs.
    """

    note: str | None = None

    def apply(self, local: Path, values: Sequence[Any], to: Path) -> Path:
        dataset, numbers, kept = open_dataset(local), values[0], values[2]
        types: dict[str, Any] = {
            name: kept.get(name, "category") if column.categories is not None else (column.dtype, column.shape[1:])
            for name, column in dataset.columns.items()
        }
        codec = codecs.from_json(dataset._native.codec_json)
        assert codec is not None  # or it would have no documents
        fields = None if dataset.mode == "opaque" else dataset.dtype
        with Writer(to, fields, codec, columns=types, shard=0, task=_task(values)) as writer:
            for begin, end in _steps(dataset, numbers):
                writer.append_batch(**_documents(dataset, numbers[begin:end]))
        return to / ONLY_SHARD

    def is_made_of(self, found: Mapping[str, Any], given: Mapping[str, Any]) -> bool:
        return True  # its task tells

    def task(self, taken: TakenShard) -> Any:
        return _task(taken.values)

    def digest(self, values: Sequence[Any]) -> str:
        return ""


def _task(values: Sequence[Any]) -> Any:
    return {"chosen_of": values[1], "documents": hashlib.sha256(values[0].tobytes()).hexdigest()}


def chosen_tasks(source: Stored, where: str | None, without: Any) -> list[TakenShard]:
    """The shards of a dataset, each with the numbers of its documents that stay.

    Raises:
        InvalidArgumentError: a condition that cannot be, numbers of no documents, no documents are left out or all are;
            the documents of a token stream or of the ids layout.
    """
    dataset = source.dataset
    _check(source)
    count = dataset.spans
    if where is None:
        stays = np.ones(count, bool)
    else:
        view = dataset.where(where).documents()
        stays = np.zeros(count, bool)
        stays[view.base_indices(np.arange(len(view)))] = True
    stays[_numbers(source, without, count)] = False
    kept = int(np.count_nonzero(stays))
    if kept in (0, count):
        raise InvalidArgumentError(
            f"{source.path}: {'none' if kept else 'all'} of {count:,} documents would be left out"
        )
    tasks, first, ordered = [], 0, _with_an_order(dataset)
    for shard in source.shards:
        numbers = np.flatnonzero(stays[first : first + shard.entries])
        tasks.append(TakenShard(0, shard, [numbers, hashlib.sha256(shard.text).hexdigest(), ordered]))
        first += shard.entries
    return tasks


def _with_an_order(dataset: Dataset) -> dict[str, list[str]]:
    """Categories of the columns whose order or numbers an import of cells noted: the note is of all of them."""
    if dataset.features is None:
        return {}
    noted = Note.of(dataset.features._note).obs
    columns = {name: dataset.columns[name] for name, form in noted.items() if form.names and name in dataset.columns}
    return {name: list(column._categories or ()) for name, column in columns.items() if noted[name].fits(column)}


def _check(source: Stored) -> None:
    dataset = source.dataset
    if dataset.codec is None or dataset.spans == 0:
        raise InvalidArgumentError(f"{source.path}: it has no documents, of which some could be left out")
    if dataset.layout == "ids":
        raise InvalidArgumentError(
            f"{source.path}: in the ids layout only the records tell which are of a document: convert it to the layout "
            "compact first"
        )


def _numbers(source: Stored, without: Any, count: int) -> npt.NDArray[np.int64]:
    given = np.asarray(without)
    if given.dtype.kind == "b":
        if given.shape != (count,):
            raise InvalidArgumentError(f"without: a mask of shape {list(given.shape)}: [{count}] wanted")
        return np.flatnonzero(given)
    if given.size and (given.ndim != 1 or given.dtype.kind not in "iu"):
        raise InvalidArgumentError(f"without={without!r:.80}: numbers of documents are wanted, or a mask")
    if given.size and not 0 <= given.min() <= given.max() < count:
        wrong = int(given.min() if given.min() < 0 else given.max())
        raise InvalidArgumentError(f"{source.path}: there is no document {wrong:,}: they are from 0 to {count - 1:,}")
    return given.astype(np.int64, copy=False)


class _Coded:
    """Codes of a category's names, as a writer takes a Categorical of pandas."""

    def __init__(self, codes: npt.NDArray[Any], categories: list[str]) -> None:
        self.codes = codes
        self.categories = categories


def _steps(dataset: Dataset, numbers: npt.NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """Runs of some documents that are read at once: of at most so many records, but for one of more."""
    lengths = np.zeros(len(numbers), np.int64)
    if dataset.mode != "opaque":
        lengths = dataset.documents(metadata=False).lengths()[numbers]
    ends = np.cumsum(lengths)
    begin = 0
    while begin < len(numbers):
        read = int(ends[begin] - lengths[begin])
        end = int(np.searchsorted(ends, read + _RECORDS, "right"))
        end = min(max(end, begin + 1), begin + _DOCUMENTS)
        yield begin, end
        begin = end


def _documents(dataset: Dataset, numbers: npt.NDArray[np.int64]) -> dict[str, Any]:
    """What a writer's append_batch takes of them."""
    batch = dataset.documents().read(numbers)
    found: dict[str, Any] = {"columns": {name: _values(each, numbers) for name, each in dataset.columns.items()}}
    if dataset.mode != "opaque":
        found |= {"lengths": np.diff(batch.offsets), "records": batch.records}
    if dataset.codec != "boundaries":
        entries = batch.spans._entries()
        found["encoded"] = [bytes(entries.raw(at)) for at in range(len(numbers))]
    return found


def _values(column: DocumentColumn, numbers: npt.NDArray[np.int64]) -> Any:
    values = column[numbers]
    return values if column.categories is None else _Coded(values, column.categories)
