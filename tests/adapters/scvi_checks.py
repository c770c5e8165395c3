"""What `scvi.DataModule` promises of scvi-tools' models, beside being resumed; run where the corpus is."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

import lightning.pytorch
import numpy as np
import penstock
import scvi
import torch
from penstock.adapters.scvi import DataModule

warnings.simplefilter("ignore")
QUIET: dict[str, Any] = {"accelerator": "cpu", "enable_progress_bar": False}
COVARIATES = {"categorical_covariate_keys": ["donor"], "continuous_covariate_keys": ["age"]}
NO_LABEL = "Unknown"


def anndata_of(labels: bool) -> Any:
    """The same cells in memory; labels as scvi-tools wants them, none missing."""
    made = penstock.open("plates").to_anndata()
    if labels:
        made.obs["cell_type"] = made.obs["cell_type"].cat.add_categories([NO_LABEL]).fillna(NO_LABEL)
    return made


def fitted(kind: str, given: dict[str, Any], epochs: int = 2) -> tuple[DataModule, Any, Any]:
    """Cells, a model trained on them, and one made of an AnnData with the same weights."""
    cells = DataModule("plates", model=kind, batch_key="plate", **given)
    model = new(kind, cells)
    model.train(datamodule=cells, max_epochs=epochs, check_val_every_n_epoch=1, **QUIET)
    return cells, model, copy_of(kind, model, given)


def new(kind: str, cells: DataModule) -> Any:
    scvi.settings.seed = 0
    more = {"datamodule": cells} if kind == "SCANVI" else {}
    return getattr(scvi.model, kind)(registry=cells.registry, n_hidden=32, n_latent=4, **more)


def copy_of(kind: str, model: Any, given: dict[str, Any]) -> Any:
    made, of = anndata_of(kind == "SCANVI"), getattr(scvi.model, kind)
    more = {"unlabeled_category": NO_LABEL} if kind == "SCANVI" else {}
    of.setup_anndata(made, batch_key="plate", **given, **more)
    copied = of(made, n_hidden=32, n_latent=4)
    copied.module.load_state_dict(model.module.state_dict())
    copied.module.eval()
    copied.is_trained_ = True
    return copied


def methods_give_what_they_give_of_an_anndata(folder: Path) -> None:
    cases: list[tuple[str, dict[str, Any]]] = [
        ("SCVI", {}),
        ("SCVI", COVARIATES),
        ("SCANVI", {"labels_key": "cell_type"}),
        ("SCANVI", {"labels_key": "cell_type", **COVARIATES}),
    ]
    if "registry" in inspect.signature(scvi.model.LinearSCVI).parameters:  # since scvi-tools 1.5
        cases.append(("LinearSCVI", {}))
    for number, (kind, given) in enumerate(cases):
        cells, model, copied = fitted(kind, given)
        latent = model.get_latent_representation(dataloader=cells.inference_dataloader())
        assert np.array_equal(latent, copied.get_latent_representation()), kind
        part = model.get_latent_representation(dataloader=cells.inference_dataloader("validation"))
        assert np.abs(part - latent[cells.val_idx]).max() < 1e-4, kind
        if kind == "SCANVI":
            found = model.predict(dataloader=cells.inference_dataloader())
            assert (found == copied.predict()).all()
            assert not (found == NO_LABEL).any()
        small = cells.minify(model)
        assert np.array_equal(latent, model.get_latent_representation(dataloader=small)), kind
        assert model.get_normalized_expression(dataloader=small).shape == (cells.n_obs, cells.n_vars)
        model.module.minified_data_type = None
        place = str(folder / f"{number}")
        model.save(place, datamodule=cells)
        more = {"datamodule": cells} if kind == "SCANVI" else {}
        again = getattr(scvi.model, kind).load(place, adata=False, **more)
        assert np.array_equal(latent, again.get_latent_representation(dataloader=cells.inference_dataloader())), kind


def a_linear_model_of_an_older_release_trains_on_the_cells_too() -> None:
    """It is made of an AnnData of a few cells there; the prior is of all."""
    cells = DataModule("plates", batch_key="plate", model="LinearSCVI")
    whole, few = (penstock.open("plates").to_anndata(which) for which in (None, range(64)))
    models = []
    for made in (whole, few):
        scvi.model.LinearSCVI.setup_anndata(made, batch_key="plate")
        scvi.settings.seed = 0
        models.append(scvi.model.LinearSCVI(made, n_latent=4))
    cells.set_library_prior(models[1])
    for name in ("library_log_means", "library_log_vars"):
        one, other = (getattr(model.module, name) for model in models)
        assert torch.allclose(one, other, atol=1e-5), name
    models[1].train(datamodule=cells, max_epochs=2, **QUIET)
    latent = models[1].get_latent_representation(dataloader=cells.inference_dataloader())
    assert latent.shape == (cells.n_obs, 4)


def a_pretrained_model_becomes_a_semisupervised_one() -> None:
    cells, model, _ = fitted("SCVI", {}, epochs=1)
    labeled = DataModule("plates", model="SCANVI", batch_key="plate", labels_key="cell_type")
    semisupervised = new("SCANVI", labeled)
    semisupervised.module.load_state_dict(model.module.state_dict(), strict=False)
    semisupervised.train(datamodule=labeled, max_epochs=20, **QUIET)
    found = semisupervised.predict(dataloader=labeled.inference_dataloader("validation"))
    known = labeled.labels_[labeled.val_idx]
    there = np.array([each is not None for each in known])
    assert (found[there] == known[there]).mean() > 0.7
    assert cells.n_obs == labeled.n_obs


def weights_after_a_resume_are_those_of_a_run_that_was_never_stopped(folder: Path) -> None:
    class Saved(lightning.pytorch.Callback):
        def on_train_batch_end(self, trainer: Any, *_: Any) -> None:
            if trainer.global_step == 11:
                trainer.save_checkpoint(folder / "saved.ckpt")

    for kind, given in (("SCVI", {}), ("SCANVI", {"labels_key": "cell_type"})):
        weights = []
        for more in ({"callbacks": [Saved()]}, {"ckpt_path": str(folder / "saved.ckpt")}):
            cells = DataModule("plates", model=kind, batch_key="plate", **given)
            model = new(kind, cells)
            model.train(datamodule=cells, max_epochs=3, check_val_every_n_epoch=1, **QUIET, **more)
            weights.append(model.module.state_dict())
        for name, values in weights[0].items():
            assert torch.equal(values, weights[1][name]), (kind, name)


class Seen(lightning.pytorch.Callback):
    """Rows of each epoch, and of the validation after it."""

    def __init__(self) -> None:
        self.trained: list[bytes] = []
        self.validated: list[bytes] = []

    def on_train_batch_end(self, trainer: Any, model: Any, outputs: Any, batch: Any, number: int) -> None:
        self.trained += [row.numpy().tobytes() for row in batch["X"]]

    def on_validation_batch_end(self, trainer: Any, model: Any, outputs: Any, batch: Any, number: int) -> None:
        self.validated += [row.numpy().tobytes() for row in batch["X"]]


def train_one_of_two(folder: Path) -> None:
    cells, seen = DataModule("plates", batch_key="plate", batch_size=50), Seen()
    model = new("SCVI", cells)
    model.train(datamodule=cells, max_epochs=1, check_val_every_n_epoch=1, devices=2, callbacks=[seen],
                strategy="ddp_find_unused_parameters_true", log_save_dir=str(folder), **QUIET)  # fmt: skip
    torch.save((seen.trained, seen.validated), folder / f"{os.environ['RANK']}.pt")


def ranks_see_each_cell_once(folder: Path) -> None:
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", __file__]
    subprocess.run([*command, "rank", str(folder)], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    cells = DataModule("plates")
    shares = [torch.load(folder / f"{rank}.pt", weights_only=False) for rank in range(2)]
    for part, name in enumerate(("train", "validation")):
        rows = [row.numpy().tobytes() for batch in cells.inference_dataloader(name) for row in batch["X"]]
        assert sorted(shares[0][part] + shares[1][part]) == sorted(rows), name
        assert len(set(rows)) == len(rows) and not set(shares[0][part]) & set(shares[1][part]), name


if __name__ == "__main__":
    if sys.argv[1:2] == ["rank"]:
        train_one_of_two(Path(sys.argv[2]))
        sys.exit()
    with tempfile.TemporaryDirectory() as place:
        methods_give_what_they_give_of_an_anndata(Path(place))
        a_linear_model_of_an_older_release_trains_on_the_cells_too()
        a_pretrained_model_becomes_a_semisupervised_one()
        weights_after_a_resume_are_those_of_a_run_that_was_never_stopped(Path(place))
        ranks_see_each_cell_once(Path(place))
