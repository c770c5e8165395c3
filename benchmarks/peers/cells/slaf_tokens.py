"""SLAF's loader of Geneformer tokens, 2,048 a cell (in order of gene, not of rank)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from clock import epochs, run
from slaf import SLAFArray
from slaf.ml import SLAFDataLoader


def make(path: str, rows: int, setting: str) -> Iterator[Any]:
    array = SLAFArray(path)
    options = {"tokenizer_type": "geneformer", "max_genes": 2048, "vocab_size": 70_000, "verbose": False}
    return epochs(lambda: SLAFDataLoader(array, batch_size=rows, **options))


if __name__ == "__main__":
    run(make, lambda batch: len(batch["input_ids"]))
