"""What loaders deliver, to be compared with what they deliver of the same files on a local disk."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import penstock

VIEWS = {
    "windows": lambda dataset: dataset.windows(64, lookahead=1),
    "documents": lambda dataset: dataset.documents(),
    "spans alone": lambda dataset: dataset.windows(100, metadata="spans"),
}


def contents(loader: penstock.Loader, has_entries: bool = True, most: int | None = None) -> list[Any]:
    """Of each batch the indices, the tokens, and where it has spans these, with their entries."""
    found = []
    for batch in itertools.islice(loader, most):
        spans = None
        if batch.spans is not None:
            entries = [s.metadata for s in batch.spans] if has_entries else None
            spans = ([(s.row, s.start, s.stop, s.id) for s in batch.spans], entries)
        found.append((np.asarray(batch.indices).tolist(), np.asarray(batch["token"]).tolist(), spans))
    return found
