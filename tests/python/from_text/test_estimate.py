"""`penstock write --dry-run`: what it says of inputs of every kind, held against what writing them makes."""

from __future__ import annotations

import gzip
import json
import math
import random
import subprocess
import time
from collections.abc import Callable
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import penstock
import pyarrow
import pyarrow.parquet
import pytest
import zstandard
from penstock._cli.main import main
from penstock._from.text import estimate as estimates
from penstock._from.text import sampling
from penstock._from.text.request import Request
from penstock._from.text.writing import source_of
from penstock._make.errors import InputError
from text_corpus import sources

SIZE = 3_000_000


@pytest.fixture(scope="module")
def words_file(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A tokenizer of words, which is fast and gives texts very different numbers of tokens."""
    from tokenizers import Tokenizer, models, pre_tokenizers

    tokenizer = Tokenizer(models.WordLevel({"?": 0, "self": 1, "def": 2, "<|end|>": 3}, unk_token="?"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.add_special_tokens(["<|end|>"])
    path = tmp_path_factory.mktemp("words") / "words.json"
    tokenizer.save(str(path))
    return str(path)


# Even what is as small as here is large, and a third of it is tokenized.
SAMPLED = {estimates: {"_WHOLE_BYTES": 0, "MOST_PIECES": SIZE // sampling.PIECE_BYTES // 3, "_SAMPLE_SECONDS": 60.0}}


def put(monkeypatch: pytest.MonkeyPatch, settings: dict[Any, dict[str, Any]]) -> None:
    for module, values in settings.items():
        for name, value in values.items():
            monkeypatch.setattr(module, name, value)


@pytest.fixture
def sampled(monkeypatch: pytest.MonkeyPatch) -> None:
    put(monkeypatch, SAMPLED)


@cache
def texts(sigma: float = 1.5, mean: int = 900, size: int = SIZE, seed: int = 0) -> tuple[str, ...]:
    """Pieces of Python's sources whose lengths are lognormal."""
    source = "".join(text for _, text in sources())
    chance = random.Random(seed)
    found, total = [], 0
    while total < size:
        length = 1 + int(chance.lognormvariate(math.log(mean) - sigma * sigma / 2, sigma))
        at = chance.randrange(len(source) - min(length, len(source) // 2))
        found.append(source[at : at + length])
        total += len(found[-1])
    return tuple(found)


def lines(content: Any) -> bytes:
    rows = ({"text": text, "url": f"https://example.org/{number}"} for number, text in enumerate(content))
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def by_size() -> list[str]:
    return sorted(texts(), key=len)


def packed(content: bytes) -> bytes:
    return gzip.compress(content, 1)


def parquet_of(**columns: Any) -> bytes:
    sink = pyarrow.BufferOutputStream()
    table = pyarrow.table(columns)
    pyarrow.parquet.write_table(table, sink, row_group_size=len(table) // 7)
    return sink.getvalue().to_pybytes()


def parquet_by_size() -> bytes:
    return parquet_of(text=by_size(), url=[f"u/{number}" for number in range(len(by_size()))])


def lines_with_blanks() -> bytes:
    content = ("".join(text.split("\n")) + "\n" * (1 + number % 3) for number, text in enumerate(by_size()))
    return "".join(content).encode()


def one_text() -> bytes:
    return "".join(texts()).replace("e", "é").encode()  # wherever it is cut may be in a character


# Of each corpus: its files by name, and the options with which it is written.
CORPORA: dict[str, tuple[Callable[[], dict[str, bytes]], dict[str, Any]]] = {
    "jsonl by size": (lambda: {"a.jsonl": lines(by_size())}, {"metadata": None}),
    "jsonl by size, zst": (lambda: {"a.jsonl.zst": zstandard.compress(lines(by_size()))}, {"shard_size": 400_000}),
    "parquet by size": (lambda: {"a.parquet": parquet_by_size()}, {"metadata": ["url"]}),
    "parquet of ids": (
        lambda: {
            f"{n}.parquet": parquet_of(ids=[list(range(k % (100 * n + 20))) for k in range(4000)]) for n in range(3)
        },
        {"ids_column": "ids", "tokenizer": None, "append": ["60000"]},
    ),
    "lines with blanks": (lambda: {"a.txt": lines_with_blanks()}, {"text_per": "line"}),
    "many texts": (
        lambda: {"empty.py": b""} | {f"{n}.py": text.encode() for n, text in enumerate(texts(mean=4000))},
        {"metadata": ["path"]},
    ),
    "one text": (lambda: {"a.txt": one_text()}, {"metadata": None}),
    "one text, gz": (lambda: {"a.txt.gz": packed(one_text())}, {}),
    "many gz": (
        lambda: {f"{n}.jsonl.gz": packed(lines(texts(1.0, 20 * n + 200, SIZE // 100, n))) for n in range(100)},
        {"layout": "ids"},
    ),
    "all kinds": (
        lambda: {
            "a.jsonl": lines(by_size()),
            "a.parquet": parquet_by_size(),
            "b.jsonl.gz": packed(lines(texts(1.0, 100, SIZE // 3))),
        },
        {"metadata": ["url"]},
    ),
}


class Run:
    """A dry run, and what writing makes, of some files."""

    def __init__(self, folder: Path, words_file: str, files: dict[str, bytes], **options: Any) -> None:
        self.inputs = [str(folder / name) for name in files]
        self.options = {"tokenizer": words_file, "append": ["<|end|>"], **options}
        self.out = folder / "out"
        for name, content in files.items():
            (folder / name).write_bytes(content)

    def estimate(self) -> dict[str, Any]:
        return estimates.estimate(source_of(self.inputs, Request(**self.options), None), 2)

    @cached_property
    def made(self) -> dict[str, int]:
        made = penstock.write(self.inputs, self.out, **self.options, workers=1)
        return {name: getattr(made, name) for name in ("documents", "tokens", "bytes", "shards")}


@pytest.fixture(scope="module")
def runs(words_file: str, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Run]:
    """Of each corpus, written once."""

    @cache
    def run_of(name: str) -> Run:
        files, options = CORPORA[name]
        return Run(tmp_path_factory.mktemp("corpus"), words_file, files(), **options)

    return run_of


SETTINGS: dict[str, dict[Any, dict[str, Any]]] = {
    "sampled": SAMPLED,
    "far apart": {  # too large to be looked at everywhere
        estimates: SAMPLED[estimates],
        sampling: {"_BLOCK_BYTES": 8 << 10, "_MOST_COUNTED": 100, "_MOST_VISITED": 5},
    },
    "whole": {estimates: {"_WHOLE_BYTES": 8 * SIZE, "_WHOLE_SECONDS": 300.0}},  # however slow this machine is
}


@pytest.mark.parametrize(
    ("how", "name"),
    [
        *(("sampled", each) for each in CORPORA),
        *(("far apart", each) for each in ("jsonl by size", "parquet by size", "many gz")),
        *(("whole", each) for each in ("jsonl by size", "parquet by size", "many texts", "one text, gz")),
    ],
)
def test_an_estimate_is_within_a_tenth_of_what_writing_makes(
    how: str, name: str, runs: Callable[[str], Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    put(monkeypatch, SETTINGS[how])
    if (how, name) == ("far apart", "many gz"):
        monkeypatch.setattr(sampling, "_MOST_VISITED", 40)
    found, made = runs(name).estimate(), runs(name).made
    assert found["estimated"] | {"seconds": 0} == pytest.approx(made | {"seconds": 0}, rel=0.1), found["rests_on"]
    assert found["sample"]["whole"] == (how == "whole")
    if how == "whole":
        assert found["rests_on"] == ["all of it was read"]
        exact = ("documents", "tokens", "shards")
        assert [found["estimated"][each] for each in exact] == [made[each] for each in exact]
        assert found["estimated"]["bytes"] == pytest.approx(made["bytes"], rel=0.02)
    elif how == "sampled":
        assert found["sample"]["text_bytes"] < 0.7 * SIZE
    else:
        assert not any(said.startswith("all lines") or "100 compressed" in said for said in found["rests_on"][2:])
    if name == "all kinds":
        assert found["rests_on"][0].startswith("this rests on ") and "in 3 of 3 inputs" in found["rests_on"][0]
        assert found["rests_on"][1:] == [
            "all lines were counted",
            "all compressed files were unpacked",
            "all footers and 8 of 8 row groups of Parquet were read",
        ]


def test_a_tiny_input_counts_its_manifests(words_file: str, tmp_path: Path) -> None:
    run = Run(tmp_path, words_file, {"a.jsonl": lines(["a b c", "d"])})
    found = run.estimate()["estimated"]
    assert (found["documents"], found["tokens"]) == (2, 6)
    assert found["bytes"] == pytest.approx(run.made["bytes"], rel=0.1)


def test_nothing_at_all_is_an_error_as_of_write(words_file: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there are no documents"):
        Run(tmp_path, words_file, {"a.jsonl": b"\n\n"}).estimate()


@pytest.mark.parametrize("suffix", ["gz", "zst"])
@pytest.mark.usefixtures("sampled")
def test_of_a_compressed_file_that_is_too_large_the_beginning_is_read_and_it_says_so(
    suffix: str, words_file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sampling, "_UNPACKED_BYTES", 1 << 20)
    content = lines(texts(size=2 * SIZE))
    # A small window, so that the end is packed like the beginning: the texts are of the same sources.
    small = zstandard.ZstdCompressor(compression_params=zstandard.ZstdCompressionParameters(window_log=15))
    data = packed(content) if suffix == "gz" else small.compress(content)
    run = Run(tmp_path, words_file, {f"a.jsonl.{suffix}": data})
    found, made = run.estimate(), run.made
    (said,) = (line for line in found["rests_on"] if "a.jsonl" in line)
    assert "only the beginning was unpacked (the first " in said and "what follows may differ" in said
    for name in ("tokens", "bytes"):  # documents are what vary most from one place to another
        assert found["estimated"][name] == pytest.approx(made[name], rel=0.15), name


def test_standard_input_is_named_where_it_does_not_end_in_time(
    words_file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(estimates, "_WHOLE_SECONDS", 0.5)
    (tmp_path / "a.jsonl").write_bytes(lines(texts()[:20]))
    command = ["write", "-", "--format", "jsonl", "--tokenizer", words_file, "--out", str(tmp_path / "out")]
    with (tmp_path / "a.jsonl").open("rb") as file:
        monkeypatch.setattr("sys.stdin", file)
        assert main([*command, "--dry-run"]) == 0
    said = capsys.readouterr().out
    assert "20 documents, " in said and "all of it was read" in said
    with subprocess.Popen(["yes", json.dumps({"text": "a b c " * 400})], stdout=subprocess.PIPE) as endless:
        monkeypatch.setattr("sys.stdin", endless.stdout)
        assert main([*command, "--dry-run"]) == 0
        endless.kill()
    said = capsys.readouterr().out
    assert "cannot be known of standard input" in said and "documents, " not in said
    assert said.endswith("nothing was written\n")


@pytest.mark.parametrize(
    ("suffix", "bad", "reason"),
    [("jsonl", b'{"text": 1}\n' * 30_000, '"text" is a number, not a string'), ("txt", b"\xff" * 300_000, "UTF-8")],
)
@pytest.mark.usefixtures("sampled")
def test_what_cannot_be_used_in_the_middle_is_named_by_its_byte(
    suffix: str, bad: bytes, reason: str, words_file: str, tmp_path: Path
) -> None:
    good = lines(texts())  # of which the first three documents are shown: of a text its first MiB
    middle = good.find(b"\n", len(good) // 2) + 1
    run = Run(tmp_path, words_file, {f"a.{suffix}": good[:middle] + bad + good[middle:]})
    with pytest.raises(InputError, match=rf"a\.{suffix} at byte [\d,]+: .*{reason}"):
        run.estimate()


@pytest.mark.parametrize("text_per", ["file", "line"])
def test_a_dry_run_of_much_is_cheap(
    text_per: str, words_file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(estimates, "_LOOK_SECONDS", 0.2)
    monkeypatch.setattr(estimates, "_SAMPLE_SECONDS", 0.2)
    run = Run(tmp_path, words_file, {"a.txt": b""}, text_per=text_per, format="text")
    size = (1 << 40) if text_per == "file" else (4 << 30)
    with (tmp_path / "a.txt").open("wb") as file:  # with holes
        if text_per == "line":
            for line in range(256):
                file.seek((line + 1) * size // 256 - 1)
                file.write(b"\n")
        file.truncate(size)
    begin = time.process_time()
    found = run.estimate()["estimated"]
    assert time.process_time() - begin < 10
    if text_per == "file":
        assert found["documents"] == 1


def test_what_a_fast_engine_would_tokenize_in_pieces_is_read_whole(tokenizer_file: str, tmp_path: Path) -> None:
    pytest.importorskip("gigatoken")
    files = {"a.jsonl": lines(texts(size=2 * SIZE))}
    found = Run(tmp_path, tokenizer_file, files, append=["<|endoftext|>"]).estimate()
    assert found["sample"]["whole"] and found["rests_on"] == ["all of it was read"]
    slow = Run(tmp_path, tokenizer_file, files, append=["<|endoftext|>"], tokenizer_engine="tokenizers").estimate()
    assert not slow["sample"]["whole"]
    assert slow["estimated"] | {"seconds": 0} == pytest.approx(found["estimated"] | {"seconds": 0}, rel=0.1)


@pytest.mark.usefixtures("sampled")
def test_of_long_documents_no_more_is_tokenized_than_there_is(
    words_file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(estimates, "MOST_PIECES", 512)
    whole = "".join(texts())
    long = [whole[at : at + 150_000] for at in range(0, len(whole), 150_000)]
    run = Run(tmp_path, words_file, {"a.jsonl": lines(long)}, metadata=["url"])
    found = run.estimate()
    assert found["sample"]["text_bytes"] < 1.5 * SIZE
    assert found["estimated"] | {"seconds": 0} == pytest.approx(run.made | {"seconds": 0}, rel=0.1)


@pytest.mark.parametrize("how", ["whole", "sampled"])
def test_no_two_workers_share_a_document(
    how: str, words_file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(monkeypatch, SETTINGS[how])
    huge = {"a.jsonl": lines(["".join(texts()), "a b c"])}
    source = source_of(Run(tmp_path, words_file, huge).inputs, Request(tokenizer=words_file), None)
    one, many = (estimates.estimate(source, workers)["estimated"]["seconds"] for workers in (1, 64))
    assert many > 0.5 * one > 0
