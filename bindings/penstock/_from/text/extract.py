"""From raw documents to texts or token ids and their metadata; runs in the worker processes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from penstock._from.text.raw import UNUSABLE, Columns, RawDocument, select, there_are

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

_EACH_ITS_OWN = "; --metadata all keeps the columns that each document has"
_KINDS = {dict: "an object", list: "a list", str: "a string", int: "a number", float: "a number", bool: "true or false"}


def text_of(document: RawDocument, columns: Columns) -> tuple[bytes, dict[str, Any]]:
    """A document's text, which is UTF-8, and its metadata.

    Raises:
        DocumentError: Bad JSON, a missing column, what is not a string, invalid UTF-8; names document, file and line.
    """
    text, known = _fields(document, columns.text, "--text-column", columns.metadata)
    if isinstance(text, bytes):
        _decode(document, text)
        return text, known
    if not isinstance(text, str):
        raise document.error(f'"{columns.text}" is {_kind(text)}, not a string')
    try:
        return text.encode(), known
    except UnicodeEncodeError as error:
        raise document.error(
            f"half of a surrogate pair (\\u{ord(text[error.start]):04x}) at character {error.start:,} is not "
            "Unicode text: repair the line"
        ) from None


def ids_of(document: RawDocument, columns: Columns) -> tuple[npt.NDArray[np.int64], dict[str, Any]]:
    """A document's token ids, of any number, and its metadata.

    Raises:
        DocumentError: As text_of, and for what is not a list of integers.
    """
    assert columns.ids is not None
    ids, known = _fields(document, columns.ids, "--ids-column", columns.metadata)
    return _integers(document, ids, columns.ids), known


def messages_of(document: RawDocument, columns: Columns) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """A document's conversation and its metadata.

    Raises:
        DocumentError: As text_of, and for what is not a list of objects.
    """
    messages, known = _fields(document, columns.text, "--messages", columns.metadata)
    if document.form == "row":
        messages = json.loads(messages)
    if not isinstance(messages, list) or not messages:
        what = "empty" if messages == [] else _kind(messages)
        raise document.error(f'"{columns.text}" is {what}, not a list of messages')
    wrong = [each for each in messages if not isinstance(each, dict)]
    if wrong:
        raise document.error(f'"{columns.text}" holds {_kind(wrong[0])}, not messages alone')
    return messages, known


def entry_of(known: dict[str, Any], document: RawDocument, codec: str) -> bytes:
    """A document's metadata as `codec` stores it.

    Raises:
        DocumentError: It cannot.
    """
    from penstock._data import codecs

    found = codecs.get(codec)
    assert found is not None
    try:
        value = next(iter(known.values())) if codec == "raw" else known
        return found.encode(value.encode() if isinstance(value, str) else value)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        what = f"its metadata cannot be stored as {codec}: {error}"
        raise document.error(f"{what}: choose other columns with --metadata") from None


def _fields(
    document: RawDocument, column: str, option: str, wanted: tuple[str, ...] | None
) -> tuple[Any, dict[str, Any]]:
    if document.form != "jsonl":
        if document.form == UNUSABLE:
            assert isinstance(document.payload, bytes)
            raise document.error(document.payload.decode())
        return document.payload, document.metadata or {}
    row = _parse(document)
    if column not in row:
        raise document.lacks(f'no column "{column}" for {option}: {there_are(row)}')
    payload = row[column]
    if wanted is None:
        del row[column]
        return payload, row
    return payload, select(row, wanted, lambda reason: document.lacks(f"{reason}{_EACH_ITS_OWN}"))


class _KeyTwiceError(Exception):
    """The key."""


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):  # the last one would win, and the others be lost
        keys = [key for key, _ in pairs]
        raise _KeyTwiceError(next(key for number, key in enumerate(keys) if key in keys[:number]))
    return found


def _parse(document: RawDocument) -> dict[str, Any]:
    assert isinstance(document.payload, bytes)
    text = _decode(document, document.payload)
    try:
        row = json.loads(text, object_pairs_hook=_object)
    except _KeyTwiceError as error:
        raise document.error(f'the key "{error.args[0]}" stands twice in one object: keep one') from None
    except json.JSONDecodeError as error:
        what = f"{error.msg.removesuffix(' at')} at column {error.colno:,}"
        raise document.error(f"not JSON: {what}: each line must be one JSON object") from None
    except RecursionError:
        raise document.error("JSON nested too deep") from None
    except ValueError as error:  # a number of thousands of digits
        raise document.error(f"JSON that cannot be read: {error}") from None
    if not isinstance(row, dict):
        raise document.error(f"{_kind(row)}: each line must be one JSON object")
    return row


def _decode(document: RawDocument, data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise document.error(
            f"invalid UTF-8 at byte {error.start:,} (0x{data[error.start]:02x}): convert the file with iconv"
        ) from None


def _integers(document: RawDocument, ids: Any, column: str) -> npt.NDArray[np.int64]:
    import numpy as np

    if isinstance(ids, np.ndarray):
        return ids
    if not isinstance(ids, list):
        raise document.error(f'"{column}" is {_kind(ids)}, not a list of integers')
    wrong = [each for each in ids if type(each) is not int]
    if wrong:
        raise document.error(f'"{column}" holds {_kind(wrong[0])}, not integers alone')
    # An id beyond int64 is beyond every token type: it stays too large, and one far below 0 negative.
    return np.array([max(-(2**63), min(each, 2**63 - 1)) for each in ids], np.int64)


def _kind(value: Any) -> str:
    return "null" if value is None else _KINDS.get(type(value), type(value).__name__)
