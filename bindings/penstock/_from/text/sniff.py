"""What a file is, by its first bytes: archives, arrays and tables are no text, whatever their names say."""

from __future__ import annotations

import re
from typing import NamedTuple

HEAD_BYTES = 8192
COMPRESSIONS = {b"\x1f\x8b": "gz", b"\x28\xb5\x2f\xfd": "zst"}


class Kind(NamedTuple):
    """What bytes are, and what to do with them instead."""

    what: str
    advice: str


_UNPACK = "unpack it first, and give its files"
_IN_PLACE = "token files are no input of write: penstock.open reads them where they are"
_EXPORT = "export it as JSON lines or Parquet"

_MAGIC: tuple[tuple[int, bytes, Kind], ...] = (
    (257, b"ustar", Kind("a tar archive", _UNPACK)),
    (0, b"PK\x03\x04", Kind("a zip archive", _UNPACK)),
    (0, b"7z\xbc\xaf\x27\x1c", Kind("a 7z archive", _UNPACK)),
    (0, b"Rar!\x1a\x07", Kind("a RAR archive", _UNPACK)),
    (0, b"\xfd7zXZ\x00", Kind("compressed by xz", "unpack it first; .gz and .zst are read")),
    (0, b"BZh", Kind("compressed by bzip2", "unpack it first; .gz and .zst are read")),
    (0, b"\x04\x22\x4d\x18", Kind("compressed by lz4", "unpack it first; .gz and .zst are read")),
    (0, b"\x93NUMPY", Kind("a NumPy array", _IN_PLACE)),
    (0, b"MMIDIDX\x00\x00", Kind("a Megatron index", _IN_PLACE)),
    (0, (20240520).to_bytes(4, "little"), Kind("a token file of llm.c", _IN_PLACE)),
    (0, b"ARROW1\x00\x00", Kind("an Arrow file", _EXPORT)),
    (0, b"ORC", Kind("an ORC file", _EXPORT)),
    (0, b"Obj\x01", Kind("an Avro file", _EXPORT)),
    (0, b"SQLite format 3\x00", Kind("a SQLite database", _EXPORT)),
    (0, b"\x89HDF\r\n\x1a\n", Kind("an HDF5 file", f"{_EXPORT}; cells of an .h5ad file: `penstock import`")),
    (0, b"%PDF-", Kind("a PDF", "extract its text first")),
    (0, b"\x89PNG\r\n", Kind("a picture", "give text")),
    (0, b"\xff\xd8\xff", Kind("a picture", "give text")),
    (0, b"\x7fELF", Kind("a program", "give text")),
    (0, b"\xff\xfe", Kind("UTF-16 text", "convert it: iconv -f UTF-16 -t UTF-8")),
    (0, b"\xfe\xff", Kind("UTF-16 text", "convert it: iconv -f UTF-16 -t UTF-8")),
)
PARQUET = b"PAR1"
_BLANK = b"\xef\xbb\xbf \t\r\n"
_ARRAY = re.compile(rb"\[\s*\{")
_OF_ARRAY = "each line must be one JSON object: jq -c '.[]' FILE > FILE.jsonl makes lines of it"


def compression_of(head: bytes) -> str:
    """ "gz", "zst", or "" for bytes that are neither."""
    return next((name for magic, name in COMPRESSIONS.items() if head.startswith(magic)), "")


def kind_of(head: bytes) -> Kind | None:
    """What the (decompressed) bytes are if they are known and no text; None if they may be text."""
    if head.startswith(PARQUET):
        return Kind("a Parquet file", "say --format parquet, or call it .parquet")
    return next((kind for at, magic, kind in _MAGIC if head[at : at + len(magic)] == magic), None)


def instead_of_lines(head: bytes) -> Kind | None:
    """What JSON is that is no JSON lines; None if it may be some."""
    return Kind("one JSON array", _OF_ARRAY) if _ARRAY.match(head.lstrip(_BLANK)) else None


def instead_of_parquet(head: bytes) -> Kind | None:
    """What a file is that is called Parquet; None if it may be that, or is unknown."""
    if head.startswith(PARQUET):
        return None
    if instead_of_lines(head):
        return Kind("no Parquet but one JSON array", f"call it .json; {_OF_ARRAY}")
    if head.lstrip(_BLANK).startswith(b"{"):
        return Kind("no Parquet but JSON lines", "call it .jsonl, or say --format jsonl")
    return None


def binary(head: bytes) -> Kind | None:
    """What has bytes that no text has."""
    at = head.find(b"\x00")
    if at < 0:
        return None
    return Kind(f"binary (a zero at byte {at:,})", f"{_IN_PLACE}, with their dtype=; --format text takes it as text")
