"""Seeds of the native fuzz targets, made of tests/golden and small files that are written here: what libFuzzer begins
with, beside the corpora that are kept."""

from __future__ import annotations

import gzip
import json
import struct
from collections.abc import Callable, Iterator
from pathlib import Path

GOLDEN = Path(__file__).resolve().parent.parent / "golden"
TOKENS = 128  # of two bytes, of the streams that foreign_fuzz.cpp has


def _golden(name: str) -> bytes:
    return (GOLDEN / name).read_bytes()


def manifest() -> Iterator[bytes]:
    """Without their seals."""
    for path in sorted(GOLDEN.rglob("dataset.json")) + sorted(GOLDEN.rglob("shard.json")):
        yield path.read_bytes().partition(b'\n  "crc32c"')[0]


def index() -> Iterator[bytes]:
    for number, name in enumerate(("compact", "boundaries", "ids")):
        files = [_golden(f"dataset-v1/{name}/0000{shard}/metadata.index") for shard in (0, 1)]
        stream = _golden("dataset-v1/ids/00000/stream.bin") if name == "ids" else b""
        for first in (0, 1, 2, 41):
            yield bytes([number, first]) + b"".join(files) + stream
    yield bytes([3, 0]) + struct.pack("<7Q", *range(0, 70, 10))


def directory() -> Iterator[bytes]:
    for number, name in enumerate(("compact", "boundaries")):
        files = [_golden(f"dataset-v1/{name}/0000{shard}/metadata.directory") for shard in (1, 0)]
        for first in (0, 1, 2, 41):
            yield bytes([number, first]) + b"".join(files)


def columns() -> Iterator[bytes]:
    for condition in range(7):
        yield bytes([0, condition]) + _golden("dataset-v2/compact/00000/columns.bin")
    both = b"".join(_golden(f"dataset-v2/ids/0000{shard}/columns.bin") for shard in (0, 1))
    yield bytes([1, 0]) + both


_PACK = """{{
  "format": "penstock pack table",
  "version": {version},
  "fingerprint": "@",
  "documents": 5,
  "window": {window},
  "fit": "best",
  "group": 65536,
  "long": "split",
  "multiple_of": 1,{more}
  "rows": {rows},
  "pieces": {pieces},
  "records": 4243,
  "left_out": 0,
  "cut": 0,"""
_MORE = '\n  "max_document": 0,\n  "max_documents": 0,\n  "fill": "pad",\n  "buffer": 0,\n  "refill": 0,'


def pack_table() -> Iterator[bytes]:
    pieces, ends = (0, 1, 2, 3, 4), (3, 5)
    values = struct.pack("<7Q", *pieces, *ends)
    yield _PACK.format(version=1, window=4300, more="", rows=2, pieces=5).encode() + b"\0" + values
    yield _PACK.format(version=2, window=4300, more=_MORE, rows=2, pieces=5).encode() + b"\0" + values
    where = _PACK.format(version=2, window=4300, more=_MORE, rows=2, pieces=5) + '\n  "where": {"documents":5},'
    yield where.encode() + b"\0" + values
    parts = [part << 40 | 3 for part in range(6)]
    split = struct.pack("<8Q", *parts, 3, 6)
    yield _PACK.format(version=1, window=20, more="", rows=2, pieces=6).encode() + b"\0" + split


def state() -> Iterator[bytes]:
    jobs = [each["state"]["job"] for each in json.loads(_golden("state-v1.json"))["cases"]]
    jobs += [each["state"]["job"] for each in json.loads(_golden("mixtures.json"))["kinds"].values()]
    for job in jobs:
        yield job.encode()
    yield jobs[0].encode() + b"\0" + jobs[-1].encode()


def megatron() -> Iterator[bytes]:
    for lengths in ((TOKENS,), (5, 0, 100, 23), (1,) * TOKENS):
        pointers = [2 * sum(lengths[:number]) for number in range(len(lengths))]
        documents = [0, *range(1, len(lengths) + 1)]
        yield b"MMIDIDX\0\0" + struct.pack(
            f"<QBQQ{len(lengths)}i{len(lengths)}q{len(documents)}q",
            1,
            8,
            len(lengths),
            len(documents),
            *lengths,
            *pointers,
            *documents,
        )


def ds_index() -> Iterator[bytes]:
    for kind in (0, 1):
        yield bytes([kind]) + struct.pack("<4Q", 5, 5, 100, TOKENS)
    yield bytes([2]) + _golden("foreign/datatrove/plain.ds.metadata")


def npy() -> Iterator[bytes]:
    for descr, size in (("'<u2'", 2), ("[('a', '<u2'), ('b', '<f4', (2,))]", 10)):
        header = f"{{'descr': {descr}, 'fortran_order': False, 'shape': (9,), }}\n".encode()
        values = bytes(range(9 * size))
        for version, width in ((1, 2), (2, 4), (3, 4)):
            yield b"\x93NUMPY" + bytes([version, 0]) + len(header).to_bytes(width, "little") + header + values
        yield header + b"\0" + values


def llm_c() -> Iterator[bytes]:
    for number, (magic, version, width) in enumerate(((20240520, 1, 2), (20240801, 7, 4), (20240522, 1, 2))):
        head = struct.pack("<2i", version, 8)
        yield struct.pack("<i", magic) + head + bytes(1012) + bytes(8 * width)
        yield bytes([number]) + head + bytes(8 * width)


def litdata() -> Iterator[bytes]:
    for name in ("numpy", "tensor"):
        index = json.loads(_golden(f"foreign/litdata/{name}/index.json"))
        index["chunks"] = index["chunks"][:1]
        yield json.dumps(index).encode() + b"\0" + _golden(f"foreign/litdata/{name}/chunk-0-0.bin")


