"""The part of a dataset that knows features, which records name by number, and cells, whose records name genes."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from penstock import _native
from penstock._base.errors import Error
from penstock._data.cell_forms import resolve as resolve_cells
from penstock._data.cell_view import CellView
from penstock._data.cells import Form
from penstock._data.features import Features
from penstock._data.fractions import warn_of_fractions
from penstock._data.opened import Opened
from penstock._data.spans import Metadata
from penstock._data.stored_columns import names_of
from penstock._data.view import View

if TYPE_CHECKING:
    from typing_extensions import Self

    from penstock._data.h5ad_in_place import FilesInPlace


class DatasetOfCells(Opened):
    """Features, and views and AnnData of cells. See `Dataset`."""

    def __init__(
        self,
        native: _native.Dataset,
        reopen: tuple[Callable[..., Any], tuple[Any, ...]],
        in_place: FilesInPlace | None = None,
    ) -> None:
        """Wraps a native dataset; `reopen` is how another process gets it; `in_place` is of others' files."""
        super().__init__(native, in_place)
        self._reopen = reopen

    @functools.cached_property
    def features(self) -> Features | None:
        """Names and columns of features, such as genes, which records name by number; None where there are none."""
        if self._in_place is not None:
            return self._in_place.features
        if not self._native.features:
            return None
        # Another Dataset of the same files: features that kept this one, which keeps them, would outlive its last user.
        twin = type(self)(self._native, self._reopen)
        return Features(functools.partial(_open_features, twin), self._native.features_fingerprint)

    def cells(
        self,
        form: str | Form = "csr",
        *,
        value: str = "count",
        genes: Any = None,
        normalize: float | None = None,
        log1p: bool = False,
        columns: Sequence[str] = (),
        metadata: Metadata = False,
    ) -> View[Self]:
        """The view of documents that are cells: records {gene, count}, genes ascending, as arrays for training.

        Args:
            form: "csr", "dense", "ranked", "binned", or one of `penstock.cells` with its options.
            value: the field that values are of: the counts, or another layer.
            genes: which genes, by number or name, in this order: they are numbered anew in the batch; None: all.
            normalize: what each cell's values sum up to, over all of its genes; as scanpy's `normalize_total`. None: as
                they are.
            log1p: whether log(1 + value) is taken, after that.
            columns: names of the dataset's columns: `batch.columns[name]` has a value for each cell.
            metadata: as of `windows`.

        Returns:
            A view whose batches have the form's arrays. Its loader's state is that of `documents()`, whatever the form.

        Raises:
            InvalidArgumentError: records that are no cells; unknown genes, or one named twice; an argument that cannot
                be. What no cell may hold is said at the batch that has it: genes that do not ascend, one that the
                dataset does not have, NaN; where values are ranked, binned, normalised or logarithmised, also those
                that are negative or infinite.
        """
        made = resolve_cells(form, value, genes, normalize, log1p, self.dtype, self.features)
        warn_of_fractions(self, made)
        return CellView(self, metadata, names_of(columns), (), made)

    def to_anndata(self, indices: npt.ArrayLike | None = None) -> Any:
        """Cells as AnnData in memory: records as X and layers, columns as obs and obsm, features as var, varm and uns.

        Types are those that an import noted. Else X and layers are float32, float64 where counts have 4 bytes or are
        doubles. Without layers explicit zeros stay. Needs the extra `cells`.

        Args:
            indices: which cells, in this order: integers [n], or a mask; None: all.

        Raises:
            InvalidArgumentError: the dataset has no features or no counts; a cell that is not there.
        """
        from penstock._data.anndata.to_anndata import to_anndata

        return to_anndata(self, indices)

    @property
    def _has_cells(self) -> bool:
        """True if documents are cells: records that name genes; nothing is read."""
        has_features = self._in_place is not None or bool(self._native.features)
        return has_features and self.dtype is not None and "gene" in (self.dtype.names or ())

    def _genes(self) -> int | None:
        """How many there are; None where a network would be asked, or what says so cannot be read."""
        if self._native.is_remote:
            return None
        try:
            return None if self.features is None else len(self.features)
        except (Error, OSError):
            return None


def _open_features(dataset: DatasetOfCells) -> DatasetOfCells:
    return type(dataset)(_native.open_features(dataset._native), (_open_features, (dataset,)))
