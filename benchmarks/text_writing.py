"""Text to shards: `penstock write` beside gigatoken alone and beside tokenizers, its memory, and ids beside cp."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from functools import cache, partial
from pathlib import Path

import id_files
from corpus import COLUMNS, END, Text
from results import Result, installed, left_out, ratios
from text_ways import Way, in_turn, line, penstock, workers_of
from usage import Usage, usage
from workloads import Corpora

#: Packages, corpora and tokenizers stay here for the next time: 12 GB, 5 of them words that do not repeat.
CACHE = Path(__file__).parents[1] / "build" / "text"
ALONE = Path(__file__).with_name("gigatoken_files.py")
CPU_AT_MOST, WALL_AT_LEAST, FORMS_AT_MOST = 1.6, 0.6, 1.3
MANY, SHARDS = 2, 4  # workers, and shards that they make
ALONE_IS = "gigatoken alone"


def measure(corpora: Corpora) -> list[Result]:
    cache = corpora.folder / "text" if corpora.quick else CACHE
    text = Text(cache, corpora.size.corpus_bytes, small=corpora.quick)
    out = corpora.folder / "text-written"
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    try:
        found = [each for size in corpora.size.vocabularies for each in Writing(corpora, text, out, size).lines()]
        return [*of_the_corpus(text), *found, *words(corpora, text, out), *id_files.measure(corpora, cache, out)]
    finally:
        shutil.rmtree(out)


def of_the_corpus(text: Text) -> list[Result]:
    facts = text.facts()
    size = facts["bytes"]
    shares = {kind: taken / size for kind, taken in facts["kinds"].items() if taken}
    shares["in lines of 16 characters or more that came before"] = facts["repeated"]
    return [line(f"the corpus: {what}", "%", (100 * share,), size) for what, share in shares.items()]


class Writing:
    """The ways for one vocabulary."""

    def __init__(self, corpora: Corpora, text: Text, out: Path, vocabulary: int) -> None:
        self.corpora = corpora
        self.text = text
        self.out = out / "out"
        self.tokenizer = text.tokenizer(vocabulary)
        self.split = f"{vocabulary:,}, {'GPT-2' if vocabulary < 100_000 else 'Llama 3'}'s split"
        self.tokens: dict[int, set[int]] = {}  # by the size of the file: all ways must agree

    def lines(self) -> list[Result]:
        ours, today, alone = self.ours(), self.today(), self.alone()
        ways = in_turn([*ours, today, *alone], min(3, self.corpora.size.repeats))
        for size, counts in self.tokens.items():
            if len(counts) != 1:
                raise RuntimeError(f"{self.split}, {size:,} bytes: ways found different numbers of tokens, {counts}")
        return [*(each for way in ways for each in way.lines()), *self.compared(ours, today, alone)]

    def compared(self, ours: list[Way], today: Way, alone: list[Way]) -> list[Result]:
        jsonl, two, *forms = ours
        size, of = jsonl.bytes, f"{self.split}: penstock write, "
        found = [
            line(f"{of}{name} / .jsonl: CPU", "ratio", ratios(way.cpu, jsonl.cpu), size, at_most=FORMS_AT_MOST)
            for name, way in zip((".jsonl.zst", "Parquet"), forms, strict=False)
        ]
        found.append(line(f"{of}tokenizers / auto: by the clock", "ratio", ratios(today.wall, two.wall), size))
        if alone:
            single, parallel = alone
            found += [
                line(f"{of}auto / {ALONE_IS}: CPU", "ratio", ratios(jsonl.cpu, single.cpu), size, at_most=CPU_AT_MOST),
                line(
                    f"{self.split}: {ALONE_IS} / penstock write, auto: by the clock",
                    "ratio",
                    ratios(parallel.wall, two.wall),
                    size,
                    at_least=WALL_AT_LEAST,
                ),
                line(f"{of}tokenizers / {ALONE_IS}: CPU", "ratio", ratios(today.cpu, single.cpu), size),
                line(f"{of}tokenizers / {ALONE_IS}: by the clock", "ratio", ratios(today.wall, parallel.wall), size),
            ]
        return found

    def ours(self) -> list[Way]:
        """Auto: JSON lines with one worker and with two, then the other forms of the same text."""
        size = self.corpora.size.corpus_bytes if fast() else self.corpora.size.corpus_part_bytes
        text = self.text
        files = [(text.jsonl(size), 1), (text.jsonl(size), MANY), (text.zst(size), 1)]
        if not self.corpora.quick:
            files.append((text.parquet(size), 1))
        return [self.way("auto", file, text.jsonl(size).stat().st_size, workers) for file, workers in files]

    def today(self) -> Way:
        """Hugging Face's tokenizers, on a part: all would take minutes."""
        file = self.text.jsonl(self.corpora.size.corpus_part_bytes)
        return self.way("tokenizers", file, file.stat().st_size, MANY)

    def way(self, engine: str, file: Path, size: int, workers: int) -> Way:
        what = f"{self.split}: penstock write, {engine}, {''.join(file.suffixes)}"
        what += f" of {size / 1e6:,.0f} MB, {workers_of(workers)}"
        return Way(what, size, partial(self.write, engine, file, size, workers), workers)

    def write(self, engine: str, file: Path, size: int, workers: int) -> Usage:
        options = ["--tokenizer", str(self.tokenizer), "--append", END, "--metadata", ",".join(COLUMNS)]
        if workers > 1:
            options += ["--shard-size", str(size // SHARDS)]  # one file of 1 GB is one shard else, and one worker's
        found = penstock("write", file, self.out, workers, *options, *engine_option(engine))
        self.tokens.setdefault(size, set()).add(json.loads(found.said)["tokens"])
        return found

    def alone(self) -> list[Way]:
        """gigatoken with one thread and with all, which writes nothing."""
        if not installed("gigatoken"):
            left_out("text", "gigatoken is not installed")
            return []
        whole = self.text.jsonl()
        self.encode(self.text.jsonl(self.corpora.size.corpus_part_bytes), "1")  # for the number of tokens
        return [
            Way(f"{self.split}: {ALONE_IS}, {words}", whole.stat().st_size, partial(self.encode, whole, threads))
            for threads, words in (("1", "one thread"), ("", "all cores"))
        ]

    def encode(self, file: Path, threads: str) -> Usage:
        variables = os.environ | ({"RAYON_NUM_THREADS": threads} if threads else {})
        found = usage([sys.executable, str(ALONE), str(self.tokenizer), str(file)], variables)
        said = json.loads(found.said)
        self.tokens.setdefault(file.stat().st_size, set()).add(said["tokens"] + said["documents"])
        return found


def words(corpora: Corpora, text: Text, out: Path) -> list[Result]:
    """Memory over text that does not repeat, where the cache of an engine grows most."""
    if not fast() and not corpora.quick:
        left_out("text", "5 GB that do not repeat, which take an hour with tokenizers")
        return []
    file = text.words(corpora.size.words_bytes)
    options = ("--tokenizer", str(text.tokenizer(corpora.size.vocabularies[-1])), "--append", END)
    run = partial(penstock, "write", file, out / "out", MANY, *options, *engine_option("auto"))  # of 1 GiB each
    size = file.stat().st_size
    (way,) = in_turn([Way(f"penstock write, auto, {size / 1e6:,.0f} MB of new words, 2 workers", size, run, MANY)], 1)
    return way.lines()


def engine_option(engine: str) -> list[str]:
    return ["--tokenizer-engine", engine] if has_engines() else []


@cache
def has_engines() -> bool:
    """Whether this penstock lets its user choose the tokenizer's engine."""
    command = [sys.executable, "-m", "penstock", "write", "--help"]
    return "--tokenizer-engine" in subprocess.run(command, capture_output=True, text=True, check=True).stdout


def fast() -> bool:
    """Whether auto finds something faster than tokenizers, so that all of the corpus takes no minutes."""
    return has_engines() and installed("gigatoken")
