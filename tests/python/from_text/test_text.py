"""Reading text, cutting tasks and tokenizing, below the command line."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("tokenizers")
zstandard = pytest.importorskip("zstandard")
pytest.importorskip("pyarrow")

import pyarrow  # noqa: E402
import pyarrow.parquet  # noqa: E402
from penstock._from.text.documents import DocumentReader  # noqa: E402
from penstock._from.text.extract import extract_ids, extract_texts  # noqa: E402
from penstock._from.text.inputs import expand_inputs  # noqa: E402
from penstock._from.text.raw import Columns, RawDocument  # noqa: E402
from penstock._from.text.tasks import cut  # noqa: E402
from penstock._from.text.tokenizing import DocumentTokenizer, TokenizerOptions  # noqa: E402
from penstock._make.errors import InputError, UsageError  # noqa: E402
from text_corpus import END, rows, write_jsonl  # noqa: E402

ALL = Columns("text", None, None, "file")
TEXT_ALONE = Columns("text", None, (), "file")


def read(paths: list[Any], columns: Columns = ALL, format: str | None = None) -> list[RawDocument]:
    return list(DocumentReader(expand_inputs([str(path) for path in paths], format), columns).documents())


def texts_of(paths: list[Any], columns: Columns = ALL) -> tuple[list[str], list[dict[str, Any]] | None]:
    return extract_texts(read(paths, columns), columns)


def document(text: bytes = b"", number: int = 0) -> RawDocument:
    return RawDocument(number, "a.txt", 0, "text", text, None)


# ---- inputs


def test_every_format_and_compression_gives_the_same_documents(tmp_path: Path) -> None:
    content = rows()
    plain = write_jsonl(tmp_path / "a.jsonl", content)
    data = plain.read_bytes()
    half = len(data) // 2
    (tmp_path / "b.jsonl.gz").write_bytes(gzip.compress(data[:half]) + gzip.compress(data[half:]))
    compress = zstandard.ZstdCompressor().compress
    (tmp_path / "c.jsonl.zst").write_bytes(compress(data[:half]) + compress(data[half:]))
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(content), tmp_path / "d.parquet", row_group_size=500)
    expected = [row["text"] for row in content]
    metadata = [{name: row[name] for name in ("url", "n", "x")} for row in content]
    for name in ("a.jsonl", "b.jsonl.gz", "c.jsonl.zst", "d.parquet"):
        assert texts_of([tmp_path / name]) == (expected, metadata), name


@pytest.mark.parametrize("suffix", ["gz", "zst"])
def test_compressed_input_that_is_cut_off_or_damaged_is_refused(tmp_path: Path, suffix: str) -> None:
    plain = write_jsonl(tmp_path / "a.jsonl", rows()[:300]).read_bytes()
    data = gzip.compress(plain) if suffix == "gz" else zstandard.ZstdCompressor(write_checksum=True).compress(plain)
    path = tmp_path / f"a.jsonl.{suffix}"
    for length in (5, len(data) // 2, len(data) - 1):
        path.write_bytes(data[:length])
        with pytest.raises(InputError, match=r"a.jsonl.*cut off"):
            read([path])
    path.write_bytes(data[:-20] + bytes([data[-20] ^ 0xFF]) + data[-19:])
    with pytest.raises(InputError, match=r"damaged|cut off|not JSON|UTF-8"):
        texts_of([path])


def test_globs_are_sorted_and_what_cannot_be_read_is_refused_with_advice(tmp_path: Path) -> None:
    for name in ("b.txt", "a.txt", "c.txt.xz"):
        (tmp_path / name).write_text(name)
    found = expand_inputs([str(tmp_path / "*.txt")])
    assert [each.published_name for each in found] == ["a.txt", "b.txt"]
    for patterns, words in (
        ([tmp_path], "is a folder: give a glob"),
        ([tmp_path / "none.txt"], "no such file"),
        ([tmp_path / "*.md"], "no file matches"),
        ([tmp_path / "a.txt", tmp_path / "*.txt"], "given twice"),
        ([tmp_path / "c.txt.xz"], "unpack it first"),
        (["-"], "say --format"),
    ):
        with pytest.raises(UsageError, match=words):
            expand_inputs([str(pattern) for pattern in patterns])


def test_plain_text_is_one_document_a_file_or_a_line_with_built_in_columns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep/x.py").write_bytes(b"one\n\r\n  \ntwo\r\n")
    (tmp_path / "y.txt.gz").write_bytes(gzip.compress("naïve".encode()))
    monkeypatch.chdir(tmp_path)
    texts, metadata = texts_of(["deep/x.py", "y.txt.gz"])
    assert texts == ["one\n\r\n  \ntwo\r\n", "naïve"]
    assert metadata == [
        {"path": "deep/x.py", "kind": "py", "size": 14},
        {"path": "y.txt.gz", "kind": "txt", "size": 6},
    ]
    columns = Columns("text", None, ("kind",), "line")
    assert texts_of(["deep/x.py"], columns) == (["one", "two"], [{"kind": "py"}] * 2)
    assert [each.line for each in read(["deep/x.py"], columns)] == [1, 4]


def test_no_absolute_path_reaches_the_metadata(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep/x.py").write_text("x")
    (tmp_path / "y.py").write_text("y")
    _, metadata = texts_of([tmp_path / "deep/x.py", tmp_path / "y.py"])
    assert [each["path"] for each in metadata or []] == ["deep/x.py", "y.py"]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b'{"text": 3}', r'document 2 \(.*a.jsonl line 3\): "text" is a number, not a string'),
        (b'{"text": null}', "is null, not a string"),
        (b'{"body": "x", "url": "u"}', 'no column "text" for --text-column: there are "body", "url"'),
        (b'{"text": "x"', r"line 3\): not JSON: .* at column \d+"),
        (b'{"text": "x', r"line 3\): not JSON: Unterminated string starting at column 10: each line"),
        (b'{"text": "x\ty"}', r"line 3\): not JSON: Invalid control character at column 12: each line"),
        (b'{"text": "x", "text": "y"}', r'line 3\): the key "text" stands twice in one object: keep one'),
        (b'["x"]', "a list: each line must be one JSON object"),
        (b'{"text": "\xff"}', r"line 3\): invalid UTF-8 at byte 10 \(0xff\)"),
        (b'{"a": ' + b"[" * 100_000, "nested too deep|not JSON"),
    ],
)
def test_a_bad_line_is_refused_with_its_place(tmp_path: Path, line: bytes, words: str) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"text": "good"}\n\n' + line + b"\n")
    with pytest.raises(InputError, match=words):
        texts_of([path])


def test_a_missing_metadata_column_names_those_that_there_are(tmp_path: Path) -> None:
    columns = Columns("text", None, ("ulr",), "file")
    write_jsonl(tmp_path / "a.jsonl", [{"text": "x", "url": "u"}])
    pyarrow.parquet.write_table(pyarrow.table({"text": ["x"], "url": ["u"]}), tmp_path / "a.parquet")
    (tmp_path / "a.txt").write_text("x")
    for name, there in (("a.jsonl", '"text", "url"'), ("a.parquet", '"text", "url"'), ("a.txt", '"path", "kind"')):
        with pytest.raises(InputError, match=f'no column "ulr" for --metadata: there are {there}'):
            texts_of([tmp_path / name], columns)


def test_parquet_without_the_column_of_another_type_null_or_damaged_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    for table, words in (
        (pyarrow.table({"body": ["x"]}), 'no column "text" for --text-column: there are "body"'),
        (pyarrow.table({"text": [1]}), "is int64, not strings"),
        (pyarrow.table({"text": ["a", None]}), 'row 2: column "text" is null'),
    ):
        pyarrow.parquet.write_table(table, path)
        with pytest.raises(InputError, match=words):
            read([path])
    path.write_bytes(b"PAR1" + b"x" * 100)
    with pytest.raises(InputError, match="not a Parquet file"):
        read([path])


def test_parquet_dates_and_decimals_become_text(tmp_path: Path) -> None:
    import datetime
    import decimal

    row = {"text": "x", "day": datetime.date(2024, 2, 29), "price": decimal.Decimal("1.50"), "tags": ["a"]}
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist([row]), tmp_path / "a.parquet")
    assert texts_of([tmp_path / "a.parquet"])[1] == [{"day": "2024-02-29", "price": "1.50", "tags": ["a"]}]


def test_ids_of_jsonl_and_parquet_are_equal_and_what_is_no_integer_is_refused(tmp_path: Path) -> None:
    columns = Columns("text", "ids", ("n",), "file")
    content = [{"ids": [1, 2, 70_000], "n": 1}, {"ids": [], "n": 2}, {"ids": [5], "n": 3}]
    write_jsonl(tmp_path / "a.jsonl", content)
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(content), tmp_path / "a.parquet")
    for name in ("a.jsonl", "a.parquet"):
        arrays, metadata = extract_ids(read([tmp_path / name], columns), columns)
        assert [each.tolist() for each in arrays] == [row["ids"] for row in content]
        assert metadata == [{"n": 1}, {"n": 2}, {"n": 3}]
    for wrong in ("[1, 2.0]", "[true]", "[null]", '"1 2"', '["1"]'):
        (tmp_path / "b.jsonl").write_text(f'{{"ids": {wrong}, "n": 0}}\n')
        with pytest.raises(InputError, match=r"document 1 .*line 1\).*(integers alone|not a list of integers)"):
            extract_ids(read([tmp_path / "b.jsonl"], columns), columns)


@pytest.mark.parametrize("kind", ["uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"])
def test_ids_in_parquet_are_of_any_integer_type(tmp_path: Path, kind: str) -> None:
    columns = Columns("text", "ids", ("n",), "file")
    ids = pyarrow.array([[1, 2, 100], [], [5]], pyarrow.list_(getattr(pyarrow, kind)()))
    pyarrow.parquet.write_table(pyarrow.table({"ids": ids, "n": [1, 2, 3]}), tmp_path / "a.parquet")
    arrays, _ = extract_ids(read([tmp_path / "a.parquet"], columns), columns)
    assert [each.tolist() for each in arrays] == [[1, 2, 100], [], [5]]


def test_reading_again_from_any_document_gives_the_rest(tmp_path: Path) -> None:
    paths = [
        write_jsonl(tmp_path / f"{name}.jsonl", rows()[at : at + 9]) for at, name in ((0, "a"), (9, "b"), (18, "c"))
    ]
    reader = DocumentReader(expand_inputs([str(path) for path in paths]), TEXT_ALONE)
    whole = list(reader.documents())
    assert [each.number for each in whole] == list(range(27))
    for first in (0, 26, 8, 9, 17, 3):
        assert list(reader.documents(first)) == whole[first:]
    assert reader.consumed_bytes() == reader.total_bytes == sum(path.stat().st_size for path in paths)


# ---- tasks


def test_tasks_are_whole_documents_cut_by_size_alone(tmp_path: Path) -> None:
    documents = read([write_jsonl(tmp_path / "a.jsonl", rows())], TEXT_ALONE)
    for size in (1, 5_000, 300_000, 1 << 40):
        batches = list(cut(documents, size))
        assert [each for batch in batches for each in batch.documents] == documents
        tasks = [batch.completed for batch in batches if batch.completed is not None]
        assert [task.number for task in tasks] == list(range(len(tasks)))
        assert all(task.size_bytes >= size for task in tasks[:-1])
        for task in tasks:
            mine = documents[task.first_document : task.first_document + task.documents]
            assert sum(each.size_bytes() for each in mine) == task.size_bytes
            assert task.size_bytes - mine[-1].size_bytes() < size


def test_a_task_is_known_by_its_documents_and_not_by_the_files_name(tmp_path: Path) -> None:
    def digest(name: str, content: list[dict[str, Any]]) -> str:
        batch = next(cut(read([write_jsonl(tmp_path / name, content)], ALL), 1 << 40))
        assert batch.completed is not None
        return batch.completed.sha256

    content = rows()[:20]
    assert digest("a.jsonl", content) == digest("b.jsonl", content)
    moved = [dict(row) for row in content]
    moved[0]["text"], moved[1]["text"] = moved[0]["text"][:-1], moved[0]["text"][-1:] + moved[1]["text"]
    assert digest("a.jsonl", content) != digest("b.jsonl", moved)
    assert digest("a.jsonl", content) != digest("b.jsonl", content[::-1])
    ends = [
        [RawDocument(i, "a", 0, "text", text, None) for i, text in enumerate(it)]
        for it in ((b"ab", b"c"), (b"a", b"bc"))
    ]
    moved_end, end = (next(cut(documents, 1 << 40)).completed for documents in ends)
    assert moved_end is not None and end is not None and moved_end.sha256 != end.sha256


# ---- tokenizing


def encode(texts: list[str], **options: Any) -> list[list[int]]:
    tokenizer = DocumentTokenizer(TokenizerOptions(**options))
    found = tokenizer.encode_texts(texts, [document(number=i) for i in range(len(texts))])
    assert found.ids.dtype == np.dtype(tokenizer.dtype)
    return [part.tolist() for part in np.split(found.ids, np.cumsum(found.lengths)[:-1].astype(int))]


def saved(tokenizer_file: str, path: Path, change: Any) -> str:
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(tokenizer_file)
    change(tokenizer)
    tokenizer.save(str(path))
    return str(path)


def test_tokens_are_those_of_the_library_with_what_was_asked_for_around_them(tokenizer_file: str) -> None:
    from tokenizers import Tokenizer

    library = Tokenizer.from_file(tokenizer_file)
    texts = [row["text"] for row in rows()[:20]]
    expected = [[1, *library.encode(text).ids, 0] for text in texts]
    assert encode(texts, file=tokenizer_file, prepend=("<|begin|>",), append=(END,)) == expected
    assert DocumentTokenizer(TokenizerOptions(file=tokenizer_file)).decode(expected[7]).endswith("🚰 \u2028 end" + END)


def test_stored_truncation_and_padding_are_disabled(tokenizer_file: str, tmp_path: Path) -> None:
    def change(tokenizer: Any) -> None:
        tokenizer.enable_truncation(8)
        tokenizer.enable_padding(length=64)

    texts = ["x = 1\n" * 50, "y"]
    expected = encode(texts, file=tokenizer_file)
    assert encode(texts, file=saved(tokenizer_file, tmp_path / "t.json", change)) == expected
    assert len(expected[0]) > 64 > len(expected[1])


def test_special_tokens_in_a_text_are_literal_unless_asked(tokenizer_file: str) -> None:
    text = f"before {END} after"
    literal = encode([text], file=tokenizer_file)[0]
    assert 0 not in literal
    assert DocumentTokenizer(TokenizerOptions(file=tokenizer_file)).decode(literal) == text
    assert encode([text], file=tokenizer_file, special_tokens_in_text=True)[0].count(0) == 1


def test_post_processor_is_off_unless_asked(tokenizer_file: str, tmp_path: Path) -> None:
    from tokenizers import processors

    def change(tokenizer: Any) -> None:
        tokenizer.post_processor = processors.TemplateProcessing(
            single=f"<|begin|> $A {END}", special_tokens=[("<|begin|>", 1), (END, 0)]
        )

    file = saved(tokenizer_file, tmp_path / "t.json", change)
    bare = encode(["abc"], file=tokenizer_file)
    assert encode(["abc"], file=file) == bare
    assert encode(["abc"], file=file, post_processor=True) == [[1, *bare[0], 0]]
    assert DocumentTokenizer(TokenizerOptions(file=file, post_processor=True)).end_of_document == 0
    for option, token in (("append", END), ("prepend", "<|begin|>")):
        with pytest.raises(UsageError, match=f"asked for twice, by --post-processor and by --{option}: drop one"):
            DocumentTokenizer(TokenizerOptions(file=file, post_processor=True, **{option: (token,)}))


def test_a_token_asked_for_twice_is_refused(tokenizer_file: str) -> None:
    for options in ({"append": (END, END)}, {"prepend": (END,), "append": (END,)}):
        with pytest.raises(UsageError, match="asked for twice"):
            DocumentTokenizer(TokenizerOptions(file=tokenizer_file, **options))
    with pytest.raises(InputError, match=r'document 2 .* already ends with "<.endoftext.>": drop --append'):
        encode(["a", f"b{END}"], file=tokenizer_file, append=(END,), special_tokens_in_text=True)
    assert encode([f"b{END}"], file=tokenizer_file, append=(END,))[0].count(0) == 1


def test_an_unknown_token_or_file_is_refused_with_advice(tokenizer_file: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r'no token "<.endoftex.>": did you mean "<.endoftext.>"'):
        DocumentTokenizer(TokenizerOptions(file=tokenizer_file, append=("<|endoftex|>",)))
    with pytest.raises(UsageError, match=r'no token "<eos>": .*its special tokens are "<.endoftext.>", "<.begin.>"$'):
        DocumentTokenizer(TokenizerOptions(file=tokenizer_file, append=("<eos>",)))
    with pytest.raises(UsageError, match="No such file"):
        DocumentTokenizer(TokenizerOptions(file=str(tmp_path / "none.json")))
    (tmp_path / "t.json").write_text("{}")
    with pytest.raises(UsageError, match=r"not a tokenizer.json"):
        DocumentTokenizer(TokenizerOptions(file=str(tmp_path / "t.json")))
    with pytest.raises(UsageError, match="needs --tokenizer"):
        DocumentTokenizer(TokenizerOptions(append=(END,)))


def test_dtype_auto_takes_u2_up_to_65536_tokens_added_ones_counted(tokenizer_file: str, tmp_path: Path) -> None:
    from tokenizers import Tokenizer

    base = Tokenizer.from_file(tokenizer_file).get_vocab_size()
    for size, dtype in ((65_536, "u2"), (65_537, "u4")):
        file = saved(
            tokenizer_file,
            tmp_path / "t.json",
            lambda tokenizer, size=size: tokenizer.add_tokens([f"§{i}§" for i in range(size - base)]),
        )
        tokenizer = DocumentTokenizer(TokenizerOptions(file=file))
        assert (tokenizer.dtype, tokenizer.vocabulary_size) == (dtype, size)
        assert encode([f"§{size - base - 1}§"], file=file) == [[size - 1]]
    assert DocumentTokenizer(TokenizerOptions()).dtype == "u4"


def test_a_token_that_does_not_fit_says_where_and_what_to_do() -> None:
    documents = [RawDocument(18_201 + i, "data.jsonl.zst", 18_203 + i, "jsonl", b"", None) for i in range(3)]
    arrays = [np.array([1], np.int64), np.array([5, 128_256], np.int64), np.array([2], np.int64)]
    tokenizer = DocumentTokenizer(TokenizerOptions(dtype="u2"))
    with pytest.raises(InputError) as caught:
        tokenizer.encode_ids(arrays, documents)
    assert str(caught.value) == (
        "token 128,256 in document 18,203 (data.jsonl.zst line 18,204) does not fit u2 (max 65,535): use --dtype u4"
    )
    with pytest.raises(InputError, match=r"token -5 in document 18,202 .* is negative"):
        tokenizer.encode_ids([np.array([-5], np.int64)], documents[:1])
    with pytest.raises(InputError, match="no token type holds it"):
        tokenizer.encode_ids([np.array([2**40], np.int64)], documents[:1])


def test_half_a_surrogate_pair_is_refused_with_its_place(tokenizer_file: str) -> None:
    text = json.loads('"ab\\ud83d"')
    with pytest.raises(InputError, match=r"document 2 .*surrogate pair .* at character 2"):
        encode(["good", text], file=tokenizer_file)


# ---- processes


def test_results_of_processes_come_in_order_and_so_does_the_first_error(tokenizer_file: str) -> None:
    from _recipes import recipe
    from penstock._from.text.batches import Tokenizing, process_batch
    from penstock._make.shard_work import LookWork
    from penstock._make.workers import WorkerPool

    columns = Columns("text", None, (), "file")
    work = Tokenizing(TokenizerOptions(file=tokenizer_file), columns)
    lines = [row["text"].encode() * (1 + 3 * (i % 2)) for i, row in enumerate(rows()[:24])]
    batches = [[document(line, number)] for number, line in enumerate(lines)]
    batches[17], batches[20] = [document(b"\xff", 17)], [document(b"\xff", 20)]
    tokenizer = DocumentTokenizer(work.tokenizer)
    made = recipe(DocumentReader([], columns), work, Path("out"), 1)
    pool = WorkerPool(2, LookWork(made))
    found = []
    with pytest.raises(InputError, match="document 18 "):
        for batch in batches:
            while not pool.has_room():
                found.extend(pool.next_results())
            pool.submit(batch)
        while pool.pending():
            found.extend(pool.next_results())
    pool.close()
    for result, batch in zip(found, batches, strict=False):
        assert np.array_equal(result.encoded.ids, process_batch(tokenizer, work, batch).encoded.ids)
    assert 8 < len(found) <= 17
