"""Notes and errors that say what an option was taken for: tokens by their text, tokenizers by their files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import penstock
import pytest
from penstock._cli.main import main
from penstock._from.engines import gigatoken
from penstock._from.engines.engine import Ids
from penstock._from.engines.pieces import Pieces
from text_corpus import END, write_jsonl
from tokenizers import Tokenizer, models


@pytest.fixture
def text(tmp_path: Path) -> Path:
    return write_jsonl(tmp_path / "a.jsonl", [{"text": f"some words {number}"} for number in range(5)])


def command(text: Path, tokenizer: object, *more: str) -> list[str]:
    return ["write", str(text), "--tokenizer", str(tokenizer), "--out", str(text.parent / "out"), *more]


@pytest.mark.parametrize("option", ["append", "prepend"])
def test_digits_are_a_tokens_text_and_a_note_says_which_id_it_has(
    text: Path, tokenizer_file: str, capsys: pytest.CaptureFixture[str], option: str
) -> None:
    digit = Tokenizer.from_file(tokenizer_file).token_to_id("0")
    words = f'0 is the token whose text is "0", id {digit}, not id 0, which is "{END}"'
    assert main(command(text, tokenizer_file, f"--{option}", "0")) == 0
    assert f"note: --{option} {words}\n" == capsys.readouterr().err
    (text.parent / "out").rename(text.parent / "there")
    assert main(command(text, tokenizer_file, f"--{option}", "0", "--dry-run")) == 0
    assert f"note: --{option} {words}\n" == capsys.readouterr().err
    assert main(command(text, tokenizer_file, f"--{option}", "0", "--json")) == 0
    said = capsys.readouterr()
    assert json.loads(said.out)["notes"] == [f"--{option} {words}"] and not said.err
    given: dict[str, Any] = {option: ["0"], "overwrite": True}
    done = penstock.write(text, text.parent / "out", tokenizer=tokenizer_file, **given)
    assert done.notes == [f"{option} {words}"]
    done = penstock.write(text, text.parent / "out", tokenizer=tokenizer_file, append=[END], overwrite=True)
    assert done.notes == []


def test_digits_that_are_no_tokens_text_name_the_token_of_that_id(
    text: Path, tokenizer_file: str, tmp_path: Path
) -> None:
    words = Tokenizer(models.WordLevel({"?": 0, "some": 1, "<|end|>": 2}, unk_token="?"))
    words.add_special_tokens(["<|end|>"])
    words.save(str(tmp_path / "words.json"))
    for file, given, said in (
        (tmp_path / "words.json", "2", 'tokens are named by their text, and id 2 is "<|end|>"; its special tokens are'),
        (tokenizer_file, "100000", f'has no token "100000": its special tokens are "{END}", "<|begin|>"'),
    ):
        with pytest.raises(penstock.InvalidArgumentError, match="has no token") as error:
            penstock.write(text, tmp_path / "out", tokenizer=file, append=[given])
        assert said in str(error.value)


def test_a_tokenizer_by_a_name_or_a_folder_says_which_file_to_give(
    text: Path, tokenizer_file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "saved").mkdir()
    (tmp_path / "saved" / "tokenizer.json").write_bytes(Path(tokenizer_file).read_bytes())
    monkeypatch.chdir(tmp_path)
    of_hub = "transformers.AutoTokenizer.from_pretrained('{}').save_pretrained('DIR'), and give DIR/tokenizer.json"
    for given, words in {
        "gpt2": of_hub.format("gpt2"),
        "meta-llama/Llama-3.1-8B": of_hub.format("meta-llama/Llama-3.1-8B"),
        "saved": "Is a directory: give saved/tokenizer.json",
        "empty": "Is a directory: there is no tokenizer.json in it",
        "nowhere.json": "tokenizer nowhere.json: No such file or directory",
    }.items():
        with pytest.raises(penstock.InvalidArgumentError) as error:
            penstock.write(text, tmp_path / "out", tokenizer=given)
        assert words in str(error.value), error.value
        assert given != "nowhere.json" or str(error.value).endswith("directory")


def test_an_engine_that_is_wrong_is_told_of_at_once_and_in_the_report(
    tokenizer_file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("gigatoken")
    plain = gigatoken.Gigatoken._plain

    def wrong(self: Any, texts: Pieces) -> Ids:
        found = plain(self, texts)
        for index, text in enumerate(texts.strings()):
            if self.wrong_at in text:
                found.ids[int(found.offsets[index])] ^= 1
        return found

    monkeypatch.setattr(gigatoken.Gigatoken, "_plain", wrong)
    monkeypatch.setattr(gigatoken.Gigatoken, "wrong_at", "needle", raising=False)
    text = write_jsonl(tmp_path / "a.jsonl", [{"text": "a needle"}])
    assert main(command(text, tokenizer_file, "--dry-run")) == 0
    assert "note: tokenizers would compute the ids: a.jsonl" not in (said := capsys.readouterr()).out
    assert "note: tokenizers would compute the ids: " in said.err and "gives other ids" in said.err
    assert main(command(text, tokenizer_file)) == 0
    said = capsys.readouterr()
    assert said.err.startswith("note: all is made again by tokenizers: document 1 ") and said.err.count("\n") == 1
    assert "engine     tokenizers, with which all was made again: document 1 " in said.out
    monkeypatch.setattr(gigatoken.Gigatoken, "wrong_at", "日本語")  # of what is tried before anything is read
    assert main(command(text, tokenizer_file, "--overwrite")) == 0
    said = capsys.readouterr()
    assert said.err.startswith("note: tokenizers computes the ids: gigatoken ") and said.err.count("\n") == 1


def test_documents_without_tokens_are_stored_and_counted(
    tmp_path: Path, tokenizer_file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    texts = [{"text": "" if number in (3, 7) else f"some words {number}"} for number in range(9)]
    file = write_jsonl(tmp_path / "a.jsonl", texts)
    given: dict[str, Any] = {"tokenizer": tokenizer_file, "overwrite": True}
    done = penstock.write(file, tmp_path / "out", append=[END], workers=2, **given)
    there = f"they are stored like others: the first is document 3 ({file} line 4)"
    assert done.notes == [f"2 documents have no token but those that are added; {there}"] and done.documents == 9
    assert penstock.write(file, tmp_path / "out", **given).notes == [f"2 documents have no token; {there}"]
    write_jsonl(file, texts[:4])
    assert main(command(file, tokenizer_file, "--overwrite")) == 0
    said = "1 document has no token; it is stored like others"
    assert capsys.readouterr().err == f"note: {said}: document 3 ({file} line 4)\n"
    file.write_text(f"no JSON\n{file.read_text()}")
    assert main(command(file, tokenizer_file, "--overwrite", "--on-error", "skip")) == 0
    assert f"note: {said}: {file} line 5\n" in capsys.readouterr().err  # numbers in the dataset are others


def test_a_resume_with_other_options_says_which_shards_are_made_anew(tmp_path: Path) -> None:
    rows = [{"ids": [number] * 40, "url": f"u{number}"} for number in range(60)]
    file = write_jsonl(tmp_path / "a.jsonl", [*rows, {"ids": ["x"], "url": "bad"}])
    given: dict[str, Any] = {"ids_column": "ids", "dtype": "u2", "shard_size": 1500}
    for metadata in (["url"], "all"):
        with pytest.raises(ValueError, match="document 61 "):
            penstock.write(file, tmp_path / "out", metadata=metadata, resume=True, **given)
    write_jsonl(file, rows)
    assert penstock.write(file, tmp_path / "out", metadata="all", resume=True, **given).notes == []
    write_jsonl(file, [*rows, {"ids": ["x"], "url": "bad"}])
    with pytest.raises(ValueError, match="document 61 "):
        penstock.write(file, tmp_path / "other", metadata=["url"], **given)
    write_jsonl(file, rows)
    (note,) = penstock.write(file, tmp_path / "other", metadata="all", resume=True, **given).notes
    assert note.endswith("finished shards are of other options (metadata): made anew")
