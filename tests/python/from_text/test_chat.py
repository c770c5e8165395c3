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
from penstock._cli.main import main

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
    for train_on in (("user",), ("assistant", "tool"), "user", None, 5):
        with pytest.raises(penstock.InvalidArgumentError, match="train_on"):
            penstock.chat.render(CHAT, tokenizer, train_on)
    with pytest.raises(penstock.InvalidArgumentError, match="no tokenizer of transformers"):
        penstock.chat.render(CHAT, object())
    with pytest.raises(penstock.InvalidArgumentError, match="no Unicode text"):
        penstock.chat.render([{"role": "user", "content": "a\ud800"}], tokenizer)
    commented = made(tmp_path / "commented", "{# {% generation %} #}" + UNMARKED)
    with pytest.raises(penstock.InvalidArgumentError, match="generation"):
        penstock.chat.render(CHAT, commented)
    broken = made(tmp_path / "broken", MARKED + "{{ 1 // 0 }}")
    with pytest.raises(penstock.InvalidArgumentError, match="the chat template of"):
        penstock.chat.render(CHAT, broken)
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


def parquet(path: Path, rows: list[dict[str, Any]]) -> Path:
    arrow = pytest.importorskip("pyarrow")
    import pyarrow.parquet

    pyarrow.parquet.write_table(arrow.Table.from_pylist(rows), path, row_group_size=3)
    return path


def test_messages_of_parquet_are_those_of_json_lines(tmp_path):
    named = MARKED.replace(
        "<|{{ message.role }}|>", "<|{{ message.role }}|>{% if message.name is defined %}a{% endif %}"
    )
    made(tmp_path / "tokenizer", named)
    some = [{**CHAT[1], "name": "me"}, *CHAT[2:]]  # in Parquet the other messages have a name too, null
    rows = [{"messages": some if number % 3 else CHAT, "id": number} for number in range(10)]
    (tmp_path / "chats.jsonl").write_text("\n".join(map(json.dumps, rows)))
    options = ["--messages", "messages", "--tokenizer", tmp_path / "tokenizer", "--metadata", "id"]
    found = []
    for file in (tmp_path / "chats.jsonl", parquet(tmp_path / "chats.parquet", rows)):
        done = write(file, *options, "--out", tmp_path / f"from-{file.suffix}", "--workers", 2)
        assert done.returncode == 0, done.stderr
        found.append(penstock.open(tmp_path / f"from-{file.suffix}"))
    assert found[0].fingerprint == found[1].fingerprint and len(found[1].documents()) == 10


def test_losses_of_chats_see_their_own_document_alone(tmp_path):
    """Conversations → penstock write → packed rows → masks → a model's loss: a document changes no other one's."""
    torch = pytest.importorskip("torch")
    tokenizer = made(tmp_path / "tokenizer")
    short = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello a b"}]
    changed = [*CHAT[:2], {"role": "assistant", "content": "water of"}, *CHAT[3:]]  # as many tokens
    window = 22  # the whole CHAT has one more
    torch.manual_seed(0)
    embed, place = torch.nn.Embedding(len(tokenizer), 16), torch.nn.Embedding(window, 16)
    head = torch.nn.Linear(16, len(tokenizer))

    def losses(name: str, chats: list[Any]) -> dict[int, Any]:
        """Of each conversation, by record."""
        file = parquet(tmp_path / f"{name}.parquet", [{"messages": chat, "id": i} for i, chat in enumerate(chats)])
        options = ["--messages", "messages", "--tokenizer", tmp_path / "tokenizer", "--metadata", "id"]
        done = write(file, *options, "--out", tmp_path / name)
        assert done.returncode == 0, done.stderr
        view = penstock.open(tmp_path / name).packed(window, long="truncate")
        columns = ["document_ids", "position_ids", penstock.columns.LossMask(field="loss")]
        found = {}
        for batch in penstock.Loader(view, 2, epochs=1, columns=columns):
            ids = batch.document_ids
            sees = torch.tril(ids[:, :, None] == ids[:, None, :])
            x = embed(batch.inputs) + place(batch.position_ids.long())
            attended = torch.nn.functional.scaled_dot_product_attention(x, x, x, attn_mask=sees)
            logits = head(x + attended).transpose(1, 2)
            loss = torch.nn.functional.cross_entropy(logits, batch.labels, reduction="none")
            assert torch.equal(loss != 0, batch.loss_mask)
            loss.sum().backward()
            for span in batch.spans:
                found[span.metadata["id"]] = loss[span.row, span.start : span.stop].detach()
        return found

    chats = [CHAT, short, CHAT[:3], short, CHAT, CHAT[:3]] * 2
    plain = losses("plain", chats)
    assert sorted(plain) == list(range(12)) and head.weight.grad.abs().sum() > 0
    for number, chat in enumerate(chats):
        ids, mask = penstock.chat.render(chat, tokenizer)
        assert len(plain[number]) == min(len(ids), window)
        assert (plain[number] != 0).tolist() == [*mask[1 : len(plain[number])].tolist(), False]
    after = losses("changed", [changed if number == 4 else chat for number, chat in enumerate(chats)])
    for number in range(12):
        assert torch.equal(plain[number], after[number]) == (number != 4)


def test_what_cannot_be_written_says_why(tmp_path, capsys):
    made(tmp_path / "tokenizer")
    made(tmp_path / "unmarked", UNMARKED)
    good = json.dumps({"messages": CHAT})
    (tmp_path / "chats.jsonl").write_text(good)
    base = ["--messages", "messages", "--out", tmp_path / "out", "--workers", "1"]

    def says(pattern: str, *arguments: Any) -> None:  # in this process, which has imported transformers
        assert main(["write", *map(str, arguments)]) in (1, 2)
        assert pattern in " ".join(capsys.readouterr().err.split())

    def refused(pattern: str, *arguments: Any, text: str | None = None) -> None:
        file = tmp_path / "chats.jsonl"
        if text is not None:
            file = tmp_path / "bad.jsonl"
            file.write_text(text)
        says(pattern, file, *base, *arguments)

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

    def refused_rows(pattern: str, rows: list[dict[str, Any]]) -> None:
        says(pattern, parquet(tmp_path / "bad.parquet", rows), *base, *tokenizer)

    refused_rows('no column "messages" for --messages', [{"a": 1}])
    refused_rows("not lists of structs", [{"messages": "hello"}])
    refused_rows("not lists of structs", [{"messages": ["hello"]}])
    refused_rows('row 2: column "messages" is null', [{"messages": CHAT}, {"messages": None}])
    refused_rows("is empty, not a list of messages", [{"messages": CHAT}, {"messages": []}])
    refused_rows('row 1: column "messages": no conversation', [{"messages": [{"role": "user", "content": b"x"}]}])
    (tmp_path / "chats.txt").write_text("hello")
    says("plain text has no columns: --messages", tmp_path / "chats.txt", *base, *tokenizer)
