"""Inputs that `penstock.open` reads where they lie: bare files, Megatron, datatrove, OLMo, litdata, MDS.

Where there are documents a unit is a document, else a record; with a token that bounds documents records are cut at it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from penstock import _native
from penstock._base.errors import CorruptionError, InvalidArgumentError, NotFoundError
from penstock._data.dataset import Dataset
from penstock._data.open import open as open_dataset
from penstock._from.tokens.olmo import Rows
from penstock._from.tokens.reader import AUTO, ENTRY_BYTES, TOKEN, Boundary, Input, Part, Piece, check_integers
from penstock._from.tokens.records import BLOCK, Records, runs
from penstock._make.streamed import append_cut, append_documents, append_records, can_append
from penstock._make.writer import Writer

_LOOK = 1 << 20  # documents whose lengths are read at once
_LONGEST = 1 << 28  # tokens of a document that is cut at a token, which is held in memory
_NAMED = (".bin", ".npy", ".ds", ".idx", "index.json")  # of files, at an address
_BESIDE = ("", ".bin", ".idx", ".index", ".loss", ".metadata")


class Ends(NamedTuple):
    """Name, first and last token of a file."""

    name: str
    first: int
    last: int


class InPlace:
    """One file or folder, opened by penstock.open.

    Attributes:
        is_native: native code can append all of it to a writer whose documents have no metadata.
    """

    def __init__(self, given: Input) -> None:
        """Opens it.

        Raises:
            penstock.Error: as penstock.open.
            InvalidArgumentError: it has no integers; it has documents and is to be cut at a token.
        """
        self._given = given
        self.dataset = _open(given)
        dtype = self.dataset.dtype
        if dtype is None or dtype.names is None or dtype.names[0] != TOKEN:
            raise InvalidArgumentError(f"{given.name}: records {dtype}: plain tokens are wanted")
        self.fields = {name: dtype[name].str for name in dtype.names}
        self.fields[TOKEN] = check_integers(given.name, dtype[TOKEN])
        self._has_own = self.dataset.mode != "tokens"
        bound = self._bound = given.boundary
        if self._has_own and bound is not None:
            raise InvalidArgumentError(
                f"{given.name}: {self.dataset.kind} says itself where documents are: leave {bound.by} out"
            )
        if bound is not None and bound.token > np.iinfo(self.fields[TOKEN]).max:
            raise InvalidArgumentError(f"{bound.by}={bound.token:,}: no token of type {self.fields[TOKEN]} can be")
        self.has_documents = self._has_own or bound is not None
        self._records = Records(self.dataset, list(self.fields))
        self._record_bytes = self._records.bytes
        self._rows = Rows.of(given, self.dataset)
        self.has_metadata = self._rows is not None
        self.is_native = not self.has_metadata and _native.can_stream(self.dataset._native)

    def identity(self) -> str:
        """Its fingerprint: sizes, first and last bytes, and all that says where documents begin."""
        return self.dataset.fingerprint

    def key(self) -> tuple[Any, ...]:
        """What two names of one input have in common."""
        return self.dataset.kind, tuple(shard.name for shard in self.dataset.shards)

    def place(self, unit: int) -> str:
        """As of Reader: units are documents or records."""
        return "" if self._has_own else f"record {unit:,}"

    def files(self) -> list[str]:
        """As of Reader."""
        if self.dataset._native.is_remote:
            return []
        found = list[str]()
        for shard in self.dataset.shards:  # of which the name is the path
            beside = [shard.name + suffix for suffix in _BESIDE]
            beside.append(shard.name.removesuffix(".npy") + ".csv.gz")
            found += [each for each in beside if Path(each).is_file()]
        if found and self.dataset.kind in ("mds", "litdata"):
            found.append(str(Path(found[0]).parent / "index.json"))
        return found

    def pieces(self, most_bytes: int) -> Iterator[Piece]:
        """As of Reader."""
        if not self._has_own:
            return self._pieces_of_records(max(1, most_bytes // self._record_bytes))
        return self._pieces_of_documents(most_bytes)

    def parts(self, piece: Piece) -> Iterator[Part]:
        """As of Reader."""
        if self._has_own:
            return self._documents(piece.begin, piece.end, piece.at)
        if self._bound is None:
            return self._stream(piece.begin, piece.end)
        return self._between_bounds(piece.begin, piece.end, self._bound)

    def append_to(self, writer: Writer, piece: Piece) -> bool:
        """Has native code append a piece, which is the same as its parts; False: it cannot, nothing was appended.

        Raises:
            InvalidArgumentError: a token does not fit.
            penstock.Error: as of a read, as of the writer.
        """
        if not self.is_native or not can_append(writer, self.dataset):
            return False
        if self._bound is not None:
            ends = self._bound.by == "end_of_document"
            append_cut(writer, self.dataset, piece.begin, piece.end, self._bound.token, ends=ends)
        elif not self._has_own:
            append_records(writer, self.dataset, piece.begin, piece.end)
        else:
            at = piece.at
            for first in range(piece.begin, piece.end, _LOOK // 16):
                count = min(_LOOK // 16, piece.end - first)
                lengths = _native.document_lengths(self.dataset._native, first, count)
                at = append_documents(writer, self.dataset, at, lengths)
        return True

    def ends(self) -> list[Ends]:
        """The first and the last token of each file that has tokens."""
        shards, begin, found = self.dataset.shards, 0, list[Ends]()
        for each in shards:
            end = begin + each.records
            if end > begin:
                first, last = (int(self._records.read(at, at + 1)[TOKEN][0]) for at in (begin, end - 1))
                found.append(Ends(self._given.name if len(shards) == 1 else each.name, first, last))
            begin = end
        return found

    def close(self) -> None:
        """As of Reader: no file stays open."""

    # ---- documents

    def _pieces_of_documents(self, most_bytes: int) -> Iterator[Piece]:
        begin = held = last = at = before = 0  # `held` bytes are of [begin, first), `before` records of [0, first)
        for first in range(0, self.dataset.spans, _LOOK):
            lengths = self._lengths(first, min(_LOOK, self.dataset.spans - first))
            records, last = np.cumsum(lengths), first + len(lengths)
            ends = records * self._record_bytes + ENTRY_BYTES * np.arange(1, len(lengths) + 1)
            while True:
                done = int(ends[begin - first - 1]) if begin > first else -held
                stop = max(first + int(np.searchsorted(ends, done + most_bytes, "right")), begin + 1)
                if stop >= last:
                    held = int(ends[-1]) - done
                    break
                yield Piece(begin, stop, (int(ends[stop - first - 1]) if stop > first else 0) - done, at)
                begin, at = stop, before + (int(records[stop - first - 1]) if stop > first else 0)
            before += int(records[-1])
        if begin < last:
            yield Piece(begin, last, held, at)

    def _lengths(self, first: int, count: int) -> npt.NDArray[np.int64]:
        return _native.document_lengths(self.dataset._native, first, count).astype(np.int64)

    def _documents(self, begin: int, end: int, at: int) -> Iterator[Part]:
        rows = None if self._rows is None else self._rows.entries(begin, end)
        for first in range(begin, end, _LOOK // 16):
            lengths = self._lengths(first, min(_LOOK // 16, end - first))
            for low, high in runs(lengths, self._records.most):
                count = int(lengths[low:high].sum())
                entries = None if rows is None else _next(rows, high - low, self._given.name)
                yield Part(lengths[low:high], self._records.read(at, at + count), entries)
                at += count

    # ---- records

    def _pieces_of_records(self, most: int) -> Iterator[Piece]:
        records, begin = self.dataset.records, 0
        most = max(most // BLOCK, 1) * BLOCK
        for wanted in range(most, records + most, most):
            end = self._next_begin(max(wanted, begin), records) if wanted < records else records
            if end > begin:
                yield Piece(begin, end, (end - begin) * self._record_bytes, begin)
            begin = end

    def _next_begin(self, at: int, records: int) -> int:
        """The first document that begins at record `at` or behind it."""
        bound = self._bound
        if bound is None:
            return at
        for first in range(at - bound.behind, records, BLOCK):
            found = np.flatnonzero(self._records.read(first, min(first + BLOCK, records))[TOKEN] == bound.token)
            if len(found):
                return first + int(found[0]) + bound.behind
            if first - at > _LONGEST:
                raise InvalidArgumentError(
                    f"{self._given.name}: no token {bound.token:,} from token {at:,} on: a document of more than "
                    f"{_LONGEST:,} tokens is not read: is {bound.by} another one?"
                )
        return records

    def _stream(self, begin: int, end: int) -> Iterator[Part]:
        for fields in self._records.parts(begin, end):
            yield Part(None, fields, None)

    def _between_bounds(self, begin: int, end: int, bound: Boundary) -> Iterator[Part]:
        """Documents of [begin, end), which begins with one."""
        open_parts: list[dict[str, npt.NDArray[Any]]] = []  # of the document that has not ended
        for part in self._stream(begin, end):
            ends = np.flatnonzero(part.fields[TOKEN] == bound.token) + bound.behind
            if not open_parts:
                ends = ends[ends > 0]  # where one begins, none ends
            if not len(ends):
                open_parts.append(part.fields)
                continue
            stop = int(ends[-1])
            before = sum(len(each[TOKEN]) for each in open_parts)
            whole = [*open_parts, {name: values[:stop] for name, values in part.fields.items()}]
            lengths = np.diff(ends, prepend=0)
            lengths[0] += before
            yield Part(lengths, _joined(whole), None)
            rest = {name: values[stop:] for name, values in part.fields.items()}
            open_parts = [rest] if len(rest[TOKEN]) else []
        if open_parts:
            last = _joined(open_parts)
            yield Part(np.array([len(last[TOKEN])]), last, None)


def _open(given: Input) -> Dataset:
    hints: dict[str, Any] = {"column": given.column, "storage": given.at.storage}
    if given.format != AUTO:
        hints["format"] = given.format
    try:
        return open_dataset(given.at.path, **hints)
    except InvalidArgumentError:
        if given.dtype is None:
            raise
    except NotFoundError as error:
        if given.at.on_disk() or given.format != AUTO or given.at.bare.endswith(_NAMED):
            raise
        raise NotFoundError(
            error.errno,
            f"{given.name}: there is no such file: a server does not say what a folder or a Megatron prefix holds, so "
            "give the format: megatron, mds, litdata, huggingface or olmo",
            error.filename,
        ) from error
    return open_dataset(given.at.path, dtype=given.dtype, **hints)  # of a file that does not say it


def _joined(parts: list[dict[str, npt.NDArray[Any]]]) -> dict[str, npt.NDArray[Any]]:
    if len(parts) == 1:
        return parts[0]
    return {name: np.concatenate([each[name] for each in parts]) for name in parts[0]}


def _next(rows: Iterator[dict[str, Any]], count: int, path: str) -> list[dict[str, Any]]:
    found = list(itertools.islice(rows, count))
    if len(found) < count:
        raise CorruptionError(f"{path}: its .csv.gz has fewer rows than documents")
    return found
