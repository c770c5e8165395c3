"""`penstock write --dry-run`: what it says of inputs of every kind, held against what writing them makes."""

from __future__ import annotations

import gzip
import json
import math
import random
import subprocess
import sys
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("tokenizers")
zstandard = pytest.importorskip("zstandard")
pytest.importorskip("pyarrow")

import pyarrow  # noqa: E402
import pyarrow.parquet  # noqa: E402
from _recipes import by_batches  # noqa: E402
from penstock._from.text import estimate as estimates  # noqa: E402
from penstock._from.text import sample_packed, sample_parquet, sample_plain, sampling  # noqa: E402
from penstock._from.text.batches import Tokenizing  # noqa: E402
from penstock._from.text.documents import DocumentReader  # noqa: E402
from penstock._from.text.inputs import expand_inputs  # noqa: E402
from penstock._from.text.raw import Columns  # noqa: E402
from penstock._from.text.recipe import TextFormat, TextRecipe  # noqa: E402
from penstock._from.text.tokenizing import DocumentTokenizer, TokenizerOptions  # noqa: E402
from penstock._make.errors import InputError  # noqa: E402
from penstock._make.folders import folder_of  # noqa: E402
from text_corpus import sources  # noqa: E402

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


@pytest.fixture
def sampled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Even what is as small as here is large, and a third of it is tokenized."""
    monkeypatch.setattr(estimates, "_WHOLE_BYTES", 0)
    monkeypatch.setattr(estimates, "_SAMPLE_BYTES", SIZE // 3)
    monkeypatch.setattr(estimates, "_SAMPLE_SECONDS", 60.0)


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


def in_order(seed: int = 0) -> list[str]:
    return sorted(texts(seed=seed), key=len)


def packed(content: bytes) -> bytes:
    return gzip.compress(content, 1)


# ---- corpora: each makes files in a folder


def jsonl(folder: Path) -> None:
    (folder / "a.jsonl").write_bytes(lines(texts()))


def jsonl_by_size(folder: Path) -> None:
    (folder / "a.jsonl").write_bytes(lines(in_order()))


def jsonl_by_size_backwards_gz(folder: Path) -> None:
    (folder / "a.jsonl.gz").write_bytes(packed(lines(in_order()[::-1])))


def jsonl_by_size_zst(folder: Path) -> None:
    (folder / "a.jsonl.zst").write_bytes(zstandard.compress(lines(in_order())))


def parquet_by_size(folder: Path) -> None:
    table = pyarrow.table({"text": in_order(), "url": [f"u/{number}" for number in range(len(in_order()))]})
    pyarrow.parquet.write_table(table, folder / "a.parquet", row_group_size=len(in_order()) // 7)


def parquet_of_ids(folder: Path) -> None:
    for part in range(3):
        ids = [list(range(number % (100 * part + 20))) for number in range(4000)]
        pyarrow.parquet.write_table(pyarrow.table({"ids": ids}), folder / f"{part}.parquet", row_group_size=700)


def text_lines_with_blanks(folder: Path) -> None:
    content = ("".join(text.split("\n")) + "\n" * (1 + number % 3) for number, text in enumerate(in_order()))
    (folder / "a.txt").write_text("".join(content))


def text_files(folder: Path) -> None:
    for number, text in enumerate(texts(mean=4000)):
        (folder / f"{number:05}.py").write_text(text)
    (folder / "empty.py").write_bytes(b"")


def one_text(folder: Path) -> None:
    (folder / "a.txt").write_text("é".join(texts()))


def one_text_gz(folder: Path) -> None:
    (folder / "a.txt.gz").write_bytes(packed("é".join(texts()).encode()))


def files_of_different_sizes(folder: Path) -> None:
    chance = random.Random(2)
    for number in range(60):
        size = int(SIZE / 60 * chance.lognormvariate(-0.5, 1))
        content = lines(texts(1.0, 60 * (number + 1), size, number))
        if number % 2:
            (folder / f"{number:03}.jsonl").write_bytes(content)
        else:
            (folder / f"{number:03}.jsonl.gz").write_bytes(packed(content))


def many_packed_files(folder: Path) -> None:
    for number in range(100):
        content = lines(texts(1.0, 40 * (number + 1), SIZE // 100, number))
        (folder / f"{number:03}.jsonl.gz").write_bytes(packed(content))


def all_kinds(folder: Path) -> None:
    jsonl_by_size(folder)
    parquet_by_size(folder)
    (folder / "b.jsonl.gz").write_bytes(packed(lines(texts(1.0, 100, SIZE // 3))))


CORPORA: dict[Callable[[Path], None], dict[str, Any]] = {
    jsonl: {"metadata": ("url",)},
    jsonl_by_size: {},
    jsonl_by_size_backwards_gz: {"metadata": None},
    jsonl_by_size_zst: {"task_bytes": 400_000},
    parquet_by_size: {"metadata": ("url",)},
    parquet_of_ids: {"ids": "ids"},
    text_lines_with_blanks: {"text_per": "line"},
    text_files: {"metadata": ("path",)},
    one_text: {"metadata": None},
    one_text_gz: {},
    files_of_different_sizes: {"layout": "ids"},
    many_packed_files: {},
    all_kinds: {"metadata": ("url",)},
}


class Run:
    """A dry run and what writing makes, of the files of a folder."""

    def __init__(self, folder: Path, tokenizer: str, **options: Any) -> None:
        ids, metadata = options.get("ids"), options.get("metadata", ())
        self.columns = Columns("text", ids, metadata, options.get("text_per", "file"))
        self.work = Tokenizing(
            TokenizerOptions(file=None if ids else tokenizer, append=("60000",) if ids else ("<|end|>",)), self.columns
        )
        self.tokenizer = DocumentTokenizer(self.work.tokenizer)
        self.codec = "boundaries" if metadata == () else "json"
        self.layout = options.get("layout", "compact")
        self.task_bytes = options.get("task_bytes", 1 << 30)
        self.inputs = expand_inputs([str(path) for path in sorted(folder.iterdir())], options.get("format"))
        self.options: dict[str, Any] = {"some": "options", "of": "a task", "as": "long as they are" * 10}

    def estimate(self) -> dict[str, Any]:
        target = estimates.Target(
            item_bytes=int(self.tokenizer.dtype[1:]),
            codec=self.codec,
            layout=self.layout,
            task_bytes=self.task_bytes,
            task_options=self.options,
            tokenizer_json=json.dumps(self.tokenizer.manifest_entry()),
        )
        return estimates.estimate(DocumentReader(self.inputs, self.columns), self.work, self.tokenizer, 2, target)

    def write(self, out: Path) -> dict[str, int]:
        format = TextFormat(self.tokenizer.dtype, self.codec, self.layout, self.tokenizer.manifest_entry())
        reader = DocumentReader(self.inputs, self.columns)
        recipe = TextRecipe(reader, self.work, format, folder_of(out), self.task_bytes, self.options)
        made = by_batches(recipe, 1)
        size = folder_of(out).size_bytes()
        return {"documents": made.documents, "tokens": made.tokens, "bytes": size, "shards": made.shards}


@pytest.mark.parametrize("make", CORPORA, ids=lambda make: make.__name__)
@pytest.mark.usefixtures("sampled")
def test_an_estimate_is_within_a_tenth_of_what_writing_makes(
    make: Callable[[Path], None], words_file: str, tmp_path: Path
) -> None:
    (tmp_path / "in").mkdir()
    make(tmp_path / "in")
    run = Run(tmp_path / "in", words_file, **CORPORA[make])
    found, made = run.estimate(), run.write(tmp_path / "out")
    assert not found["sample"]["whole"] and found["sample"]["text_bytes"] < 0.7 * SIZE
    for name, value in made.items():
        assert found["estimated"][name] == pytest.approx(value, rel=0.1), (name, found["rests_on"])


@pytest.mark.parametrize("make", [jsonl_by_size, parquet_by_size, many_packed_files], ids=lambda make: make.__name__)
@pytest.mark.usefixtures("sampled")
def test_so_is_one_of_inputs_that_are_too_large_to_be_looked_at_everywhere(
    make: Callable[[Path], None], words_file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sample_plain, "_COUNT_BYTES", 8 << 10)
    monkeypatch.setattr(sample_plain, "_MOST_COUNTED", 100)
    monkeypatch.setattr(sample_packed, "_LEAST_VISITED", 40)
    monkeypatch.setattr(sample_packed, "_MOST_VISITED", 40)
    monkeypatch.setattr(sample_parquet, "_MOST_GROUPS", 5)
    (tmp_path / "in").mkdir()
    make(tmp_path / "in")
    run = Run(tmp_path / "in", words_file, **CORPORA[make])
    found, made = run.estimate(), run.write(tmp_path / "out")
    assert not any(said.startswith("all lines") or "100 compressed" in said for said in found["rests_on"][2:])
    for name in ("documents", "tokens", "bytes"):
        assert found["estimated"][name] == pytest.approx(made[name], rel=0.1), (name, found["rests_on"])


@pytest.mark.parametrize("make", [jsonl, parquet_by_size, text_files, one_text_gz], ids=lambda make: make.__name__)
def test_small_inputs_are_read_whole_and_exact(
    make: Callable[[Path], None], words_file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(estimates, "_WHOLE_BYTES", 8 * SIZE)
    (tmp_path / "in").mkdir()
    make(tmp_path / "in")
    run = Run(tmp_path / "in", words_file, **CORPORA[make])
    found, made = run.estimate(), run.write(tmp_path / "out")
    assert found["sample"]["whole"] and found["rests_on"] == ["all of it was read"]
    assert [found["estimated"][name] for name in ("documents", "tokens", "shards")] == [
        made[name] for name in ("documents", "tokens", "shards")
    ]
    assert found["estimated"]["bytes"] == pytest.approx(made["bytes"], rel=0.02)


def test_a_tiny_input_counts_its_manifests(words_file: str, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in/a.jsonl").write_bytes(lines(["a b c", "d"]))
    run = Run(tmp_path / "in", words_file)
    found, made = run.estimate(), run.write(tmp_path / "out")
    assert (found["estimated"]["documents"], found["estimated"]["tokens"]) == (2, 6)
    assert found["estimated"]["bytes"] == pytest.approx(made["bytes"], rel=0.1)


def test_nothing_at_all_is_an_error_as_of_write(words_file: str, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in/a.jsonl").write_bytes(b"\n\n")
    with pytest.raises(InputError, match="there are no documents"):
        Run(tmp_path / "in", words_file).estimate()


@pytest.mark.usefixtures("sampled")
def test_it_says_what_it_rests_on(words_file: str, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    all_kinds(tmp_path / "in")
    said = Run(tmp_path / "in", words_file).estimate()["rests_on"]
    assert said[0].startswith("this rests on ") and "in 3 of 3 inputs" in said[0]
    assert said[1:] == [
        "all lines were counted",
        "all compressed files were unpacked",
        "all footers and 8 of 8 row groups of Parquet were read",
    ]


@pytest.mark.parametrize("suffix", ["gz", "zst"])
@pytest.mark.usefixtures("sampled")
def test_of_a_compressed_file_that_is_too_large_the_beginning_is_read_and_it_says_so(
    suffix: str, words_file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(estimates, "_LOOK_SECONDS", 0.0)
    monkeypatch.setattr(sample_packed, "_BLOCK_BYTES", 1 << 18)
    (tmp_path / "in").mkdir()
    content = lines(texts(size=2 * SIZE))
    # A small window, so that the end is packed like the beginning: the texts are of the same sources.
    small = zstandard.ZstdCompressor(compression_params=zstandard.ZstdCompressionParameters(window_log=15))
    data = packed(content) if suffix == "gz" else small.compress(content)
    (tmp_path / f"in/a.jsonl.{suffix}").write_bytes(data)
    run = Run(tmp_path / "in", words_file)
    found, made = run.estimate(), run.write(tmp_path / "out")
    (said,) = (line for line in found["rests_on"] if "a.jsonl" in line)
    assert "only the beginning was unpacked (the first " in said and "what follows may differ" in said
    for name in ("tokens", "bytes"):  # documents are what vary most from one place to another
        assert found["estimated"][name] == pytest.approx(made[name], rel=0.15), name


def test_standard_input_is_named_where_it_does_not_end_in_time(words_file: str, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(lines(texts()[:20]))
    command = [sys.executable, "-m", "penstock", "write", "-", "--format", "jsonl", "--tokenizer", words_file]
    command += ["--out", str(tmp_path / "out"), "--dry-run"]
    ended = subprocess.run(command, stdin=(tmp_path / "a.jsonl").open("rb"), capture_output=True, text=True, timeout=60)
    assert "20 documents, " in ended.stdout and "all of it was read" in ended.stdout, ended.stderr
    endless = subprocess.Popen(["yes", json.dumps({"text": "a b c " * 400})], stdout=subprocess.PIPE)
    with endless:
        begin = time.monotonic()
        done = subprocess.run(command, stdin=endless.stdout, capture_output=True, text=True, timeout=60)
        assert time.monotonic() - begin < 20
        endless.kill()
    assert "cannot be known of standard input" in done.stdout and "documents, " not in done.stdout
    assert done.stdout.endswith("nothing was written\n")


@pytest.mark.usefixtures("sampled")
def test_a_bad_line_in_the_middle_is_named_by_its_byte(words_file: str, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    good = lines(texts(size=SIZE // 3))
    middle = good.find(b"\n", len(good) // 2) + 1
    (tmp_path / "in/a.jsonl").write_bytes(good[:middle] + b'{"text": 1}\n' * 30_000 + good[middle:])
    with pytest.raises(InputError, match=r'a\.jsonl at byte [\d,]+: "text" is a number, not a string'):
        Run(tmp_path / "in", words_file).estimate()


@pytest.mark.parametrize("text_per", ["file", "line"])
def test_a_dry_run_of_much_is_cheap(
    text_per: str, words_file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(estimates, "_LOOK_SECONDS", 0.2)
    monkeypatch.setattr(estimates, "_SAMPLE_SECONDS", 0.2)
    (tmp_path / "in").mkdir()
    size = (1 << 40) if text_per == "file" else (4 << 30)
    with (tmp_path / "in/a.txt").open("wb") as file:  # with holes
        if text_per == "line":
            for line in range(256):
                file.seek((line + 1) * size // 256 - 1)
                file.write(b"\n")
        file.truncate(size)
    run = Run(tmp_path / "in", words_file, text_per=text_per, format="text")
    begin = time.monotonic()
    found = run.estimate()["estimated"]
    assert time.monotonic() - begin < 10
    if text_per == "file":
        assert found["documents"] == 1


def test_places_are_even() -> None:
    places = sampling.even_places()
    assert sorted(next(places) for _ in range(7)) == [each / 8 for each in range(1, 8)]
    for count in (1, 2, 3, 8, 13):
        assert sorted(sampling.evenly_ordered(count)) == list(range(count))
    assert list(sampling.evenly_ordered(8))[:4] == [0, 4, 2, 6]


def test_a_cut_text_is_whole_characters() -> None:
    text = "aé€🚰é"
    data = text.encode()
    for begin in range(len(data)):
        for end in range(begin, len(data) + 1):
            part = sampling.whole_characters(data[begin:end]).decode()
            assert part in text and len(part.encode()) > end - begin - 7
    assert sampling.whole_characters(data) == data
