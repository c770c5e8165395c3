"""Conversations by the tokenizer's own template, with the real transformers and a tokenizer made here."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest
from penstock._cli.main import main
from text_corpus import train_tokenizer

tokenizers = pytest.importorskip("tokenizers")
pytest.importorskip("transformers")

MARKED = (
    "{% for message in messages %}<|{{ message.role }}|>"
    "{% if message.role == 'assistant' %}{% generation %}{{ message.content }}<|end|>{% endgeneration %}"
    "{% else %}{{ message.content }}<|end|>{% endif %}{% endfor %}"
)
UNMARKED = "{% for message in messages %}<|{{ message.role }}|>{{ message.content }}<|end|>{% endfor %}"
SPECIAL = ["<|user|>", "<|assistant|>", "<|system|>", "<|end|>"]
CHAT = [
    {"role": "system", "content": "be brief"}, {"role": "user", "content": "what is a penstock"},
    {"role": "assistant", "content": "a pipe"}, {"role": "user", "content": "of what"},
    {"role": "assistant", "content": "water under pressure"},
]  # fmt: skip

ROLES = ("user", "assistant", "user", "assistant")


def made(folder: Path, template: str | None = MARKED) -> Any:
    from transformers import AutoTokenizer, PreTrainedTokenizerFast

    words = sorted({word for message in CHAT for word in message["content"].split()} | {"hello", "hi", "a", "b"})
    vocabulary = {word: number for number, word in enumerate(["<unk>", *SPECIAL, *words])}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocabulary, "<unk>"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="<unk>", additional_special_tokens=SPECIAL)
    fast.chat_template = template
    fast.save_pretrained(folder)
    return AutoTokenizer.from_pretrained(folder, local_files_only=True)


def words_of(tokenizer: Any, ids: Any) -> list[str]:
    return tokenizer.convert_ids_to_tokens(list(map(int, ids)))


def test_the_mask_is_what_the_assistant_says(tmp_path):
    tokenizer = made(tmp_path)
    ids, mask = penstock.chat.render(CHAT, tokenizer)
    assert ids.dtype == np.int64 and mask.dtype == np.bool_ and ids.shape == mask.shape
    assert words_of(tokenizer, ids[mask]) == ["a", "pipe", "<|end|>", "water", "under", "pressure", "<|end|>"]
    theirs = tokenizer.apply_chat_template(CHAT, tokenize=True, return_dict=True, return_assistant_tokens_mask=True)
    assert theirs["input_ids"] == ids.tolist() and theirs["assistant_masks"] == mask.astype(int).tolist()
    assert not penstock.chat.render(CHAT, tokenizer, train_on=()).mask.any()
    spaced = [
        {"role": "user", "content": "hello"}, {"role": "assistant", "content": " a pipe"},
        {"role": "user", "content": "hi"}, {"role": "assistant", "content": "b"},
    ]  # fmt: skip
    ids, mask = penstock.chat.render(spaced, tokenizer)  # transformers' own mask stops there, or runs on to the end
    assert words_of(tokenizer, ids[mask]) == ["a", "pipe", "<|end|>", "b", "<|end|>"]
    theirs = tokenizer.apply_chat_template(spaced, tokenize=True, return_dict=True, return_assistant_tokens_mask=True)
    assert theirs["input_ids"] == ids.tolist() and theirs["assistant_masks"] != mask.astype(int).tolist()


@pytest.mark.parametrize(
    ("template", "words"),
    [
        (UNMARKED, "generation"),
        (None, "no chat template"),
        ("{# {% generation %} #}" + UNMARKED, "generation"),
        (MARKED + "{{ 1 // 0 }}", "the chat template of"),
        (MARKED + "{{ raise_exception('roles must alternate') }}", "roles must alternate"),
    ],
)
def test_a_template_that_cannot_be_used_is_refused(tmp_path, template, words):
    with pytest.raises(penstock.InvalidArgumentError, match=words):
        penstock.chat.render(CHAT, made(tmp_path, template))


def test_what_cannot_be_rendered_is_refused(tmp_path):
    tokenizer = made(tmp_path)
    for train_on in (("user",), ("assistant", "tool"), "user", None, 5):
        with pytest.raises(penstock.InvalidArgumentError, match="train_on"):
            penstock.chat.render(CHAT, tokenizer, train_on)
    with pytest.raises(penstock.InvalidArgumentError, match="no tokenizer of transformers"):
        penstock.chat.render(CHAT, object())
    with pytest.raises(penstock.InvalidArgumentError, match="no Unicode text"):
        penstock.chat.render([{"role": "user", "content": "a\ud800"}], tokenizer)


def parquet(path: Path, rows: list[dict[str, Any]]) -> Path:
    arrow = pytest.importorskip("pyarrow")
    import pyarrow.parquet

    pyarrow.parquet.write_table(arrow.Table.from_pylist(rows), path, row_group_size=3)
    return path


def jsonl(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("\n".join(map(json.dumps, rows)))
    return path


def write(tokenizer: Path, file: Path, out: Path, **options: Any) -> penstock.Dataset:
    penstock.write(file, out, messages="messages", tokenizer=tokenizer, metadata=["id"], **options)
    return penstock.open(out)


def test_messages_are_written_as_token_and_loss_and_packed_with_them(tmp_path):
    tokenizer = made(tmp_path / "tokenizer")
    chats = [CHAT[: 3 + 2 * (number % 2)] for number in range(20)]
    file = jsonl(tmp_path / "chats.jsonl", [{"messages": chat, "id": number} for number, chat in enumerate(chats)])
    dataset = write(tmp_path / "tokenizer", file, tmp_path / "out")
    assert write(tmp_path / "tokenizer", file, tmp_path / "two", workers=2).fingerprint == dataset.fingerprint
    assert dataset.dtype is not None and dataset.dtype.names == ("token", "loss")
    assert dataset.tokenizer is not None and dataset.tokenizer["name"] == "tokenizer"
    rendered = [penstock.chat.render(chat, tokenizer) for chat in chats]
    for number, (ids, mask) in enumerate(rendered):
        document = dataset.documents()[number]
        assert document["token"].tolist() == ids.tolist() and document["loss"].tolist() == mask.astype(int).tolist()
        assert document.metadata == {"id": number}
    view = dataset.packed(22, long="truncate")  # the whole CHAT has one more
    columns = ["document_ids", penstock.columns.LossMask(field="loss")]
    found = 0
    for batch in penstock.Loader(view, 2, framework="numpy", epochs=1, columns=columns):
        assert ((batch.labels != -100) == batch.loss_mask).all()
        for span in batch.spans:
            found, at = found + 1, slice(span.start, span.stop)
            ids, mask = rendered[span.metadata["id"]]
            count = min(len(ids), 22)
            assert batch.inputs[span.row, at].tolist() == ids[:count].tolist()
            assert batch.loss_mask[span.row, at].tolist() == [*mask[1:count].tolist(), False]
            own = batch.document_ids[span.row] == batch.document_ids[span.row, span.start]
            assert np.flatnonzero(own).tolist() == list(range(span.start, span.stop))
    assert found == len(chats)


def made_of_bytes(folder: Path, trims: bool, prefix: bool = False) -> Any:
    """A byte-level tokenizer, which the fast engine reads."""
    from transformers import AutoTokenizer, PreTrainedTokenizerFast

    train_tokenizer(folder.parent / "bytes.json")
    tokenizer = tokenizers.Tokenizer.from_file(str(folder.parent / "bytes.json"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=prefix)
    tokenizer.post_processor = tokenizers.processors.ByteLevel(trim_offsets=trims)
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, additional_special_tokens=SPECIAL)
    fast.chat_template = MARKED
    fast.save_pretrained(folder)
    return AutoTokenizer.from_pretrained(folder, local_files_only=True)


@pytest.mark.parametrize("trims", [True, False])
@pytest.mark.parametrize("prefix", [False, True])
def test_the_fast_engine_gives_the_ids_and_masks_of_transformers(tmp_path, trims, prefix):
    pytest.importorskip("gigatoken")
    tokenizer = made_of_bytes(tmp_path / "tokenizer", trims, prefix)
    words = [" ", "  two  ", "héllo 東京 🚰", "", "\n", " a pipe ", "<|end|>", "def f(x):\n  return x"]
    chats = [
        [{"role": role, "content": words[(number + at) % 8] + words[number % 7]} for at, role in enumerate(ROLES)]
        for number in range(120)
    ]
    file = jsonl(tmp_path / "chats.jsonl", [{"messages": chat, "id": number} for number, chat in enumerate(chats)])
    made = {
        engine: write(tmp_path / "tokenizer", file, tmp_path / engine, tokenizer_engine=engine, workers=workers)
        for engine, workers in (("tokenizers", 1), ("auto", 1), ("gigatoken", 2))
        if not (prefix and engine == "gigatoken")
    }
    assert len({each.fingerprint for each in made.values()}) == 1
    assert ("engine" in made["auto"].tokenizer) or prefix
    assert "engine" not in made["tokenizers"].tokenizer
    for number, chat in enumerate(chats):
        ids, mask = penstock.chat.render(chat, tokenizer)
        document = made["auto"].documents()[number]
        assert document["token"].tolist() == ids.tolist() and document["loss"].tolist() == mask.astype(int).tolist()


def test_messages_of_parquet_are_those_of_json_lines(tmp_path):
    named = MARKED.replace(
        "<|{{ message.role }}|>", "<|{{ message.role }}|>{% if message.name is defined %}a{% endif %}"
    )
    made(tmp_path / "tokenizer", named)
    some = [{**CHAT[1], "name": "me"}, *CHAT[2:]]  # in Parquet the other messages have a name too, null
    rows = [{"messages": some if number % 3 else CHAT, "id": number} for number in range(10)]
    found = [
        write(tmp_path / "tokenizer", file, tmp_path / f"from-{file.suffix}")
        for file in (jsonl(tmp_path / "chats.jsonl", rows), parquet(tmp_path / "chats.parquet", rows))
    ]
    assert found[0].fingerprint == found[1].fingerprint and len(found[1].documents()) == 10


GOOD = json.dumps({"messages": CHAT})
SHARE_GPT = json.dumps({"messages": [{"from": "human", "value": "hi"}, {"from": "gpt", "value": "hello"}]})
TEXTS = json.dumps({"messages": [CHAT[0], {"role": "user", "text": "hi"}]})


@pytest.mark.parametrize(
    ("words", "content", "options"),
    [
        ("tokenizer DIR", GOOD, {"tokenizer": None}),
        ("tokenizer DIR", GOOD, {"tokenizer": None, "ids_column": "x"}),
        ("generation", GOOD, {"tokenizer": "unmarked"}),
        ("no such file or folder: (--)?messages needs the folder that save_pretrained", GOOD, {"tokenizer": "nowhere"}),
        ("there is no tokenizer.json in it: (--)?messages needs the folder", GOOD, {"tokenizer": "."}),
        ("has no chat template: .*: (--)?messages needs the folder", GOOD, {"tokenizer": "bare"}),
        ("messages needs the folder that save_pretrained", GOOD, {"tokenizer": "alone/tokenizer.json"}),
        ('document 1 .*message 1 has no "role", "content", which .*there are "from", "value"', SHARE_GPT, {}),
        ('document 2 .*message 2 has no "content", which .*: there are "role", "text"', GOOD + "\n" + TEXTS, {}),
        ('message 1 has no "role"', json.dumps({"messages": [{}]}), {}),
        ("append", GOOD, {"append": ["<|end|>"]}),
        ('no column "messages"', '{"a": 1}', {}),
        ("not a list of messages", '{"messages": "hello"}', {}),
        ("holds a number", '{"messages": [1]}', {}),
        ("document 2", GOOD + '\n{"messages": []}', {}),
        ('no column "messages" for (--)?messages', [{"a": 1}], {}),
        ("not lists of structs", [{"messages": "hello"}], {}),
        ("not lists of structs", [{"messages": ["hello"]}], {}),
        ('row 2: column "messages" is null', [{"messages": CHAT}, {"messages": None}], {}),
        ("is empty, not a list of messages", [{"messages": CHAT}, {"messages": []}], {}),
        ('row 1: column "messages": no conversation', [{"messages": [{"role": "user", "content": b"x"}]}], {}),
        ("plain text has no columns: (--)?messages", "hello", {"format": "text"}),
    ],
)
def test_what_cannot_be_written_says_why(tmp_path, words, content, options):
    made(tmp_path / "tokenizer")
    made(tmp_path / "unmarked", UNMARKED)
    made(tmp_path / "bare", None)
    (tmp_path / "alone").mkdir()
    shutil.copy(tmp_path / "tokenizer" / "tokenizer.json", tmp_path / "alone")
    if isinstance(content, str):
        file = tmp_path / "chats.jsonl"
        file.write_text(content)
    else:
        file = parquet(tmp_path / "chats.parquet", content)
    tokenizer = options.get("tokenizer", "tokenizer")
    given = {**options, "tokenizer": tokenizer and tmp_path / tokenizer}
    with pytest.raises(ValueError, match=words):
        penstock.write(file, tmp_path / "out", messages="messages", **given)


def test_a_dry_run_of_messages_is_refused(tmp_path, capsys):
    made(tmp_path / "tokenizer")
    (tmp_path / "chats.jsonl").write_text(GOOD)
    given = ["--messages", "messages", "--tokenizer", str(tmp_path / "tokenizer"), "--out", str(tmp_path / "out")]
    assert main(["write", str(tmp_path / "chats.jsonl"), *given, "--dry-run"]) == 2
    assert "--dry-run" in capsys.readouterr().err


def test_a_name_of_the_hub_says_how_to_save_its_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "chats.jsonl").write_text(GOOD)
    with pytest.raises(ValueError, match=r"from_pretrained\('org/name'\).save_pretrained\('DIR'\), and give DIR$"):
        penstock.write("chats.jsonl", "out", messages="messages", tokenizer="org/name")


def test_keys_that_the_template_reads_instead_of_content_are_enough(tmp_path):
    tools = MARKED.replace("{{ message.content }}", "{{ message.content or message.tool_calls }}")
    tokenizer = made(tmp_path / "tools", tools)
    called = [CHAT[1], {"role": "assistant", "content": None, "tool_calls": "a"}]
    assert penstock.chat.render(called, tokenizer).mask.sum() == 2
    with pytest.raises(penstock.InvalidArgumentError, match='message 2 has no "content"'):
        penstock.chat.render(called, made(tmp_path / "plain"))
    own = "{% for each in messages %}{% generation %}{{ each.value }}{% endgeneration %}{% endfor %}"
    assert penstock.chat.render([{"from": "gpt", "value": "hello"}], made(tmp_path / "own", own)).mask.all()


@pytest.mark.parametrize("policy", ["stop", "skip"])
def test_conversations_of_which_nothing_is_trained_on_are_counted_in_a_note(tmp_path, policy):
    made(tmp_path / "tokenizer")
    asked = [{"role": "user", "content": "hello"}]
    wrong = [{"from": "user"}]
    chats = [CHAT, *([wrong] if policy == "skip" else []), asked, CHAT, asked]
    file = jsonl(tmp_path / "chats.jsonl", [{"messages": chat} for chat in chats])
    given = {"messages": "messages", "tokenizer": tmp_path / "tokenizer", "on_error": policy}
    done = penstock.write(file, tmp_path / "out", **given)
    first = 2 + (policy == "skip")
    place = rf"document {first} (.*chats.jsonl line {first})"
    words = "2 of 4 conversations have no token that is trained on: the template marks nothing in document"
    assert [each.partition(" in ")[0] + " in document" for each in done.notes] == [
        words
    ] and f"line {first})" in done.notes[0], place
    assert done.skipped == (policy == "skip")
    file = jsonl(tmp_path / "asked.jsonl", [{"messages": asked}] * 3)
    for workers in (1, 2):
        (note,) = penstock.write(file, tmp_path / f"none{workers}", **{**given, "workers": workers}).notes
        assert note.startswith(
            "no conversation has a token that is trained on: the template marks nothing in document 1"
        )
