"""The forms of cells, from docs/cells.md: documents of records {gene, count} as arrays of a batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from observations import Given
from penstock.cells import Ranked

CHOSEN = [17, 3, 60, 41]  # of dense cells, in this order
TOTAL = 100.0  # that their values sum up to, over all genes
LENGTH = 10  # of ranked ones
CLS, EOS, FIRST = 2, 3, 4  # tokens; a gene's is its number + 4


def arguments(form: str) -> dict[str, Any]:
    """Of `dataset.cells`."""
    if form == "dense":
        return {"form": "dense", "genes": CHOSEN, "normalize": TOTAL}
    return {"form": Ranked(LENGTH, cls=CLS, eos=EOS)} if form == "ranked" else {"form": form}


def arrays_of_cells(given: Sequence[Given], form: str, size: int) -> dict[str, Any]:
    """Rows that are padding are empty, or zeros."""
    cells = [each.row.records for each in given]
    if form == "csr":
        empty = [np.zeros(0, np.int32)]
        ends = np.cumsum([0, *(len(each) for each in cells)])
        return {
            "gene": np.concatenate([*empty, *(each["gene"] for each in cells)]).astype(np.int32),
            "count": np.concatenate([*empty, *(each["count"] for each in cells)]).astype(np.float32),
            "offsets": np.append(ends, np.full(size - len(cells), ends[-1])).astype(np.int32),
        }
    if form == "dense":
        x = np.zeros((size, len(CHOSEN)), np.float32)
        for row, cell in enumerate(cells):
            scale = float(cell["count"].sum()) / TOTAL or 1.0
            for gene, count in zip(cell["gene"].tolist(), cell["count"].tolist(), strict=True):
                if gene in CHOSEN:
                    x[row, CHOSEN.index(gene)] = count / scale
        return {"x": x}
    ids, mask = np.zeros((size, LENGTH), np.int64), np.zeros((size, LENGTH), bool)
    for row, cell in enumerate(cells):
        there = cell[cell["count"] > 0]
        order = np.argsort(-there["count"].astype(np.int64), kind="stable")
        sentence = [CLS, *(there["gene"][order].astype(np.int64) + FIRST)[: LENGTH - 2].tolist(), EOS]
        ids[row, : len(sentence)], mask[row, : len(sentence)] = sentence, True
    return {"input_ids": ids, "attention_mask": mask}
