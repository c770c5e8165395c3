"""Mutations of files, by a seeded generator: of any bytes, and ones after which check values are right again."""

from __future__ import annotations

import gzip
import random
import struct
import zlib
from collections.abc import Callable

NUMBERS = (0, 1, 2, 127, 255, 4096, 65535, 1 << 20, 1 << 31, (1 << 32) - 1, 1 << 40, (1 << 63) - 1, (1 << 64) - 1)
Mutate = Callable[[random.Random, bytes], bytes]
_BLOCK = 512  # of a tar


def any_bytes(rng: random.Random, data: bytes, begin: int = 0) -> bytes:
    """Changes a few places from `begin` on."""
    found = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 4, 16))):
        if len(found) <= begin:
            break
        at = rng.randrange(begin, len(found))
        kind = rng.randrange(8)
        if kind == 0:
            found[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            found[at] = rng.randrange(256)
        elif kind in (2, 3):
            size = rng.choice((1, 2, 4, 8))
            found[at : at + size] = struct.pack("<Q", rng.choice(NUMBERS))[:size]
        elif kind == 4:
            other = rng.randrange(len(found))
            found[at:at] = found[other : other + rng.choice((1, 8, 64, 512))]
        elif kind == 5:
            del found[at : at + rng.choice((1, 1, 4, 64, 512))]
        elif kind == 6:
            found[at : at + 16] = rng.randbytes(min(16, len(found) - at))
        elif rng.random() < 0.2:
            del found[at:]
    return bytes(found)


def tar_headers(rng: random.Random, data: bytes) -> bytes:
    """A tar of which one or two headers say something else, with their checksums."""
    found = bytearray(data)
    headers = [at for at in range(0, len(found) - _BLOCK + 1, _BLOCK) if found[at + 257 : at + 262] == b"ustar"]
    for at in rng.sample(headers, min(len(headers), rng.choice((1, 1, 2)))):
        place, size = rng.choice(
            ((0, 100), (100, 8), (124, 12), (124, 12), (136, 12), (156, 1), (157, 100), (345, 155))
        )
        field = any_bytes(rng, bytes(found[at + place : at + place + size]))
        if place == 124 and rng.random() < 0.5:
            number = rng.choice(NUMBERS)
            field = b"%011o\0" % number if number < 1 << 33 else b"\x80" + number.to_bytes(11, "big")
        if place == 156 and rng.random() < 0.8:
            field = rng.choice(b"01234567LKxgSDV").to_bytes(1, "big")
        found[at + place : at + place + size] = field[:size].ljust(size, b"\0")
        found[at + 148 : at + 156] = b" " * 8
        found[at + 148 : at + 156] = b"%06o\0 " % sum(found[at : at + _BLOCK])
    return bytes(found)


def within_gzip(inner: Mutate) -> Mutate:
    """What is unpacked is mutated, and packed again."""

    def mutate(rng: random.Random, data: bytes) -> bytes:
        packed = gzip.compress(inner(rng, gzip.decompress(data)), 1, mtime=0)
        return packed + packed if rng.random() < 0.05 else packed

    return mutate


def gzip_stream(rng: random.Random, data: bytes) -> bytes:
    """The packed data is mutated, and has the check value of what it unpacks to, as far as it does."""
    body = any_bytes(rng, data[10:-8])
    try:
        unpacker = zlib.decompressobj(-zlib.MAX_WBITS)
        unpacked = unpacker.decompress(body, 1 << 24)
    except zlib.error:
        unpacked = b""
    return data[:10] + body + struct.pack("<II", zlib.crc32(unpacked), len(unpacked))


def parquet_footer(rng: random.Random, data: bytes) -> bytes:
    """The footer is mutated, and its length is right again."""
    size = int.from_bytes(data[-8:-4], "little")
    footer = any_bytes(rng, data[-8 - size : -8])
    return data[: -8 - size] + footer + len(footer).to_bytes(4, "little") + data[-4:]
