"""Loaders of cells for training, of their labels, and for evaluation: what is decided once for a data module."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from penstock._base.arguments import index
from penstock._base.errors import InvalidArgumentError
from penstock._data.cell_view import CellView
from penstock._load.evaluation import eval_loader
from penstock._load.loader import Loader
from penstock._load.mixture import SourceOrder
from penstock.adapters._cell_batches import LEAST, EvalBatches, Tensorer, Tensors

_OPTIONS = ("pin_memory", "reader", "threads", "prefetch", "max_bytes")


@dataclass(frozen=True)
class Loaders:
    """The view, order and options that all loaders of a data module share.

    Attributes:
        view: of all cells of the dataset.
        make: makes tensors of a batch.
        rows: cells of a rank's batch.
        seed: of the order.
        order: in which cells are trained on.
        options: further ones of `Loader`.
    """

    view: CellView[Any]
    make: Tensorer
    rows: int
    seed: int
    order: SourceOrder
    options: dict[str, Any]

    def to_train(self, cells: npt.NDArray[np.int64], rank: int, ranks: int) -> Loader[Tensors]:
        """Epoch by epoch; `TrainBatches` leaves out a last batch of fewer than `LEAST` cells for a rank.

        Raises:
            InvalidArgumentError: fewer than two cells for each rank.
        """
        if len(cells) < LEAST * ranks:
            raise InvalidArgumentError(f"{len(cells):,} cells to train on: {ranks:,} ranks need {LEAST} each")
        given: dict[str, Any] = {"seed": self.seed, "order": self.order, "per_epoch": True, **self.options}
        return self._loader(self.view.select(cells), self.rows, rank, ranks, **given)

    def labeled(self, cells: npt.NDArray[np.int64], rank: int, ranks: int) -> Loader[Tensors]:
        """Cells that have labels, again and again.

        Raises:
            InvalidArgumentError: fewer than two for each rank.
        """
        if len(cells) < LEAST * ranks:
            raise InvalidArgumentError(
                f"{len(cells):,} of the cells to train on have a label: {ranks:,} ranks need {LEAST} each"
            )
        rows = min(self.rows, len(cells) // ranks)
        return self._loader(self.view.select(cells), rows, rank, ranks, seed=self.seed, **self.options)

    def to_evaluate(
        self,
        cells: npt.NDArray[np.int64] | None,
        rows: int | None,
        rank: int,
        ranks: int,
        make: Callable[[Tensors], Any],
    ) -> EvalBatches:
        """Cells in the order of their numbers, or as given; None: all. `make` makes of tensors what is given.

        Raises:
            InvalidArgumentError: there is none; a batch size that cannot be.
        """
        view = self.view if cells is None else self.view.select(cells)
        loader = eval_loader(
            view,
            self.rows if rows is None else index("batch_size", rows, 1),
            order="sequential",
            rank=rank,
            world_size=ranks,
            framework="torch",
            transform=self.make,
            **self.options,
        )
        return EvalBatches(loader, make)

    def _loader(self, view: CellView[Any], rows: int, rank: int, ranks: int, **given: Any) -> Loader[Tensors]:
        return Loader(view, rows, rank=rank, world_size=ranks, framework="torch", transform=self.make, **given)


def checked_options(options: dict[str, Any]) -> dict[str, Any]:
    """Options of `Loader`, those that change no batch.

    Raises:
        InvalidArgumentError: another one.
    """
    for name in options:
        if name not in _OPTIONS:
            raise InvalidArgumentError(
                f"DataModule has no {name!r}: of penstock.Loader's arguments it also takes {', '.join(_OPTIONS)}"
            )
    return options
