"""Documents as the reader hands them on: several in one buffer, or one by one."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from penstock import _native
from penstock._from.engines.pieces import Pieces
from penstock._from.text.raw import BYTES_PER_ID, RawDocument

if TYPE_CHECKING:
    import numpy.typing as npt


class Documents(Sequence[RawDocument]):
    """Some documents that follow one another."""

    @overload
    def __getitem__(self, index: int) -> RawDocument: ...

    @overload
    def __getitem__(self, index: slice) -> Documents: ...

    @abstractmethod
    def __getitem__(self, index: Any) -> Any:
        """One document, or those of a slice with step 1."""

    @abstractmethod
    def moved(self, count: int) -> Documents:
        """The same behind `count` others: their numbers are so much higher."""

    @abstractmethod
    def sizes(self) -> npt.NDArray[np.uint64]:
        """Bytes that each counts when tasks are cut; [documents]."""

    @abstractmethod
    def digested(self) -> bytes:
        """The bytes that `RawDocument.digested` gives of each, end to end."""

    def places(self, names: Mapping[str, str]) -> bytes:
        """Bytes that tell where each is, end to end; `names` of inputs are what published files have of them."""
        text = "".join(f"{names[each.name]}\0{each.line}\0" for each in self)
        return text.encode("utf-8", "backslashreplace")


class Listed(Documents):
    """Documents one by one."""

    def __init__(self, documents: Sequence[RawDocument]) -> None:
        """Those of a list, which stays as it is."""
        self._documents = documents

    def __len__(self) -> int:
        return len(self._documents)

    def __getitem__(self, index: Any) -> Any:
        return Listed(self._documents[index]) if isinstance(index, slice) else self._documents[index]

    def moved(self, count: int) -> Documents:
        return Listed([each._replace(number=each.number + count) for each in self._documents]) if count else self

    def sizes(self) -> npt.NDArray[np.uint64]:
        return np.fromiter((each.size_bytes() for each in self._documents), np.uint64, len(self))

    def digested(self) -> bytes:
        return b"".join(each.digested() for each in self._documents)


@dataclass(frozen=True)
class Known:
    """The metadata that a reader knows of each document of a block.

    Attributes:
        sorted: as `RawDocument.digested` has it.
        entries: as the codec "json" stores it.
    """

    sorted: Pieces
    entries: Pieces

    def part(self, begin: int, end: int) -> Known:
        """Documents [begin, end) alone."""
        return Known(self.sorted.part(begin, end), self.entries.part(begin, end))


@dataclass(frozen=True)
class Block(Documents):
    """Documents of one input in one buffer.

    Attributes:
        first: number of the first one, over all inputs.
        name: of the input.
        form: as of `RawDocument`.
        data: bytes-like; of ids the bytes of i8.
        begins: where the payload of each begins in `data`; u8 [documents].
        ends: where it ends.
        lines: of each, as of `RawDocument`; u8 [documents].
        known: of their metadata; None where the payload has it, or none is kept.
        has_ids: whether payloads are ids.
    """

    first: int
    name: str
    form: str
    data: Any
    begins: npt.NDArray[np.uint64]
    ends: npt.NDArray[np.uint64]
    lines: npt.NDArray[np.uint64]
    known: Known | None = None
    has_ids: bool = False

    def __len__(self) -> int:
        return len(self.ends)

    def __getstate__(self) -> dict[str, Any]:
        """For other processes: of the buffer, what the documents are of."""
        if not len(self):
            return {**self.__dict__, "data": b""}
        first = self.begins[0]
        data = bytes(memoryview(self.data)[int(first) : int(self.ends[-1])])
        return {**self.__dict__, "data": data, "begins": self.begins - first, "ends": self.ends - first}

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            begin, end, _ = index.indices(len(self))
            part = slice(begin, end)
            arrays = {name: getattr(self, name)[part] for name in ("begins", "ends", "lines")}
            known = self.known and self.known.part(begin, end)
            return replace(self, first=self.first + begin, known=known, **arrays)
        if index < 0:
            index += len(self)
        payload: Any = bytes(memoryview(self.data)[int(self.begins[index]) : int(self.ends[index])])
        if self.has_ids:
            payload = np.frombuffer(payload, np.int64)
        known = None if self.known is None else json.loads(self.known.entries.piece(index))
        return RawDocument(self.first + index, self.name, int(self.lines[index]), self.form, payload, known)

    def moved(self, count: int) -> Documents:
        return replace(self, first=self.first + count)

    def sizes(self) -> npt.NDArray[np.uint64]:
        sizes = self.ends - self.begins
        return sizes // np.uint64(8) * np.uint64(BYTES_PER_ID) if self.has_ids else sizes

    def digested(self) -> Any:
        known = None if self.known is None else tuple(self.known.sorted)
        return _native.digested(self.data, self.begins, self.ends, known)

    def payloads(self) -> Pieces:
        """The payloads without what is between them."""
        if not len(self):
            return Pieces(b"", self.ends)
        first, view = self.begins[0], memoryview(self.data)
        if np.array_equal(self.begins[1:], self.ends[:-1]):
            return Pieces(view[int(first) : int(self.ends[-1])], self.ends - first)
        parts = [view[begin:end] for begin, end in zip(self.begins.tolist(), self.ends.tolist(), strict=True)]
        return Pieces(b"".join(parts), np.cumsum(self.ends - self.begins, dtype=np.uint64))
