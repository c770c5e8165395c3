"""Corpora of text in a folder, each made once: documents of 200 to 20,000 characters with a url and a date.

Real text, mixed of English, code and other scripts; tokenizers trained on other files of the same packages; and words
without an end, of which many are new.
"""

from __future__ import annotations

import json
import math
import random
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import debian_text
import numpy as np
from workloads import made

SHARES = {"English": 0.28, "code": 0.44, "other": 0.28}
FEWEST, MOST = 200, 20_000  # characters of a document
LENGTHS = (math.log(2500), 1.0)  # of their logarithm: mean and deviation
END = "<|endoftext|>"
COLUMNS = ("url", "date")
ROWS = 10_000  # of a row group
KNOWN, TEXT_WORDS, AT_ONCE = 200_000, 500, 40  # words that come again; words of a text; texts made at once
#: The split of Llama 3, and of cl100k_base.
LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
TRAINED_BYTES = {32_000: 30_000_000, 128_000: 60_000_000}
ALPHABETS = [range(97, 123), range(97, 123), range(0x430, 0x450), range(0x3B1, 0x3CA), range(0x4E00, 0x5E00)]


@dataclass
class Text:
    """The corpora of one folder; `size` is the bytes of the JSON lines, `small` takes what needs no download."""

    folder: Path
    size: int
    small: bool = False

    # ---- text ----

    def jsonl(self, size: int | None = None) -> Path:
        """JSON lines of `size` bytes, and a line more where the last one would be cut; else the whole corpus."""
        whole = self._made(f"text-{self.size}.jsonl", self._write_jsonl)
        if size is None or size >= self.size:
            return whole
        return self._made(f"text-{self.size}-{size}.jsonl", partial(self._write_part, size=size))

    def zst(self, size: int | None = None) -> Path:
        source = self.jsonl(size)
        return self._made(f"{source.name}.zst", partial(_write_zst, source=source))

    def parquet(self, size: int | None = None) -> Path:
        source = self.jsonl(size)
        return self._made(f"{source.stem}.parquet", partial(_write_parquet, source=source))

    def facts(self) -> dict[str, Any]:
        """Documents, bytes by kind, and the share of bytes in lines that were there before."""
        self.jsonl()
        found: dict[str, Any] = json.loads((self.folder / f"text-{self.size}.jsonl.json").read_text())
        return found

    def _write_jsonl(self, path: Path) -> None:
        repeats, kinds, count = Repeats(), dict.fromkeys(SHARES, 0), 0
        with path.open("wb") as file:
            for count, (kind, source, text) in enumerate(self._documents(), 1):
                line = json.dumps(row(count, source, text), ensure_ascii=False).encode() + b"\n"
                file.write(line)
                kinds[kind] += len(line)
                repeats.add(text)
                if file.tell() >= self.size:
                    break
        facts = {"documents": count, "kinds": kinds, "repeated": repeats.share(), "bytes": path.stat().st_size}
        (self.folder / f"text-{self.size}.jsonl.json").write_text(json.dumps(facts))

    def _write_part(self, path: Path, size: int) -> None:
        with self.jsonl().open("rb") as file, path.open("wb") as part:
            while part.tell() < size:
                part.write(file.readline())

    def _documents(self) -> Iterator[tuple[str, str, str]]:
        """(kind, source, text), sources by chance so that all end at about the same time; then from their beginning."""
        generator = random.Random(1)
        kinds = {kind: paths for kind in SHARES if (paths := self._sources(kind))}
        total = sum(SHARES[kind] for kind in kinds)
        while True:
            streams, weights = [], []
            for kind, paths in kinds.items():
                wanted = self.size * SHARES[kind] / total
                for path, part in zip(paths, filled([each.stat().st_size for each in paths], wanted), strict=True):
                    streams.append((kind, path.stem, cut(path, part, generator)))
                    weights.append(part)
            while streams:
                (chosen,) = generator.choices(range(len(streams)), weights)
                kind, source, documents = streams[chosen]
                text = next(documents, None)
                if text is None:
                    del streams[chosen], weights[chosen]
                else:
                    yield kind, source, text

    # ---- packages ----

    def _sources(self, kind: str) -> list[Path]:
        folder = self._made("parts", self._write_parts)
        return sorted(each for each in folder.glob(f"{kind}/*.txt") if each.stat().st_size > MOST)

    def _write_parts(self, folder: Path) -> None:
        """A file of text for each package, and one of training text for each kind."""
        packages = {"code": ("python-sources",)} if self.small else debian_text.PACKAGES
        names = [name for each in packages.values() for name in each if name != "python-sources"]
        debian_text.download(names, self.folder / "packages")
        seen: set[int] = set()
        for kind, chosen in packages.items():
            (folder / kind).mkdir(parents=True)
            with (folder / f"{kind}.training").open("w", encoding="utf-8") as training:
                for name in chosen:
                    limit = max(2 << 20, 4 * self.size) if self.small else None
                    text, other = debian_text.parts(name, self.folder / "packages", seen, limit)
                    (folder / kind / f"{name}.txt").write_text(text, encoding="utf-8")
                    training.write(other + "\n")

    def tokenizer(self, vocabulary: int) -> Path:
        """A byte-level BPE: GPT-2's split where the vocabulary is below 100,000, else Llama 3's."""
        return self._made(f"tokenizer-{vocabulary}.json", partial(self._train, vocabulary=vocabulary))

    def _train(self, path: Path, vocabulary: int) -> None:
        from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

        tokenizer = Tokenizer(models.BPE())
        if vocabulary < 100_000:
            tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        else:
            bare = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
            split = pre_tokenizers.Split(Regex(LLAMA3), "isolated")
            tokenizer.pre_tokenizer = pre_tokenizers.Sequence([split, bare])
        tokenizer.decoder = decoders.ByteLevel()
        trainer = trainers.BpeTrainer(
            vocab_size=vocabulary,
            special_tokens=[END],
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        )
        tokenizer.train_from_iterator(self._training(TRAINED_BYTES.get(vocabulary, 1 << 20)), trainer)
        tokenizer.save(str(path))

    def _training(self, size: int) -> Iterator[str]:
        for path in sorted(self._made("parts", self._write_parts).glob("*.training")):
            share = size if self.small else int(size * SHARES[path.stem])
            # A step apart, so that the text is of all packages.
            whole = path.read_bytes()
            step = max(1, len(whole) * 10_000 // max(1, share))
            for begin in range(0, len(whole), step):
                yield whole[begin : begin + 10_000].decode(errors="ignore")

    # ---- words ----

    def words(self, size: int) -> Path:
        """JSON lines of `size` bytes that do not repeat: a Zipf tail, and one word in ten is new."""
        return self._made(f"words-{size}.jsonl", partial(write_words, size=size))

    def _made(self, name: str, write: Callable[[Path], None]) -> Path:
        return made(self.folder, name, write)


class Repeats:
    """The share of bytes in lines of 16 characters or more that came before, by one in 16 of the different lines."""

    def __init__(self) -> None:
        self._seen: set[int] = set()
        self._bytes = [0, 0]

    def add(self, text: str) -> None:
        for line in text.splitlines():
            if len(line) >= 16 and zlib.crc32(encoded := line.encode()) % 16 == 0:
                key = hash(line)
                self._bytes[key in self._seen] += len(encoded)
                self._seen.add(key)

    def share(self) -> float:
        return self._bytes[1] / max(1, sum(self._bytes))


def row(number: int, source: str, text: str) -> dict[str, str]:
    day = date(2020, 1, 1) + timedelta(days=number % 2000)
    return {"text": text, "url": f"https://example.org/{source}/{number}", "date": day.isoformat()}


def filled(sizes: list[int], wanted: float) -> list[int]:
    """How much of each file: all of the small ones, and as much of each of the large ones as makes up the rest."""
    taken, left = dict.fromkeys(range(len(sizes)), 0), wanted
    for rank, at in enumerate(sorted(taken, key=sizes.__getitem__)):
        taken[at] = int(min(sizes[at], left / (len(sizes) - rank)))
        left -= taken[at]
    return list(taken.values())


def cut(path: Path, size: int, generator: random.Random) -> Iterator[str]:
    """Documents from the beginning of a file."""
    with path.open(encoding="utf-8", newline="") as file:
        while size > 0:
            length = min(MOST, max(FEWEST, int(generator.lognormvariate(*LENGTHS))))
            text = file.read(length).replace(END, "end of text")  # which tools read in two ways
            if len(text) < FEWEST:
                return
            size -= len(text.encode())
            yield text


def _write_zst(path: Path, source: Path) -> None:
    import zstandard

    with source.open("rb") as file, path.open("wb") as out:
        zstandard.ZstdCompressor(level=3).copy_stream(file, out)


def _write_parquet(path: Path, source: Path) -> None:
    with source.open("rb") as file:
        write_parquet(path, map(json.loads, file))


def write_parquet(path: Path, rows: Iterator[dict[str, Any]]) -> None:
    """Row groups of 10,000 documents."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    writer = None
    group: list[dict[str, Any]] = []
    for each in rows:
        group.append(each)
        if len(group) == ROWS:
            table = pa.Table.from_pylist(group)
            writer = writer or pq.ParquetWriter(path, table.schema)
            writer.write_table(table)
            group = []
    if group or writer is None:
        table = pa.Table.from_pylist(group)
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table)
    writer.close()


def write_words(path: Path, size: int) -> None:
    draws = np.random.default_rng(7)
    known = [word for alphabet in ALPHABETS for word in new_words(draws, alphabet, KNOWN // len(ALPHABETS))]
    known = [known[at] for at in draws.permutation(len(known)).tolist()]
    number = 0
    with path.open("wb") as file:
        while file.tell() < size:
            ranks = draws.zipf(1.1, 9 * TEXT_WORDS * AT_ONCE // 10) % len(known)
            words = [known[rank] for rank in ranks.tolist()]
            words += new_words(draws, ALPHABETS[number // AT_ONCE % len(ALPHABETS)], TEXT_WORDS * AT_ONCE // 10)
            order = draws.permutation(len(words)).tolist()
            for begin in range(0, len(order), TEXT_WORDS):
                text = " ".join([words[at] for at in order[begin : begin + TEXT_WORDS]])
                number += 1
                file.write(json.dumps(row(number, "words", text), ensure_ascii=False).encode() + b"\n")


def new_words(draws: np.random.Generator, alphabet: range, count: int) -> list[str]:
    """Words of 3 to 12 letters, drawn alike."""
    bounds = np.cumsum(draws.integers(3, 13, count + 1)).tolist()
    letters = draws.integers(alphabet.start, alphabet.stop, bounds[-1], dtype="<u4").tobytes().decode("utf-32-le")
    return [letters[begin:end] for begin, end in pairwise(bounds)]
