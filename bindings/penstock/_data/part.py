"""Parts of a view: slices, selections, splits and choices, one upon the other, each numbered anew."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from penstock import _native
from penstock._base.errors import InvalidArgumentError
from penstock._base.words import counted
from penstock._data.where import Choice


@dataclass(frozen=True)
class Split:
    """One of each run of `one_in` observations, or the others; see core/rows/split.h."""

    one_in: int
    seed: int
    held_out: bool


@dataclass(frozen=True, eq=False)
class Where:
    """Observations in documents that a condition chose; `chosen` are those of the whole view."""

    choice: Choice
    chosen: _native.Chosen


Step = range | npt.NDArray[np.uint64] | Split | Where
Steps = tuple[Step, ...]


def add_slice(steps: Steps, index: slice, size: int) -> Steps:
    """The steps of a slice of a part that has `size` observations."""
    if steps and isinstance(steps[-1], (range, np.ndarray)):
        return (*steps[:-1], _canonical(steps[-1][index]))
    return (*steps, _canonical(range(size)[index]))


def add_selection(steps: Steps, selected: npt.NDArray[Any]) -> Steps:
    """The steps of a selection of a part: integers below its size."""
    if steps and isinstance(steps[-1], (range, np.ndarray)):
        last = steps[-1]
        numbers = last.start + selected.astype(np.int64) * last.step if isinstance(last, range) else last[selected]
        return (*steps[:-1], np.ascontiguousarray(numbers, np.uint64))
    return (*steps, np.ascontiguousarray(selected, np.uint64))


def native(source: _native.Source, steps: Steps) -> _native.Source:
    """The native view of the part; the source itself where it is all of it."""
    for number, step in enumerate(steps):
        if isinstance(step, Split):
            source = _native.make_split(source, step.one_in, step.seed, step.held_out)
        elif isinstance(step, Where):
            chosen = step.chosen if number == 0 else _native.chosen_of_part(source, step.chosen)
            source = _native.make_where(source, chosen, step.choice.said)
        elif not isinstance(step, range):
            source = _native.make_selection(source, step)
        elif step != range(source.size):
            source = _native.make_slice(source, step[0] if step else 0, step.step, len(step))
    return source


def clipped(steps: Steps, whole: _native.Source, choose: Callable[[str], Where]) -> Steps:
    """The steps as they are of a view with fewer observations, `whole`, of which `choose` takes a condition.

    Selections have no meaning there.
    """
    found: Steps = ()
    for step in steps:
        size = native(whole, found).size
        if isinstance(step, Split):
            found = (*found, step)
        elif isinstance(step, Where):
            found = (*found, choose(step.choice.condition))
        elif isinstance(step, range):
            found = add_slice(found, slice(step.start, min(step.stop, size), step.step), size)
    return found


def checked_indices(array: npt.NDArray[Any], what: str, wanted: str) -> npt.NDArray[Any]:
    """Numbers of observations, as they were given.

    Raises:
        InvalidArgumentError: they are no integers [n] from 0 on.
    """
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise InvalidArgumentError(f"{what} of shape {list(array.shape)} and type {array.dtype}: {wanted}")
    if array.size and array.min() < 0:
        raise InvalidArgumentError(f"observation {array.min()}: indices begin at 0")
    return array


def words(steps: Steps, size: int) -> str:
    """The steps as they would be typed; nothing for one that is all of `size` observations."""
    said = ""
    for step in steps:
        if isinstance(step, Split):
            said += f".split({step.one_in}, seed={step.seed})[{int(step.held_out)}]"
        elif isinstance(step, Where):
            said += f".where({step.choice.condition!r})"
        elif not isinstance(step, range):
            said += f".select({counted(len(step), 'observation')})"
        elif step != range(size):
            stop = "" if step.stop < 0 else step.stop  # of a negative step
            said += f"[{step.start}:{stop}{'' if step.step == 1 else f':{step.step}'}]"
    return said


def _canonical(step: Any) -> Any:
    # Of at most one observation, whatever its step: it is the same part.
    if isinstance(step, range) and len(step) <= 1:
        return range(step[0], step[0] + 1) if step else range(0)
    return step
