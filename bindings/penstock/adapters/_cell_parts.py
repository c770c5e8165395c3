"""Cells to train on and cells that are held out: by fractions, by conditions on obs, or by their numbers."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from penstock import _native
from penstock._base.arguments import index
from penstock._base.errors import InvalidArgumentError
from penstock._base.words import counted
from penstock._data.chosen_documents import ChosenDocuments
from penstock._data.dataset import Dataset
from penstock._data.open import open as open_dataset

Numbers = npt.NDArray[np.int64]
PARTS = ("train", "validation", "test")


class Parts(NamedTuple):
    """Numbers of the cells of each part, ascending; no cell is in two."""

    train: Numbers
    validation: Numbers
    test: Numbers


def opened(data: Any, more: tuple[Any, ...]) -> tuple[Dataset, Numbers | None]:
    """The dataset that was given, or its path; and the numbers of the cells of it that are meant, None for all.

    Raises:
        InvalidArgumentError: it is neither; a dataset with paths behind it.
        NotFoundError: no such file.
    """
    if isinstance(data, list | tuple):
        data, more = (data[0] if data else None), (*data[1:], *more)
    if isinstance(data, Dataset | ChosenDocuments):
        if more:
            raise InvalidArgumentError(
                "DataModule: a dataset is given alone: penstock.open(*paths) opens several files"
            )
        return (data, None) if isinstance(data, Dataset) else (data.dataset, data.numbers)
    if data is None or not (isinstance(data, str) or hasattr(data, "__fspath__")):
        raise InvalidArgumentError(
            f"DataModule({data!r:.80}): a dataset is wanted, what dataset.where(…) gives, or paths for penstock.open"
        )
    return open_dataset(data, *more), None


def parts_of(dataset: Dataset, among: Numbers | None, train: Any, validation: Any, test: Any, seed: int) -> Parts:
    """Divides the cells.

    Args:
        dataset: of the cells.
        among: numbers of those that are divided; None: all.
        train: which ones are trained on: a condition, numbers or a mask; None: all that are not held out.
        validation: which ones are held out to validate on: a fraction of all, a condition, numbers or a mask.
        test: the same of those that are held out to test on.
        seed: of what is drawn.

    Raises:
        InvalidArgumentError: a fraction that cannot be; a cell that is not there, or in two parts; nothing to train on.
    """
    free = np.ones(dataset.spans, np.bool_) if among is None else _mask(among, dataset.spans)
    count = int(free.sum())
    given = {"validation": validation, "test": test, "train": train}
    found: dict[str, Numbers] = {}
    for name, which in given.items():
        if which is not None and not _is_fraction(which):
            found[name] = _chosen(name, which, dataset, among)
            if not found[name].size and np.size(which):  # an empty list says that none is wanted
                raise InvalidArgumentError(f"{name}={which!r:.80}: this chooses no cell of the {count:,}")
            taken = found[name][~free[found[name]]]
            if taken.size:
                raise InvalidArgumentError(
                    f"{name}=: {counted(taken.size, 'cell')} of it in another part, or not among the cells given; the "
                    f"first is cell {taken[0]:,}"
                )
            free[found[name]] = False
    if _is_fraction(train):
        raise InvalidArgumentError(f"train={train!r}: give validation= and test= as fractions; train= is a condition")
    sizes = {name: round(_fraction(name, given[name]) * count) for name in ("validation", "test") if name not in found}
    rest = np.flatnonzero(free)
    if "train" not in found and sum(sizes.values()) >= len(rest):
        raise InvalidArgumentError(
            f"validation={validation!r:.80}, test={test!r:.80}: of {counted(count, 'cell')} none is left to train on"
        )
    if sum(sizes.values()) > len(rest):
        given_ones = ", ".join(f"{name}={given[name]!r:.40}" for name, size in sizes.items() if size)
        raise InvalidArgumentError(
            f"{given_ones}: {counted(sum(sizes.values()), 'cell')} of {count:,}, and the other parts leave "
            f"{len(rest):,}: give smaller fractions, or None for a part without cells"
        )
    drawn = _drawn(rest, sum(sizes.values()), seed)
    for name, size in sizes.items():
        found[name], drawn = np.sort(drawn[:size]), drawn[size:]
        free[found[name]] = False
    found.setdefault("train", np.flatnonzero(free))
    if found["train"].size == 0:
        raise InvalidArgumentError(f"train={train!r:.80}: this chooses no cell")
    return Parts(found["train"], found["validation"], found["test"])


def _drawn(numbers: Numbers, count: int, seed: int) -> Numbers:
    """So many of the numbers, by a seed."""
    if count == 0:
        return numbers[:0]
    places = _native.Permutation(len(numbers), index("split_seed", seed))(np.arange(count, dtype=np.uint64))
    return numbers[places.astype(np.int64)]


def _is_fraction(which: Any) -> bool:
    return isinstance(which, int | float | np.number) and not isinstance(which, bool)


def _fraction(name: str, given: Any) -> float:
    if given is None:
        return 0.0
    if not 0 <= given < 1:
        raise InvalidArgumentError(f"{name}={given!r}: a fraction from 0 to below 1 is wanted, a condition, or numbers")
    return float(given)


def _chosen(name: str, which: Any, dataset: Dataset, among: Numbers | None) -> Numbers:
    """Numbers of the cells that a condition, numbers or a mask choose; those of a condition are among the module's."""
    if isinstance(which, str):
        chosen = dataset.where(which).numbers
        return chosen if among is None else chosen[np.isin(chosen, among)]
    array = np.asarray(which)
    if array.dtype == np.bool_ and array.shape == (dataset.spans,):
        return np.flatnonzero(array)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise InvalidArgumentError(
            f"{name}= of shape {list(array.shape)} and type {array.dtype}: a fraction is wanted, a condition such as "
            f"\"plate = 'p7'\", numbers [n], or a mask [{dataset.spans}]"
        )
    if array.size and (array.min() < 0 or array.max() >= dataset.spans):
        wrong = array.min() if array.min() < 0 else array.max()
        raise InvalidArgumentError(f"{name}=: there is no cell {wrong}: they are from 0 to {dataset.spans - 1:,}")
    return np.unique(array).astype(np.int64)


def _mask(numbers: Numbers, count: int) -> npt.NDArray[np.bool_]:
    made = np.zeros(count, np.bool_)
    made[numbers] = True
    return made
