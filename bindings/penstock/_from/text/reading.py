"""From batches of documents to buffers of texts or ids and of metadata; runs in the workers.

JSON lines are read by native code, which refuses what it does not read exactly as Python does; those lines, and
documents that come one by one, are read here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from penstock import _native
from penstock._from.engines.pieces import Pieces
from penstock._from.text.block import Block, Documents
from penstock._from.text.extract import entry_of, ids_of, messages_of, text_of
from penstock._from.text.raw import Columns, RawDocument
from penstock._make.errors import DocumentError

if TYPE_CHECKING:
    import numpy.typing as npt


class Extracted(NamedTuple):
    """The parts of a batch that are taken.

    Attributes:
        payload: texts, or ids as the bytes of i8; of a document with an error nothing.
        entries: of metadata; None where none is kept.
        errors: why documents cannot be used, by their number in the batch.
        conversations: instead of a payload.
    """

    payload: Pieces
    entries: Pieces | None
    errors: dict[int, DocumentError]
    conversations: list[Any]

    def without_errors(self) -> Extracted:
        """Without the documents that cannot be used."""
        bad = sorted(self.errors)
        if not bad:
            return self
        entries = self.entries and self.entries.put([(index, b"") for index in bad]).without(bad)
        left = [each for index, each in enumerate(self.conversations) if index not in self.errors]
        payload = self.payload if self.conversations else self.payload.put([(i, b"") for i in bad]).without(bad)
        return Extracted(payload, entries, {}, left)

    def only(self, index: int) -> Extracted:
        """One document's alone, without its entry."""
        if self.conversations:
            return self._replace(conversations=[self.conversations[index]], errors={})
        return Extracted(Pieces.of([self.payload.piece(index)]), None, {}, [])


class Extractor:
    """Takes texts or ids and metadata of documents. One thread at a time."""

    def __init__(self, columns: Columns, codec: str) -> None:
        """`columns` are taken, and metadata is stored as `codec` does."""
        self._columns = columns
        self._codec = codec
        self._keeps = columns.metadata != ()
        self._lines = self._native_lines()

    def _native_lines(self) -> Any:
        """The native reader of JSON lines; None where a column's name is no UTF-8, as an option may be."""
        column = self._columns.text if self._columns.ids is None else self._columns.ids
        metadata = None if self._columns.metadata is None else list(self._columns.metadata)
        try:
            "".join([column, *(metadata or ())]).encode()
        except UnicodeEncodeError:
            return None
        return _native.JsonLines(column, self._columns.ids is not None, metadata, self._codec if self._keeps else "")

    def extract(self, documents: Documents) -> Extracted:
        """Takes the payloads and entries of a batch; errors of documents are in the answer."""
        if isinstance(documents, Block) and not self._columns.messages:
            if documents.form == "jsonl":
                return self._of_each(documents) if self._lines is None else self._of_lines(documents)
            if documents.known is None or self._codec == "json":
                return self._of_buffers(documents)
        return self._of_each(documents)

    def without_entry(self, document: RawDocument) -> Extracted:
        """Takes one document but for its metadata.

        Raises:
            DocumentError: It cannot be used, whatever its metadata is.
        """
        if self._columns.messages:
            return Extracted(Pieces.of([b""]), None, {}, [messages_of(document, self._columns)[0]])
        return Extracted(Pieces.of([self._payload_of(document)[0]]), None, {}, [])

    def _of_lines(self, block: Block) -> Extracted:
        parsed = self._lines.parse(block.data, block.begins, block.ends)
        ends = parsed.ends * np.uint64(8) if self._columns.ids is not None else parsed.ends
        payload = Pieces(parsed.payload.view(np.uint8), ends)
        entries = Pieces(parsed.entries, parsed.entry_ends) if self._keeps else None
        if not len(parsed.refused):
            return Extracted(payload, entries, {}, [])
        return self._by_hand(Extracted(payload, entries, {}, []), block, parsed.refused)

    def _of_buffers(self, block: Block) -> Extracted:
        """Payloads as they are, and what is known of their metadata."""
        payload = block.payloads()
        if not (block.has_ids or _is_text(payload)):
            return self._of_each(block)
        if block.known is not None:
            return Extracted(payload, block.known.entries, {}, [])
        nothing = entry_of({}, block[0], self._codec) if self._keeps else b""  # there are no columns
        return Extracted(payload, Pieces.of([nothing] * len(block)) if self._keeps else None, {}, [])

    def _by_hand(self, found: Extracted, documents: Documents, indices: npt.NDArray[Any]) -> Extracted:
        """With what Python reads of documents that native code refused."""
        payloads, entries = [], []
        for index in indices.tolist():
            try:
                payload, entry = self._one(documents[index])
            except DocumentError as error:
                found.errors[index] = error
                continue
            payloads.append((index, payload))
            entries.append((index, entry))
        kept = found.entries
        return found._replace(payload=found.payload.put(payloads), entries=None if kept is None else kept.put(entries))

    def _payload_of(self, document: RawDocument) -> tuple[bytes, dict[str, Any]]:
        if self._columns.ids is None:
            return text_of(document, self._columns)
        ids, known = ids_of(document, self._columns)
        return ids.tobytes(), known

    def _one(self, document: RawDocument) -> tuple[bytes, bytes]:
        payload, known = self._payload_of(document)
        return payload, entry_of(known, document, self._codec) if self._keeps else b""

    def _of_each(self, documents: Documents) -> Extracted:
        errors: dict[int, DocumentError] = {}
        payloads, entries, conversations = [], [], []
        for index, document in enumerate(documents):
            payload, entry = b"", b""
            messages: Any = None
            try:
                if self._columns.messages:
                    messages, known = messages_of(document, self._columns)
                    entry = entry_of(known, document, self._codec) if self._keeps else b""
                else:
                    payload, entry = self._one(document)
            except DocumentError as error:
                errors[index] = error
            payloads.append(payload)
            entries.append(entry)
            conversations.append(messages)
        kept = Pieces.of(entries) if self._keeps else None
        return Extracted(Pieces.of(payloads), kept, errors, conversations if self._columns.messages else [])


def _is_text(pieces: Pieces) -> bool:
    """True if each piece is UTF-8: all of them together are, and each begins where a code point does."""
    begins = pieces.ends[:-1]
    begins = begins[begins < pieces.size_bytes]
    if ((np.frombuffer(pieces.data, np.uint8)[begins.astype(np.intp)] & 0xC0) == 0x80).any():
        return False
    try:
        str(pieces.data, "utf-8")
    except UnicodeDecodeError:
        return False
    return True