def mds() -> Iterator[bytes]:
    for name in ("tokens", "beside", "bytes", "dynamic", "fixed", "pickled"):
        index = json.loads(_golden(f"foreign/mds/{name}/index.json"))
        index["shards"] = index["shards"][:1]
        text, shard = json.dumps(index).encode(), _golden(f"foreign/mds/{name}/shard.00000.mds")
        for space in (b"", b" ") if name == "bytes" else (b"",):  # the size decides on the type of tokens
            yield text + space + b"\0" + shard


def olmo_gzip() -> Iterator[bytes]:
    text = b'0,5,a,"x, ""y""\n",z\n5,5,b,,\n5,128,c,x,z\n'
    yield b"\0" + gzip.compress(text, mtime=0)
    yield b"\0" + gzip.compress(text[:21], mtime=0) + gzip.compress(text[21:], mtime=0)
    yield b"\1" + text


_LINES = (
    '{"text":"a \\u00fc\\ud83d\\ude00\\n","url":"u","n":[1,-2,3.5e-7,null,true,{"x":1e20}]}\n'
    '\n{"url": "x" , "n": 18446744073709551615, "text": "é"}\r\n{"text":1}\n'
)
_IDS = (
    '{"input_ids":[0,17,4294967295],"url":"u","n":{}}\n{"n":[], "input_ids" : [1, 2, 3], "url":""}\n{"input_ids":[-1]}'
)


def json_lines() -> Iterator[bytes]:
    for choice in range(16):
        yield bytes([choice]) + (_IDS if choice % 2 else _LINES).encode()
    yield bytes([16]) + "\ufeff".encode() + _LINES.encode()


def http_reply() -> Iterator[bytes]:
    yield (
        b'HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 0-99/1234\r\nContent-Length: 100\r\nETag: "a"\r\n\r\n'
        b"\0<Error><Code>NoSuchBucket</Code></Error>"
    )
    yield b"HTTP/2 206\ncontent-range: bytes 4096-8191/*\ncontent-encoding: identity\n\0user:pa%2Fss@host:80/a b?sig=x"
    yield b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nContent-Encoding: gzip\r\nAccept-Ranges: none\r\n\r\n"
    yield b"HTTP/1.1 416 Range\nContent-Range: bytes */1234\nRetry-After: Fri, 31 Dec 2027 23:59:59 GMT\n\0host/#x"
    yield b"HTTP/1.1 301 Moved\nLocation: https://b.example/\nx-amz-bucket-region: eu-west-1\n\0[::1]:443/p%20q"
    yield b"HTTP/1.1 503 Slow Down\nRetry-After: 12\n\0Accept: text/plain"


def http_server() -> Iterator[bytes]:
    body = bytes(range(100))
    ranged = b"HTTP/1.1 206 Partial\r\nContent-Range: bytes 0-99/1234\r\nContent-Length: 100\r\nETag: x\r\n\r\n" + body
    chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nA: b\r\n\r\n"
    for choice in range(4):
        yield bytes([choice]) + (chunked if choice == 2 else ranged)
    yield b"\2HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabcde"
    yield b"\1HTTP/1.1 206 P\r\nContent-Range: bytes 0-0/1234\r\nContent-Length: 1\r\n\r\na"
    yield b"\1HTTP/1.1 302 Found\r\nLocation: /g\r\nContent-Length: 0\r\n\r\n"
    yield b"\0HTTP/1.1 100 Continue\r\n\r\n" + ranged
    yield b"\0HTTP/1.1 416 Range\r\nContent-Range: bytes */0\r\n\r\n"
    yield b"\3HTTP/1.1 404 None\r\nContent-Length: 31\r\n\r\n<Error><Code>NoSuchBucket</Code>"


def _crc32c(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def cache_pages() -> Iterator[bytes]:
    content = bytes((at * 131 + at // 251) & 255 for at in range(2 * 4096 + 1000))
    pages = [content[at : at + 4096] for at in range(0, len(content), 4096)]
    sums = [_crc32c(page) for page in pages]
    yield b"\0" + struct.pack("<3I", *sums) + content
    yield b"\0" + struct.pack("<3I", sums[0], 0, sums[2]) + content
    zeros = _crc32c(bytes(4096))
    yield b"\0" + struct.pack("<3I", zeros, zeros, _crc32c(bytes(1000))) + bytes(len(content))  # well kept, and others
    yield b"\0" + struct.pack("<3I", *sums) + content[:4100]
    yield b'\1{"penstock cache":1,"address":"corpus","bytes":9192,"parts":65536}\n'


def condition() -> Iterator[bytes]:
    for text in (
        "score > 0.5 and not lang = 'en' or n in (1, -2.5e3, null)",
        '"odd name" is not null and (a <> b or c)',
        "not (x <= 3 and y not in ('a', 'b''c')) or 5 < z",
        "true or x is null",
    ):
        yield text.encode()


TARGETS: dict[str, Callable[[], Iterator[bytes]]] = {
    "cache_pages": cache_pages,
    "columns": columns,
    "condition": condition,
    "directory": directory,
    "ds_index": ds_index,
    "http_reply": http_reply,
    "http_server": http_server,
    "index": index,
    "json_lines": json_lines,
    "litdata": litdata,
    "llm_c": llm_c,
    "manifest": manifest,
    "mds": mds,
    "megatron": megatron,
    "npy": npy,
    "olmo_gzip": olmo_gzip,
    "pack_table": pack_table,
    "state": state,
}
