"""Reading text, cutting tasks and tokenizing, below the command line."""

from __future__ import annotations

import datetime
import decimal
import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
import zstandard
from _recipes import recipe
from penstock._from.engines.engine import Ids
from penstock._from.engines.pieces import Pieces
from penstock._from.text.batches import Processor, Tokenizing
from penstock._from.text.block import Listed
from penstock._from.text.documents import DocumentReader
from penstock._from.text.inputs import expand_inputs
from penstock._from.text.raw import Columns, RawDocument
from penstock._from.text.reading import Extracted, Extractor
from penstock._from.text.tasks import cut
from penstock._from.text.tokenizing import DocumentTokenizer, TokenizerOptions
from penstock._make.errors import InputError, UsageError
from penstock._make.shard_work import LookWork
from penstock._make.threads import ThreadPool
from penstock._make.workers import WorkerPool
from text_corpus import END, rows, write_jsonl
from tokenizers import Tokenizer, processors

ALL = Columns("text", None, None, "file")
TEXT_ALONE = Columns("text", None, (), "file")


def read(paths: list[Any], columns: Columns = ALL, format: str | None = None) -> list[RawDocument]:
    return list(DocumentReader(expand_inputs([str(path) for path in paths], format), columns).documents())


def texts_of(paths: list[Any], columns: Columns = ALL) -> tuple[list[str], list[dict[str, Any]] | None]:
    taken = extract(paths, columns)
    metadata = None if taken.entries is None else [json.loads(each) for each in taken.entries.pieces()]
    return taken.payload.strings(), metadata


def extract(paths: list[Any], columns: Columns) -> Extracted:
    """All documents as one batch of them, and as batches as they are read, which must be the same."""
    batches = list(DocumentReader(expand_inputs([str(path) for path in paths]), columns).read())
    extractor = Extractor(columns, "json")
    whole = extractor.extract(Listed([document for batch in batches for document in batch]))
    if whole.errors:
        raise whole.errors[min(whole.errors)]
    found = [extractor.extract(batch) for batch in batches]
    assert [piece for each in found for piece in each.payload.pieces()] == whole.payload.pieces()
    if whole.entries is not None:
        entries = [piece for each in found if each.entries for piece in each.entries.pieces()]
        assert entries == whole.entries.pieces()
    return whole


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


def test_globs_are_sorted(tmp_path: Path) -> None:
    for name in ("b.txt", "a.txt"):
        (tmp_path / name).write_text(name)
    assert [each.published_name for each in expand_inputs([str(tmp_path / "*.txt")])] == ["a.txt", "b.txt"]


@pytest.mark.parametrize(
    ("patterns", "words"),
    [
        (["."], "is a folder: give a glob"),
        (["none.txt"], "no such file"),
        (["*.md"], "no file matches"),
        (["a.txt", "*.txt"], "given twice"),
        (["c.txt.xz"], "unpack it first"),
        (["-"], "say --format"),
    ],
)
def test_inputs_that_cannot_be_read_are_refused_with_advice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, patterns: list[str], words: str
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a.txt", "c.txt.xz"):
        Path(name).write_text(name)
    with pytest.raises(UsageError, match=words):
        expand_inputs(patterns)


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
    _, metadata = texts_of([tmp_path / "deep/x.py", tmp_path / "y.txt.gz"])
    assert [each["path"] for each in metadata or []] == ["deep/x.py", "y.txt.gz"]  # no absolute path


@pytest.mark.parametrize(
    ("line", "words"),  # and those of _dirty.BAD_LINES
    [
        (b'{"text": "x"', r"document 2 \(.*a.jsonl line 3\): not JSON: .* at column \d+"),
        (b'{"text": "x', r"line 3\): not JSON: Unterminated string starting at column 10: each line"),
        (b'{"text": "x\ty"}', r"line 3\): not JSON: Invalid control character at column 12: each line"),
        (b'{"body": "x", "url": "u"}', 'no column "text" for --text-column: there are "body", "url"'),
    ],
)
def test_a_bad_line_is_refused_with_its_place(tmp_path: Path, line: bytes, words: str) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"text": "good"}\n\n' + line + b"\n")
    with pytest.raises(InputError, match=words):
        texts_of([path])


