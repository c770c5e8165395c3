"""Odd inputs whose documents, errors and lists stay what they were when Python read one document after the other."""

from __future__ import annotations

import contextlib
import errno
import gzip
import io
import json
import os
import random
import re
import resource
import threading
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import penstock
import pyarrow
import pyarrow.parquet
import pytest
import zstandard
from _dirty import entries, said_by_write
from penstock._from.text.compression import ByteInput, _ZstdReader
from penstock._from.text.documents import DocumentReader
from penstock._from.text.inputs import expand_inputs
from penstock._from.text.raw import Columns
from penstock._from.text.tasks import cut
from penstock._make.errors import FileError, InputError

GOOD = b'{"text": "good", "url": "u"}\n'
WITHOUT = json.dumps({"body": "x" * 100}).encode() + b"\n"
OPTIONS = ["--metadata", "url", "--workers", "1"]


@pytest.mark.parametrize("files", [[WITHOUT * 500 + GOOD], [WITHOUT * 20, GOOD]])
def test_documents_without_the_column_are_no_wrong_option_where_others_of_the_first_1024_have_it(
    tmp_path: Path, tokenizer_file: str, files: list[bytes]
) -> None:
    for number, data in enumerate(files):
        (tmp_path / f"{number}.jsonl").write_bytes(data)
    arguments = [*sorted(tmp_path.glob("*.jsonl")), "--tokenizer", tokenizer_file, *OPTIONS, "--on-error", "skip"]
    said = said_by_write(*arguments, "--out", tmp_path / "out")
    assert (said["documents"], said["skipped"]) == (1, files[0].count(b"\n") - (len(files) == 1))


@pytest.mark.parametrize(
    ("compression", "pack", "words"),
    [("gz", gzip.compress, "damaged gzip data"), ("zst", zstandard.compress, "damaged Zstandard data")],
)
def test_of_a_damaged_file_as_many_lines_are_given_as_by_small_reads(
    tmp_path: Path, compression: str, pack: Callable[[bytes], bytes], words: str
) -> None:
    rng = random.Random(0)
    packed = bytearray(pack(b"".join(b"%b %d\n" % (rng.randbytes(150).hex().encode(), at) for at in range(30_000))))
    at = len(packed) // 2
    packed[at : at + 200_000] = b"\xff" * 200_000
    (tmp_path / "a").write_bytes(packed)
    found: list[list[bytes]] = [[], []]
    for lines, by_line in zip(found, (True, False), strict=True):
        opened = ByteInput(tmp_path / "a", "a", compression, careful=True)
        with pytest.raises(FileError, match=words):
            for data in opened.file if by_line else opened.whole_lines():
                lines += bytes(data).splitlines()
        opened.close()
    assert found[0] == found[1] and len(found[0]) > 10_000


@pytest.mark.parametrize("at", [0.2, 0.5, 0.8])
def test_all_that_zstandard_gives_before_damage_is_given(tmp_path: Path, at: float) -> None:
    """As much as zstandard's own object gives for pieces of 1 KiB, and its first error."""
    text = b"".join(b'{"text": "%d %b"}\n' % (each, b"word " * (each % 90)) for each in range(60_000))
    packed = bytearray(zstandard.compress(text))
    begin = int(at * len(packed))
    packed[begin : begin + 3000] = b"\xff" * 3000
    (tmp_path / "a").write_bytes(packed)
    frame, whole = zstandard.ZstdDecompressor().decompressobj(), b""
    with pytest.raises(zstandard.ZstdError) as damage:
        for first in range(0, len(packed), 1024):
            whole += frame.decompress(packed[first : first + 1024])
    opened, found = ByteInput(tmp_path / "a", "a", "zst", careful=True), b""
    with pytest.raises(FileError, match=re.escape(f"({damage.value})")):
        for data in opened.whole_lines():
            found += data
    opened.close()
    assert text.startswith(found) and len(found) > 100_000
    assert found == whole[: whole.rindex(b"\n") + 1]


