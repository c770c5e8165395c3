"""AnnData's files for tests, written by anndata itself, and what a dataset of them is compared with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest

anndata = pytest.importorskip("anndata")
h5py = pytest.importorskip("h5py")
pandas = pytest.importorskip("pandas")
sparse = pytest.importorskip("scipy.sparse")

CELLS, GENES = 400, 60


def make_counts(cells: int = CELLS, genes: int = GENES, seed: int = 0, density: float = 0.2) -> Any:
    counts = sparse.random(cells, genes, density, format="csr", dtype="f4", random_state=seed)
    counts.data = np.ceil(counts.data * 9).astype("f4")
    return counts


def make(counts: Any = None, seed: int = 0, prefix: str = "g") -> Any:
    counts = make_counts(seed=seed) if counts is None else counts
    random = np.random.default_rng(seed)
    cells, genes = counts.shape
    obs = pandas.DataFrame(
        {
            "plate": pandas.Categorical(random.choice(["p7", "p2", None], cells), ["p2", "p9", "p7"]),
            "score": random.random(cells).astype("f4"),
            "flag": random.random(cells) < 0.5,
            "number": np.arange(cells),
            "line": random.choice(["A549", "MCF7"], cells),
            "some": pandas.array([1, None] * (cells // 2), dtype="Int64"),
        },
        index=[f"cell {seed}-{i}" for i in range(cells)],
    )
    var = pandas.DataFrame(
        {"length": np.arange(genes), "kind": pandas.Categorical(random.choice(["x", "y"], genes), ["y", "x"])},
        index=[f"{prefix}{i}" for i in range(genes)],
    )
    made = anndata.AnnData(counts, obs=obs, var=var)
    made.obsm["X_pca"] = random.random((cells, 7)).astype("f4")
    made.obsm["image"] = random.integers(0, 255, (cells, 2, 3, 4)).astype("u1")
    return made


def as_kind(made: Any, kind: str) -> Any:
    made.X = {"csr": made.X, "csc": made.X.tocsc(), "dense": made.X.toarray()}[kind]
    return made


def write(made: Any, path: Path, **options: Any) -> Path:
    if path.suffix == ".zarr":
        made.write_zarr(path)
    else:
        made.write_h5ad(path, **options)
    return path


def dense_of(dataset: penstock.Dataset, name: str = "count") -> Any:
    batch = dataset.documents().read(np.arange(dataset.spans))
    return sparse.csr_matrix(
        (batch[name], batch["gene"].astype("i4"), batch.offsets), (dataset.spans, len(dataset.features))
    ).toarray()


def same(a: Any, b: Any) -> bool:
    return bool((abs(sparse.csr_matrix(a) - sparse.csr_matrix(b)).max() if a.shape[0] else 0) == 0)


def files_of(path: Path) -> dict[str, bytes]:
    return {str(each.relative_to(path)): each.read_bytes() for each in sorted(path.rglob("*")) if each.is_file()}


def put(name: str, at: int, value: Any) -> Any:
    def change(file: Any) -> None:
        file[name][at] = value

    return change


def stop_after(cells: int) -> Any:
    """A `progress` that is interrupted once more cells are done."""

    def progress(done: int, total: int) -> None:
        if done > cells:
            raise KeyboardInterrupt

    return progress
