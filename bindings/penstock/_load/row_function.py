"""RowFunction: a function of rows and the arrays that it gives."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from penstock._base.arguments import shown
from penstock._base.errors import InvalidArgumentError
from penstock._data.arrays import GivenArray
from penstock._data.dtype import fit
from penstock._data.given_row import Row, RowFacts, RowSpan


class WorkerEndedError(Exception):
    """A process of functions of rows ended while it had one."""


class GivenRow(NamedTuple):
    """A row on its way to functions, as it goes to processes."""

    fields: dict[str, npt.NDArray[Any]]
    facts: RowFacts
    spans: list[RowSpan]

    def row(self) -> Row:
        """The row as a function gets it; its arrays are read-only."""
        for each in self.fields.values():
            each.flags.writeable = False
        return Row(self.fields, self.facts, self.spans)


class RowFunction(NamedTuple):
    """A function and the arrays that it gives; pickles where the function does."""

    function: Any
    arrays: tuple[GivenArray, ...]

    def __call__(self, given: GivenRow) -> list[npt.NDArray[Any]]:
        """Its values of a row, by array.

        Raises:
            InvalidArgumentError: it gave something else; else what it raises.
        """
        facts = given.facts
        made = self.function(given.row(), np.random.default_rng([facts.seed, facts.epoch, facts.observation]))
        if len(self.arrays) == 1 and not isinstance(made, Mapping):
            made = {self.arrays[0].name: made}
        names = [each.name for each in self.arrays]
        if not isinstance(made, Mapping) or set(made) != set(names):
            said = sorted(map(str, made)) if isinstance(made, Mapping) else type(made).__name__
            raise InvalidArgumentError(f"it gave {shown(said)}: a mapping of {', '.join(names)} wanted")
        return [_checked(each, made[each.name]) for each in self.arrays]

    @property
    def called(self) -> str:
        """In messages."""
        return f"PerRow({getattr(self.function, '__name__', type(self.function).__name__)})"


def _checked(wanted: GivenArray, given: Any) -> npt.NDArray[Any]:
    values = given.numpy() if hasattr(given, "numpy") else given  # a tensor
    shape = np.shape(values)
    if shape != wanted.dims:
        raise InvalidArgumentError(f"it gave {wanted.name} of shape {list(shape)}: {list(wanted.dims)} wanted")
    array: npt.NDArray[Any] = fit(values, np.dtype((wanted.base, wanted.dims)), wanted.name, "value")
    return np.ascontiguousarray(array).reshape(wanted.dims)
