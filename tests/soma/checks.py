"""SOMA experiments that tiledbsoma wrote, through CollectionLoader and `penstock import`: `make soma` runs it."""

from __future__ import annotations

import pickle
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import anndata
import numpy as np
import pandas
import penstock
import scipy.sparse
import tiledbsoma
import tiledbsoma.io

CELLS, GENES = 400, 90


def make(seed: int) -> Any:
    """Cells with a category, and counts beside normalised values."""
    counts = scipy.sparse.random(CELLS, GENES, 0.2, format="csr", dtype="f4", random_state=seed)
    counts.data = np.ceil(counts.data * 9)
    obs = pandas.DataFrame(
        {"plate": pandas.Categorical([f"p{seed}"] * (CELLS - 1) + ["other"]), "score": np.arange(CELLS) / 7},
        index=[f"{seed}-{i}" for i in range(CELLS)],
    )
    made = anndata.AnnData(counts, obs=obs)
    made.var_names = [f"ENSG{i:05}" for i in range(GENES)]
    made.var["length"] = np.arange(GENES)
    return made


def write(made: Any, path: Path) -> str:
    """As tiledbsoma imports AnnData: its X is the layer `data`; then a layer `raw`, as Census has."""
    uri = tiledbsoma.io.from_anndata(str(path), made, measurement_name="RNA")
    with tiledbsoma.Experiment.open(uri, "w") as experiment:
        tiledbsoma.io.add_X_layer(experiment, "RNA", "raw", made.X * 2)
    return str(uri)


def check_collection(folder: Path, made: list[Any], uris: list[str]) -> None:
    """Batches of one and of two experiments are anndata's rows; a state goes on; processes read the same."""
    expected = anndata.concat(made)
    cells = penstock.Collection.from_soma(uris)
    assert cells.shape == expected.shape and cells.obs_names.tolist() == expected.obs_names.tolist()
    assert cells.var_names.tolist() == expected.var_names.tolist()
    wanted = np.random.default_rng(0).permutation(len(cells))[:70]
    assert (expected.X[wanted] != cells[wanted].X).nnz == 0
    assert cells[wanted].obs["score"].tolist() == expected.obs["score"].iloc[wanted].tolist()
    raw = penstock.Collection.from_soma(uris[0], layer="raw")
    assert (raw[:].X != made[0].X * 2).nnz == 0
    assert (expected.X[wanted] != pickle.loads(pickle.dumps(cells))[wanted].X).nnz == 0
    options: dict[str, Any] = {"batch_size": 64, "seed": 1, "epochs": 1, "order": penstock.orders.Blocks(16, 256)}
    for processes in (0, 2):
        found = np.zeros(cells.shape, "f4")
        with penstock.CollectionLoader(cells, processes=processes, **options) as loader:
            for batch in loader:
                found[loader.info.indices] = batch.X.toarray()
                assert batch.obs["plate"].tolist() == expected.obs["plate"].iloc[loader.info.indices].tolist()
        assert (found == expected.X.toarray()).all()
    for bad in ({"layer": "no"}, {"measurement": "no"}):
        try:
            penstock.Collection.from_soma(uris, **bad)
        except penstock.InvalidArgumentError as error:
            assert "there are" in str(error), error
        else:
            raise AssertionError(bad)


def check_import(folder: Path, made: list[Any], uris: list[str]) -> None:
    """Imported by the command, it is the same cells."""
    expected = anndata.concat(made)
    command = [sys.executable, "-m", "penstock", "import", *uris, "--out", str(folder / "d"), "--workers", "2"]
    subprocess.run(command, check=True)
    back = penstock.open(folder / "d").to_anndata()
    assert (back.X != expected.X).nnz == 0 and back.obs_names.tolist() == expected.obs_names.tolist()
    assert back.obs["plate"].astype(str).tolist() == expected.obs["plate"].astype(str).tolist()
    assert back.var["length"].tolist() == list(range(GENES))
    penstock.import_anndata(uris[0], folder / "raw", x="layers/raw", modality="RNA")
    assert (penstock.open(folder / "raw").to_anndata().X != made[0].X * 2).nnz == 0
    beside = made[1].copy()
    beside.layers["raw"], beside.layers["counts"] = beside.X * 2, beside.X * 2
    beside.write_h5ad(folder / "beside.h5ad")
    for x in ("layers/raw", ["layers/raw", "layers/counts"]):
        penstock.import_anndata([uris[0], folder / "beside.h5ad"], folder / "both", x=x, overwrite=True)
        assert (penstock.open(folder / "both").to_anndata().X != expected.X * 2).nnz == 0


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        made = [make(0), make(1)]
        uris = [write(each, folder / f"{at}.soma") for at, each in enumerate(made)]
        for check in (check_collection, check_import):
            check(folder, made, uris)
            print(f"{check.__name__}: passed", flush=True)
        print(f"tiledbsoma {tiledbsoma.__version__}, anndata {anndata.__version__}, Python {sys.version.split()[0]}")
