"""Real text and a real tokenizer for the tests of `penstock write`: both made of Python's own sources."""

from __future__ import annotations

import json
import sysconfig
from functools import cache
from pathlib import Path
from typing import Any

STANDARD_LIBRARY = Path(sysconfig.get_paths()["stdlib"])
END = "<|endoftext|>"


@cache
def sources() -> tuple[tuple[str, str], ...]:
    """(name, text) of modules, about half a megabyte."""
    names = sorted(
        (*STANDARD_LIBRARY.glob("j*/*.py"), *STANDARD_LIBRARY.glob("[a-f]*.py"), *STANDARD_LIBRARY.glob("email/*.py"))
    )
    texts = [(path.relative_to(STANDARD_LIBRARY).as_posix(), path.read_text(encoding="utf-8")) for path in names]
    return tuple((name, text) for name, text in texts if len(text) < 60_000)


def rows() -> list[dict[str, Any]]:
    """The modules cut into pieces of some lines, with columns beside the text; some are empty or not ASCII."""
    found: list[dict[str, Any]] = []
    for name, text in sources():
        lines = text.splitlines(keepends=True)
        for start in range(0, len(lines), 40):
            found.append(
                {"url": f"py/{name}#{start}", "text": "".join(lines[start : start + 40]), "n": start, "x": None}
            )
    found[5]["text"] = ""
    found[7]["text"] = "naïve café — 東京 🚰 \u2028 end"
    return found


def write_jsonl(path: Path, content: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in content), encoding="utf-8")
    return path


def train_tokenizer(path: Path, vocabulary: int = 600) -> Path:
    """A byte-level BPE of the modules with two special tokens."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=[END, "<|begin|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator((text for _, text in sources()[:20]), trainer)
    tokenizer.save(str(path))
    return path
