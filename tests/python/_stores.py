"""Small stores of other libraries that all hold the same rows, and how a test opens them and looks at a batch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest

ROWS = 37
ROW = np.stack([np.arange(ROWS) + 1, np.arange(ROWS) % 7, np.zeros(ROWS, int)], 1).astype("i4")


@dataclass(frozen=True)
class Store:
    """Opens it (a function that pickles), and says what rows a batch of it holds."""

    open: Callable[[], Any]
    rows: Callable[[Any], np.ndarray]


def open_anndata(path: str) -> Any:
    return pytest.importorskip("anndata").read_h5ad(path, backed="r")


def open_h5py(path: str) -> Any:
    return pytest.importorskip("h5py").File(path)["x"]


def open_zarr(path: str) -> Any:
    return pytest.importorskip("zarr").open_array(path, mode="r")


def open_huggingface(path: str, form: str | None = None) -> Any:
    return pytest.importorskip("datasets").load_from_disk(path).with_format(form)


def open_memmap(path: str) -> Any:
    return np.load(path, mmap_mode="r")


def open_scipy(path: str) -> Any:
    return pytest.importorskip("scipy.sparse").load_npz(path)


def open_several(path: str) -> Any:
    return penstock.Collections(rna=open_anndata(f"{path}.h5ad"), label=open_memmap(f"{path}.npy"))


def make_anndata(path: str) -> None:
    anndata, pandas = pytest.importorskip("anndata"), pytest.importorskip("pandas")
    sparse = pytest.importorskip("scipy.sparse")
    obs = pandas.DataFrame({"number": np.arange(ROWS)}, index=[f"cell {number}" for number in range(ROWS)])
    made = anndata.AnnData(sparse.csr_matrix(ROW.astype("f4")), obs=obs)
    made.layers["again"] = made.X.copy()  # of which anndata keeps views even in memory
    made.write_h5ad(path)


def make_h5py(path: str) -> None:
    with pytest.importorskip("h5py").File(path, "w") as file:
        file.create_dataset("x", data=ROW, chunks=(4, 3))


def make_huggingface(path: str) -> None:
    made = pytest.importorskip("datasets").Dataset.from_dict({"x": ROW.tolist()})
    made.save_to_disk(path)


def rows_of_anndata(batch: Any) -> np.ndarray:
    found = batch.X.toarray().astype("i4")
    assert (batch.obs["number"].to_numpy() == found[:, 0] - 1).all()
    assert (batch.layers["again"].toarray() == found).all()
    return found


def rows_of_several(batch: Any) -> np.ndarray:
    assert (batch["label"] == rows_of_anndata(batch["rna"])).all()
    return batch["label"]


def make(name: str, folder: Path) -> Store:
    """The store of this name, written into an empty folder."""
    path = str(folder / "store")
    if name == "memmap":
        np.save(f"{path}.npy", ROW)
        return Store(partial(open_memmap, f"{path}.npy"), np.asarray)
    if name == "anndata":
        make_anndata(f"{path}.h5ad")
        return Store(partial(open_anndata, f"{path}.h5ad"), rows_of_anndata)
    if name == "h5py":
        make_h5py(path)
        return Store(partial(open_h5py, path), np.asarray)
    if name == "zarr":
        array = pytest.importorskip("zarr").create_array(path, shape=ROW.shape, chunks=(4, 3), dtype="i4")
        array[:] = ROW
        return Store(partial(open_zarr, path), np.asarray)
    if name == "scipy":
        sparse = pytest.importorskip("scipy.sparse")
        sparse.save_npz(f"{path}.npz", sparse.csr_matrix(ROW))
        return Store(partial(open_scipy, f"{path}.npz"), lambda batch: batch.toarray())
    if name in ("huggingface", "huggingface as numpy"):
        make_huggingface(path)
        form = None if name == "huggingface" else "numpy"
        return Store(partial(open_huggingface, path, form), lambda batch: np.asarray(batch["x"], "i4"))
    assert name == "several"
    np.save(f"{path}.npy", ROW)
    make_anndata(f"{path}.h5ad")
    return Store(partial(open_several, path), rows_of_several)


NAMES = ["memmap", "anndata", "h5py", "zarr", "scipy", "huggingface", "huggingface as numpy", "several"]


def orders() -> dict[str, Any]:
    """All of them."""
    return {
        "uniform": "uniform",
        "sequential": "sequential",
        "sequential in fetches": penstock.orders.Sequential(fetch=10),
        "blocks": penstock.orders.Blocks(2, 12),
        "lanes": penstock.orders.Blocks(2, 6, lanes=2),
        "weighted": penstock.orders.Weighted(np.arange(ROWS) % 3, size=25),
        "weighted in blocks": penstock.orders.Weighted(np.arange(ROWS) % 3, size=25, block=2, fetch=8),
        "balanced": penstock.orders.Balanced(np.arange(ROWS) % 4),
    }
