"""scvi-tools' models trained on the same cells and split by its own loader and by penstock: ELBO, and cells/s.

    build/adapters/environment-scvi/bin/python benchmarks/scvi_training.py --cells 20000 --genes 2000

in the environment of `make adapters`, with PYTHONPATH=build/adapters/runs-scvi/path. Generated cells of eight types on
four plates; about a tenth of the counts are not 0. ELBOs are of the held-out tenth after some epochs, mean and standard
deviation over seeds. A loader's cells/s are those of an epoch of train batches of 128, without a model: the best of
some, files in the page cache.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable
from typing import Any

import anndata
import numpy as np
import pandas
import penstock
import scipy.sparse
import scvi
import torch
from penstock.adapters.scvi import DataModule
from scvi.dataloaders import DataSplitter

warnings.simplefilter("ignore")
ROWS = 128
KEYS = {"batch_key": "plate", "labels_key": "cell_type"}


def made(cells: int, genes: int) -> anndata.AnnData:
    random = np.random.default_rng(0)
    types, plates = random.integers(0, 8, cells), random.integers(0, 4, cells)
    means = random.gamma(0.15, 1.5, (8, genes))
    shifts = np.exp(random.normal(0, 0.3, (4, genes)))
    parts = []
    for at in range(0, cells, 2_000):
        mean = means[types[at : at + 2_000]] * shifts[plates[at : at + 2_000]]
        depth = random.lognormal(0, 0.4, len(mean))[:, None]
        parts.append(scipy.sparse.csr_matrix(random.poisson(random.gamma(2.0, mean * depth / 2)).astype("f4")))
    labels = np.where(random.random(cells) < 0.3, "Unknown", [f"type {kind}" for kind in types])
    obs = {"plate": [f"plate {plate}" for plate in plates], "cell_type": labels}
    frame = pandas.DataFrame({name: pandas.Categorical(values) for name, values in obs.items()})
    frame.index = [f"cell {cell}" for cell in range(cells)]
    return anndata.AnnData(scipy.sparse.vstack(parts, "csr"), obs=frame)


def elbo(kind: str, path: str, whole: anndata.AnnData | None, seed: int, epochs: int) -> float:
    """Of the held-out cells after training; by scvi's own loader where an AnnData is given."""
    cells = DataModule(path, model=kind, batch_size=ROWS, seed=seed, **KEYS)
    scvi.settings.seed = seed
    of, more = getattr(scvi.model, kind), {}
    if whole is None:
        model = of(registry=cells.registry, **({"datamodule": cells} if kind == "SCANVI" else {}))
        more["datamodule"] = cells
    else:
        there = whole.copy()
        of.setup_anndata(there, **KEYS, **({"unlabeled_category": "Unknown"} if kind == "SCANVI" else {}))
        model = of(there)
        split = [cells.train_idx, cells.val_idx, cells.test_idx]
        more["datasplitter_kwargs"] = {"external_indexing": split}
    model.train(max_epochs=epochs, accelerator="cpu", enable_progress_bar=False, check_val_every_n_epoch=epochs, **more)
    return float(model.history["elbo_validation"].iloc[-1, 0])


def elbos(kind: str, path: str, whole: anndata.AnnData, seeds: int, epochs: int) -> None:
    found = {
        name: [elbo(kind, path, given, seed, epochs) for seed in range(seeds)]
        for name, given in (("scvi's loader", whole), ("penstock", None))
    }
    said = (f"{name} {statistics.mean(each):.2f} ± {statistics.stdev(each):.2f}" for name, each in found.items())
    print(f"{kind}, {epochs} epochs, {seeds} seeds: negative ELBO {'; '.join(said)}", flush=True)


def rates(loaders: dict[str, Callable[[], Any]], rounds: int) -> None:
    """Each in turn, so that what else the machine does hits all of them."""
    best = dict.fromkeys(loaders, 0.0)
    for _ in range(rounds):
        for name, loader in loaders.items():
            batches, cells, begin = loader(), 0, time.monotonic()
            for batch in batches:
                cells += len(batch["X"])
            best[name] = max(best[name], cells / (time.monotonic() - begin))
    for name, each in best.items():
        print(f"{name}: {each:,.0f} cells/s", flush=True)


def own(data: anndata.AnnData) -> Callable[[], Any]:
    scvi.model.SCVI.setup_anndata(data, batch_key="plate")
    manager = scvi.model.SCVI(data).adata_manager
    splitter = DataSplitter(manager, train_size=0.9, batch_size=ROWS)
    splitter.setup()
    return splitter.train_dataloader


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cells", type=int, default=20_000)
    parser.add_argument("--genes", type=int, default=2_000)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=5, help="of the loaders")
    options = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as place:
        whole, path, imported = made(options.cells, options.genes), f"{place}/cells.h5ad", f"{place}/cells"
        whole.write_h5ad(path)
        penstock.import_anndata(path, imported, obs=["plate", "cell_type"])
        density = whole.X.nnz / np.prod(whole.shape)
        print(
            f"{options.cells:,} cells, {options.genes:,} genes, {density:.1%}; scvi-tools {scvi.__version__}",
            flush=True,
        )
        loaders = {
            "scvi's loader, AnnData in memory": own(whole.copy()),
            "scvi's loader, AnnData backed": own(anndata.read_h5ad(path, backed="r")),
        }
        for name, at in (("the .h5ad in place", path), ("imported", imported)):
            loaders[f"penstock, {name}"] = DataModule(at, batch_key="plate", batch_size=ROWS).train_dataloader
        if options.rounds:
            rates(loaders, options.rounds)
        for kind in ("SCVI", "SCANVI") if options.epochs else ():
            elbos(kind, path, whole, options.seeds, options.epochs)


if __name__ == "__main__":
    main()
