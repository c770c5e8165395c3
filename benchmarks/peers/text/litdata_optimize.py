"""litdata's optimize with TokensLoader: its workers encode batches of documents and write chunks.

`litdata_optimize.py TOKENIZER OUT WORKERS FILE...`, the number of tokens out.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from functools import cache, partial
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from litdata import TokensLoader, optimize
from tokenizers import Tokenizer

END = "<|endoftext|>"
DOCUMENTS = 256


@cache
def loaded(path: str) -> Any:
    return Tokenizer.from_file(path)


def encode(file: str, path: str) -> Iterator[torch.Tensor]:
    tokenizer = loaded(path)
    end = tokenizer.token_to_id(END)
    with Path(file).open(encoding="utf-8") as lines:
        while texts := [json.loads(line)["text"] for line in islice(lines, DOCUMENTS)]:
            for encoded in tokenizer.encode_batch_fast(texts):
                yield torch.tensor([*encoded.ids, end], dtype=torch.int32)


def main() -> None:
    os.environ["TOKENIZERS_PARALLELISM"] = "false"  # processes share the work
    path, out, workers, *files = sys.argv[1:]
    optimize(
        fn=partial(encode, path=path),
        inputs=files,
        output_dir=out,
        num_workers=int(workers),
        chunk_bytes="64MB",
        item_loader=TokensLoader(),
    )
    chunks = json.loads(Path(out, "index.json").read_text())["chunks"]
    print(sum(each["dim"] for each in chunks))


if __name__ == "__main__":
    main()
