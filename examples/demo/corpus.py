"""Real text that is on every machine: sources of Python's standard library, if need be of installed packages too."""

import json
import sysconfig
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from settings import SOURCES

ENOUGH_BYTES = 20_000_000
HELD_OUT = 50  # one document in so many is for evaluation
SKIPPED = {"site-packages", "__pycache__", "dist-packages"}


def sources(root: Path) -> Iterator[tuple[str, str]]:
    """Yields (name, text) of every Python file below `root`, in the order of their names."""
    for path in sorted(root.rglob("*.py")):
        relative = path.relative_to(root)
        if SKIPPED.intersection(relative.parts):
            continue
        try:
            text = path.read_text(encoding="utf-8")
        except (UnicodeDecodeError, OSError):  # the standard library tests its decoders with broken files
            continue
        if text.strip():
            yield relative.as_posix(), text


def kind_of(name: str) -> str:
    parts = name.split("/")
    if "test" in parts or "tests" in parts:
        return "test"
    return "package" if len(parts) > 1 else "module"


def documents(limit_bytes: int) -> Iterator[dict[str, str | int]]:
    """Yields {text, path, kind, size} until there are `limit_bytes`; other packages only where that is too little."""
    paths = sysconfig.get_paths()
    total = 0
    for number, root in enumerate([Path(paths["stdlib"]), Path(paths["purelib"])]):
        if number and total >= ENOUGH_BYTES:
            return
        for name, text in sources(root):
            if total >= (min(limit_bytes, ENOUGH_BYTES) if number else limit_bytes):
                return
            size = len(text.encode())
            total += size
            yield {"text": text, "path": name, "kind": kind_of(name), "size": size}


def source_of(document: dict[str, str | int]) -> str:
    return "modules" if document["kind"] == "module" else "packages"


def write_corpus(folder: Path, limit_bytes: int) -> tuple[int, int]:
    """Writes packages.jsonl, modules.jsonl and valid.jsonl; returns how many documents and bytes of text there are."""
    count = total = 0
    with ExitStack() as stack:
        out = {name: stack.enter_context((folder / f"{name}.jsonl").open("w")) for name in (*SOURCES, "valid")}
        for document in documents(limit_bytes):
            held_out = count % HELD_OUT == HELD_OUT // 2
            out["valid" if held_out else source_of(document)].write(json.dumps(document) + "\n")
            count += 1
            total += int(document["size"])
    return count, total


def train_tokenizer(folder: Path, vocabulary: int, sample_bytes: int = 6_000_000) -> None:
    """A byte-level BPE, trained on every k-th document so that it takes seconds."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    lines = [line for name in SOURCES for line in (folder / f"{name}.jsonl").read_text().splitlines()]
    every = max(1, sum(map(len, lines)) // sample_bytes)
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=["<|endoftext|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator((json.loads(line)["text"] for line in lines[::every]), trainer)
    tokenizer.save(str(folder / "tokenizer.json"))