def test_what_was_unpacked_before_the_disk_fails_is_given(tmp_path: Path) -> None:
    text = random.Random(0).randbytes(200_000).hex().encode()

    class Failing(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            if self.tell():
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            return super().read(size)

    reader = _ZstdReader(Failing(zstandard.compress(text)), "a", 1 << 17)
    buffer = bytearray(len(text))
    count = reader.readinto(buffer)
    assert 0 < count < len(text) and buffer[:count] == text[:count]
    with pytest.raises(OSError, match="Input/output error"):
        reader.readinto(buffer)


def test_a_pipe_is_read_beside_more_than_a_thousand_open_files(tmp_path: Path) -> None:
    """select() cannot look at descriptors from 1,024 on."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    if 0 <= limits[1] < 2048:
        pytest.skip("this process may not open 2,048 files")
    os.mkfifo(tmp_path / "pipe")
    with contextlib.ExitStack() as stack:
        stack.callback(resource.setrlimit, resource.RLIMIT_NOFILE, limits)
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(2048, limits[0]), limits[1]))
        for _ in range(1100):
            stack.callback(os.close, os.open(tmp_path, os.O_RDONLY))
        writer = threading.Thread(target=(tmp_path / "pipe").write_bytes, args=(b"one\ntwo\n",))
        writer.start()
        opened = ByteInput(tmp_path / "pipe", "pipe", "")
        assert b"".join(opened.whole_lines()) == b"one\ntwo\n"
        opened.close()
        writer.join()


def test_a_small_zstandard_file_that_holds_much_takes_little_memory(tmp_path: Path) -> None:
    """Four bytes of Zstandard data may stand for 128 KiB: RLE_Block, RFC 8878, 3.1.1.2."""
    (tmp_path / "a").write_bytes(zstandard.compress(b"one\n" + b"\n" * (256 << 20) + b"two\n"))
    assert (tmp_path / "a").stat().st_size < 1 << 16
    opened, lines, size = ByteInput(tmp_path / "a", "a", "zst"), [], 0
    tracemalloc.start()
    try:
        for data in opened.whole_lines():
            size += len(data)
            lines += [bytes(data[:4]), bytes(data[-4:])]
        assert tracemalloc.get_traced_memory()[1] < 96 << 20
    finally:
        tracemalloc.stop()
        opened.close()
    assert (lines[0], lines[-1], size) == (b"one\n", b"two\n", 8 + (256 << 20))


def test_tasks_before_a_row_that_cannot_be_used_are_given(tmp_path: Path) -> None:
    texts: list[str | None] = ["x" * 100] * 600
    texts[500] = None
    pyarrow.parquet.write_table(pyarrow.table({"text": texts}), tmp_path / "a.parquet")
    columns = Columns("text", None, (), "file")
    found = []
    with pytest.raises(InputError, match=r'row 501: column "text" is null'):
        for batch in cut(DocumentReader(expand_inputs([str(tmp_path / "a.parquet")]), columns).read(), 1000):
            found.append(batch.completed)
    assert [task.documents for task in found if task] == [10] * 50


def test_rows_without_columns_have_empty_metadata(tmp_path: Path, tokenizer_file: str) -> None:
    pyarrow.parquet.write_table(pyarrow.table({"text": ["a", "b"]}), tmp_path / "a.parquet")
    for codec in ("json", "msgpack"):
        penstock.write(
            tmp_path / "a.parquet", tmp_path / codec, tokenizer=tokenizer_file, metadata="all", codec=codec
        )  # fmt: skip
        view = penstock.open(tmp_path / codec).documents()
        assert [view[index].spans[0].metadata for index in range(2)] == [{}, {}]


@pytest.mark.parametrize("option", ["--text-column", "--ids-column", "--metadata"])
def test_a_column_whose_name_is_no_utf_8_is_one_that_is_not_there(
    tmp_path: Path, tokenizer_file: str, option: str
) -> None:
    (tmp_path / "a.jsonl").write_bytes(GOOD)
    arguments = [tmp_path / "a.jsonl", "--tokenizer", tokenizer_file, option, "\udcff", "--out", tmp_path / "out"]
    assert f'for {option}: there are "text", "url"' in said_by_write(*arguments, code=2)["error"]


def test_the_tokens_are_named_of_a_document_whose_metadata_cannot_be_stored_either(tmp_path: Path) -> None:
    bad = r"\udc00"
    (tmp_path / "a.jsonl").write_text(
        f'{{"ids": [-1], "url": "{bad}"}}\n{{"ids": [1], "url": "{bad}"}}\n{{"ids": [1], "url": 1}}\n'
    )
    options: dict[str, Any] = {"ids_column": "ids", "dtype": "u2", "metadata": ["url"], "on_error": "skip"}
    penstock.write(tmp_path / "a.jsonl", tmp_path / "out", **options)
    first, second = (each["reason"] for each in entries(tmp_path / "out" / "skipped.jsonl"))
    assert "token -1" in first and "metadata cannot be stored as json" in second
