"""The writer, check values and digests included, beside plain writes of one thread to the same file system."""

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
from results import Result, alternate, left_out, ratios
from workloads import DOCUMENT_TOKENS, ENTRY_BYTES, TOKEN_BYTES, Corpora

APPENDED_BYTES = 16 << 20  # of one append of a token stream
DOCUMENTS_AT_ONCE = 1000
TARGET = 0.8
SYNCED = "synced at the end"
SOURCE = Path(__file__).with_name("write_loop.c")
#: The plain writers: bytes of a call, and through the page cache or past it. The first makes the calls of penstock's.
PLAIN = {
    "plain, as penstock calls": (128 << 10, "cached"),
    "plain, 8 MiB a call": (8 << 20, "cached"),
    "plain, O_DIRECT, 128 KiB a call": (128 << 10, "direct"),
    "plain, O_DIRECT, 8 MiB a call": (8 << 20, "direct"),
}


def measure(corpora: Corpora) -> list[Result]:
    folder = corpora.folder / "written"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    size = corpora.size.written_bytes
    random = np.random.default_rng(5)
    tokens = random.integers(0, 1 << 17, min(size, APPENDED_BYTES) // TOKEN_BYTES, dtype=np.uint32)
    ours: dict[str, Callable[[Path], int]] = {
        "penstock, token stream": partial(append, size=size, tokens=tokens),
        "penstock, documents by append_batch": partial(append_documents, size=size, tokens=tokens, at_once=True),
        "penstock, documents by append": partial(append_documents, size=size, tokens=tokens, at_once=False),
    }
    try:
        program = compiled(folder)
        plain = without_refused(
            {name: partial(write_plainly, program, size=size, way=way) for name, way in PLAIN.items()}, folder
        )
        runs = [*(partial(way, folder / "out") for way in plain.values())]
        runs += [partial(megabytes_per_second, way, folder / "out") for way in ours.values()]
        found = dict(zip([*plain, *ours], alternate(corpora.size.repeats, runs), strict=True))
        return [*lines(found, list(plain), size), *text(corpora, folder)]
    finally:
        shutil.rmtree(folder)


def without_refused(plain: dict[str, Callable[[Path], float]], folder: Path) -> dict[str, Callable[[Path], float]]:
    """Without the ways past the page cache where the file system has none (tmpfs)."""
    try:
        descriptor = os.open(folder / "probe", os.O_WRONLY | os.O_CREAT | os.O_DIRECT)
    except OSError as error:
        left_out("writer: plain, O_DIRECT", str(error))
        return {name: way for name, way in plain.items() if "O_DIRECT" not in name}
    os.close(descriptor)
    return plain


def lines(found: dict[str, tuple[float, ...]], plain: list[str], size: int) -> list[Result]:
    results = [Result("writer", what, "MB/s", values, SYNCED, size) for what, values in found.items()]
    for other in plain:
        for what, values in found.items():
            if what not in plain:
                target = TARGET if what == "penstock, token stream" and other == plain[0] else None
                quotient = ratios(values, found[other])
                results.append(Result("writer", f"{what} / {other}", "ratio", quotient, SYNCED, size, at_least=target))
    return results


def megabytes_per_second(way: Callable[[Path], int], out: Path) -> float:
    """Removing what was written is not in it."""
    begin = time.perf_counter()
    written = way(out)
    taken = time.perf_counter() - begin
    shutil.rmtree(out)
    return written / taken / 1e6


def compiled(folder: Path) -> Path:
    """write_loop.c, compiled by $CC or cc."""
    program = folder / "write_loop"
    subprocess.run([os.environ.get("CC", "cc"), "-O2", str(SOURCE), "-o", str(program)], check=True)
    return program


def write_plainly(program: Path, out: Path, size: int, way: tuple[int, str]) -> float:
    """MB/s of write_loop.c, from creating the file to the end of its sync."""
    command = [str(program), str(out), str(size), str(min(way[0], size)), way[1]]
    said = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    out.unlink()
    return float(said["bytes"] / said["seconds"] / 1e6)


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
