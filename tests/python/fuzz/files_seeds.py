"""Small real files of the formats that Python reads: what files.py mutates."""

from __future__ import annotations

import gzip
import io
import json
import tarfile

import numpy as np

_DOCUMENTS = ([1, 2, 3], [], list(range(60)))
_LINES = "".join(json.dumps({"text": "x" * n, "url": f"page/{n}", "n": n}) + "\n" for n in (0, 3, 200)).encode()


def _array(tokens: list[int]) -> bytes:
    file = io.BytesIO()
    np.save(file, np.array(tokens, "u2"))
    return file.getvalue()


def _tar(members: dict[str, bytes], format: int) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w", format=format) as tar:
        for name, data in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    return file.getvalue()


def tars() -> list[bytes]:
    """Arrays, JSON and bare tokens, with what stands beside them; a name that is too long for a header."""
    arrays, objects, bare = {}, {}, {}
    for number, tokens in enumerate(_DOCUMENTS):
        beside = {"url": f"page/{number}"}
        arrays |= {f"{number:03}.npy": _array(tokens), f"{number:03}.json": json.dumps(beside).encode()}
        objects[f"a/{number}.json"] = json.dumps({**beside, "tokens": tokens}).encode()
        bare |= {
            f"{number}.bin": np.array(tokens, "<u2").tobytes(),
            f"{number}.txt.gz": gzip.compress(b"text", mtime=0),
        }
    arrays = {("long/" * 30 if name.startswith("002") else "") + name: data for name, data in arrays.items()}
    kinds = (tarfile.PAX_FORMAT, tarfile.GNU_FORMAT)
    return [_tar(each, kind) for each in (arrays, objects, bare) for kind in kinds]


def packed_tars() -> list[bytes]:
    return [gzip.compress(each, mtime=0) for each in tars()]


def packed_lines() -> list[bytes]:
    half = len(_LINES) // 2
    return [
        gzip.compress(_LINES, mtime=0),
        gzip.compress(_LINES[:half], mtime=0) + gzip.compress(_LINES[half:], mtime=0),
    ]


def zstd_lines() -> list[bytes]:
    import zstandard

    packer = zstandard.ZstdCompressor(write_checksum=True)
    return [packer.compress(_LINES), packer.compress(_LINES[:50]) + packer.compress(_LINES[50:])]


def _parquet(columns: dict[str, object], **options: object) -> bytes:
    import pyarrow
    import pyarrow.parquet

    file = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.table(columns), file, **options)
    return file.getvalue()


def parquets() -> list[bytes]:
    columns: dict[str, object] = {"tokens": list(_DOCUMENTS), "url": ["a", None, "c"], "n": [1, 2, 3]}
    return [_parquet(columns), _parquet(columns, row_group_size=1, compression="zstd", use_dictionary=False)]


def text_parquets() -> list[bytes]:
    columns: dict[str, object] = {"text": ["a", "", "c" * 100], "score": [0.5, None, 2.0], "tags": [["x"], [], None]}
    return [_parquet(columns), _parquet(columns, row_group_size=2, compression="gzip", data_page_version="2.0")]


def arrows() -> list[bytes]:
    import pyarrow
    import pyarrow.ipc

    table = pyarrow.table({"input_ids": list(_DOCUMENTS), "url": ["a", None, "c"]})
    found = []
    for new in (pyarrow.ipc.new_stream, pyarrow.ipc.new_file):
        file = io.BytesIO()
        with new(file, table.schema) as writer:
            writer.write_table(table, 2)
        found.append(file.getvalue())
    return found
