"""The writer, check values and digests included, beside plain sequential writes to the same file system."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import penstock
from results import Result, alternate, ratios
from workloads import DOCUMENT_TOKENS, ENTRY_BYTES, TOKEN_BYTES, Corpora

APPENDED_BYTES = 16 << 20  # of one append of a token stream
WRITTEN_AT_ONCE = 8 << 20  # by the plain loop; dd is no faster with more
DOCUMENTS_AT_ONCE = 1000
TARGET = 0.8
SYNCED = "synced at the end"


def measure(corpora: Corpora) -> list[Result]:
    folder = corpora.folder / "written"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    size = corpora.size.written_bytes
    random = np.random.default_rng(5)
    tokens = random.integers(0, 1 << 17, min(size, APPENDED_BYTES) // TOKEN_BYTES, dtype=np.uint32)
    ways: dict[str, Callable[[Path], int]] = {
        "plain write and fsync": partial(write_plainly, size=size, data=tokens.view(np.uint8)),
        "penstock, token stream": partial(append, size=size, tokens=tokens),
        "penstock, documents by append_batch": partial(append_documents, size=size, tokens=tokens, at_once=True),
        "penstock, documents by append": partial(append_documents, size=size, tokens=tokens, at_once=False),
    }
    try:
        runs = [partial(megabytes_per_second, way, folder / "out") for way in ways.values()]
        found = dict(zip(ways, alternate(corpora.size.repeats, runs), strict=True))
        return [*lines(found, size), *text(corpora, folder)]
    finally:
        shutil.rmtree(folder)


def lines(found: dict[str, tuple[float, ...]], size: int) -> list[Result]:
    limit, *ours = found.items()
    results = [Result("writer", what, "MB/s", values, SYNCED, size) for what, values in found.items()]
    for what, values in ours:
        target = TARGET if what == "penstock, token stream" else None
        quotient = ratios(values, limit[1])
        results.append(Result("writer", f"{what} / plain", "ratio", quotient, SYNCED, size, at_least=target))
    return results


def megabytes_per_second(way: Callable[[Path], int], out: Path) -> float:
    """Removing what was written is not in it."""
    begin = time.perf_counter()
    written = way(out)
    taken = time.perf_counter() - begin
    shutil.rmtree(out)
    return written / taken / 1e6


def write_plainly(out: Path, size: int, data: np.ndarray[Any, Any]) -> int:
    """A file of `size` bytes by write(2), synced."""
    out.mkdir()
    descriptor = os.open(out / "stream.bin", os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    try:
        part = memoryview(data)[:WRITTEN_AT_ONCE]
        written = 0
        while written < size:
            written += os.write(descriptor, part)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    return written


def append(out: Path, size: int, tokens: np.ndarray[Any, Any]) -> int:
    """A token stream."""
    with penstock.Writer(str(out), fields={"token": "u4"}, metadata=None) as writer:
        for _ in range(size // tokens.nbytes):
            writer.append(token=tokens)
    return size // tokens.nbytes * tokens.nbytes


def append_documents(out: Path, size: int, tokens: np.ndarray[Any, Any], at_once: bool) -> int:
    """Documents of 800 tokens, each with an entry of 160 bytes."""
    each = DOCUMENT_TOKENS * TOKEN_BYTES + ENTRY_BYTES
    count = min(DOCUMENTS_AT_ONCE, len(tokens) // DOCUMENT_TOKENS)
    part = tokens[: count * DOCUMENT_TOKENS]
    entries = [bytes([i % 256]) * ENTRY_BYTES for i in range(count)]
    lengths = np.full(count, DOCUMENT_TOKENS)
    written = 0
    with penstock.Writer(str(out), fields={"token": "u4"}, metadata="raw") as writer:
        while written < size:
            if at_once:
                writer.append_batch(lengths, encoded=entries, token=part)
            else:
                for document, entry in zip(part.reshape(count, -1), entries, strict=True):
                    writer.append(token=document, metadata=entry)
            written += count * each
    return written


# --- the command line: text to tokens


def text(corpora: Corpora, folder: Path) -> list[Result]:
    """`penstock write` over real text (Python's own library), tokenized by a byte-level BPE trained on it."""
    documents = python_sources(corpora.size.text_bytes)
    source = folder / "text.jsonl"
    source.write_text("".join(json.dumps({"text": each}) + "\n" for each in documents), encoding="utf-8")
    tokenizer = folder / "tokenizer.json"
    train_tokenizer(documents, tokenizer)
    runs = [write_text(source, tokenizer, folder / "out") for _ in range(min(3, corpora.size.repeats))]
    size = sum(len(each.encode()) for each in documents)
    what = f"penstock write, {runs[0]['workers']} workers"
    share = tuple(100 * run["tokenizer_share"] for run in runs)
    return [
        Result("writer", f"{what}: text", "MB/s", tuple(run["megabytes_per_second"] for run in runs), SYNCED, size),
        Result("writer", f"{what}: the tokenizer's share of the workers' time", "%", share, SYNCED, size),
    ]


def python_sources(size: int) -> list[str]:
    """At least `size` bytes of documents: the standard library's files, again where they are too few."""
    paths = sorted(Path(os.__file__).parent.rglob("*.py"))
    documents: list[str] = []
    left = size
    while left > 0:
        for path in paths:
            document = path.read_text(encoding="utf-8", errors="replace")
            documents.append(document)
            left -= len(document)
            if left <= 0:
                break
    return documents


def train_tokenizer(documents: list[str], path: Path) -> None:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=8192, initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator(documents[:200], trainer)
    tokenizer.save(str(path))


def write_text(source: Path, tokenizer: Path, out: Path) -> dict[str, Any]:
    """What `penstock write --json` says of itself."""
    command = [sys.executable, "-m", "penstock", "write", str(source), "--tokenizer", str(tokenizer)]
    done = subprocess.run([*command, "--out", str(out), "--json"], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"penstock write failed:\n{done.stderr}")
    shutil.rmtree(out)
    said: dict[str, Any] = json.loads(done.stdout)
    return said
