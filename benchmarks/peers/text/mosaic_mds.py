"""mosaicml-streaming's MDSWriter, a process and a folder for each file, their indices merged in the end.

`mosaic_mds.py TOKENIZER OUT WORKERS FILE...`, the number of tokens out.
"""

from __future__ import annotations

import json
import os
import sys
from itertools import islice
from multiprocessing import Pool
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))

import no_pictures  # noqa: F401  (before streaming)
import numpy as np
from streaming import MDSWriter
from streaming.base.util import merge_index
from tokenizers import Tokenizer

END = "<|endoftext|>"
DOCUMENTS = 256


def write(path: str, file: str, out: str) -> int:
    tokenizer = Tokenizer.from_file(path)
    end = tokenizer.token_to_id(END)
    tokens = 0
    with (
        Path(file).open(encoding="utf-8") as lines,
        MDSWriter(out=out, columns={"tokens": "ndarray:int32"}, size_limit="64mb") as writer,
    ):
        while texts := [json.loads(line)["text"] for line in islice(lines, DOCUMENTS)]:
            for encoded in tokenizer.encode_batch_fast(texts):
                ids = np.array([*encoded.ids, end], np.int32)
                tokens += len(ids)
                writer.write({"tokens": ids})
    return tokens


def main() -> None:
    os.environ["TOKENIZERS_PARALLELISM"] = "false"  # processes share the work
    path, out, workers, *files = sys.argv[1:]
    with Pool(int(workers)) as pool:
        parts = [(path, file, f"{out}/{number}") for number, file in enumerate(files)]
        tokens = sum(pool.starmap(write, parts, chunksize=1))
    merge_index(out, keep_local=True)
    print(tokens)


if __name__ == "__main__":
    main()
