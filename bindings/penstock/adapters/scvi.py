"""Cells for the models of scvi-tools: `model.train(datamodule=DataModule("plates/", batch_key="plate"))`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from penstock._base.arguments import index, one_of
from penstock._base.errors import InvalidArgumentError
from penstock._base.ranks import resolve
from penstock._data.cell_view import CellView
from penstock._data.cells import Csr, Dense
from penstock._data.fractions import warn_of_no_counts
from penstock._load.mixture import SourceOrder
from penstock.adapters._cell_batches import EvalBatches, Minified, Names, Tensorer, Tensors, TrainBatches
from penstock.adapters._cell_codes import coded, labels, numbers
from penstock.adapters._cell_loaders import Loaders, checked_options
from penstock.adapters._cell_parts import PARTS, opened, parts_of
from penstock.adapters._common import missing
from penstock.adapters._scvi_registry import SEMISUPERVISED, Described

try:
    from scvi import REGISTRY_KEYS
    from scvi import __version__ as _VERSION
except ImportError as error:
    raise missing("scvi", "scvi-tools", error, "1.4.2") from error

import torch
from lightning.pytorch import LightningDataModule

_INFERENCE_ROWS = 1024
_MINIFIED = "latent_posterior_parameters"
_NAMES = Names(
    x=REGISTRY_KEYS.X_KEY,
    batch=REGISTRY_KEYS.BATCH_KEY,
    labels=REGISTRY_KEYS.LABELS_KEY,
    categorical=REGISTRY_KEYS.CAT_COVS_KEY,
    continuous=REGISTRY_KEYS.CONT_COVS_KEY,
    size_factor=REGISTRY_KEYS.SIZE_FACTOR_KEY,
)


class DataModule(Described, LightningDataModule):  # type: ignore[misc]
    """Cells of a dataset, or of .h5ad files in place, for SCVI, SCANVI and LinearSCVI (scvi-tools 1.4 and later).

    `model = scvi.model.SCVI(registry=cells.registry)`, then `model.train(datamodule=cells)`. SCANVI takes
    `datamodule=cells`, too, when it is made and loaded, and so does `save` of all. `inference_dataloader()` is the
    `dataloader=` of `get_latent_representation` and other methods, see docs/cells.md. The
    counts of a batch are made by native threads.

    Lightning's checkpoints have its state, of the last batch that was trained on: a run that is stopped within an epoch
    goes on with the next batch, on any number of ranks.

    Attributes:
        dataset: of the cells.
        train_idx: numbers of the cells that are trained on, int64, ascending.
        val_idx: of those that are validated on.
        test_idx: of those that are kept for tests.
        n_obs: how many cells there are, in whatever part.
        n_vars: how many genes.
        n_batch: how many categories of batches.
        n_labels: how many labels; with SCANVI without that of cells that have none.
        labels_: the label of each cell, None where it has none.
    """

    def __init__(
        self,
        data: Any,
        *more: Any,
        batch_key: str | None = None,
        labels_key: str | None = None,
        categorical_covariate_keys: Iterable[str] = (),
        continuous_covariate_keys: Iterable[str] = (),
        size_factor_key: str | None = None,
        model: Any = "SCVI",
        unlabeled_category: str = "Unknown",
        genes: Any = None,
        value: str = "count",
        validation: Any = 0.1,
        test: Any = None,
        train: Any = None,
        split_seed: int = 0,
        batch_size: int = 128,
        seed: int = 0,
        order: SourceOrder = "uniform",
        rank: int | None = None,
        world_size: int | None = None,
        sparse: bool = False,
        seed_noise: bool = True,
        **options: Any,
    ) -> None:
        """Opens what is a path, reads the columns that are named, and divides the cells.

        Args:
            data: a dataset, what `dataset.where(…)` gives, or a path of one, or of an .h5ad file.
            *more: further paths, for `penstock.open`.
            batch_key: the column of obs that tells batches; None: there is one.
            labels_key: the column of labels.
            categorical_covariate_keys: columns of further categories.
            continuous_covariate_keys: columns of numbers.
            size_factor_key: the column of size factors; None: the sum of a cell's counts.
            model: the class of the model, or its name: "SCVI", "SCANVI", "LinearSCVI". SCANVI trains on pairs of
                batches, the second of cells with labels.
            unlabeled_category: what cells without a label are called, those with this label and those that miss one.
            genes: which, by name or number, in this order; None: all.
            value: the field of the counts, or another layer.
            validation: which cells are validated on: a fraction of all, a condition such as "plate = 'p7'", their
                numbers, or a mask.
            test: which ones are kept for tests; None: none are.
            train: which ones are trained on, a condition, numbers or a mask; None: all others. Fractions are taken of
                the cells that it leaves, and refused where it leaves too few.
            split_seed: of cells that a fraction takes.
            batch_size: cells of a rank's batches.
            seed: of the order.
            order: in which cells are trained on, as for `Loader`.
            rank: of this process; None: Lightning's.
            world_size: number of ranks; None: Lightning's.
            sparse: whether counts go to the device as compressed rows and become dense there.
            seed_noise: whether torch's generators are seeded before each batch that is trained on, by its position, the
                rank and torch's seed when training began. A run that goes on from a checkpoint, which has no state of
                these generators, then has the weights of one that was never stopped, bit by bit.
            **options: `pin_memory`, `reader`, `threads`, `prefetch` and `max_bytes`, as for `Loader`.

        Raises:
            InvalidArgumentError: a column that is not there, or a cell without a value in it; parts that cannot be.
            NotFoundError: no such file.
        """
        super().__init__()
        self.dataset, self._cells = opened(data, more)
        self._model = str(getattr(model, "__name__", model))
        self._unlabeled, self._version = str(unlabeled_category), str(_VERSION)
        self._share_given = (rank, world_size)
        self._seeds_noise, checked = bool(seed_noise), checked_options(options)
        if self._is_semisupervised and labels_key is None:
            raise InvalidArgumentError(f'model="{SEMISUPERVISED}": labels_key= must name the column of labels')
        keys = (categorical_covariate_keys, continuous_covariate_keys, size_factor_key)
        self._make = self._tensorer(batch_key, labels_key, *keys)
        form = Csr() if sparse else Dense()
        view = self.dataset.cells(form, value=value, genes=genes, columns=self._make.columns)
        assert isinstance(view, CellView)
        if view.cells.width is None:
            raise InvalidArgumentError("DataModule: how many genes are there? The dataset does not say: give genes=")
        self._view = view
        warn_of_no_counts(self.dataset, value)
        parts = parts_of(self.dataset, self._cells, train, validation, test, split_seed)
        self.train_idx, self.val_idx, self.test_idx = parts
        self._loaders = Loaders(view, self._make, index("batch_size", batch_size, 2), seed, order, checked)
        self._train: TrainBatches | None = None
        self._loaded: dict[str, Any] | None = None

    def _tensorer(
        self,
        batch: str | None,
        label: str | None,
        categorical: Iterable[str],
        continuous: Iterable[str],
        size_factor: str | None,
    ) -> Tensorer:
        of = (self.dataset, self._cells)
        found, self._label_codes = (None, None) if label is None else labels(label, *of, self._unlabeled)
        return Tensorer(
            names=_NAMES,
            batch=None if batch is None else coded("batch_key", batch, *of),
            labels=found,
            categorical=tuple(coded("categorical_covariate_keys", key, *of) for key in _listed(categorical)),
            continuous=tuple(numbers("continuous_covariate_keys", key, *of) for key in _listed(continuous)),
            size_factor=None if size_factor is None else numbers("size_factor_key", size_factor, *of),
        )

    # --- batches

    def setup(self, stage: str) -> None:
        """Begins an epoch again that an earlier fit broke off, unless a state is loaded; Lightning calls it."""
        if stage == "fit" and self._train is not None:
            self._train.begin_again()

    def train_dataloader(self) -> TrainBatches:
        """Batches to train on, an epoch at each `for`; the same object each time, which goes on where it is.

        Raises:
            InvalidArgumentError: fewer than two cells for each rank; with SCANVI, with labels.
        """
        rank, ranks = self._share()
        before = self._train
        if before is not None and (before.loader.rank, before.loader.world_size) == (rank, ranks):
            return before
        self.close()
        labeled = self._loaders.labeled(self._labeled_cells(), rank, ranks) if self._is_semisupervised else None
        noise = torch.initial_seed() if self._seeds_noise else None
        cells = self._loaders.to_train(self.train_idx, rank, ranks)
        made = TrainBatches(cells, self._loaders.rows, labeled, noise)
        if self._loaded:
            made.load_state_dict(self._loaded)
        self._train, self._loaded = made, None
        return made

    def val_dataloader(self) -> EvalBatches | list[Any]:
        """Batches to validate on, of this rank, in the order of the cells; an empty list where there are no cells."""
        return self._to_evaluate(self.val_idx)

    def test_dataloader(self) -> EvalBatches | list[Any]:
        """The same of the cells that are kept for tests."""
        return self._to_evaluate(self.test_idx)

    def predict_dataloader(self) -> EvalBatches:
        """The same as `inference_dataloader()`."""
        return self.inference_dataloader()

    def inference_dataloader(self, part: Any = None, *, batch_size: int = _INFERENCE_ROWS) -> EvalBatches:
        """The `dataloader=` of a model's methods, see docs/cells.md: cells in their order, all of them on this rank.

        Args:
            part: "train", "validation" or "test"; or numbers of cells, in any order; None: all.
            batch_size: of these batches.

        Raises:
            InvalidArgumentError: a part without cells, or that is none.
        """
        if isinstance(part, str):
            one_of("part", part, PARTS)
            part = dict(zip(PARTS, (self.train_idx, self.val_idx, self.test_idx), strict=True))[part]
        return self._loaders.to_evaluate(self._cells if part is None else part, batch_size, 0, 1, _dense)

    def minify(self, model: Any) -> Minified:
        """Keeps of each cell what a trained model makes of it: two floats a latent dimension, and the counts' sum.

        The model is told so, by `model.module.minified_data_type`: its methods take the loader that is returned, and no
        counts, until that is None again.

        Args:
            model: an SCVI, SCANVI or LinearSCVI that was trained on such cells.

        Returns:
            The `dataloader=` of `get_latent_representation` and `get_normalized_expression`, in memory.
        """
        kept: dict[str, list[Any]] = {}

        def noted(tensors: Tensors) -> Tensors:
            tensors = _dense(tensors)
            for name, values in _without_counts(tensors).items():
                kept.setdefault(name, []).append(values)
            return tensors

        model.module.minified_data_type = None
        counts = self._loaders.to_evaluate(self._cells, _INFERENCE_ROWS, 0, 1, noted)
        mean, variance = model.get_latent_representation(dataloader=counts, return_dist=True)
        made = {name: torch.cat(parts) for name, parts in kept.items()}
        made[REGISTRY_KEYS.LATENT_QZM_KEY] = torch.from_numpy(mean)
        made[REGISTRY_KEYS.LATENT_QZV_KEY] = torch.from_numpy(variance)
        model.module.minified_data_type = _MINIFIED
        return Minified(made, _INFERENCE_ROWS)

    def set_library_prior(self, model: Any) -> None:
        """Gives a model the prior of library sizes: for `use_observed_lib_size=False`, which is LinearSCVI's default.

        It is mean and variance of the logarithms of the cells' sums in each batch. A model that is made of an AnnData
        has it; one that is made of the registry has 0 and 1 in its place. All counts are read once.

        Args:
            model: one that is not trained yet.
        """
        kept = [_without_counts(batch) for batch in self.inference_dataloader()]
        sums, batches = (
            torch.cat([each[name] for each in kept])[:, 0] for name in (REGISTRY_KEYS.OBSERVED_LIB_SIZE, _NAMES.batch)
        )
        means, variances = torch.zeros(1, self.n_batch), torch.ones(1, self.n_batch)
        for batch in range(self.n_batch):
            logs = sums[(batches == batch) & (sums > 0)].double().log()
            if len(logs):
                means[0, batch], variances[0, batch] = logs.mean(), logs.var(correction=0)
        model.module.library_log_means.copy_(means)
        model.module.library_log_vars.copy_(variances)

    def on_after_batch_transfer(self, batch: Any, dataloader_idx: int) -> Any:
        """Makes compressed rows dense where they are now; Lightning calls it."""
        return tuple(map(_dense, batch)) if isinstance(batch, tuple | list) else _dense(batch)

    # --- its state

    def state_dict(self) -> dict[str, Any]:
        """Where training is, after the batch that was given last; Lightning keeps it in its checkpoints."""
        return dict(self._loaded or {}) if self._train is None else self._train.state_dict()

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Goes on where the state was taken, on any number of ranks.

        Raises:
            StateMismatchError: a state of other cells, or of another order or seed.
            InvalidArgumentError: it is no state of such a module.
        """
        if self._train is None:
            self._loaded = dict(state_dict)
        else:
            self._train.load_state_dict(state_dict)

    def close(self) -> None:
        """Stops the threads that read to train on; `train_dataloader` then goes on where they were."""
        if self._train is not None:
            self._loaded = self._train.state_dict()
            self._train.close()
            self._train = None

    def __getstate__(self) -> dict[str, Any]:
        """Pickles with its state, without threads."""
        return {**self.__dict__, "_loaded": self.state_dict(), "_train": None}

    def _share(self) -> tuple[int, int]:
        """This process's rank and how many there are: as it was told, or as the trainer says."""
        rank, ranks = self._share_given
        if rank is None and ranks is None and self.trainer is not None:
            return int(self.trainer.global_rank), int(self.trainer.world_size)
        return resolve(rank, ranks, None)[:2]

    def _labeled_cells(self) -> npt.NDArray[np.int64]:
        """Those to train on that have a label."""
        assert self._label_codes is not None
        is_labeled = np.zeros(self.dataset.spans, np.bool_)
        cells = np.arange(self.dataset.spans) if self._cells is None else self._cells
        is_labeled[cells[self._label_codes < self.n_labels]] = True
        return self.train_idx[is_labeled[self.train_idx]]

    def _to_evaluate(self, cells: npt.NDArray[np.int64]) -> EvalBatches | list[Any]:
        if len(cells) == 0:
            return []
        make = self._paired if self._is_semisupervised else _as_it_is
        return self._loaders.to_evaluate(cells, None, *self._share(), make)

    def _paired(self, tensors: Tensors) -> tuple[Tensors, Tensors | None]:
        """A batch, and the part of it that has labels."""
        tensors = _dense(tensors)
        is_labeled = tensors[_NAMES.labels][:, 0] < self.n_labels
        if not bool(is_labeled.any()):
            return tensors, None
        return tensors, {name: values[is_labeled] for name, values in tensors.items()}


def _as_it_is(tensors: Tensors) -> Tensors:
    return tensors


def _dense(tensors: Any) -> Any:
    """With dense counts."""
    if not isinstance(tensors, dict) or tensors[_NAMES.x].layout != torch.sparse_csr:
        return tensors
    return {**tensors, _NAMES.x: tensors[_NAMES.x].to_dense()}


def _without_counts(tensors: Tensors) -> Tensors:
    """With their sums in place of the counts, which are dense."""
    sums = {REGISTRY_KEYS.OBSERVED_LIB_SIZE: tensors[_NAMES.x].sum(1, keepdim=True)}
    return {name: values for name, values in tensors.items() if name != _NAMES.x} | sums


def _listed(keys: Iterable[str] | None) -> list[str]:
    return [keys] if isinstance(keys, str) else list(keys or ())
