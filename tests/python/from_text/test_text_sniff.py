"""What is no text is refused before anything is written, by what it is and not by its name; what to do is said."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from penstock._from.text.inputs import expand_inputs
from penstock._make.errors import UsageError

TEXT = b"a line of text\n" * 2000


def tar(mode: str) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=mode) as archive:
        member = tarfile.TarInfo("a.txt")
        member.size = len(TEXT)
        archive.addfile(member, io.BytesIO(TEXT))
    return out.getvalue()


def zipped() -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("a.txt", TEXT)
    return out.getvalue()


def npy() -> bytes:
    out = io.BytesIO()
    np.save(out, np.arange(1000, dtype="u2"))
    return out.getvalue()


def parquet() -> bytes:
    out = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.table({"text": ["a"]}), out)
    return out.getvalue()


CASES: dict[str, tuple[str, Callable[[], bytes], str]] = {
    "tar.gz": ("a.tar.gz", lambda: tar("w:gz"), ".tar is not read.*unpack it first"),
    "tar": ("a.tar", lambda: tar("w"), "unpack it first"),
    "a tar called text": ("a.txt", lambda: tar("w"), "a tar archive: unpack it first"),
    "a packed tar called text": ("a.txt.gz", lambda: tar("w:gz"), "a tar archive inside: unpack it first"),
    "a packed tar without a name": ("corpus", lambda: tar("w:gz"), "a tar archive inside"),
    "zip": ("a.jsonl", zipped, "a zip archive: unpack it first"),
    "xz": ("a.txt", lambda: lzma.compress(TEXT), "compressed by xz"),
    "bzip2": ("a.jsonl", lambda: bz2.compress(TEXT), "compressed by bzip2"),
    "npy": ("tokens.npy", npy, "a NumPy array: .*penstock.open reads them where they are"),
    "bin": ("train.bin", lambda: np.arange(5000, dtype="u2").tobytes(), "binary .*dtype=; --format text"),
    "packed bin": ("train.bin.gz", lambda: gzip.compress(np.arange(5000, dtype="u2").tobytes()), "binary .* inside"),
    "llm.c": ("a.txt", lambda: np.array([20240520, 1] + [0] * 254, "i4").tobytes(), "llm.c"),
    "csv": ("a.csv", lambda: b"text,url\na,b\n", "a table with commas.*Parquet or JSON lines.*--format text"),
    "tsv": ("a.tsv.gz", lambda: gzip.compress(b"text\turl\n"), "a table with tabs"),
    "parquet": ("a.txt", parquet, "a Parquet file: say --format parquet"),
    "utf-16": ("a.txt", lambda: "text".encode("utf-16"), "UTF-16 text: convert it: iconv"),
    "pdf": ("a.txt", lambda: b"%PDF-1.7\n", "a PDF: extract its text first"),
}


@pytest.mark.parametrize("case", CASES)
def test_what_is_no_text_is_refused(tmp_path, case):
    name, content, said = CASES[case]
    (tmp_path / name).write_bytes(content())
    with pytest.raises(UsageError, match=said) as refused:
        expand_inputs([str(tmp_path / name)])
    assert "\n" not in str(refused.value)
    assert str(tmp_path / name) in str(refused.value)


@pytest.mark.parametrize("name", ["a.txt", "noname", "a.csv", "a.bin", "a.txt.gz"])
def test_text_is_text_whatever_it_is_called(tmp_path, name):
    path = tmp_path / name
    path.write_bytes(gzip.compress(TEXT) if name.endswith(".gz") else TEXT)
    (found,) = expand_inputs([str(path)], "text" if name == "a.csv" else None)
    assert (found.format, found.compression) == ("text", "gz" if name.endswith(".gz") else "")


def test_compression_is_told_by_the_bytes(tmp_path):
    (tmp_path / "a.jsonl").write_bytes(gzip.compress(b'{"text": "a"}\n'))
    (found,) = expand_inputs([str(tmp_path / "a.jsonl")])
    assert (found.format, found.compression) == ("jsonl", "gz")


def test_zeros_are_text_where_the_user_says_so(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"a\0b")
    (found,) = expand_inputs([str(tmp_path / "a.txt")], "text")
    assert found.format == "text"


def write(*arguments: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "penstock", "write", *arguments]
    return subprocess.run(command, input=stdin, capture_output=True, check=False)


def test_the_command_writes_nothing(tmp_path, tokenizer_file):
    (tmp_path / "a.tar.gz").write_bytes(tar("w:gz"))
    (tmp_path / "b.txt").write_bytes(TEXT)
    inputs = [str(tmp_path / "b.txt"), str(tmp_path / "a.tar.gz")]
    done = write(*inputs, "--tokenizer", tokenizer_file, "--out", str(tmp_path / "out"))
    assert done.returncode == 2, done.stderr
    assert b"unpack it first" in done.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(("content", "said"), [(tar("w"), b"a tar archive"), (gzip.compress(TEXT), b"gzip -d")])
def test_standard_input_is_looked_at_too(tmp_path: Path, tokenizer_file: str, content: bytes, said: bytes) -> None:
    options = ["--format", "text", "--tokenizer", tokenizer_file, "--out", str(tmp_path / "out")]
    done = write("-", *options, stdin=content)
    assert done.returncode != 0
    assert said in done.stderr