def test_columns_that_are_not_there_or_of_another_type_are_named(tmp_path: Path) -> None:
    columns = Columns("text", None, ("ulr",), "file")
    write_jsonl(tmp_path / "a.jsonl", [{"text": "x", "url": "u"}])
    pyarrow.parquet.write_table(pyarrow.table({"text": ["x"], "url": ["u"]}), tmp_path / "a.parquet")
    (tmp_path / "a.txt").write_text("x")
    for name, there in (("a.jsonl", '"text", "url"'), ("a.parquet", '"text", "url"'), ("a.txt", '"path", "kind"')):
        with pytest.raises(InputError, match=f'no column "ulr" for --metadata: there are {there}'):
            texts_of([tmp_path / name], columns)
    with pytest.raises(InputError, match="--metadata all keeps the columns that each document has"):
        texts_of([tmp_path / "a.jsonl"], columns)
    pyarrow.parquet.write_table(pyarrow.table({"text": [1]}), tmp_path / "a.parquet")
    with pytest.raises(InputError, match="is int64, not strings"):
        read([tmp_path / "a.parquet"])


def test_parquet_dates_and_decimals_become_text(tmp_path: Path) -> None:
    row = {"text": "x", "day": datetime.date(2024, 2, 29), "price": decimal.Decimal("1.50"), "tags": ["a"]}
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist([row]), tmp_path / "a.parquet")
    assert texts_of([tmp_path / "a.parquet"])[1] == [{"day": "2024-02-29", "price": "1.50", "tags": ["a"]}]


def test_ids_of_jsonl_and_parquet_are_equal_and_what_is_no_integer_is_refused(tmp_path: Path) -> None:
    columns = Columns("text", "ids", ("n",), "file")
    content = [{"ids": [1, 2, 100], "n": 1}, {"ids": [], "n": 2}, {"ids": [5], "n": 3}]
    paths = [write_jsonl(tmp_path / "a.jsonl", content)]
    for kind in ("uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"):
        ids = pyarrow.array([each["ids"] for each in content], pyarrow.list_(getattr(pyarrow, kind)()))
        paths.append(tmp_path / f"{kind}.parquet")
        pyarrow.parquet.write_table(pyarrow.table({"ids": ids, "n": [1, 2, 3]}), paths[-1])
    for path in paths:
        taken = extract([path], columns)
        ids = Ids.of(taken.payload)
        arrays = np.split(ids.ids, ids.offsets[1:-1])
        assert [each.tolist() for each in arrays] == [row["ids"] for row in content], path
        assert taken.entries is not None
        assert [json.loads(each) for each in taken.entries.pieces()] == [{"n": 1}, {"n": 2}, {"n": 3}]
    for wrong in ("[1, 2.0]", "[true]", "[null]", '"1 2"', '["1"]'):
        (tmp_path / "b.jsonl").write_text(f'{{"ids": {wrong}, "n": 0}}\n')
        with pytest.raises(InputError, match=r"document 1 .*line 1\).*(integers alone|not a list of integers)"):
            extract([tmp_path / "b.jsonl"], columns)


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


# ---- tasks: test_whole_tasks.py has how they are cut


def test_a_task_is_known_by_its_documents_and_not_by_the_files_name(tmp_path: Path) -> None:
    def digest(texts: list[bytes], name: str = "a") -> str:
        documents = [RawDocument(number, name, 0, "text", text, None) for number, text in enumerate(texts)]
        task = next(cut([Listed(documents)], 1 << 40)).completed
        assert task is not None
        return task.sha256

    expected = digest([b"ab", b"c"])
    assert digest([b"ab", b"c"], "b") == expected
    others = [digest(each) for each in ([b"a", b"bc"], [b"c", b"ab"], [b"ab"], [b"ab", b"d"])]
    assert len({expected, *others}) == 5


# ---- tokenizing


