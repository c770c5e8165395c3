"""Megatron-core's way, as its preprocess_data.py goes, which its wheel lacks: a pool encodes, one process writes.

`megatron_preprocess.py TOKENIZER OUT WORKERS FILE...`, the number of tokens out.
"""

from __future__ import annotations

import json
import sys
from multiprocessing import Pool
from pathlib import Path
from typing import Any

import numpy as np
from megatron.core.datasets.indexed_dataset import IndexedDatasetBuilder
from megatron.core.tokenizers import MegatronTokenizer

END = "<|endoftext|>"
LINES = 32  # handed to a worker at once, as preprocess_data.py has it
tokenizer: Any = None


def begin(folder: str) -> None:
    global tokenizer
    library = {"library": "huggingface"}
    tokenizer = MegatronTokenizer.from_pretrained(tokenizer_path=folder, metadata_path=library, use_fast=True)


def encode(line: str) -> list[int]:
    ids: list[int] = tokenizer.tokenize(json.loads(line)["text"])
    ids.append(tokenizer.eod)
    return ids


def main() -> None:
    path, out, workers, *files = sys.argv[1:]
    Path(out).mkdir()
    folder = as_transformers_wants(Path(path), Path(out) / "tokenizer")
    begin(folder)
    dtype = np.uint16 if tokenizer.vocab_size < 65_500 else np.int32
    builder = IndexedDatasetBuilder(f"{out}/corpus.bin", dtype=dtype)
    tokens = 0
    with Pool(int(workers), initializer=begin, initargs=(folder,)) as pool:
        for file in files:
            with Path(file).open(encoding="utf-8") as lines:
                for ids in pool.imap(encode, lines, LINES):
                    builder.add_document(ids, [len(ids)])
                    tokens += len(ids)
    builder.finalize(f"{out}/corpus.idx")
    print(tokens)


def as_transformers_wants(path: Path, folder: Path) -> str:
    """A folder with the tokenizer and the little that AutoTokenizer has to be told."""
    folder.mkdir()
    (folder / "tokenizer.json").write_bytes(path.read_bytes())
    told = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": END}
    (folder / "tokenizer_config.json").write_text(json.dumps(told))
    return str(folder)


if __name__ == "__main__":
    main()
