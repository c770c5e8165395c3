"""Batches of cells as models of scvi-tools take them: dicts of tensors, of the rows that are cells."""

from __future__ import annotations

import hashlib
import re
import struct
from collections.abc import Callable, Iterator, Mapping, Sized
from dataclasses import dataclass
from typing import Any, cast

from penstock._base.errors import InvalidArgumentError, StateMismatchError
from penstock._data.batch import Batch
from penstock._load.loader import Loader
from penstock.adapters._cell_codes import Coded

Tensors = dict[str, Any]
LEAST = 2  # cells of a rank's batch that is trained on: BatchNorm refuses one


@dataclass(frozen=True)
class Names:
    """Names of the tensors of a batch."""

    x: str
    batch: str
    labels: str
    categorical: str
    continuous: str
    size_factor: str


@dataclass(frozen=True)
class Tensorer:
    """Makes the tensors of a batch, by a call of torch for each tensor, none for a cell.

    Attributes:
        names: of the tensors.
        batch: the column of batches; None: all cells are of one.
        labels: the column of labels; None: all cells have one.
        categorical: columns of further categories, side by side.
        continuous: columns of numbers, side by side.
        size_factor: the column of it; None: the model takes the sum of the counts.
    """

    names: Names
    batch: Coded | None
    labels: Coded | None
    categorical: tuple[Coded, ...]
    continuous: tuple[str, ...]
    size_factor: str | None

    @property
    def columns(self) -> list[str]:
        """Columns that a view has to give."""
        coded = [each.name for each in (self.batch, self.labels, *self.categorical) if each is not None]
        more = [*self.continuous, *([] if self.size_factor is None else [self.size_factor])]
        return list(dict.fromkeys([*coded, *more]))

    def __call__(self, batch: Batch) -> Tensors:
        """The tensors of the rows that are cells: counts float32 [rows, genes], all others [rows, columns]."""
        rows, columns, names, torch = batch._native.valid, batch.columns, self.names, batch._layout.torch

        def codes(of: Coded | None) -> Any:
            if of is None:
                return torch.zeros((rows, 1), dtype=torch.int64)
            return of.codes_of(columns[of.name][:rows])

        def numbers(of: str) -> Any:
            return columns[of][:rows, None].float()

        made = {names.x: _counts(batch, rows), names.batch: codes(self.batch), names.labels: codes(self.labels)}
        if self.categorical:
            made[names.categorical] = torch.cat([codes(each) for each in self.categorical], 1)
        if self.continuous:
            made[names.continuous] = torch.cat([numbers(each) for each in self.continuous], 1)
        if self.size_factor is not None:
            made[names.size_factor] = numbers(self.size_factor)
        return made


def _counts(batch: Batch, rows: int) -> Any:
    if "x" in batch:
        return batch["x"][:rows]
    csr = batch.csr
    if rows == len(csr):
        return csr
    # Rows that are padding come last, and are empty.
    parts = csr.crow_indices()[: rows + 1], csr.col_indices(), csr.values()
    return batch._layout.torch.sparse_csr_tensor(*parts, size=(rows, csr.shape[1]), check_invariants=False)


class EvalBatches:
    """The same batches at each `for`; of a rank that has no cell in the last one, without it."""

    def __init__(self, loader: Loader[Tensors], make: Callable[[Tensors], Any]) -> None:
        """Takes a loader of tensors; `make` makes of these what is given."""
        self.loader = loader
        self._make = make

    def __iter__(self) -> Iterator[Any]:
        """Begins again."""
        for batch in self.loader:
            if len(next(iter(batch.values()))):
                yield self._make(batch)

    def __len__(self) -> int:
        """Batches that have a cell of this rank."""
        return len(self.loader) - (self.loader.tail_rows == 0)


