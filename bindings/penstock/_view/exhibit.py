"""A dataset as the page shows it: what it is, and any of its windows and documents, as JSON values.

Only what is shown is read. Long documents come in parts, and sizes are those of the manifest.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from functools import cached_property
from typing import Any, TypeVar, cast

import numpy as np
import numpy.typing as npt

from penstock import _native
from penstock._base.errors import CorruptionError, Error, InvalidArgumentError, NotFoundError
from penstock._base.resources import memory_bytes
from penstock._data.dataset import Dataset
from penstock._data.view import View
from penstock._view.decoder import Decoder
from penstock._view.describe import describe, disk_bytes
from penstock._view.records import cell_genes, field_table, ids_text, is_cells, span_json

PART = 8192
"""Records of a document that are shown at once."""
MOST_WINDOW = 1 << 16
NO_TOKENS = "its records have no field of whole numbers, so there are no tokens to count"
NO_LENGTHS = "its documents are entries without records: they have no lengths"
MOST_LENGTHS = 1 << 26
"""Documents whose lengths are held in memory, for filters and charts."""
_MOST_SHARDS = 200  # that the page lists
_MOST_FOLDERS = 4096  # of shards, whose files are counted before the page is drawn
_MOST_EXAMPLE = 30  # characters of the category that a condition is shown with
_KEPT = 8  # answers that are kept for the next question, …
_KEPT_BYTES = 512 << 20  # … if their arrays together have no more than these, but for the last one
_STEP = 1 << 22  # documents whose lengths are looked up at once

Made = TypeVar("Made")


class Exhibit:
    """One dataset of the page; any thread."""

    def __init__(self, data: tuple[str, ...], dataset: Dataset, tokenizer: str | None) -> None:
        """`data`: as the user named it; `tokenizer`: a tokenizer.json, or None for ids."""
        self.dataset = dataset
        self.decoder = Decoder(tokenizer, dataset)
        self.lock = threading.Lock()  # around samples, which are read once
        self.samples: dict[str, Any] = {}
        self._data, self._tokenizer = data, tokenizer
        self._kept: dict[Hashable, Any] = {}
        self._making = threading.RLock()  # what is made for one question is not made twice at the same time

    def is_stale(self, error: Exception) -> bool:
        """Whether an error comes of files that were changed since they were opened."""
        if isinstance(error, CorruptionError):
            try:
                self.dataset.check_in_place()
            except Error:
                return True
        return isinstance(error, NotFoundError)

    def opened_anew(self) -> Exhibit:
        """The same files as they are now.

        Raises:
            Error: they cannot be opened.
        """
        function, arguments = self.dataset._reopen
        return Exhibit(self._data, function(*arguments), self._tokenizer)

    def kept(self, key: Hashable, make: Callable[[], Made]) -> Made:
        """What `make` gave for this key, made now if it is not among the last ones."""
        if key not in self._kept:
            with self._making:
                if key not in self._kept:
                    made = make()
                    sizes = {each: getattr(value, "nbytes", 0) for each, value in self._kept.items()}
                    for each in list(sizes):  # the oldest first
                        if len(sizes) < _KEPT and sum(sizes.values()) + getattr(made, "nbytes", 0) <= _KEPT_BYTES:
                            break
                        del sizes[each]
                        self._kept.pop(each, None)
                    self._kept[key] = made
                    return made
        found = self._kept.get(key)
        return make() if found is None else cast("Made", found)

    @cached_property
    def facts(self) -> dict[str, Any]:
        """What `penstock info --json` says, and what of it can be looked at."""
        shards = self.dataset.shards
        refusal = self._documents_refusal
        return {
            **describe(self._data, self.dataset),
            "disk_bytes": disk_bytes(self._data, self.dataset) if len(shards) <= _MOST_FOLDERS else None,
            "shard_list": [
                {"name": each.name, "records": each.records, "documents": each.spans, "bytes": each.size_bytes}
                for each in shards[:_MOST_SHARDS]
            ],
            "documents": 0 if refusal else self.dataset.spans,
            "no_documents": refusal,
            "no_lengths": refusal or (NO_LENGTHS if self.dataset.mode == "opaque" else ""),
            "no_tokens": "" if self.decoder.field or is_cells(self.dataset) else NO_TOKENS,
            "no_twins": refusal or self._twins_refusal,
            "cells": is_cells(self.dataset),
            "column_list": [
                {
                    "name": name,
                    "category": each.categories is not None,
                    "example": _short(each._categories),
                    "kind": each.dtype.kind,
                    "sorts": len(each.shape) == 1,
                }
                for name, each in self.dataset.columns.items()
            ],
            "end_of_document": (self.dataset.tokenizer or {}).get("end_of_document"),
            "has_loss": "loss" in (self.dataset.dtype.names or () if self.dataset.dtype else ()),
            "part": PART,
            "most_window": min(MOST_WINDOW, self.dataset.records),
            "decodes": self.decoder.decodes,
            "tokenizer_note": self.decoder.note,
        }

    @cached_property
    def names(self) -> list[str]:
        """Names of features, such as genes, read when the first cell is shown; none where there are none."""
        features = self.dataset.features
        return [] if features is None else list(features._all_names)

    def row(
        self, kind: str, window: int, at: dict[str, int], seed: int, part: int, mark: tuple[int, int] | None = None
    ) -> dict[str, Any]:
        """One window or document.

        Args:
            kind: "window" or "document".
            window: records of a window.
            at: one of {"index": i}, {"record": r} (the window that has it) and {"position": p} of `seed`'s order.
            seed: of the uniform order.
            part: of a long document, from 0.
            mark: first record (of the document; of a window: of the stream) and count of records that are looked for;
                a span that has some says its text `around` them.

        Raises:
            InvalidArgumentError: there is no such row, or the dataset has none of this kind.
        """
        view = self._view(kind, window)
        count = len(view)
        position = at.get("position")
        epoch = 0 if position is None or count == 0 else position // count
        order = _native.Permutation(count, seed, epoch) if count else None
        index = at.get("index", 0)
        if "record" in at:
            index = self._window_of(at["record"], kind, window)
        elif position is not None and order is not None:
            index = order[position % count]
        if order is None or not 0 <= index < count:
            raise InvalidArgumentError(_no_such(kind, index, count, window))
        if position is None:
            position = int(order.inverse(np.array([index], np.uint64))[0])
        found = self._window(view, index) if kind == "window" else self._document(view, index, part)
        if mark is not None and self.decoder.decodes:
            self._add_around(found, mark[0] - found.get("begin", found.get("first_record", 0)), mark[1])
        known = {"kind": kind, "index": index, "count": count, "window": window}
        return {**known, "seed": str(seed), "position": str(position), "epoch": str(epoch), **found}

    @cached_property
    def lengths(self) -> npt.NDArray[Any]:
        """Records of each document; all of them are looked up at the first call.

        Raises:
            InvalidArgumentError: documents without records, or too many.
        """
        if self.dataset.mode == "opaque":
            raise InvalidArgumentError(NO_LENGTHS)
        count = self.dataset.spans
        if count > MOST_LENGTHS:
            raise InvalidArgumentError(f"{count:,} documents: lengths are looked up of at most {MOST_LENGTHS:,}")
        native = self.dataset._native
        starts = range(0, count, _STEP)
        parts = [_native.document_lengths(native, at, min(_STEP, count - at)) for at in starts]
        found = np.concatenate(parts) if parts else np.zeros(0, np.uint64)
        is_small = found.size == 0 or int(found.max()) < 1 << 31
        return found.astype(np.int32 if is_small else np.int64)

    @property
    def _twins_refusal(self) -> str:
        """Why documents are not compared; empty where they are."""
        if self.dataset.mode == "opaque" or self.decoder.field is None:
            return "its records have no field of ids to compare"
        return "cells are not compared: equal genes may have other counts" if is_cells(self.dataset) else ""

    @cached_property
    def _documents_refusal(self) -> str:
        """Why there are no documents to look at; empty where there are."""
        try:
            self.dataset.documents(metadata=False)
        except InvalidArgumentError as error:
            return str(error)
        return ""

    @cached_property
    def _first_documents(self) -> list[int]:
        """Number of each shard's first document."""
        firsts = [0]
        for shard in self.dataset.shards:
            firsts.append(firsts[-1] + shard.spans)
        return firsts

    def _view(self, kind: str, window: int) -> View:
        names = list(self.dataset.columns)
        if kind == "document":
            return self.dataset.documents(columns=names)
        if kind != "window":
            raise InvalidArgumentError(f'kind={kind!r:.80}: must be "window" or "document"')
        if self.dataset.mode == "opaque":
            raise InvalidArgumentError("this dataset has entries without records: look at its documents")
        if not 1 <= window <= MOST_WINDOW:
            raise InvalidArgumentError(f"window={window:,}: this page shows windows of 1 to {MOST_WINDOW:,} records")
        return self.dataset.windows(window, columns=names)

    def _window_of(self, record: int, kind: str, window: int) -> int:
        if kind != "window":
            raise InvalidArgumentError("a record is found by its window: show windows, not documents")
        records = self.dataset.records
        if record >= records:
            raise InvalidArgumentError(f"there is no record {record:,}: they are from 0 to {records - 1:,}")
        if record >= records // window * window:
            raise InvalidArgumentError(
                f"record {record:,} is behind the last whole window of {window:,} records: choose a smaller window"
            )
        return record // window

    def _window(self, view: View, index: int) -> dict[str, Any]:
        row = view[index]
        fields = {name: row[name] for name in row}
        columns = row._batch.columns if view.columns else {}
        spans = [
            self._span(span, {name: values[at] for name, values in columns.items()}, fields)
            for at, span in enumerate(row.spans)
        ]
        first = index * view.window
        return {
            "records": view.window,
            "first_record": first,
            "spans": spans or [self._plain(fields)],
            "table": field_table(fields, self.decoder.field),
        }

    def _document(self, view: View, index: int, part: int) -> dict[str, Any]:
        if self.dataset.mode == "opaque":
            row = view[index]
            values = {name: each[0] for name, each in row._batch.columns.items()} if view.columns else {}
            return {"records": 0, "spans": [self._span(row.spans[0], values, {})]}
        length = int(_native.document_lengths(self.dataset._native, index, 1)[0])
        first = self._first_record(view, index)
        is_long = length > PART and not view._source.fields_apart
        row = (view.padded(to=1) if is_long else view)[index]
        columns = {name: each[0] for name, each in row._batch.columns.items()} if view.columns else {}
        begin = 0
        if is_long:
            begin = part * PART
            if not 0 <= begin < length:
                raise InvalidArgumentError(
                    f"document {index:,} has {length:,} records: there is no part {part:,} of {PART:,} records"
                )
            stream = self.dataset.windows(1, metadata=False)
            some = stream.read(np.arange(first + begin, first + min(begin + PART, length), dtype=np.uint64))
            fields = {name: some[name][:, 0] for name in some}
        else:
            fields = {name: row[name] for name in row}
        span = self._span(row.spans[0], columns, {})
        span |= self._plain(fields)
        found = {
            "records": length,
            "first_record": first,
            "begin": begin,
            "spans": [span],
            "table": None,
        }
        if is_cells(self.dataset):
            found["genes"] = cell_genes(fields, self.names)
        else:
            found["table"] = field_table(fields, self.decoder.field)
        return found

    def _first_record(self, view: View, index: int) -> int:
        at, zero = np.array([index]), np.zeros(1, np.int64)
        found = _native.locate_rows([view._source], zero, at, zero, 0, memory_bytes())
        return int(found.first_records()[0])

    def _span(self, span: Any, columns: dict[str, Any], fields: dict[str, Any]) -> dict[str, Any]:
        shown = span_json(span, columns, self.dataset)
        if self.dataset.layout != "ids":
            shown["document"] = self._first_documents[span.id.shard] + span.id.entry
        return shown | self._plain({name: values[span.start : span.stop] for name, values in fields.items()})

    def _plain(self, fields: dict[str, Any]) -> dict[str, Any]:
        """Text and ids of records."""
        if self.decoder.field not in fields:
            return {}
        ids = fields[self.decoder.field]
        return {
            "length": len(ids),
            "ids": ids_text(ids),
            "text": self.decoder.text(fields) if self.decoder.decodes else None,
            **self.tokens(ids),
        }

    def tokens(self, ids: npt.NDArray[Any]) -> dict[str, Any]:
        """The text of each id, if there is a tokenizer, and the places of those that are no text."""
        spelling = self.decoder.spelling
        listed = ids.tolist()
        end = (self.dataset.tokenizer or {}).get("end_of_document")
        special = spelling.special if spelling is not None else frozenset()
        marks = [at for at, each in enumerate(listed) if each == end or each in special]
        return {"pieces": None if spelling is None else spelling.pieces(listed), "special": marks}

    def _add_around(self, row: dict[str, Any], begin: int, count: int) -> None:
        """Adds the text before the records that are looked for, theirs, and after them, to spans that have some."""
        for span in row["spans"]:
            start = span.get("start", 0) if row.get("begin") is None else 0
            low, high = max(begin - start, 0), min(begin + count - start, span.get("length", 0))
            if low >= high:
                continue
            ids = np.array(span["ids"].split(" "), np.int64)
            # A tokenizer may join or drop what stands between ids: such a text is not cut.
            cuts = [len(self.decoder.text({self.decoder.field: ids[:at]}).rstrip("\ufffd")) for at in (low, high)]
            whole = span["text"]
            span["around"] = [whole[: cuts[0]], whole[cuts[0] : cuts[1]], whole[cuts[1] :]]

    def document_of(self, shard: int, entry: int) -> int | None:
        """The number of a document in the dataset; None in the ids layout."""
        return None if self.dataset.layout == "ids" else self._first_documents[shard] + entry

    def first_record(self, document: int) -> int:
        """Where a document begins in the stream."""
        return self._first_record(self.dataset.documents(metadata=False), document)


def _no_such(kind: str, index: int, count: int, window: int) -> str:
    what = f"windows of {window:,} records" if kind == "window" else "documents"
    there = f"{what} are from 0 to {count - 1:,}" if count else f"there are no {what}"
    return f"there is no {kind} {index:,}: {there}"


def _short(categories: tuple[str, ...] | None) -> str | None:
    """A category to write in a condition; None where none is short."""
    return next((name for name in categories or () if name and len(name) <= _MOST_EXAMPLE and name.isprintable()), None)