def encode(texts: list[str], **options: Any) -> list[list[int]]:
    tokenizer = DocumentTokenizer(TokenizerOptions(**options))
    pieces = Pieces.of([text.encode() for text in texts])
    found = tokenizer.encode(pieces, [document(number=i) for i in range(len(texts))])
    assert found.ids.dtype == np.dtype(tokenizer.dtype)
    return [part.tolist() for part in np.split(found.ids, np.cumsum(found.lengths)[:-1].astype(int))]


def saved(tokenizer_file: str, path: Path, change: Any) -> str:
    tokenizer = Tokenizer.from_file(tokenizer_file)
    change(tokenizer)
    tokenizer.save(str(path))
    return str(path)


def test_tokens_are_those_of_the_library_with_what_was_asked_for_around_them(tokenizer_file: str) -> None:
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
    with pytest.raises(InputError, match=r'document 2 .* already ends with "<.endoftext.>": drop --append'):
        encode(["a", f"b{END}"], file=tokenizer_file, append=(END,), special_tokens_in_text=True)
    assert encode([f"b{END}"], file=tokenizer_file, append=(END,))[0].count(0) == 1


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"append": (END, END)}, "asked for twice"),
        ({"prepend": (END,), "append": (END,)}, "asked for twice"),
        ({"append": ("<|endoftex|>",)}, r'no token "<.endoftex.>": did you mean "<.endoftext.>"'),
        ({"append": ("<eos>",)}, r'no token "<eos>": .*its special tokens are "<.endoftext.>", "<.begin.>"$'),
        ({"file": "none.json"}, "No such file"),
        ({"file": "t.json"}, r"not a tokenizer.json"),
        ({"file": None, "append": (END,)}, "needs --tokenizer"),
    ],
)
def test_tokens_and_files_that_cannot_be_are_refused_with_advice(
    tokenizer_file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any], words: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.json").write_text("{}")
    with pytest.raises(UsageError, match=words):
        DocumentTokenizer(TokenizerOptions(**{"file": tokenizer_file, **options}))


def test_dtype_auto_takes_u2_up_to_65536_tokens_added_ones_counted(tokenizer_file: str, tmp_path: Path) -> None:
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
    ids = Ids(np.array([1, 5, 128_256, 2], np.int64), np.array([0, 1, 3, 4], np.int64))
    tokenizer = DocumentTokenizer(TokenizerOptions(dtype="u2"))
    with pytest.raises(InputError) as caught:
        tokenizer.encode_ids(ids, documents)
    assert str(caught.value) == (
        "token 128,256 in document 18,203 (data.jsonl.zst line 18,204) does not fit u2 (max 65,535): use --dtype u4"
    )
    with pytest.raises(InputError, match=r"token -5 in document 18,202 .* is negative"):
        tokenizer.encode_ids(Ids(np.array([-5], np.int64), np.array([0, 1], np.int64)), documents[:1])
    with pytest.raises(InputError, match="no token type holds it"):
        tokenizer.encode_ids(Ids(np.array([2**40], np.int64), np.array([0, 1], np.int64)), documents[:1])


# ---- workers


@pytest.mark.parametrize("kind", [WorkerPool, ThreadPool])
def test_results_of_workers_come_in_order_and_so_does_the_first_error(tokenizer_file: str, kind: Any) -> None:
    work = Tokenizing(TokenizerOptions(file=tokenizer_file), TEXT_ALONE)
    lines = [row["text"].encode() * (1 + 3 * (i % 2)) for i, row in enumerate(rows()[:24])]
    batches = [Listed([document(line, number)]) for number, line in enumerate(lines)]
    batches[17], batches[20] = Listed([document(b"\xff", 17)]), Listed([document(b"\xff", 20)])
    processor = Processor(work)
    pool = kind(2, LookWork(recipe(DocumentReader([], TEXT_ALONE), work, Path("out"), 1)))
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
        assert np.array_equal(result.encoded.ids, processor.process(batch).encoded.ids)
    assert 8 < len(found) <= 17
