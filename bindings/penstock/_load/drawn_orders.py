"""Orders that draw: observations as often as weights say, classes as often as shares say."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from penstock import _native
from penstock._base.errors import InvalidArgumentError
from penstock._data.stored_columns import DocumentColumn
from penstock._load.labels import Missing, classes_of
from penstock._load.order_checks import at_least_one, check_fetch, check_length


@dataclass(frozen=True)
class _Draws:
    """How many draws an epoch has, and how they are mixed."""

    owner: str
    size: int | None
    block: int
    fetch: int | None
    lanes: int
    draws: str

    def __post_init__(self) -> None:
        if self.draws not in ("rounded", "independent", "systematic"):
            raise InvalidArgumentError(
                f"orders.{self.owner}: draws={self.draws!r:.80}: wanted 'rounded', 'independent', or 'systematic' to "
                "end a run that began with those"
            )
        for name in ("size", "block", "fetch", "lanes"):
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, at_least_one(self.owner, name, value))
        if self.fetch is None and self.block > 1:
            raise InvalidArgumentError(f"orders.{self.owner}: block={self.block} needs fetch=, a multiple of it")
        check_fetch(self.owner, self.fetch, self.block)
        if self.is_independent and self.block > 1:
            raise InvalidArgumentError(
                f"orders.{self.owner}: block={self.block} with draws='independent': such draws do not ascend with the "
                "dataset, so a block would hold no neighbours: leave block= out, or draws="
            )

    @property
    def is_independent(self) -> bool:
        return self.draws == "independent"

    def native(self, weights: npt.NDArray[Any], seed: int, replace: bool) -> _native.Order:
        """The order that draws by weights."""
        name, size = self.owner.lower(), self.size or len(weights)
        given = np.ascontiguousarray(weights, np.float64)
        if self.is_independent:
            return _native.IndependentOrder(given, seed, size, self.fetch or 1, self.lanes, name)
        mixed: _native.Order
        if self.fetch is None:
            mixed = _native.UniformOrder(size, seed)
        else:
            mixed = _native.BlocksOrder(size, seed, self.block, self.fetch, self.lanes)
        return _native.WeightedOrder(
            weights=given, mixed=mixed, seed=seed, replace=replace, systematic=self.draws == "systematic", name=name
        )

    def __str__(self) -> str:
        return f"size={self.size}, block={self.block}, fetch={self.fetch}, lanes={self.lanes}, draws={self.draws!r}"


class Weighted:
    """Observations as often as their weights say: `size` draws an epoch.

    With x = weight / sum of weights * size, an observation comes floor(x) or ceil(x) times in an epoch, and x times in
    the mean. The count of any group of observations varies at most as much as with independent draws. Draws ascend with
    the dataset before they are mixed: globally, or with `fetch` as `Blocks` mixes observations, so that neighbours are
    read together. Weights may be a memory map; 8 bytes an observation are kept.

    With `draws="independent"` each draw is by the weights alone, whatever the others were, as
    `numpy.random.choice(n, size, p=…)` draws: an observation's count varies as a binomial one does.

    An epoch, and `len` of a loader, are `size` draws: "each observation once an epoch" does not hold.

    Args:
        weights: Finite numbers [n] of at least 0, one for each observation of the view.
        replace: False refuses weights by which an observation is expected more than once in an epoch.
        size: Draws in an epoch; None: as many as there are observations.
        block: Draws that stay together, see `Blocks`; more than 1 needs a fetch.
        fetch: Draws of a lane that are read together and mixed; a multiple of `block`. None: all draws are mixed.
        lanes: See `Blocks`.
        draws: "rounded"; "independent", with replacement and without blocks; or "systematic" to end a run whose state
            has the order's algorithm 1: those draws stand at equal distances, so groups with a period may be drawn far
            too often or not at all in an epoch.

    Raises:
        InvalidArgumentError: Weights or numbers that cannot be.

    Examples:
        >>> import numpy as np, penstock.orders
        >>> order = penstock.orders.resolve(penstock.orders.Weighted([1, 0, 3]), n=3, seed=0)
        >>> drawn = order.pick(0, 1, 12)[0]  # four epochs
        >>> bool((drawn != 1).all()), len(drawn)
        (True, 12)
    """

    def __init__(
        self,
        weights: npt.ArrayLike,
        *,
        replace: bool = True,
        size: int | None = None,
        block: int = 1,
        fetch: int | None = None,
        lanes: int = 1,
        draws: str = "rounded",
    ) -> None:
        """Checks what can be checked without the view."""
        self.weights = _numbers("Weighted", weights)
        self.replace = bool(replace)
        self._draws = _Draws("Weighted", size, block, fetch, lanes, draws)
        if self._draws.is_independent and not self.replace:
            raise InvalidArgumentError(
                "orders.Weighted: replace=False with draws='independent': those are drawn with replacement: leave one "
                "of the two out"
            )

    def _native(self, n: int, seed: int) -> _native.Order:
        check_length("Weighted", "weights", self.weights, n)
        return self._draws.native(self.weights, seed, self.replace)

    def __repr__(self) -> str:
        """How it draws."""
        return f"Weighted(<{len(self.weights):,} weights>, replace={self.replace}, {self._draws})"


class Balanced:
    """All classes as often as one another, or by given shares: `size` draws an epoch.

    Without weights and with block=1 each of C classes comes once in every C positions, in an order of its own, and the
    members of a class come once in epochs of that class. Else classes are drawn as `Weighted` does.

    An epoch, and `len` of a loader, are `size` draws: "each observation once an epoch" does not hold.

    Args:
        labels: Classes [n] of the observations: integers (also as whole floats) or strings. A column of the dataset
            (`dataset.columns[name]`) also serves views of some of its documents: the labels are theirs.
        missing: What becomes of observations without a label (None, NaN, pandas.NA, masked; integers below 0): "drop"
            never draws them; "own class" makes them a class of their own, the last one, whose label is None. None:
            integers below 0 are never drawn, and other missing labels refused.
        weights: Shares of the classes: a mapping from labels (of a dataset's column also from its categories), or for
            integers [largest label + 1], then that of the missing ones; None: equal ones.
        size: Draws in an epoch; None: as many as there are observations.
        block: Draws that stay together, see `Blocks`; more than 1 needs a fetch.
        fetch: Draws of a lane that are read together; a multiple of `block`.
        lanes: See `Blocks`.
        draws: See `Weighted`; classes that come in turn are the same with "rounded" and "systematic". With
            "independent" they do not come in turn: each draw takes a class by its share and one of its members.

    Raises:
        InvalidArgumentError: Labels, shares or numbers that cannot be.

    Examples:
        >>> import numpy as np, penstock.orders
        >>> labels = np.array(["T", "B", "T", "T", "NK", "T"])
        >>> order = penstock.orders.resolve(penstock.orders.Balanced(labels), n=6, seed=0)
        >>> [sorted(labels[order.pick(p, 1, 3)[0]].tolist()) for p in (0, 3, 6)]
        [['B', 'NK', 'T'], ['B', 'NK', 'T'], ['B', 'NK', 'T']]
    """

    def __init__(
        self,
        labels: npt.ArrayLike,
        *,
        missing: Missing | None = None,
        weights: Mapping[Any, float] | npt.ArrayLike | None = None,
        size: int | None = None,
        block: int = 1,
        fetch: int | None = None,
        lanes: int = 1,
        draws: str = "rounded",
    ) -> None:
        """Checks what can be checked without the view."""
        self.names, self.labels = classes_of(labels, missing)
        self._categories: Any = getattr(labels, "categories", None)
        self._is_of_documents = isinstance(labels, DocumentColumn)
        by_code = _by_code(weights, self._categories)
        self.shares = None if by_code is None else _shares(by_code, self.names)
        self._weighed = by_code.keys() if isinstance(by_code, Mapping) else None
        self._draws = _Draws("Balanced", size, block, fetch, lanes, draws)
        if not self._is_of_documents:  # else the view says which classes there are
            self._check_weighed()

    def of_documents(self, view: Any, count: int) -> Balanced:
        """The order for a view of some of `count` documents, if the labels are a column of so many; else itself."""
        if not self._is_of_documents or len(self.labels) != count:
            return self
        found = copy.copy(self)
        found.labels = self.labels[view.base_indices(np.arange(len(view)))]
        return found

    def _check_weighed(self) -> None:
        if self._weighed is None:
            return
        present = np.bincount(self.labels[self.labels >= 0], minlength=len(self.names)) > 0
        for label in self.names[present].tolist():
            if label not in self._weighed:
                is_code = isinstance(self._categories, list) and isinstance(label, int)
                name = self._categories[label] if is_code else label
                raise InvalidArgumentError(f"orders.Balanced: no weight for {name!r:.80}; 0 leaves a class out")

    def _native(self, n: int, seed: int) -> _native.Order:
        check_length("Balanced", "labels", self.labels, n)
        self._check_weighed()
        draws = self._draws
        if self.shares is None and draws.block == 1 and not draws.is_independent:
            return _native.BalancedOrder(
                labels=self.labels,
                classes=len(self.names),
                seed=seed,
                size=draws.size or n,
                fetch=draws.fetch or 1,
                lanes=draws.lanes,
            )
        counts = np.bincount(self.labels[self.labels >= 0], minlength=len(self.names))
        shares = np.ones(len(counts)) if self.shares is None else self.shares
        # One more, for those that are never drawn: their label is -1.
        each = np.append(np.divide(shares, counts, out=np.zeros(len(counts)), where=counts > 0), 0.0)
        return draws.native(each[self.labels], seed, True)

    def __repr__(self) -> str:
        """How it draws."""
        return f"Balanced(<{len(self.labels):,} labels of {len(self.names):,} classes>, {self._draws})"


def _numbers(owner: str, given: npt.ArrayLike) -> npt.NDArray[Any]:
    array = np.asanyarray(given)  # a memory map stays one
    if array.ndim != 1 or array.dtype.kind not in "iufb":
        raise InvalidArgumentError(
            f"orders.{owner}: weights of shape {list(array.shape)} and type {array.dtype}: numbers [n] wanted"
        )
    return array


def _by_code(
    weights: Mapping[Any, float] | npt.ArrayLike | None, categories: Any
) -> Mapping[Any, float] | npt.ArrayLike | None:
    """Weights by the codes of a dataset's column, where they are by its categories."""
    if not isinstance(categories, list) or not isinstance(weights, Mapping):
        return weights
    codes = {name: code for code, name in enumerate(categories)}
    return {codes.get(name, name): share for name, share in weights.items()}


def _shares(given: Mapping[Any, float] | npt.ArrayLike, names: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """A share for each class; 0 where a mapping has none."""
    if isinstance(given, Mapping):
        known = names.tolist()
        for label in given:
            if label not in known:
                raise InvalidArgumentError(f"orders.Balanced: a weight for {label!r}, which no label is")
        shares = np.array([given.get(label, 0.0) for label in known], np.float64)
    else:
        shares = _numbers("Balanced", given).astype(np.float64)
        if len(shares) != len(names):
            raise InvalidArgumentError(f"orders.Balanced: {len(shares):,} weights for {len(names):,} classes")
    wrong = shares[~(np.isfinite(shares) & (shares >= 0))]
    if wrong.size:
        raise InvalidArgumentError(f"orders.Balanced: weight {wrong[0]} of a class: wanted a finite one of at least 0")
    return shares
