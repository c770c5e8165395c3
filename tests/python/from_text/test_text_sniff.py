"""What is no text is refused before anything is written, by what it is and not by its name; what to do is said."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import tarfile
import zipfile
from collections.abc import Callable

import numpy as np
import penstock
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
    "lines called parquet": ("a.parquet", lambda: b'\n {"text": "a"}\n', "no Parquet but JSON lines: call it .jsonl"),
    "an array called parquet": (
        "a.parquet",
        lambda: b'[{"text": "a"}]',
        "no Parquet but one JSON array: .*jq -c '.\\[\\]'",
    ),
    "an array of JSON": (
        "a.json",
        lambda: b'\xef\xbb\xbf[\n  {"text": "a"}\n]',
        "one JSON array: each line must .*jq -c",
    ),
    "a packed array": ("a.json.gz", lambda: gzip.compress(b'[{"text": "a"}]'), "one JSON array inside: each line"),
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


@pytest.mark.parametrize(
    ("name", "content", "given", "found"),
    [
        ("a.txt", TEXT, None, ("text", "")),
        ("noname", TEXT, None, ("text", "")),
        ("a.bin", TEXT, None, ("text", "")),
        ("a.csv", TEXT, "text", ("text", "")),
        ("a.txt.gz", gzip.compress(TEXT, mtime=0), None, ("text", "gz")),
        ("a.jsonl", gzip.compress(b'{"text": "a"}\n', mtime=0), None, ("jsonl", "gz")),
        ("a.txt", b"a\0b", "text", ("text", "")),  # zeros, where the user says so
    ],
)
def test_bytes_tell_what_is_text_and_how_it_is_packed(tmp_path, name, content, given, found):
    (tmp_path / name).write_bytes(content)
    (each,) = expand_inputs([str(tmp_path / name)], given)
    assert (each.format, each.compression) == found


def test_nothing_is_written_where_a_later_input_is_no_text(tmp_path, tokenizer_file):
    (tmp_path / "a.tar.gz").write_bytes(tar("w:gz"))
    (tmp_path / "b.txt").write_bytes(TEXT)
    inputs = [tmp_path / "b.txt", tmp_path / "a.tar.gz"]
    with pytest.raises(penstock.InvalidArgumentError, match="unpack it first"):
        penstock.write(inputs, tmp_path / "out", tokenizer=tokenizer_file)
    assert not (tmp_path / "out").exists()


def test_lines_that_are_arrays_are_bad_documents_where_those_are_left_out(tmp_path, tokenizer_file):
    (tmp_path / "a.jsonl").write_bytes(b'[{"text": "a"}]\n{"text": "b"}\n')
    with pytest.raises(penstock.InvalidArgumentError, match="one JSON array"):
        penstock.write(tmp_path / "a.jsonl", tmp_path / "out", tokenizer=tokenizer_file)
    done = penstock.write(tmp_path / "a.jsonl", tmp_path / "out", tokenizer=tokenizer_file, on_error="skip")
    assert (done.documents, done.skipped) == (1, 1)


def test_standard_input_that_is_one_array_says_so(tmp_path, tokenizer_file, monkeypatch):
    (tmp_path / "in").write_bytes(b'[{"text": "a"}]')
    with (tmp_path / "in").open("rb") as file:
        monkeypatch.setattr("sys.stdin", file)
        with pytest.raises(ValueError, match="standard input: one JSON array: each line must be one JSON object"):
            penstock.write("-", tmp_path / "out", format="jsonl", tokenizer=tokenizer_file)


@pytest.mark.parametrize(("content", "said"), [(tar("w"), "a tar archive"), (gzip.compress(TEXT, mtime=0), "gzip -d")])
def test_standard_input_is_looked_at_too(tmp_path, tokenizer_file, monkeypatch, content, said):
    (tmp_path / "in").write_bytes(content)
    with (tmp_path / "in").open("rb") as file:
        monkeypatch.setattr("sys.stdin", file)
        with pytest.raises(ValueError, match=said):
            penstock.write("-", tmp_path / "out", format="text", tokenizer=tokenizer_file)
