"""Made the files beside it, with megatron-core's own builder (0.16.1, torch 2.13.0+cpu); run again only for new ones.

python tests/golden/megatron/make.py, in an environment with torch and megatron-core.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import torch
from megatron.core.datasets.indexed_dataset import IndexedDatasetBuilder

HERE = Path(__file__).parent

# Documents as lists of sequences of tokens.
CASES = {
    "u2_text_document": (np.uint16, [[[50256, 1, 2]], [[3]], [[4, 5, 6, 7, 8]], [[65535]], [[9, 10]]]),
    "i4_text_sentence": (
        np.int32,
        [[[1, 2, 3], [4], [5, 6]], [], [[100000, 7]], [[8], [9, 10, 11, 12]], [[13, 14, 15, 16, 17, 18, 19]], []],
    ),
}


def main() -> None:
    documents = {}
    for name, (dtype, given) in CASES.items():
        builder = IndexedDatasetBuilder(str(HERE / f"{name}.bin"), dtype=dtype)
        for sequences in given:
            for sequence in sequences:
                builder.add_item(torch.tensor(sequence, dtype=torch.int64))
            builder.end_document()
        builder.finalize(str(HERE / f"{name}.idx"))
        documents[name] = {
            "dtype": np.dtype(dtype).str,
            "documents": [[token for sequence in sequences for token in sequence] for sequences in given],
        }
    lines = [f"{json.dumps(name)}: {json.dumps(case)}" for name, case in documents.items()]
    (HERE / "documents.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
