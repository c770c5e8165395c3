"""`penstock.verify_ids`: documents encoded again, by the text that their ids spell, or the one they were made of."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest
from _dirty import write as write_dirty
from penstock._cli.main import main
from test_engines import saved, template
from text_corpus import END, rows, train_tokenizer, write_jsonl
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers

ROWS = [*rows()[:60], {"text": f"{END} stands in it <|begin|>, §1§ and \u0301 e\u0301"}]
BEGIN = "<|begin|>"


@pytest.fixture(scope="module")
def jsonl(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_jsonl(tmp_path_factory.mktemp("text") / "a.jsonl", [{"text": each["text"]} for each in ROWS])


@pytest.fixture(scope="module")
def corpus(jsonl: Path, tokenizer_file: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("corpus") / "out"
    penstock.write(jsonl, out, tokenizer=tokenizer_file, append=[END], shard_size=20_000)
    return out


def changed(corpus: Path, out: Path, document: int, at: int, tokenizer: Any) -> Path:
    """A copy of a dataset with another id in one place."""
    with penstock.Writer(out, {"token": "u2"}, "boundaries", tokenizer=tokenizer) as writer:
        for number, each in enumerate(penstock.open(corpus).documents()):
            ids = each["token"].copy()
            if number == document:
                ids[at] += 1
            writer.append(token=ids)
    return out


def tells(tokenizer_file: str, ids: Any) -> int:
    """A place of a document where one more than the id there spells a text that has other ids."""
    tokenizer = Tokenizer.from_file(tokenizer_file)
    for at in range(7, len(ids) - 1):
        wrong = [*ids[:at].tolist(), int(ids[at]) + 1, *ids[at + 1 : -1].tolist()]
        text = tokenizer.decode(wrong)
        if "\ufffd" not in text and tokenizer.encode(text).ids != wrong:
            return at
    raise AssertionError("there is none")


OPTIONS: dict[str, dict[str, Any]] = {
    "as it is": {},
    "tokens around": {"prepend": [BEGIN], "append": [END]},
    "a post-processor": {"post_processor": True},
    "special tokens in text": {"special_tokens_in_text": True},
    "ids": {"append": [END], "layout": "ids"},
    "u4": {"append": [END], "dtype": "u4"},
    "metadata": {"metadata": "all", "codec": "msgpack"},
}


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("engine", ["tokenizers", "gigatoken"])
def test_what_write_made_agrees(jsonl: Path, tokenizer_file: str, tmp_path: Path, options: str, engine: str) -> None:
    if engine == "gigatoken":
        pytest.importorskip("gigatoken")
    out, file = tmp_path / "out", saved(tokenizer_file, tmp_path / "t.json", template)
    penstock.write(jsonl, out, tokenizer=file, tokenizer_engine=engine, shard_size=20_000, **OPTIONS[options])
    for text in ((), jsonl):
        found = penstock.verify_ids(out, file, text=text, sample="all")
        assert found, found.problems
        assert (found.looked_at, found.agreed, found.unjudged, found.notices) == (len(ROWS), len(ROWS), [], [])
        assert found.engine.startswith(engine)


def test_one_byte_tokens_agree(tmp_path: Path) -> None:
    alphabet = {each: number for number, each in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    tokenizer = Tokenizer(models.BPE(alphabet, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.save(str(tmp_path / "t.json"))
    jsonl = write_jsonl(tmp_path / "a.jsonl", [{"text": "naïve — 東京 \ufffd \0"}, {"text": ""}])
    penstock.write(jsonl, tmp_path / "out", tokenizer=tmp_path / "t.json", dtype="u1")
    found = penstock.verify_ids(tmp_path / "out", tmp_path / "t.json")
    assert found and found.agreed == 2


@pytest.mark.parametrize("layout", ["compact", "ids"])
@pytest.mark.parametrize("told", [True, False])
def test_an_id_that_was_changed_is_found_and_named(
    corpus: Path, jsonl: Path, tokenizer_file: str, tmp_path: Path, layout: str, told: bool
) -> None:
    right = penstock.open(corpus).documents()[20]["token"]
    at = tells(tokenizer_file, right)
    out = changed(corpus, tmp_path / "wrong", 20, at, penstock.open(corpus).tokenizer)
    if layout == "ids":
        penstock.convert(out, tmp_path / "ids", "ids")
        out = tmp_path / "ids"
    options: dict[str, Any] = {"append": [END]} if told else {}
    found = penstock.verify_ids(out, tokenizer_file, **options)
    assert not found and found.first is not None
    assert (found.agreed, found.differing, found.unjudged) == (len(ROWS) - 1, 1, [])
    assert found.first.document == 20 and found.first.at <= at + 1 and found.first.place == ""
    found = penstock.verify_ids(out, tokenizer_file, text=jsonl, append=[END])
    assert found.first is not None and (found.differing, found.text_documents) == (1, len(ROWS))
    assert (found.first.document, found.first.at) == (20, at)
    assert found.first.place == f"document 21 ({jsonl} line 21)"
    assert found.first.stored == (right[at] + 1, *right[at + 1 : at + 4])
    assert found.first.expected == tuple(right[at : at + 4])


def test_a_token_around_a_document_that_is_missing_is_found(corpus: Path, tokenizer_file: str) -> None:
    found = penstock.verify_ids(corpus, tokenizer_file, prepend=[BEGIN])
    assert found.differing == len(ROWS) and found.first is not None
    assert (found.first.at, found.first.expected[0]) == (0, 1)


def test_an_id_that_no_token_has_is_a_difference(tokenizer_file: str, tmp_path: Path) -> None:
    with penstock.Writer(tmp_path / "out", {"token": "u2"}, "boundaries") as writer:
        writer.append(token=[40, 60_000])
    found = penstock.verify_ids(tmp_path / "out", tokenizer_file)
    assert found.differing == 1 and found.first is not None and found.first.stored == (60_000,)


def test_a_special_token_that_no_text_gave_is_a_difference(corpus: Path, tokenizer_file: str, tmp_path: Path) -> None:
    ids = penstock.open(corpus).documents()[0]["token"].copy()
    ids[3] = 1
    with penstock.Writer(tmp_path / "out", {"token": "u2"}, "boundaries") as writer:
        writer.append(token=ids)
    found = penstock.verify_ids(tmp_path / "out", tokenizer_file, append=[END])
    assert found.differing == 1 and found.first is not None and found.first.at == 3
    found = penstock.verify_ids(tmp_path / "out", tokenizer_file, append=[END], special_tokens_in_text=True)
    assert found.agreed == 1


def test_another_tokenizer_is_told_by_its_hash(corpus: Path, jsonl: Path, tmp_path: Path) -> None:
    other = train_tokenizer(tmp_path / "other.json", 400)
    for text in ((), jsonl):
        found = penstock.verify_ids(corpus, other, text=text)
        assert not found and found.differing > len(ROWS) // 2
        assert "other.json is not the tokenizer.json that the manifest names: its sha256 is " in found.notices[0]


def test_a_tokenizer_that_was_saved_again_is_noticed_and_agrees(
    corpus: Path, tokenizer_file: str, tmp_path: Path
) -> None:
    again = tmp_path / "again.json"
    again.write_text(json.dumps(json.loads(Path(tokenizer_file).read_text()), indent=1))
    found = penstock.verify_ids(corpus, again)
    assert found and len(found.notices) == 1


def prefix(tokenizer: Any) -> None:
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)


def lower(tokenizer: Any) -> None:
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Lowercase()])


def around(tokenizer: Any) -> None:
    tokenizer.add_tokens(["§1§", "éé", AddedToken("stands", lstrip=True, rstrip=True)])


@pytest.mark.parametrize("change", [prefix, lower, around, lambda each: setattr(each, "normalizer", normalizers.NFC())])
def test_byte_level_tokenizers_are_judged_whatever_else_they_do(
    jsonl: Path, tokenizer_file: str, tmp_path: Path, change: Callable[[Any], Any]
) -> None:
    file = saved(tokenizer_file, tmp_path / "t.json", change)
    penstock.write(jsonl, tmp_path / "out", tokenizer=file, tokenizer_engine="tokenizers")
    found = penstock.verify_ids(tmp_path / "out", file)
    assert found and found.agreed == len(ROWS), found.unjudged


def makes_tokens(tokenizer: Any) -> None:
    tokenizer.normalizer = normalizers.NFKC()
    tokenizer.add_tokens([AddedToken("<x>", normalized=False)])


def takes_spaces(tokenizer: Any) -> None:
    tokenizer.add_tokens([AddedToken("four", lstrip=True, single_word=True)])


def adds_spaces(tokenizer: Any) -> None:
    level = pre_tokenizers.ByteLevel(add_prefix_space=True, use_regex=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split("-", "isolated"), level])


def removes_spaces(tokenizer: Any) -> None:
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Whitespace(), tokenizer.pre_tokenizer])


def removes(tokenizer: Any) -> None:
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split("-", "removed"), tokenizer.pre_tokenizer])


def doubles(tokenizer: Any) -> None:
    tokenizer.normalizer = normalizers.Replace("x", "xx")


UNSURE = {
    makes_tokens: "an added token may stand there by the normalizer's work",
    takes_spaces: "an added token in it takes white space beside it away",
    adds_spaces: "adds spaces within a text",
    removes_spaces: "Whitespace loses characters",
    removes: "Split loses characters",
    doubles: r"normalizer (Replace) changes its text again",
}


@pytest.mark.parametrize("change", UNSURE)
def test_right_ids_that_the_text_that_they_spell_does_not_have_are_no_difference(
    tokenizer_file: str, tmp_path: Path, change: Callable[[Any], Any]
) -> None:
    jsonl = write_jsonl(tmp_path / "a.jsonl", [{"text": "three-four four \uff1cx\uff1e i-n i n"}])
    file = saved(tokenizer_file, tmp_path / "t.json", change)
    penstock.write(jsonl, tmp_path / "out", tokenizer=file, tokenizer_engine="tokenizers")
    found = penstock.verify_ids(tmp_path / "out", file)
    assert (found.agreed, found.differing) == (0, 0)
    assert UNSURE[change] in found.unjudged[0].reason
    assert penstock.verify_ids(tmp_path / "out", file, text=jsonl).agreed == 1


def words(path: Path) -> Path:
    """A tokenizer that knows three words and nothing of the space between them."""
    tokenizer = Tokenizer(models.WordLevel({"[UNK]": 0, "one": 1, "two": 2, "three": 3}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.decoder = decoders.WordPiece(prefix="##")
    tokenizer.save(str(path))
    return path


def test_ids_that_do_not_spell_their_text_are_not_judged_where_they_differ(tmp_path: Path) -> None:
    file = words(tmp_path / "t.json")
    jsonl = write_jsonl(tmp_path / "a.jsonl", [{"text": "one  two"}, {"text": "one four"}, {"text": "three"}])
    penstock.write(jsonl, tmp_path / "out", tokenizer=file)
    found = penstock.verify_ids(tmp_path / "out", file)
    assert found and (found.agreed, found.differing) == (2, 0)
    assert [(each.documents, each.first) for each in found.unjudged] == [(1, 1)]
    assert "do not spell all bytes" in found.unjudged[0].reason
    assert penstock.verify_ids(tmp_path / "out", file, text=jsonl).agreed == 3


def test_where_nothing_can_be_judged_nothing_is_right(tmp_path: Path) -> None:
    file = words(tmp_path / "t.json")
    penstock.write(write_jsonl(tmp_path / "a.jsonl", [{"text": "four"}]), tmp_path / "out", tokenizer=file)
    found = penstock.verify_ids(tmp_path / "out", file)
    assert not found and "no document could be judged by its ids alone" in found.problems[0]
    assert main(["verify", str(tmp_path / "out"), "--tokenizer", str(file)]) == 1


def test_a_part_of_a_character_is_not_judged(corpus: Path, tokenizer_file: str, tmp_path: Path) -> None:
    ids = Tokenizer.from_file(tokenizer_file).encode("🚰").ids
    assert len(ids) > 1
    with penstock.Writer(tmp_path / "out", {"token": "u2"}, "boundaries") as writer:
        writer.append(token=ids[:-1])
        writer.append(token=ids)
    found = penstock.verify_ids(tmp_path / "out", tokenizer_file)
    assert found and found.agreed == 1 and "no UTF-8" in found.unjudged[0].reason


def test_documents_that_were_left_out_are_passed_over(dirty: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    said = write_dirty(dirty, out)
    assert said["skipped"] > 5
    file, inputs = dirty / "tokenizer.json", dirty / "[a-k].*"
    found = penstock.verify_ids(out, file, text=inputs, sample="all")
    assert found, found.problems
    assert found.agreed == found.text_documents == said["documents"]
    (out / "skipped.jsonl").unlink()
    with pytest.raises(ValueError, match=r"a tar archive|cannot be|is damaged|no JSON"):
        penstock.verify_ids(out, file, text=inputs)


def test_a_sample_lies_evenly(corpus: Path, jsonl: Path, tokenizer_file: str, tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    found = penstock.verify_ids(corpus, tokenizer_file, sample=3, progress=lambda *each: told.append(each))
    assert (found.looked_at, found.agreed, told[-1]) == (3, 3, (3, 3))
    middle = len(ROWS) // 2
    for document, differing in ((middle, 1), (middle + 1, 0)):
        out = changed(corpus, tmp_path / str(document), document, 0, None)
        found = penstock.verify_ids(out, tokenizer_file, text=jsonl, append=[END], sample=3)
        assert (found.looked_at, found.differing) == (3, differing)
    assert penstock.verify_ids(corpus, tokenizer_file, sample=10_000).looked_at == len(ROWS)


def test_other_inputs_are_told_by_their_number(corpus: Path, jsonl: Path, tokenizer_file: str, tmp_path: Path) -> None:
    less = tmp_path / "less.jsonl"
    less.write_text("".join(jsonl.read_text().splitlines(keepends=True)[:-1]))
    found = penstock.verify_ids(corpus, tokenizer_file, text=less)
    assert not found and found.agreed == len(ROWS) - 1
    assert f"the inputs have {len(ROWS) - 1} documents, the dataset {len(ROWS)}" in found.problems[0]


def test_shards_say_how_each_was_made(corpus: Path, jsonl: Path, tokenizer_file: str, tmp_path: Path) -> None:
    penstock.write(jsonl, tmp_path / "other", tokenizer=tokenizer_file, prepend=[BEGIN], append=[END])
    penstock.combine([corpus, tmp_path / "other"], tmp_path / "both")
    found = penstock.verify_ids(tmp_path / "both", tokenizer_file)
    assert found and found.agreed == 2 * len(ROWS)


def test_entries_that_repeat_are_no_documents(tokenizer_file: str, tmp_path: Path) -> None:
    with penstock.Writer(tmp_path / "out", {"token": "u2"}, "json", layout="ids") as writer:
        one, two = writer.entry({}), writer.entry({})
        writer.append(token=[40, 41, 42, 43], metadata_id=[one, two, one, two])
    found = penstock.verify_ids(tmp_path / "out", tokenizer_file)
    assert not found and found.unjudged[0].documents == 2


REFUSED: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "a token stream": ({"metadata": None}, {}, "a token stream without documents"),
    "conversations": ({"fields": {"token": "u2", "loss": "u1"}}, {}, "a chat template made their ids"),
    "no tokens": ({"fields": {"x": "f4"}}, {}, "no documents of token ids"),
    "a sample": ({}, {"sample": 0}, "sample 0: expected a number from 1 on, or all"),
    "a word as sample": ({}, {"sample": "some"}, "sample 'some': expected a number from 1 on, or all"),
    "a column": ({}, {"text_column": "body"}, "text_column is of inputs: name them with text"),
    "a text as list": ({}, {"append": END}, "append '<|endoftext|>': a list of tokens is wanted"),
    "an unknown token": ({}, {"append": ["<eot>"]}, 'the tokenizer has no token "<eot>"'),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_is_refused(tokenizer_file: str, tmp_path: Path, case: str) -> None:
    made, given, message = REFUSED[case]
    fields = made.get("fields", {"token": "u2"})
    with penstock.Writer(tmp_path / "out", fields, made.get("metadata", "boundaries")) as writer:
        writer.append(**{name: np.array([1, 2]) for name in fields})
    with pytest.raises(penstock.InvalidArgumentError, match=message.replace("|", r"\|").replace("(", r"\(")):
        penstock.verify_ids(tmp_path / "out", tokenizer_file, **given)


def test_dropout_is_refused(corpus: Path, tokenizer_file: str, tmp_path: Path) -> None:
    content = json.loads(Path(tokenizer_file).read_text())
    content["model"]["dropout"] = 0.1
    (tmp_path / "t.json").write_text(json.dumps(content))
    with pytest.raises(penstock.InvalidArgumentError, match="its ids are drawn"):
        penstock.verify_ids(corpus, tmp_path / "t.json")


@pytest.mark.parametrize("named", [True, False])
def test_ids_that_were_made_elsewhere_agree(tokenizer_file: str, tmp_path: Path, named: bool) -> None:
    tokenizer = Tokenizer.from_file(tokenizer_file)
    content = [{"ids": [*tokenizer.encode(row["text"]).ids, tokenizer.token_to_id(END)]} for row in ROWS[:40]]
    given: dict[str, Any] = {"tokenizer": tokenizer_file} if named else {"dtype": "u2"}
    penstock.write(write_jsonl(tmp_path / "ids.jsonl", content), tmp_path / "out", ids_column="ids", **given)
    found = penstock.verify_ids(tmp_path / "out", tokenizer_file, sample="all")
    assert found and found.agreed > 30, found.problems


def test_a_dataset_without_documents_has_none_that_differ(tokenizer_file: str, tmp_path: Path) -> None:
    for layout in ("compact", "ids"):
        with penstock.Writer(tmp_path / layout, {"token": "u2"}, "boundaries", layout=layout):
            pass
        found = penstock.verify_ids(tmp_path / layout, tokenizer_file)
        assert found and found.looked_at == 0


def test_datasets_in_buckets(place: Any, jsonl: Path, tokenizer_file: str) -> None:
    penstock.write(jsonl, place.url, tokenizer=tokenizer_file, append=[END], storage=place.storage)
    for text in ((), jsonl):
        found = penstock.verify_ids(place.url, tokenizer_file, text=text, storage=place.storage)
        assert found and found.agreed == len(ROWS)


def test_the_command(
    corpus: Path, jsonl: Path, tokenizer_file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    count = len(ROWS)
    assert main(["verify", str(corpus), "--tokenizer", tokenizer_file, "--sample", "all"]) == 0
    said = capsys.readouterr().out
    assert said.startswith(f"{corpus}: {count} of {count} documents encoded again (ids by ")
    assert said.endswith(f"), {count} agree\n")
    wrong = str(changed(corpus, tmp_path / "wrong", 20, 7, penstock.open(corpus).tokenizer))
    given = ["verify", wrong, "--tokenizer", tokenizer_file, "--text", str(jsonl), "--append", END]
    assert main(given) == 1
    said, told = capsys.readouterr()
    assert said.startswith(f"document 20 from 0 on (shard 00000), made of document 21 ({jsonl} line 21): token 7, at '")
    assert told.startswith(f"{wrong}: {count} of {count} documents encoded again (ids by ")
    assert told.endswith(f"): {count - 1} agree, 1 differ\n")
    assert main([*given, "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert (found["ok"], found["differing"], found["first"]["document"], found["first"]["at"]) == (False, 1, 20, 7)
    assert len(found["first"]["stored"]) == len(found["first"]["expected"]) == 4
    assert main(["verify", str(corpus), "--sample", "3"]) == 2
    assert "--sample needs --tokenizer FILE" in capsys.readouterr().err


def test_inputs_in_another_order_are_asked_for(
    tokenizer_file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one, two = (write_jsonl(tmp_path / f"{name}.jsonl", ROWS[at::2]) for at, name in enumerate(("one", "two")))
    out, words = tmp_path / "out", "are the inputs named in the order in which the dataset was written?"
    penstock.write([one, two], out, tokenizer=tokenizer_file, append=[END])
    found = penstock.verify_ids(out, tokenizer_file, text=[two, one])
    assert len(found.problems) == 2 and words in found.problems[1]
    command = ["verify", str(out), "--tokenizer", tokenizer_file, "--text", str(two), "--text", str(one)]
    assert main(command) == 1 and words in capsys.readouterr().out
    assert main([*command, "--json"]) == 1
    assert words in json.loads(capsys.readouterr().out)["problems"][1]
    found = penstock.verify_ids(out, tokenizer_file, text=[one, two], append=[])  # the text is right
    assert found.differing > 50 and words not in "".join(found.problems)
