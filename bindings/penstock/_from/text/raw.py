"""One document as the reader hands it on, not parsed further than cutting tasks needs, and what is taken of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from penstock._base.words import quoted
from penstock._make.errors import DocumentError, FirstDocumentError, InputError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

BYTES_PER_ID = 4  # what an id of a Parquet column counts as, when tasks are cut
UNUSABLE = "unusable"  # the form of what a reader that skips could not read: the payload is the reason


class Columns(NamedTuple):
    """What is taken of a document.

    Attributes:
        text: The column that holds the text, or the conversations.
        ids: The column that holds token ids instead; None where there is text.
        metadata: The columns kept as metadata; None: all others; empty: no metadata.
        text_per: "file" or "line": what one document of plain text is.
        messages: Whether `text` holds conversations.
    """

    text: str
    ids: str | None
    metadata: tuple[str, ...] | None
    text_per: str
    messages: bool = False


class RawDocument(NamedTuple):
    """One document of an input, numbered from 0 over all inputs.

    Attributes:
        line: Counted from 1: the line, or the row of a Parquet file; 0 where the document is the whole file.
        form: "jsonl" (payload: the line), "text" (payload: UTF-8), "row" (payload: UTF-8, ids, or a conversation as
            JSON), or UNUSABLE (payload: why; metadata: where it begins).
        metadata: Columns that the reader knows; None where the payload holds them, or where none are kept.
        at_byte: Where it begins in its file, unpacked, if that is known instead of number and line; the number is then
            -1, and that of a row too whose file was not read from its beginning.
    """

    number: int
    name: str
    line: int
    form: str
    payload: bytes | npt.NDArray[np.int64]
    metadata: dict[str, Any] | None
    at_byte: int | None = None

    def place(self) -> str:
        """`document 18,203 (data.jsonl.zst line 18,204)`, counted from 1."""
        if self.at_byte is not None:
            return f"{self.name} at byte {self.at_byte:,}"
        where = self.file_place()
        return where if self.number < 0 else f"document {self.number + 1:,} ({where})"

    def file_place(self) -> str:
        """`data.jsonl.zst line 18,204`, counted from 1."""
        return self.name + {0: ""}.get(self.line, f" {'row' if self.form == 'row' else 'line'} {self.line:,}")

    def at(self) -> dict[str, Any]:
        """Where it is in its file, as an entry of the list of skipped documents has it; empty: it is the file."""
        if self.form == UNUSABLE:
            return dict(self.metadata or {})
        return {"row" if self.form == "row" else "line": self.line} if self.line else {}

    def error(self, reason: str, message: str | None = None) -> DocumentError:
        """It cannot be used, for this reason; `message` has the place in it, else the place goes before the reason."""
        return DocumentError(message or f"{self.place()}: {reason}", reason)

    def lacks(self, reason: str) -> DocumentError:
        """It lacks a column: wrong use if it is the first of all, else its own fault."""
        kind = FirstDocumentError if self.number == 0 else DocumentError
        return kind(f"{self.place()}: {reason}", reason)

    def size_bytes(self) -> int:
        """What the document counts when tasks are cut."""
        return len(self.payload) if isinstance(self.payload, bytes) else self.payload.size * BYTES_PER_ID

    def digested(self) -> bytes:
        """Bytes that tell this document from any other, free of the input's name and of library versions."""
        payload = self.payload if isinstance(self.payload, bytes) else self.payload.tobytes()
        known = b"" if self.metadata is None else json.dumps(self.metadata, sort_keys=True, default=str).encode()
        return b"%d,%d:%b%b" % (len(payload), len(known), payload, known)


def unusable(number: int, name: str, at: dict[str, Any], reason: str) -> RawDocument:
    """What stands for a document, or the rest of a file, that a reader that skips could not read."""
    line = at.get("line", at.get("row", 0))
    return RawDocument(number, name, line, UNUSABLE, reason.encode("utf-8", "backslashreplace"), at)


def there_are(columns: Iterable[str]) -> str:
    """The columns that there are, for a message about one that is not."""
    names = list(columns)
    return f"there are {quoted(names)}" if names else "there are none"


def select(
    known: dict[str, Any], wanted: tuple[str, ...] | None, missing: Callable[[str], InputError]
) -> dict[str, Any]:
    """The columns `wanted` of one document's; None: all of them.

    Raises:
        InputError: One is missing: what `missing` makes of a reason that names those that there are.
    """
    if wanted is None:
        return known
    try:
        return {name: known[name] for name in wanted}
    except KeyError as error:
        raise missing(f'no column "{error.args[0]}" for --metadata: {there_are(known)}') from None
