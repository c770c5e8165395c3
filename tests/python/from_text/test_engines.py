"""Engines: the same ids as tokenizers, proven while they work, or tokenizers instead."""

from __future__ import annotations

import io
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest
from _dirty import files
from penstock._from.engines import choosing, gigatoken
from penstock._from.engines.caches import Caches, private_bytes
from penstock._from.engines.engine import Ids
from penstock._from.engines.pieces import Pieces
from penstock._from.text.batches import make_tokenizer
from penstock._from.text.tokenizing import DocumentTokenizer, TokenizerOptions
from text_corpus import END, rows, write_jsonl
from tokenizers import AddedToken, Regex, Tokenizer, normalizers, pre_tokenizers, processors

pytest.importorskip("gigatoken")

LLAMA_3 = "|".join(
    (
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)",
        r"[^\r\n\p{L}\p{N}]?\p{L}+",
        r"\p{N}{1,3}",
        r" ?[^\s\p{L}\p{N}]+[\r\n]*",
        r"\s*[\r\n]+",
        r"\s+(?!\S)",
        r"\s+",
    )
)
HARD = [
    *(each.encode() for each in choosing._HARD),
    b"\0",
    b"a\0\0b",
    "🚰".encode() * 400,
    b"x" * 100_000,
    (" " * 10_000 + "\n" * 10_000).encode(),
    f"{END}text{END}{END} <|begin|>x {END[:-1]} §1§ §§".encode(),
    "ẛ̣ ﬁ Ａ １２３ é e\u0301".encode(),
    b"",
]


def llama(tokenizer: Any) -> None:
    split = pre_tokenizers.Split(Regex(LLAMA_3), "isolated")
    level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([split, level])


def template(tokenizer: Any) -> None:
    single = f"<|begin|> $A {END}"
    tokenizer.post_processor = processors.TemplateProcessing(single=single, special_tokens=[("<|begin|>", 1), (END, 0)])


CHANGES: dict[str, Callable[[Any], Any]] = {
    "as it is": lambda tokenizer: None,
    "llama 3's split": llama,
    "a normalizer": lambda tokenizer: setattr(tokenizer, "normalizer", normalizers.NFC()),
    "two normalizers": lambda tokenizer: setattr(
        tokenizer, "normalizer", normalizers.Sequence([normalizers.NFKC(), normalizers.Lowercase()])
    ),
    "added tokens": lambda tokenizer: tokenizer.add_tokens(["§1§", "  ", AddedToken("begin", lstrip=True)]),
    "whole words": lambda tokenizer: tokenizer.add_tokens([AddedToken("foo", single_word=True)]),
    "a normalizer and tokens": lambda tokenizer: (
        setattr(tokenizer, "normalizer", normalizers.NFC()),
        tokenizer.add_tokens([AddedToken("café", normalized=True)]),
    ),
    "no split": lambda tokenizer: setattr(
        tokenizer, "pre_tokenizer", pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    ),
    "a template": template,
    "a prefix space": lambda tokenizer: setattr(tokenizer, "pre_tokenizer", pre_tokenizers.ByteLevel()),
}

REFUSED = {  # that gigatoken 0.10.0 reads otherwise
    "two normalizers": "other ids|cannot read",
    "whole words": "single_word",
    "a normalizer and tokens": "normalizer",
    "no split": "split",
}


def saved(tokenizer_file: str, path: Path, change: Callable[[Any], Any]) -> str:
    tokenizer = Tokenizer.from_file(tokenizer_file)
    change(tokenizer)
    tokenizer.save(str(path))
    return str(path)


def ids(file: str, engine: str, **options: Any) -> tuple[DocumentTokenizer, list[list[int]]]:
    tokenizer = make_tokenizer(TokenizerOptions(file=file, engine=engine, **options))
    found = tokenizer.encode(Pieces.of(HARD), [None] * len(HARD))  # type: ignore[list-item]
    return tokenizer, [part.tolist() for part in np.split(found.ids, np.cumsum(found.lengths)[:-1].astype(int))]


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("in_text", [False, True])
def test_ids_are_those_of_tokenizers_whatever_the_engine(
    tokenizer_file: str, tmp_path: Path, change: str, in_text: bool
) -> None:
    file = saved(tokenizer_file, tmp_path / "t.json", CHANGES[change])
    options: dict[str, Any] = {"special_tokens_in_text": in_text, "post_processor": change == "a template"}
    if not (in_text or change == "a template"):
        options.update(prepend=("<|begin|>",), append=(END,))
    slow, expected = ids(file, "tokenizers", **options)
    fast, found = ids(file, "auto", **options)
    assert found == expected
    if change in REFUSED:
        assert not fast.engine and re.search(REFUSED[change], fast.slow_because)
        return
    assert fast.engine.startswith("gigatoken ") and not fast.slow_because
    assert fast.manifest_entry() == {**(slow.manifest_entry() or {}), "engine": fast.engine}


