"""Values of columns that are keys: of the documents' metadata, or of lines of JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from penstock import _native
from penstock._base.errors import InvalidArgumentError
from penstock._base.resources import memory_bytes
from penstock._base.words import counted, excerpt, quoted
from penstock._data.column_values import ColumnType
from penstock._data.entries import entry_decoder
from penstock._data.spans import ENTRIES, SPANS

_STEP = 1 << 12  # documents that are read at once
_NO_VALUE = object()
_EXACT = 1 << 53  # integers up to here are exact as float64
_TEXT, _INTEGER, _FLOAT, _BOOLEAN = "text", "an integer", "a float", "true or false"
_KINDS: dict[type, str] = {str: _TEXT, bool: _BOOLEAN, int: _INTEGER, float: _FLOAT}


def columns_of_metadata(
    dataset: Any, keys: Sequence[str], progress: Callable[[int, int], None] | None = None
) -> dict[str, Any]:
    """A value for each document of each key, as `annotate` takes them.

    The type is that of all values: categories for texts, bool, i8, f8. Where some are missing, numbers and booleans are
    f8 and missing ones NaN.

    Args:
        dataset: an opened dataset with metadata.
        keys: names of keys, as `url` or `meta.url`; or `score:f4`, which says the type; `year:category` makes texts of
            all values.
        progress: called with (documents read, documents in all).

    Returns:
        Values by key: arrays, and lists of texts with None.

    Raises:
        InvalidArgumentError: no metadata with keys, a key that no entry has, values of several kinds, a value that is
            no number, text or boolean.
    """
    wanted = [_Key(each, "metadata key") for each in keys]
    _check(dataset, [each.name for each in wanted])
    total = dataset.spans

    def entries() -> Iterator[Mapping[str, Any]]:
        for done, entry in enumerate(_entries(dataset)):
            if not isinstance(entry, Mapping):
                raise InvalidArgumentError(
                    f"{dataset.path}: the metadata of document {done:,} is {type(entry).__name__}, which has no keys"
                )
            if progress is not None and done % _STEP == 0:
                progress(done, total)
            yield entry

    return _gathered(entries(), wanted, f"{dataset.path}: no document's metadata")


def columns_of_rows(rows: Sequence[Mapping[str, Any]], keys: Sequence[str] | None, where: str) -> dict[str, Any]:
    """A value for each row of each key, or of all keys that are there; as `columns_of_metadata`.

    Args:
        rows: objects, one for each document.
        keys: as there; None: all that some row has.
        where: they are from, for messages.

    Raises:
        InvalidArgumentError: as there.
    """
    if keys is not None:
        return _gathered(rows, [_Key(each, f"{where}, column") for each in keys], f"{where}: no line")
    names = dict.fromkeys(name for row in rows for name in row)
    wanted = [_Key(name, f"{where}, column", is_bare=True) for name in names]
    return _gathered(rows, wanted, f"{where}: no line")


def _gathered(entries: Iterable[Mapping[str, Any]], wanted: Sequence[_Key], none: str) -> dict[str, Any]:
    names = [each.name for each in wanted]
    for name in names:
        if names.count(name) > 1:
            raise InvalidArgumentError(f"{excerpt(name)}: this key is named twice")
    first: Mapping[str, Any] | None = None
    for number, entry in enumerate(entries):
        first = entry if first is None else first
        for each in wanted:
            each.add(entry, number)
    for each in wanted:
        if not each.is_found:
            there = f"; the first one's are {quoted([str(name) for name in first])}" if first else ""
            raise InvalidArgumentError(f"{none} has a value of {each.name!r:.80}{there}")
    return {each.name: each.values() for each in wanted}


def _check(dataset: Any, names: Sequence[str]) -> None:
    codec = dataset.codec
    if codec is None or codec == "boundaries" or dataset.spans == 0:
        what = "boundaries of documents and no metadata" if codec == "boundaries" else "no metadata"
        raise InvalidArgumentError(
            f"{dataset.path}: it has {what}, of which columns are made: `penstock write --metadata "
            f"{','.join(names)}` keeps these columns of its inputs"
        )
    if codec == "raw":
        raise InvalidArgumentError(f"{dataset.path}: its metadata is raw bytes, which have no keys")
    if dataset.layout == "ids":
        raise InvalidArgumentError(
            f"{dataset.path}: in the ids layout only the records tell which metadata is a document's: "
            "`penstock convert --layout compact` first"
        )


def _entries(dataset: Any) -> Iterator[Any]:
    """The metadata of all documents; no record is read."""
    source = _native.make_documents(dataset._native, [])
    decode = entry_decoder(dataset._native)
    assert decode is not None
    for begin in range(0, source.size, _STEP):
        indices = np.arange(begin, min(begin + _STEP, source.size), dtype=np.uint64)
        spans = _native.read_rows(source, indices, [], SPANS | ENTRIES, memory_bytes()).spans()
        ids = spans.arrays()[6].tolist()
        for at, (shard, entry) in enumerate(ids):
            yield decode(spans.view(at).data, shard, entry)


class _Key:
    """One key, and the values that entries have of it."""

    def __init__(self, text: str, what: str, *, is_bare: bool = False) -> None:
        """`what` names it in messages; `is_bare`: all of the text is the name."""
        name, colon, spec = ("", "", "") if is_bare else text.rpartition(":")
        self.name = name if colon and name else text
        self._type = ColumnType(name, spec) if colon and name else None
        if not self.name:
            raise InvalidArgumentError("an empty name: keys are named, as url,lang")
        self._what = f"{what} {excerpt(self.name)}"
        self._values: list[Any] = []
        self._texts: dict[str, str] = {}  # each kept once
        self._first: dict[str, int] = {}  # the first document of each kind of value
        self._missing = 0

    @property
    def is_found(self) -> bool:
        return bool(self._first)

    def add(self, entry: Mapping[str, Any], document: int) -> None:
        value = _value_of(entry, self.name)
        if isinstance(value, np.generic):
            value = value.item()
        if value is _NO_VALUE or value is None:
            self._missing += 1
            self._values.append(None)
            return
        kind = _KINDS.get(type(value))
        if kind is None:
            raise InvalidArgumentError(
                f"{self._what}: document {document:,} has {value!r:.80}: columns hold texts, numbers and booleans"
            )
        self._first.setdefault(kind, document)
        if self._type is not None and self._type.is_category and kind != _TEXT:
            value, kind = json.dumps(value), _TEXT
        self._values.append(self._texts.setdefault(value, value) if kind == _TEXT else value)

    def values(self) -> Any:
        if self._type is not None:
            return self._values if self._type.is_category else self._numbers(self._type.dtype)
        kinds = set(self._first)
        if kinds == {_TEXT}:
            return self._values
        if len(kinds) > 1 and kinds != {_INTEGER, _FLOAT}:
            said = " and ".join(f"{kind} in document {at:,}" for kind, at in self._first.items())
            raise InvalidArgumentError(f"{self._what}: {said}: say a type, {self.name}:category or {self.name}:f8")
        if self._missing or _FLOAT in kinds:
            self._check_exact()
            return self._numbers(np.dtype("<f8"))
        return self._numbers(np.dtype("?") if kinds == {_BOOLEAN} else np.dtype("<i8"))

    def _check_exact(self) -> None:
        for document, value in enumerate(self._values):
            if isinstance(value, int) and abs(value) > _EXACT:
                raise InvalidArgumentError(
                    f"{self._what}: {value} of document {document:,} is not exact as a float, "
                    f"which others need: say a type, {self.name}:category or {self.name}:f8"
                )

    def _numbers(self, dtype: np.dtype[Any]) -> Any:
        if dtype.shape:
            raise InvalidArgumentError(f"{self._what}: a column of it holds single values")
        if self._missing and dtype.kind != "f":
            at = next(at for at, value in enumerate(self._values) if value is None)
            raise InvalidArgumentError(
                f"{self._what}: {counted(self._missing, 'document')} without a value, the first is "
                f"{at:,}; {dtype} has none for it: {self.name}:f8 has NaN"
            )
        out = np.empty(len(self._values), dtype)
        for document, value in enumerate(self._values):
            try:
                out[document] = np.nan if value is None else _number(value, dtype)
            except (ValueError, OverflowError):
                raise InvalidArgumentError(
                    f"{self._what}: {value!r:.80} of document {document:,} is no {dtype}"
                ) from None
        return out


def _number(value: Any, dtype: np.dtype[Any]) -> Any:
    if dtype.kind == "f":
        return float(value)
    if dtype.kind == "b":
        if value not in (0, 1, "true", "false"):
            raise ValueError
        return value in (1, "true")
    number = int(value)
    if isinstance(value, float) and number != value:
        raise ValueError
    if not np.iinfo(dtype).min <= number <= np.iinfo(dtype).max:
        raise OverflowError
    return number


def _value_of(entry: Mapping[str, Any], name: str) -> Any:
    """The value of a key; of `a.b`, where no key is called so, the value of b in a."""
    if name in entry:
        return entry[name]
    outer, dot, inner = name.partition(".")
    while dot:
        if outer in entry:
            below = entry[outer]
            return _value_of(below, inner) if isinstance(below, Mapping) else _NO_VALUE
        more, dot, inner = inner.partition(".")
        outer = f"{outer}.{more}"
    return _NO_VALUE
