"""What a hostile writer can do as well as ours: seals and check values that are right."""

from __future__ import annotations

import re
import struct
from pathlib import Path

import penstock

_ZEROS = b"00000000"
_SEAL = re.compile(rb'\n  "crc32c": "([^"]*)"\n}\n$')
BLOCK = 4096


def _table() -> list[int]:
    table = []
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
        table.append(value)
    return table


_TABLE = _table()


def crc32c(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc = _TABLE[(crc ^ byte) & 255] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


def body_of(text: bytes) -> bytes:
    """A sealed text up to its seal."""
    return _SEAL.sub(b"", text)


def seal(body: bytes) -> bytes:
    text = body + b'\n  "crc32c": "' + _ZEROS + b'"\n}\n'
    return body + b'\n  "crc32c": "%08x"\n}\n' % crc32c(text)


def write_manifest(path: Path, body: bytes) -> None:
    """Sealed, and with the fingerprint that its shards make: the error of a first reading tells it."""
    path.write_bytes(seal(body))
    try:
        penstock.open(path.parent)
    except Exception as error:
        told = re.search(r"fingerprint ([0-9a-f]{32}), its shards make ([0-9a-f]{32})", str(error))
        if told:
            path.write_bytes(seal(body.replace(told[1].encode(), told[2].encode(), 1)))


def set_bytes(path: Path, offset: int, value: bytes) -> None:
    """Writes them, and makes the check values of their blocks right."""
    with path.open("r+b") as file:
        file.seek(offset)
        file.write(value)
    first, last = offset // BLOCK, (offset + max(len(value), 1) - 1) // BLOCK
    with path.open("rb") as file, path.with_name(path.name + ".crc").open("r+b") as side:
        for block in range(first, last + 1):
            file.seek(block * BLOCK)
            side.seek(4 * block)
            side.write(struct.pack("<I", crc32c(file.read(BLOCK))))