def test_what_it_cannot_read_goes_to_tokenizers_unless_it_is_asked_for(
    tokenizer_file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tokenizers import models

    unigram = Tokenizer(models.Unigram([("<unk>", 0.0), ("a", -1.0), ("b", -2.0)], unk_id=0))
    unigram.save(str(tmp_path / "u.json"))
    text = write_jsonl(tmp_path / "a.jsonl", [{"text": "ab"}])
    done = penstock.write(text, tmp_path / "out", tokenizer=tmp_path / "u.json")
    assert done.engine == "" and done.slow_because.startswith("gigatoken cannot read this tokenizer.json: ")
    assert done.as_json()["tokenizer_engine"] == "tokenizers"
    with pytest.raises(penstock.InvalidArgumentError, match="tokenizer_engine gigatoken: gigatoken cannot read"):
        penstock.write(text, tmp_path / "o", tokenizer=tmp_path / "u.json", tokenizer_engine="gigatoken")
    with pytest.raises(penstock.InvalidArgumentError, match="expected auto, gigatoken, tokenizers"):
        penstock.write(text, tmp_path / "o", tokenizer=tokenizer_file, tokenizer_engine="fast")
    monkeypatch.setitem(sys.modules, "gigatoken", None)
    with pytest.raises(penstock.InvalidArgumentError, match="not installed: pip install tokenizers gigatoken"):
        penstock.write(text, tmp_path / "o", tokenizer=tokenizer_file, tokenizer_engine="gigatoken")
    assert "not installed" in penstock.write(text, tmp_path / "o", tokenizer=tokenizer_file).slow_because


def test_a_tokenizer_that_draws_its_ids_is_refused(tokenizer_file: str, tmp_path: Path) -> None:
    file = saved(tokenizer_file, tmp_path / "t.json", lambda tokenizer: setattr(tokenizer.model, "dropout", 0.1))
    with pytest.raises(penstock.InvalidArgumentError, match=r'dropout 0.1.*: set "dropout" to null'):
        penstock.write(write_jsonl(tmp_path / "a.jsonl", [{"text": "ab"}]), tmp_path / "o", tokenizer=file)
    with pytest.raises(penstock.InvalidArgumentError, match="memory 1,000: give 64MiB or more"):
        penstock.write(tmp_path / "a.jsonl", tmp_path / "o", tokenizer=tokenizer_file, memory=1000)


def wrong_at(monkeypatch: pytest.MonkeyPatch, character: str) -> None:
    """gigatoken that gives another id for each text with this character."""
    plain = gigatoken.Gigatoken._plain

    def wrong(self: Any, texts: Pieces) -> Ids:
        found = plain(self, texts)
        for index, text in enumerate(texts.strings()):
            if character in text:
                found.ids[int(found.offsets[index])] ^= 1
        return found

    monkeypatch.setattr(gigatoken.Gigatoken, "_plain", wrong)


@pytest.fixture
def text(tmp_path: Path) -> Path:
    """2,500 documents, one of which, far behind, has a character that no other one has."""
    content = [{"text": row["text"] + f"\n{number}", "n": number} for number, row in enumerate(rows() * 9)][:2_500]
    content[2_300]["text"] = "plain words, and then ௵ in the middle of them"
    return write_jsonl(tmp_path / "a.jsonl", content)


OPTIONS: dict[str, Any] = {"append": [END], "metadata": ["n"], "shard_size": 200_000}


@pytest.mark.parametrize("workers", [1, 2])
def test_a_wrong_id_at_a_rare_character_has_all_shards_made_again(
    tokenizer_file: str, text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workers: int
) -> None:
    expected, out = tmp_path / "expected", tmp_path / "out"
    options = {**OPTIONS, "tokenizer": tokenizer_file, "workers": workers}
    slow = penstock.write(text, expected, tokenizer_engine="tokenizers", **options)
    wrong_at(monkeypatch, "௵")
    with pytest.raises(
        ValueError, match=r"document 2,301 .*a.jsonl line 2,301\): gigatoken .* gives other ids"
    ) as said:
        penstock.write(text, out, tokenizer_engine="gigatoken", **options)
    assert "௵" in str(said.value) and "tokenizer_engine tokenizers" in str(said.value)
    assert not out.exists()
    done = penstock.write(text, out, **options)
    assert (done.shards, done.kept_shards, done.engine) == (slow.shards, 0, "")
    assert "௵" in done.slow_because
    assert files(out) == files(expected)


def test_a_worker_that_begins_with_wrong_ids_is_found_whatever_was_tried_before(
    tokenizer_file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """256 added tokens, as Llama 3 has, are tried before anything is read: that is no proof of the first documents."""
    many = saved(
        tokenizer_file, tmp_path / "t.json", lambda tokenizer: tokenizer.add_tokens([f"§{i}§" for i in range(256)])
    )
    wrong_at(monkeypatch, "needle")
    write_jsonl(tmp_path / "a.jsonl", [{"text": "a needle"}, {"text": "b"}])
    assert penstock.write(tmp_path / "a.jsonl", tmp_path / "a", tokenizer=many).fell_back
    long = "some words and more of them\n" * 1000
    write_jsonl(tmp_path / "b.jsonl", [{"text": f"a needle {long}"}])  # of which parts are looked at
    assert penstock.write(tmp_path / "b.jsonl", tmp_path / "b", tokenizer=many).fell_back
    write_jsonl(tmp_path / "c.jsonl", [{"text": long}])
    assert not penstock.write(tmp_path / "c.jsonl", tmp_path / "c", tokenizer=many).fell_back


def test_standard_input_is_not_read_twice(
    tokenizer_file: str, text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong_at(monkeypatch, "௵")
    with text.open("rb") as file:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(file))
        with pytest.raises(ValueError, match="cannot be read again: start anew with tokenizer_engine tokenizers"):
            penstock.write("-", tmp_path / "out", format="jsonl", tokenizer=tokenizer_file, **OPTIONS)


def test_all_bytes_but_one_key_of_the_manifest_are_the_same(tokenizer_file: str, text: Path, tmp_path: Path) -> None:
    made = {}
    for engine, workers in (("tokenizers", 1), ("gigatoken", 1), ("auto", 3)):
        out = tmp_path / f"{engine}{workers}"
        penstock.write(text, out, tokenizer=tokenizer_file, tokenizer_engine=engine, workers=workers, **OPTIONS)
        made[engine] = files(out)
        manifest = json.loads(made[engine].pop("dataset.json"))
        assert ("engine" in manifest["tokenizer"]) == (engine != "tokenizers")
        del manifest["crc32c"]
        manifest["tokenizer"].pop("engine", None)
        made[engine]["manifest"] = manifest
    assert made["tokenizers"] == made["gigatoken"] == made["auto"]
    both = [tmp_path / "tokenizers1", tmp_path / "auto3"]
    joined = penstock.open(penstock.combine(both, tmp_path / "joined") and tmp_path / "joined")
    assert joined.tokenizer["engine"].startswith("gigatoken")  # type: ignore[index]
    assert penstock.concatenate([penstock.open(each) for each in both]).fingerprint == joined.fingerprint


def test_a_shard_of_another_engine_is_kept_by_no_later_run_either(
    tokenizer_file: str, text: Path, tmp_path: Path
) -> None:
    def stop_at(shards: int) -> Any:
        def stop(done: int, total: int, written: Any) -> None:
            if written.shards >= shards:
                raise KeyboardInterrupt

        return stop

    given: dict[str, Any] = {"tokenizer": tokenizer_file, **OPTIONS}
    out = tmp_path / "out"
    for engine, shards in (("gigatoken", 4), ("tokenizers", 1)):
        with pytest.raises(KeyboardInterrupt):
            penstock.write(
                text, out, tokenizer_engine=engine, progress=stop_at(shards), resume=engine == "tokenizers", **given
            )
    assert penstock.write(text, out, tokenizer_engine="tokenizers", resume=True, **given).kept_shards <= 2


@pytest.mark.parametrize(
    ("before", "after", "kept"), [("gigatoken", "tokenizers", 0), ("gigatoken", "auto", 3), ("tokenizers", "auto", 3)]
)
def test_a_run_that_goes_on_keeps_shards_of_tokenizers_and_of_its_own_engine(
    tokenizer_file: str, text: Path, tmp_path: Path, before: str, after: str, kept: int
) -> None:
    out = tmp_path / "out"

    def stop(done: int, total: int, written: Any) -> None:
        if written.shards >= 3:
            raise KeyboardInterrupt

    given: dict[str, Any] = {"tokenizer": tokenizer_file, **OPTIONS}
    with pytest.raises(KeyboardInterrupt):
        penstock.write(text, out, tokenizer_engine=before, progress=stop, **given)
    assert (out / ".text-engine").exists() == (before == "gigatoken")
    done = penstock.write(text, out, tokenizer_engine=after, resume=True, **given)
    assert min(done.kept_shards, 3) == kept and done.shards > 4
    assert not (out / ".text-engine").exists()
    expected = tmp_path / "expected"
    penstock.write(text, expected, tokenizer_engine=after, **given)
    assert files(out) == files(expected)


def test_what_engines_keep_of_text_is_bounded(tokenizer_file: str) -> None:
    most = 96 << 20
    tokenizer = make_tokenizer(TokenizerOptions(file=tokenizer_file, engine="gigatoken", memory=most))
    random = np.random.default_rng(1)
    before, peak = private_bytes(), 0
    for _ in range(40):
        letters = random.integers(97, 123, 1 << 20).astype(np.uint8)
        letters[random.random(1 << 20) < 1 / 8] = 32  # words that never come again
        tokenizer.encode(Pieces.of([letters.tobytes()]), [None])  # type: ignore[list-item]
        peak = max(peak, private_bytes() - before)
    assert peak < most + (32 << 20)


def test_memory_that_others_take_does_not_have_engines_made_anew_for_ever() -> None:
    caches = Caches(64 << 20)
    generation = caches.join()
    assert not caches.are_full(generation)
    held = np.ones(96 << 20, np.uint8)
    assert caches.are_full(generation)
    generation = caches.dropped()
    assert not caches.are_full(generation) and held.all()
