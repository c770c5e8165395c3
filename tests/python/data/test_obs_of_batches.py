"""batch.obs: the columns of a batch as a DataFrame, beside the codes."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import penstock
import pytest

pandas = pytest.importorskip("pandas")
CELLS = 50


@pytest.fixture
def dataset(tmp_path: Path) -> penstock.Dataset:
    columns = {"plate": ["p1", "p2", "never"], "score": "f4", "X_pca": ("f4", (2,))}
    with penstock.Writer(tmp_path / "d", {"gene": "u2", "count": "u1"}, "boundaries", columns=columns) as writer:
        for at in range(CELLS):
            plate = None if at % 5 == 0 else f"p{at % 2 + 1}"
            writer.append(gene=[at], count=[1], columns={"plate": plate, "score": at / 2, "X_pca": [at, at]})
    return penstock.open(tmp_path / "d")


@pytest.mark.parametrize("framework", ["numpy", "torch"])
def test_obs_are_the_columns_of_the_rows(dataset: penstock.Dataset, framework: str) -> None:
    if framework == "torch":
        pytest.importorskip("torch")
    view = dataset.cells("csr", genes=range(CELLS), columns=["plate", "score", "X_pca"])
    loader = penstock.Loader(view, batch_size=16, seed=1, epochs=1, framework=framework)
    for batch in loader:
        for each in (batch, batch.clone(), pickle.loads(pickle.dumps(batch.clone()))):
            obs = each.obs
            assert list(obs) == ["plate", "score"] and obs["plate"].cat.categories.tolist() == ["p1", "p2", "never"]
            assert obs.index.tolist() == np.asarray(batch.indices).tolist()
            assert obs["plate"].cat.codes.tolist() == np.asarray(batch.columns["plate"]).tolist()
            valid = np.asarray(batch.valid)
            assert obs["score"][valid].tolist() == (np.asarray(batch.indices)[valid] / 2).tolist()
            assert obs["plate"][~valid].isna().all()
    assert view.read([3, 7]).obs["plate"].tolist() == ["p2", "p2"]


def test_without_columns_it_has_rows_alone(dataset: penstock.Dataset) -> None:
    assert dataset.documents().read([3, 7]).obs.shape == (2, 0)
    windows = dataset.windows(10, columns=["plate"]).read([0, 2]).obs
    assert windows["plate"].isna().sum() == 4 and len(windows) == 20


def test_strings_of_a_category_under_its_name_stay_strings(dataset: penstock.Dataset) -> None:
    view = dataset.cells("csr", genes=range(CELLS), columns=["plate"])
    loader = penstock.Loader(view, batch_size=10, columns=[penstock.columns.Names("plate")], framework="numpy")
    batch = next(iter(loader))
    assert set(batch.obs["plate"].dropna()) <= {"p1", "p2"}
