"""Real inputs with parts that cannot be used, and what is to be said of these."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import random
import shutil
import tarfile
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest
import zstandard
from penstock._cli import write as command
from penstock._cli.main import main
from penstock._make.executors import executor_of
from text_corpus import train_tokenizer

BAD_LINES: list[tuple[bytes, str]] = [
    (b'{"url": "no text"}', 'no column "text" for --text-column: there are "url"'),
    (b"no JSON", r"not JSON: .* at column \d+"),
    (b'["a list"]', "a list: each line must be one JSON object"),
    (b'{"text": 3, "url": "u"}', "is a number, not a string"),
    (b'{"text": null, "url": "u"}', "is null, not a string"),
    (b'{"text": "\xff", "url": "u"}', r"invalid UTF-8 at byte 10 \(0xff\)"),
    (b'{"text": "a \\ud800 b", "url": "u"}', "half of a surrogate pair .* at character 2"),
    (b'{"text": "no url"}', 'no column "url"'),
    (b'{"text": "x", "url": "\\udc00"}', "its metadata cannot be stored as json"),
    (b'{"text": "x", "text": "y", "url": "u"}', 'the key "text" stands twice in one object: keep one'),
    (b'{"text": "x", "url": ' + b"9" * 5000 + b"}", "JSON that cannot be read"),
    (b'{"text": ' + b"[" * 100_000, "nested too deep|not JSON"),
]


def row(number: int) -> dict[str, Any]:
    return {"text": f"the document of number {number}\n" * (number % 5 + 1), "url": f"u/{number}"}


def line(number: int) -> bytes:
    return json.dumps(row(number)).encode()


def lines_with_bad_ones(first: int, count: int) -> tuple[bytes, list[int]]:
    """Lines of JSON; every bad one stands somewhere among them, at these numbers from 1 on."""
    lines = [line(number) for number in range(first, first + count)]
    places = sorted(random.Random(first).sample(range(count), len(BAD_LINES) - 1))
    places = [0, *(each + 1 for each in places)]
    for at, (bad, _) in zip(places, BAD_LINES, strict=True):
        lines.insert(at, bad)
    return b"\n".join(lines) + b"\n", [each + 1 for each in places]


def parquet(path: Path, first: int, count: int, damaged: int | None = None, nulls: tuple[int, ...] = ()) -> None:
    """Rows in groups of 100, with `nulls` instead of texts; the texts of group `damaged` cannot be unpacked."""
    rows = [row(number) for number in range(first, first + count)]
    for each in nulls:
        rows[each]["text"] = None
    pyarrow.parquet.write_table(
        pyarrow.Table.from_pylist(rows), path, row_group_size=100, compression="zstd", use_dictionary=False
    )
    if damaged is not None:
        column = pyarrow.parquet.ParquetFile(path).metadata.row_group(damaged).column(0)
        data = bytearray(path.read_bytes())
        data[column.data_page_offset : column.data_page_offset + column.total_compressed_size] = bytes(
            column.total_compressed_size
        )
        path.write_bytes(data)


def make(folder: Path) -> Path:
    """Inputs a to k of all kinds with 22 parts that cannot be used, and tokenizer.json."""
    folder.mkdir(exist_ok=True)
    train_tokenizer(folder / "tokenizer.json")
    (folder / "a.jsonl").write_bytes(lines_with_bad_ones(0, 400)[0])
    packed = gzip.compress(b"\n".join(map(line, range(1000, 1300))))
    (folder / "b.jsonl.gz").write_bytes(packed[: len(packed) * 2 // 3])
    texts = random.Random(0)
    long = [{"text": "".join(texts.choices("abcdefghijkl ", k=500)), "url": "long"} for _ in range(600)]
    frames = bytearray(zstandard.ZstdCompressor().compress(b"\n".join(json.dumps(each).encode() for each in long)))
    frames[-40:-20] = bytes(20)  # in the last block
    (folder / "c.jsonl.zst").write_bytes(frames)
    parquet(folder / "d.parquet", 2000, 400, damaged=1, nulls=(7, 350))
    (folder / "e.parquet").write_bytes(b"this is no Parquet file")
    (folder / "f.parquet").write_bytes(b"")
    pyarrow.parquet.write_table(pyarrow.table({"other": [1]}), folder / "g.parquet")
    with tarfile.open(folder / "h.jsonl", "w") as tar:
        tar.add(folder / "f.parquet", "f.parquet")
    (folder / "i.jsonl").write_bytes(b"")
    (folder / "j.jsonl").write_bytes("{}".encode("utf-16"))
    (folder / "k.jsonl").write_bytes(b"\xef\xbb\xbf" + line(9999))
    return folder


def folder_of(dirty: Path, folder: Path, **files: bytes | list[bytes]) -> Path:
    """A folder with the tokenizer and these files: a_jsonl is the content, or the lines, of a.jsonl."""
    folder.mkdir()
    shutil.copy(dirty / "tokenizer.json", folder)
    for name, content in files.items():
        content = content if isinstance(content, bytes) else b"\n".join(content)
        (folder / name.replace("_", ".")).write_bytes(content)
    return folder


def said_by_write(*arguments: object, code: int = 0) -> dict[str, Any]:
    """What `penstock write --json` says, run in this process, and by it alone where there is one worker."""
    cluster_of = command.cluster_of
    with (
        contextlib.redirect_stdout(io.StringIO()) as output,
        contextlib.redirect_stderr(io.StringIO()) as errors,
        pytest.MonkeyPatch.context() as patch,
    ):
        here = executor_of(1)
        patch.setattr(
            command, "cluster_of", lambda given: cluster_of(given) or (here if given["workers"] == 1 else None)
        )
        found = main(["write", *map(str, arguments), "--json"])
    assert found == code, output.getvalue() + errors.getvalue()
    said: dict[str, Any] = json.loads(output.getvalue().splitlines()[-1])
    return said


def write(folder: Path, out: Path | str, *more: str, code: int = 0, inputs: str = "[a-k].*") -> dict[str, Any]:
    """Writes the inputs into shards of 10 kB, by one process unless `more` says another number."""
    return said_by_write(*arguments_of(folder, out, *more, inputs=inputs), code=code)


def arguments_of(folder: Path, out: Path | str, *more: str, inputs: str = "[a-k].*") -> list[str]:
    options = ["--tokenizer", str(folder / "tokenizer.json"), "--metadata", "url", "--shard-size", "10k"]
    options += ["--on-error", "skip"] if "--on-error" not in more else []
    options += ["--workers", "1"] if "--workers" not in more else []
    return [str(folder / inputs), *options, "--out", str(out), *more]


def files(folder: Path) -> dict[str, bytes]:
    """All, by name."""
    return {str(each.relative_to(folder)): each.read_bytes() for each in folder.rglob("*") if each.is_file()}


def entries(path: Path | bytes) -> list[dict[str, Any]]:
    """Of a list."""
    data = path if isinstance(path, bytes) else path.read_bytes()
    return [json.loads(each) for each in data.splitlines()]