class TrainBatches:
    """Batches that Lightning trains on: each `for` is an epoch; its state is that of the batch trained on.

    An epoch ends before a batch in which a rank would have fewer than `LEAST` cells. What is left of the epoch decides
    that, which after a resume with another number of ranks is not the number of cells modulo the batch size.

    Attributes:
        loader: of the cells, whose tail is padded.
        labeled: an endless one of cells with labels, whose batches go beside the others; None: there is none.
        noise: number that torch's generators are seeded by, with position and rank; None: they are left alone.
    """

    def __init__(self, loader: Loader[Tensors], rows: int, labeled: Loader[Tensors] | None, noise: int | None) -> None:
        """Takes loaders of tensors; `rows` are those of a full batch of the first."""
        self.loader, self._rows, self.labeled, self.noise = loader, rows, labeled, noise
        self._cells = len(cast("Sized", loader.view))
        self._is_placed = False  # by a state, of which no batch was given yet
        self._is_over = False  # the epoch; the loader is at the next one
        self._note()

    def __iter__(self) -> TrainBatches:
        """Goes on at the position."""
        iter(self.loader)
        self._is_over = False
        return self

    def __next__(self) -> Any:
        """The next batch: a dict of tensors; with cells with labels a pair of them.

        Raises:
            StopIteration: the epoch is over.
        """
        position = self.loader.position
        try:
            if self._is_over:
                raise StopIteration
            batch = next(self.loader)
        except StopIteration:
            self._note()
            raise
        try:
            made = batch if self.labeled is None else (batch, next(self.labeled))
        except BaseException:
            self.loader.seek(position)  # it was not given: it comes again
            raise
        self._is_placed = False
        self._is_over = self._leave_out()
        if self.noise is not None:
            _seed(self.loader._layout.torch, _mixed(self.noise, position, self.loader.rank))
        return made

    def __len__(self) -> int:
        """Batches of a whole epoch."""
        ranks = self.loader.world_size
        rest = self._cells % (self._rows * ranks)
        return len(self.loader) - (0 < rest < LEAST * ranks)

    def _leave_out(self) -> bool:
        """Passes over what is left of the epoch if it is too little for a batch; True if it was."""
        position = self.loader.position
        left = -position % self._cells
        if not 0 < left < LEAST * self.loader.world_size:
            return False
        self.loader.seek(position + left)
        return True

    def begin_again(self) -> None:
        """Begins the epoch again that was broken off, unless a state says where to go on."""
        if self._begin is None or self._is_placed:
            return
        self.loader.seek(self._begin[0])
        if self.labeled is not None:
            self.labeled.seek(self._begin[1])

    def _note(self) -> None:
        """An epoch begins here."""
        self._begin: tuple[int, int] | None = (self.loader.position, self.labeled.position if self.labeled else 0)

    def state_dict(self) -> dict[str, Any]:
        """The state after the batch that was given last; the same on every rank where torch's seed is."""
        state: dict[str, Any] = {"cells": self.loader.state_dict(), "noise": self.noise}
        return state if self.labeled is None else {**state, "labeled": self.labeled.state_dict()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Goes on where the state was taken.

        Raises:
            StateMismatchError: a state of other cells, another order or seed.
            InvalidArgumentError: it is no state of this.
        """
        wanted = ["cells"] if self.labeled is None else ["cells", "labeled"]
        for name in wanted:
            if not isinstance(state, Mapping) or name not in state:
                raise InvalidArgumentError(f"the state has no {name!r}: it is not of a DataModule of the same model")
        try:
            self.loader.load_state_dict(state["cells"])
            if self.labeled is not None:
                self.labeled.load_state_dict(state["labeled"])
        except StateMismatchError as error:
            raise StateMismatchError(_advised(str(error))) from None
        if self.noise is not None and state.get("noise") is not None:
            self.noise = int(state["noise"])
        self._begin, self._is_placed, self._is_over = None, True, False
        self._leave_out()  # of a run with fewer ranks, which trained on it

    def close(self) -> None:
        """Stops the loaders' threads."""
        self.loader.close()
        if self.labeled is not None:
            self.labeled.close()


class Minified:
    """Batches that hold what a model made of the cells, in place of their counts."""

    def __init__(self, tensors: Tensors, rows: int) -> None:
        """Takes tensors [cells, …], for batches of `rows`."""
        self._tensors, self._rows = tensors, rows
        self._cells = len(next(iter(tensors.values())))

    def __iter__(self) -> Iterator[Tensors]:
        """Cells in their order."""
        for at in range(0, self._cells, self._rows):
            yield {name: values[at : at + self._rows] for name, values in self._tensors.items()}

    def __len__(self) -> int:
        """How many batches there are."""
        return -(-self._cells // self._rows)


def _advised(message: str) -> str:
    """The refusal of a state, with arguments of the data module in place of `on_mismatch`, which it does not take."""
    said = re.split(r"(?:, or|\.) use on_mismatch=", message, maxsplit=1, flags=re.IGNORECASE)[0]
    if ". Give " not in said:
        said += ". Give validation=, test=, train=, split_seed=, seed= and order= of its run"
    return f"{said}; training begins anew without ckpt_path="


def _seed(torch: Any, seed: int) -> None:
    """Seeds torch's generators: of the CPU, and of the accelerator if there is one in use.

    `torch.manual_seed` takes half a millisecond where CUDA is not initialised, and keeps each call for when it is.
    """
    torch.default_generator.manual_seed(seed)
    if torch.cuda.is_initialized():
        torch.cuda.manual_seed(seed)


def _mixed(noise: int, position: int, rank: int) -> int:
    """A seed of torch's, of 63 bits."""
    key = struct.pack("<QQQ", noise & ((1 << 64) - 1), position, rank)
    return int.from_bytes(hashlib.blake2b(key, digest_size=8).digest(), "little") >> 1
