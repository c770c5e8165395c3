"""The documents of a dataset by number, in either layout, and what its shards say of how they were made."""

from __future__ import annotations

import errno
import json
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock._base.errors import IoError, NotFoundError
from penstock._from.text.far import FarFile, FarFiles
from penstock._make.errors import UsageError
from penstock._places.remote import far_of
from penstock._places.stores.addresses import places_of

if TYPE_CHECKING:
    import numpy.typing as npt

    from penstock._data.dataset import Dataset
    from penstock._data.view import View
    from penstock._places.paths import PathLike
    from penstock._places.storage import Storage

_ROWS = 1 << 16  # records of the layout ids that are read at once


class StoredDocuments:
    """Ids of documents. One thread at a time.

    Attributes:
        count: how many documents there are.
    """

    def __init__(self, dataset: Dataset) -> None:
        """Takes an opened dataset.

        Raises:
            UsageError: It has no documents of token ids, or conversations.
        """
        self._field = _field_of(dataset)
        shards = dataset.shards
        self._names = [each.name for each in shards]
        by_entry = dataset.layout == "ids"
        self._first = [0, *accumulate(each.entries if by_entry else each.spans for each in shards)]
        self._records = np.cumsum([0, *(each.records for each in shards)])
        self.count = self._first[-1]
        self._apart = {at for at, each in enumerate(shards) if by_entry and each.spans > each.entries}
        self._rows: View[Any] | None = None
        if by_entry and dataset.records:
            self._rows = dataset.windows(1, metadata="spans")
        self._view = None if by_entry or not self.count else dataset.documents(metadata=False)

    def name(self, document: int) -> str:
        """The name of a document's shard."""
        return self._names[self._shard(document)]

    def read(self, documents: Sequence[int]) -> list[list[int] | None]:
        """Ids of some documents; None of one whose records do not follow one another."""
        if not documents:
            return []
        if self._view is None:
            return self._read_by_entry(documents)
        batch = self._view.read(documents)
        ids, ends = batch[self._field], batch.offsets.tolist()
        return [ids[begin:end].tolist() for begin, end in pairwise(ends)]

    def _shard(self, document: int) -> int:
        return bisect_right(self._first, document) - 1

    def _read_by_entry(self, documents: Sequence[int]) -> list[list[int] | None]:
        """Judges the layout ids, where records name an entry: those of one shard ascend if entries are documents."""
        shards = np.array([self._shard(each) for each in documents])
        entries = np.array([each - self._first[shard] for each, shard in zip(documents, shards, strict=True)])
        begins, ends = self._lower(shards, entries), self._lower(shards, entries + 1)
        found: list[list[int] | None] = []
        for shard, entry, begin, end in zip(
            shards.tolist(), entries.tolist(), begins.tolist(), ends.tolist(), strict=True
        ):
            found.append(None if shard in self._apart else self._run(shard, entry, begin, end))
        return found

    def _lower(self, shards: npt.NDArray[Any], entries: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """The first record of each shard whose entry is not below the wanted one, by halving."""
        low, high = np.array(self._records[shards]), np.array(self._records[shards + 1])
        while self._rows is not None and (open := np.flatnonzero(low < high)).size:
            middle = (low[open] + high[open]) // 2
            below = self._rows.read(middle).spans.ids[:, 1] < entries[open]
            low[open] = np.where(below, middle + 1, low[open])
            high[open] = np.where(below, high[open], middle)
        return low

    def _run(self, shard: int, entry: int, begin: int, end: int) -> list[int] | None:
        ids: list[int] = []
        for first in range(begin, end, _ROWS):
            assert self._rows is not None
            batch = self._rows.read(np.arange(first, min(end, first + _ROWS)))
            if (batch.spans.ids != (shard, entry)).any():
                return None
            ids += batch[self._field].ravel().tolist()
        return ids


def _field_of(dataset: Dataset) -> str:
    if dataset.mode == "tokens":
        raise UsageError(f"{dataset.path}: a token stream without documents: nothing says where a text begins")
    names = (dataset.dtype.names if dataset.dtype is not None else None) or ()
    if "loss" in names:
        raise UsageError(
            f"{dataset.path}: conversations (fields {', '.join(names)}): a chat template made their ids, which no"
            " text judges"
        )
    name = "token" if "token" in names else names[0] if len(names) == 1 else None
    if name is None or dataset.dtype is None or dataset.dtype[name].kind not in "iu" or dataset.dtype[name].shape:
        raise UsageError(f"{dataset.path}: no documents of token ids: there is no field token")
    return name


class Beside:
    """Small files in a dataset's folder, wherever that is."""

    def __init__(self, path: PathLike, storage: Storage | None) -> None:
        """Reads nothing."""
        self._places = places_of([path], storage)

    def read(self, name: str) -> bytes | None:
        """Bytes of one; None: there is none, or several datasets are opened as one.

        Raises:
            penstock.Error, OSError: It cannot be read.
        """
        if len(self._places) != 1:
            return None
        place = self._places[0]
        try:
            if not far_of([place]):
                file = Path(str(place)) / name
                return file.read_bytes() if file.is_file() else None
            address = replace(place, path=f"{place.path.rstrip('/')}/{name}")  # type: ignore[union-attr, type-var]
            with FarFile(FarFiles([address]), 0).open() as far:  # type: ignore[list-item]
                return bytes(far.read())
        except NotFoundError:
            return None
        except IoError as error:
            if error.errno != errno.EACCES:  # buckets say so of what is not there to those who may not list it
                raise
            return None

    def options(self, shard: str) -> dict[str, Any]:
        """The options that `penstock write` noted of a shard of text; empty: something else made the ids."""
        data = self.read(f"{shard}/shard.json")
        task = (json.loads(data) if data else {}).get("task")
        options = task.get("options") if isinstance(task, dict) else None
        if not isinstance(options, dict) or options.get("ids") is not None:
            return {}
        return options if {"tokenizer", "prepend", "append", "post_processor"} <= options.keys() else {}
