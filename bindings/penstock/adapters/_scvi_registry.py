"""The registry of scvi-tools: what a model is told of its cells, in place of an AnnData."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from penstock._base.words import counted
from penstock._data.cell_view import CellView
from penstock._data.dataset import Dataset
from penstock.adapters._cell_batches import Tensorer
from penstock.adapters._cell_codes import Coded

SEMISUPERVISED = "SCANVI"
_NOTHING: dict[str, Any] = {"data_registry": {}, "state_registry": {}, "summary_stats": {}}


class Described:
    """Numbers and names that models ask a data module for, and the registry, which has all of them."""

    dataset: Dataset
    train_idx: npt.NDArray[np.int64]
    val_idx: npt.NDArray[np.int64]
    test_idx: npt.NDArray[np.int64]
    _cells: npt.NDArray[np.int64] | None
    _make: Tensorer
    _model: str
    _unlabeled: str
    _version: str  # of scvi-tools
    _label_codes: npt.NDArray[np.int64] | None
    _view: CellView[Any]

    def __str__(self) -> str:
        """Its cells in words; Lightning's own asks for batches of a class of its own."""
        parts = (f"{self.n_train:,} to train on, {self.n_val:,} to validate on", f"{len(self.test_idx):,} to test on")
        codes = f"{counted(self.n_batch, 'batch category')}, {counted(self.n_labels, 'label')}"
        return (
            f"DataModule({str(self.dataset.path)!r}): {counted(self.n_obs, 'cell')} of {counted(self.n_vars, 'gene')} "
            f"for {self._model}: {', '.join(parts)}; {codes}"
        )

    @property
    def n_obs(self) -> int:
        """Cells, in whatever part they are."""
        return self.dataset.spans if self._cells is None else len(self._cells)

    @property
    def n_vars(self) -> int:
        """Genes."""
        return int(self._view.cells.width or 0)

    @property
    def n_train(self) -> int:
        """Cells that are trained on."""
        return len(self.train_idx)

    @property
    def n_val(self) -> int:
        """Cells that are validated on."""
        return len(self.val_idx)

    @property
    def n_batch(self) -> int:
        """Categories of batches."""
        return len(self.batch_labels)

    @property
    def n_labels(self) -> int:
        """Labels that a model tells apart: with SCANVI without the one of cells that have none."""
        labels, codes = self._make.labels, self._label_codes
        if labels is None or codes is None:
            return 1
        count = len(labels.values)
        is_told = not self._is_semisupervised and bool((codes == count - 1).any())
        return count if is_told else count - 1

    @property
    def labels_(self) -> npt.NDArray[Any]:
        """Label of each cell, an object array [cells]; None where it has none."""
        if self._make.labels is None or self._label_codes is None:
            return np.full(self.n_obs, None, object)
        known = np.array([*self._make.labels.values[:-1], None], object)
        found: npt.NDArray[Any] = known[self._label_codes]
        return found

    @property
    def batch_labels(self) -> npt.NDArray[Any]:
        """The meaning of the codes of batches."""
        return np.array(["0"], object) if self._make.batch is None else self._make.batch.values

    @property
    def label_keys(self) -> list[str] | None:
        """The column of labels."""
        return None if self._make.labels is None else [self._make.labels.name]

    @property
    def n_samples(self) -> int:
        """0: samples are not told apart."""
        return 0

    @property
    def registry(self) -> dict[str, Any]:
        """The registry that a model is made of, in place of an AnnData: `SCVI(registry=cells.registry)`."""
        make, names = self._make, self._make.names
        labels = np.array([self._unlabeled], object) if make.labels is None else make.labels.values
        fields = {
            names.x: self._counts(),
            names.batch: _of_obs("batch", _categories(make.batch, self.batch_labels, "batch"), n_batch=self.n_batch),
            names.labels: _of_obs(
                "labels",
                {**_categories(make.labels, labels, "labels"), "unlabeled_category": self._unlabeled},
                n_labels=self.n_labels,
            ),
            names.size_factor: {} if make.size_factor is None else _of_obs("size_factor", {}),
            names.categorical: _categorical(make.categorical),
            names.continuous: _continuous(make.continuous),
        }
        return {
            "scvi_version": self._version,
            "model_name": self._model,
            "setup_method_name": "setup_datamodule",
            "setup_args": self._arguments(),
            "field_registries": {name: {**_NOTHING, **field} for name, field in fields.items()},
        }

    @property
    def _is_semisupervised(self) -> bool:
        return self._model == SEMISUPERVISED

    def _counts(self) -> dict[str, Any]:
        layer = self._layer
        place = {"attr_name": "X" if layer is None else "layers", "attr_key": layer}
        sizes = {"n_obs": self.n_obs, "n_vars": self.n_vars}
        state = {**sizes, "column_names": np.array(self._genes(), object)}
        stats = {"n_cells": self.n_obs, "n_vars": self.n_vars}
        return {"data_registry": place, "state_registry": state, "summary_stats": stats}

    def _arguments(self) -> dict[str, Any]:
        """The arguments that setup_anndata would have been called with."""
        make = self._make
        return {
            "layer": self._layer,
            "batch_key": None if make.batch is None else make.batch.name,
            "labels_key": None if make.labels is None else make.labels.name,
            "size_factor_key": make.size_factor,
            "categorical_covariate_keys": [each.name for each in make.categorical] or None,
            "continuous_covariate_keys": list(make.continuous) or None,
        }

    @property
    def _layer(self) -> str | None:
        value = self._view.cells.value
        return None if value == "count" else value

    def _genes(self) -> list[str]:
        cells, features = self._view.cells, self.dataset.features
        if cells.places.size:
            chosen = np.flatnonzero(cells.places >= 0)
            numbers = chosen[np.argsort(cells.places[chosen])].tolist()
        else:
            numbers = list(range(self.n_vars))
        return [str(number) if features is None else features.names[number] for number in numbers]


def _of_obs(key: str, state: dict[str, Any], **counts: int) -> dict[str, Any]:
    place = {"attr_name": "obs", "attr_key": f"_scvi_{key}"}
    return {"data_registry": place, "state_registry": state, "summary_stats": counts}


def _categories(column: Coded | None, values: npt.NDArray[Any], default: str) -> dict[str, Any]:
    return {"categorical_mapping": values, "original_key": f"_scvi_{default}" if column is None else column.name}


def _categorical(columns: tuple[Coded, ...]) -> dict[str, Any]:
    found: dict[str, Any] = {"summary_stats": {"n_extra_categorical_covs": len(columns)}}
    if columns:
        found["data_registry"] = {"attr_name": "obsm", "attr_key": "_scvi_extra_categorical_covs"}
        found["state_registry"] = {
            "mapping": {each.name: each.values for each in columns},
            "field_keys": [each.name for each in columns],
            "n_cats_per_key": [len(each.values) for each in columns],
        }
    return found


def _continuous(columns: tuple[str, ...]) -> dict[str, Any]:
    found: dict[str, Any] = {"summary_stats": {"n_extra_continuous_covs": len(columns)}}
    if columns:
        found["data_registry"] = {"attr_name": "obsm", "attr_key": "_scvi_extra_continuous_covs"}
        found["state_registry"] = {"columns": np.array(columns, object)}
    return found
