"""What `make bench` measures text with: the corpus, its tokenizers, and what a command took."""

from __future__ import annotations

import importlib
import json
import random
import re
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import zstandard

FOLDER = Path(__file__).parents[3] / "benchmarks"


@pytest.fixture
def load(monkeypatch):
    """Imports a module of benchmarks/, whose scripts import each other by name."""
    monkeypatch.syspath_prepend(str(FOLDER))
    return importlib.import_module


@pytest.fixture
def made(load, tmp_path):
    """A corpus of 200 KB, of what is installed."""
    return load("corpus").Text(tmp_path, 200_000, small=True)


def test_a_corpus_is_documents_of_200_to_20000_characters_in_three_forms(made):
    lines = made.jsonl().read_bytes()
    rows = [json.loads(line) for line in lines.splitlines()]
    assert len(lines) - 120_000 < 200_000 <= len(lines)
    assert all(list(row) == ["text", "url", "date"] and 200 <= len(row["text"]) <= 20_000 for row in rows)
    assert zstandard.decompress(made.zst().read_bytes(), max_output_size=1 << 20) == lines
    assert pq.read_table(made.parquet()).to_pylist() == rows
    assert made.facts()["documents"] == len(rows)
    part = made.jsonl(50_000).read_bytes()
    assert lines.startswith(part) and len(part) >= 50_000


def test_a_corpus_is_the_same_each_time(made, load, tmp_path):
    again = load("corpus").Text(tmp_path / "again", 200_000, small=True)
    assert again.jsonl().read_bytes() == made.jsonl().read_bytes()


def test_long_lines_come_once_and_tokenizers_learn_of_other_files(load, tmp_path):
    seen: set[int] = set()
    found = [load("debian_text").parts("python-sources", tmp_path, seen, 3_000_000) for _ in range(2)]
    lines = [[line for line in text.splitlines() if len(line) >= 50] for text in found[0]]
    assert all(lines) and not set(lines[0]) & set(lines[1])
    assert len(set(lines[0])) == len(lines[0])
    again = [line for text in found[1] for line in text.splitlines() if len(line) >= 50]
    assert not set(again) & {*lines[0], *lines[1]}


def test_repeats_are_counted_in_bytes(load):
    repeats = load("corpus").Repeats()
    letters = random.Random(3)
    different = "\n".join("".join(letters.choices("abcdefgh", k=40)) for _ in range(2000))
    for text in (different, "short\n" * 500, different, different):
        repeats.add(text)
    assert repeats.share() == pytest.approx(2 / 3)


@pytest.mark.parametrize("sizes, wanted, taken", [([10, 90, 50], 90, [10, 40, 40]), ([5, 5], 90, [5, 5])])
def test_small_files_are_taken_whole_and_large_ones_alike(load, sizes, wanted, taken):
    assert load("corpus").filled(sizes, wanted) == taken


def test_words_do_not_come_to_an_end(load, made):
    rows = [json.loads(line) for line in made.words(1 << 20).open("rb")]
    half = len(rows) // 2
    first, second = ({word for row in part for word in row["text"].split()} for part in (rows[:half], rows[half:]))
    assert len(second - first) > 0.1 * sum(len(row["text"].split()) for row in rows[half:]) / 2


@pytest.mark.parametrize("vocabulary, split", [(1000, "GPT-2"), (100_000, "Llama 3")])
def test_a_tokenizer_splits_as_its_model_does(made, vocabulary, split):
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(made.tokenizer(vocabulary)))
    pieces = [piece for piece, _ in tokenizer.pre_tokenizer.pre_tokenize_str("a 12345")]
    assert pieces == (["a", "Ġ12345"] if split == "GPT-2" else ["a", "Ġ", "123", "45"])
    assert tokenizer.token_to_id("<|endoftext|>") == 0
    assert tokenizer.decode(tokenizer.encode("naïve 東京").ids) == "naïve 東京"


def test_a_command_is_measured_with_what_it_leaves_behind(load):
    work = "import time\nheld = bytearray(200 << 20)\nwhile time.process_time() < 0.5: pass"
    leave = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {work!r}]); print('said')"
    found = load("usage").usage([sys.executable, "-c", leave])
    assert found.cpu >= 0.5 and found.held_mib >= 200
    assert found.wall < found.cpu and found.said == "said\n"
    with pytest.raises(RuntimeError, match=r"(?s)ended with 3:.*no luck"):
        load("usage").usage([sys.executable, "-c", "import sys; print('no luck', file=sys.stderr); sys.exit(3)"])


def test_every_peer_of_text_has_its_file_and_exact_pins():
    text = FOLDER / "peers" / "text"
    scripts = re.findall(r'\("(\w+\.py)", "(\w+)"\)', (text / "run.py").read_text())
    assert len(scripts) == 4
    for script, environment in scripts:
        assert (text / script).exists()
        lines = (FOLDER / "peers" / "requirements" / f"{environment}.txt").read_text().splitlines()
        pins = [line for line in lines if not line.startswith("#")]
        assert pins and all(re.fullmatch(r"[\w.-]+==[\w.]+", pin) for pin in pins)
        assert {pin for pin in pins if pin.startswith("torch==")} <= {"torch==2.13.0"}
