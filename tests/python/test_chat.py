"""Conversations by the tokenizer's own template, with the real transformers and a tokenizer made here."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest

pytest.importorskip("transformers")
pytest.importorskip("tokenizers")

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


def made(folder: Path, template: str | None = MARKED, whitespace: bool = False) -> Any:
    import tokenizers
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


def test_spaces_at_a_mark_lose_no_turn(tmp_path):
    """transformers' own mask stops at such a turn, or runs on to the end."""
    tokenizer = made(tmp_path)
    chat = [
        {"role": "user", "content": "hello"}, {"role": "assistant", "content": " a pipe"},
        {"role": "user", "content": "hi"}, {"role": "assistant", "content": "b"},
    ]  # fmt: skip
    ids, mask = penstock.chat.render(chat, tokenizer)
    assert words_of(tokenizer, ids[mask]) == ["a", "pipe", "<|end|>", "b", "<|end|>"]
    theirs = tokenizer.apply_chat_template(chat, tokenize=True, return_dict=True, return_assistant_tokens_mask=True)
    assert theirs["input_ids"] == ids.tolist() and theirs["assistant_masks"] != mask.astype(int).tolist()


def test_a_template_without_marks_is_refused(tmp_path):
    for template, named in ((UNMARKED, "generation"), (None, "no chat template")):
        tokenizer = made(tmp_path / str(template is None), template)
        with pytest.raises(penstock.InvalidArgumentError, match=named):
            penstock.chat.render(CHAT, tokenizer)
    tokenizer = made(tmp_path)
    for train_on in (("user",), ("assistant", "tool"), "user"):
        with pytest.raises(penstock.InvalidArgumentError, match="train_on"):
            penstock.chat.render(CHAT, tokenizer, train_on)
    with pytest.raises(penstock.InvalidArgumentError, match="no tokenizer of transformers"):
        penstock.chat.render(CHAT, object())
    strict = made(tmp_path / "strict", MARKED + "{{ raise_exception('roles must alternate') }}")
    with pytest.raises(penstock.InvalidArgumentError, match="roles must alternate"):
        penstock.chat.render(CHAT, strict)


def write(*arguments: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "penstock", "write", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_messages_are_written_as_token_and_loss(tmp_path):
    tokenizer = made(tmp_path / "tokenizer")
    chats = [CHAT[: 3 + 2 * (number % 2)] for number in range(20)]
    lines = [json.dumps({"messages": chat, "id": number}) for number, chat in enumerate(chats)]
    (tmp_path / "chats.jsonl").write_text("\n".join(lines))
    options = ["--messages", "messages", "--tokenizer", tmp_path / "tokenizer", "--metadata", "id"]
    outs = []
    for workers in (1, 2):
        out = tmp_path / f"out{workers}"
        done = write(tmp_path / "chats.jsonl", *options, "--workers", workers, "--out", out)
        assert done.returncode == 0, done.stderr
        outs.append(penstock.open(out))
    assert outs[0].fingerprint == outs[1].fingerprint
    dataset = outs[0]
    assert dataset.dtype is not None and dataset.dtype.names == ("token", "loss")
    assert dataset.tokenizer is not None and dataset.tokenizer["name"] == "tokenizer"
    for number, chat in enumerate(chats):
        document = dataset.documents()[number]
        ids, mask = penstock.chat.render(chat, tokenizer)
        assert document["token"].tolist() == ids.tolist() and document["loss"].tolist() == mask.astype(int).tolist()
        assert document.metadata == {"id": number}
    view = dataset.packed(32)
    with penstock.Loader(view, 2, framework="numpy", epochs=1) as loader:
        trained = sum(int(batch["loss"].sum()) for batch in loader)
    assert trained == sum(int(penstock.chat.render(chat, tokenizer).mask.sum()) for chat in chats)


def test_what_cannot_be_written_says_why(tmp_path):
    made(tmp_path / "tokenizer")
    made(tmp_path / "unmarked", UNMARKED)
    good = json.dumps({"messages": CHAT})
    (tmp_path / "chats.jsonl").write_text(good)
    base = ["--messages", "messages", "--out", tmp_path / "out"]

    def refused(pattern: str, *arguments: Any, text: str | None = None) -> None:
        file = tmp_path / "chats.jsonl"
        if text is not None:
            file = tmp_path / "bad.jsonl"
            file.write_text(text)
        done = write(file, *base, *arguments)
        assert done.returncode in (1, 2) and pattern in done.stderr, done.stderr

    tokenizer = ["--tokenizer", tmp_path / "tokenizer"]
    refused("--tokenizer DIR", "--ids-column", "x")
    refused("generation", "--tokenizer", tmp_path / "unmarked")
    refused("No such file", "--tokenizer", tmp_path / "nowhere")
    refused("--append", *tokenizer, "--append", "<|end|>")
    refused("--dry-run", *tokenizer, "--dry-run")
    refused('no column "messages"', *tokenizer, text='{"a": 1}')
    refused("not a list of messages", *tokenizer, text='{"messages": "hello"}')
    refused("holds a number", *tokenizer, text='{"messages": [1]}')
    refused("document 2", *tokenizer, text=good + '\n{"messages": []}')
