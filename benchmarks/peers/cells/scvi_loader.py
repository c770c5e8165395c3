"""scvi-tools' AnnDataLoader over a file that is in memory, as its pages have it; cells are shuffled."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import anndata
import scvi
from clock import epochs, run


def make(path: str, rows: int, setting: str) -> Iterator[Any]:
    cells = anndata.read_h5ad(path)
    scvi.model.SCVI.setup_anndata(cells)
    manager = scvi.model.SCVI(cells).adata_manager
    loader = scvi.dataloaders.AnnDataLoader(manager, batch_size=rows, shuffle=True)
    return epochs(lambda: loader)


if __name__ == "__main__":
    run(make, lambda batch: batch["X"].shape[0])
