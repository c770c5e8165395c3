"""`penstock write --on-error skip` and inputs of each kind: what one bad document costs."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

import penstock
import pyarrow
import pyarrow.parquet
import pytest
from _dirty import arguments_of, entries, folder_of, line, write
from penstock._cli.main import main
from penstock._from.text.documents import DocumentReader
from penstock._from.text.inputs import expand_inputs
from penstock._from.text.raw import UNUSABLE, Columns
from penstock._make.errors import UsageError


def places(out: Path) -> list[tuple[str, int | None]]:
    return [(each["file"], each.get("line")) for each in entries(out / "skipped.jsonl")]


def test_plain_text_that_is_no_utf_8_costs_its_line_or_its_file(dirty: Path, tmp_path: Path) -> None:
    a, c = b"good\nb\xe9d\ngood again\n", b"\x89PNG\r\n and so on"
    b = b"good\n" * 2000 + b"\x00"  # the zero is not among the first bytes
    folder = folder_of(dirty, tmp_path / "in", a_txt=a, b_txt=b, c_txt=c)
    (folder / "d.txt").symlink_to(folder / "nothing")
    for text_per, at, documents in (("line", 2, 2 + 2001), ("file", None, 1)):
        options = ["--metadata", "path", "--text-per", text_per]
        said = write(folder, tmp_path / text_per, *options, inputs="[a-d].txt")
        assert places(tmp_path / text_per) == [("a.txt", at), ("c.txt", None), ("d.txt", None)]
        assert said["documents"] == documents


def test_zeros_and_marks_among_json_lines_cost_their_line_alone(dirty: Path, tmp_path: Path) -> None:
    good, mark = b"\n".join(map(line, range(50))), b"\xef\xbb\xbf"
    zeros = bytes(64) + b"\n" + good  # as a disk leaves it that lost power
    lines = {"a_jsonl": zeros, "b_jsonl": [good, bytes(9000), good], "c_jsonl": mark, "d_jsonl": mark + b"\r\n" + good}
    folder = folder_of(dirty, tmp_path / "in", **lines)
    said = write(folder, tmp_path / "out", inputs="[a-d].jsonl")
    assert places(tmp_path / "out") == [("a.jsonl", 1), ("b.jsonl", 51)]
    assert said["documents"] == 200
    assert "binary (a zero at byte 0)" in write(folder, tmp_path / "no", "--on-error", "stop", code=2)["error"]


def test_plain_text_without_the_columns_is_one_entry(dirty: Path, tmp_path: Path) -> None:
    folder = folder_of(dirty, tmp_path / "in", a_jsonl=line(1), b_txt=b"two\nlines\n", c_jsonl=line(2))
    for text_per in ("file", "line"):
        said = write(folder, tmp_path / text_per, "--text-per", text_per, inputs="[a-c].*")
        assert (said["documents"], said["skipped"]) == (2, 1)
    (found,) = entries(tmp_path / "line" / "skipped.jsonl")
    assert (found["file"], found["document"], "line" in found) == ("b.txt", 2, False)
    assert found["reason"].endswith('no column "url" for --metadata: there are "path", "kind", "size"')
    said = write(folder, tmp_path / "first", inputs="b.txt", code=2)  # the first input: the option may be wrong
    assert 'no column "url"' in said["error"]


def test_a_file_that_may_not_be_read_is_one_entry(dirty: Path) -> None:
    with tempfile.TemporaryDirectory() as name:
        for each in ("b.jsonl.gz", "d.parquet", "k.jsonl"):
            shutil.copy(dirty / each, name)
            Path(name, each).chmod(0o444 if each == "k.jsonl" else 0)
        Path(name).chmod(0o755)
        user = os.geteuid()
        if user == 0:
            os.seteuid(65534)  # root may read all
        try:
            inputs = expand_inputs([f"{name}/*"], skips=True)
            columns = Columns("text", None, ("url",), "file")
            found = list(DocumentReader(inputs, columns, skips=True).documents())
            with pytest.raises(UsageError, match=r"b.jsonl.gz: Permission denied"):
                expand_inputs([f"{name}/*"])
        finally:
            os.seteuid(user)
    assert [(Path(each.name).name, each.form, each.number) for each in found] == [
        ("b.jsonl.gz", UNUSABLE, 0), ("d.parquet", UNUSABLE, 1), ("k.jsonl", "jsonl", 2),
    ]  # fmt: skip
    assert [each.payload for each in found[:2]] == [b"Permission denied"] * 2


def test_ids_and_dates_that_cannot_be_used_cost_their_rows(tmp_path: Path) -> None:
    far = pyarrow.array([0, 2**50, 0, 0, 0], pyarrow.int64()).cast(pyarrow.timestamp("s"))
    ids = pyarrow.array([[1, 2], [3], [None, 4], [70_000], None], pyarrow.list_(pyarrow.int64()))
    pyarrow.parquet.write_table(pyarrow.table({"ids": ids, "when": far}), tmp_path / "a.parquet")
    (tmp_path / "b.jsonl").write_text(
        '{"ids": [1, -5], "when": 0}\n{"ids": [1, 5], "when": 0}\n{"ids": "x", "when": 0}\n'
    )
    penstock.write(
        [tmp_path / "a.parquet", tmp_path / "b.jsonl"], tmp_path / "out",
        ids_column="ids", dtype="u2", metadata=["when"], on_error="skip",
    )  # fmt: skip
    found = entries(tmp_path / "out" / "skipped.jsonl")
    assert [each.get("row", each.get("line")) for each in found] == [2, 3, 4, 5, 1, 3]
    for each, words in zip(
        found,
        ("its metadata cannot be read", "null id", "does not fit u2", "is null", "negative", "a string"),
        strict=True,
    ):
        assert words in each["reason"]
    assert [view["token"].tolist() for view in penstock.open(tmp_path / "out").documents()] == [[1, 2], [1, 5]]


def test_conversations_that_the_template_refuses_are_left_out(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    from test_chat import CHAT, MARKED, made

    template = "{% if messages[0].role == 'tool' %}{{ raise_exception('no tools here') }}{% endif %}" + MARKED
    made(tmp_path / "tokenizer", template)
    chats: list[Any] = [CHAT, [{"role": "tool", "content": "x"}], "hello", [], [3], CHAT, None]
    chats += [[{"role": "user", "content": "\ud800"}], CHAT]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps({"messages": each}) + "\n" for each in chats))
    options = {"messages": "messages", "tokenizer": tmp_path / "tokenizer", "on_error": "skip"}
    penstock.write(tmp_path / "a.jsonl", tmp_path / "out", **options)
    found = entries(tmp_path / "out" / "skipped.jsonl")
    assert [each["line"] for each in found] == [2, 3, 4, 5, 7, 8]
    assert "no tools here" in found[0]["reason"]
    dataset = penstock.open(tmp_path / "out")
    assert dataset.spans == 3 and dataset.dtype.names == ("token", "loss")


def test_an_error_sends_no_control_characters_of_the_input_to_the_terminal(
    dirty: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = folder_of(dirty, tmp_path / "in", a_jsonl=rb'{"\u001b[31m": 1, "\u001b[31m": 2}')
    assert main(["write", *arguments_of(folder, tmp_path / "out", inputs="a.jsonl")]) == 1
    assert r'the key "\x1b[31m" stands twice' in capsys.readouterr().err
