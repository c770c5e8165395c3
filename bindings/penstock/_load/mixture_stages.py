"""The parts of a mixture: places in a run, stages as they are given and as they came out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from penstock._base.arguments import index, shown
from penstock._base.errors import InvalidArgumentError
from penstock._base.words import quoted
from penstock._load.weights import Weight, whole_weights


@dataclass(frozen=True)
class Tokens:
    """A number of tokens where a number of observations is meant: records of windows, without their lookahead.

    Examples:
        >>> import penstock
        >>> penstock.Tokens(2_000_000_000).count
        2000000000
    """

    count: int

    def __post_init__(self) -> None:
        """Checks the number."""
        object.__setattr__(self, "count", index("Tokens", self.count))


@dataclass(frozen=True)
class Positions:
    """A number of observations, where it might be one of tokens: the length of a ramp.

    Examples:
        >>> import penstock
        >>> penstock.Positions(100_000).count
        100000
    """

    count: int

    def __post_init__(self) -> None:
        """Checks the number."""
        object.__setattr__(self, "count", index("Positions", self.count))


Place = int | Tokens


class Stage:
    """A stretch of a mixture's run: how much of each source there is, and how long windows are.

    Attributes:
        weights: {name: number of at least 0}: integers, or decimals (0.7, "0.123"), which are taken exactly, a float as
            its repr. A source that is not named has 0. None: all have the same weight.
        window: of its observations: a divisor of the view's window, of packed rows any length; None: the view's.
        max_document: of packed rows: `max_document` of its rows; None: the view's.
        at: where it begins: a position or `Tokens` of the run; None for the first stage, which begins at 0.
        ramp: how long its shares take to come about: `Positions` or `Tokens` from its begin on, over which they go from
            those before it in a straight line, in at most 1,024 equal steps. None: they hold at once.

    Examples:
        >>> import penstock
        >>> penstock.Stage({"web": 3, "code": 1}, at=penstock.Tokens(10**9))
        Stage({'web': 3, 'code': 1}, at=Tokens(count=1000000000))
    """

    def __init__(
        self,
        weights: Mapping[str, Weight] | None = None,
        *,
        window: int | None = None,
        max_document: int | None = None,
        at: Place | None = None,
        ramp: Positions | Tokens | None = None,
    ) -> None:
        """Keeps what it is; the mixture checks it against its sources."""
        if weights is not None and not isinstance(weights, Mapping):
            raise InvalidArgumentError(f"Stage: weights {weights!r:.80}: {{name: number}} is wanted, or None")
        self.weights = None if weights is None else dict(weights)
        self.window = None if window is None else index("Stage: window", window, 1)
        self.max_document = None if max_document is None else index("Stage: max_document", max_document, 1)
        self.at = None if at is None else place("Stage: at", at)
        if ramp is not None and not isinstance(ramp, (Positions, Tokens)):
            raise InvalidArgumentError(f"Stage: ramp={shown(ramp)}: must be Positions(n) or Tokens(n)")
        self.ramp = ramp

    def __repr__(self) -> str:
        """As it was made."""
        given = [] if self.weights is None else [repr(self.weights)]
        more = {name: getattr(self, name) for name in ("window", "max_document", "at", "ramp")}
        given += [f"{name}={each!r}" for name, each in more.items() if each is not None]
        return f"Stage({', '.join(given)})"


class MixtureStage(NamedTuple):
    """A stage as it came out.

    Attributes:
        begin: its first position; of a stage that begins inside a group of shorter windows, the group's.
        begin_tokens: tokens that the run has given before it; None of documents.
        window: of its observations; None of documents.
        weights: of the sources that have a part in it, divided by what divides them all.
        implied: whether it is there because sources have given their caps.
        ramp: positions over which its shares come about; 0: they hold at once.
    """

    begin: int
    begin_tokens: int | None
    window: int | None
    weights: dict[str, int]
    implied: bool
    ramp: int = 0


class MixtureRun(NamedTuple):
    """A run at some positions, as `Mixture.plan` gives it; arrays are [points].

    Attributes:
        position: int64.
        tokens: int64, given before it; of documents zeros.
        observations: by source, int64: given before it.
        share: by source, float64: its part of the observations since the point before; at the first point, of the
            weights. A point at the same position as the one before has its share.
        epochs: by source, float64: passes over its view.
    """

    position: npt.NDArray[np.int64]
    tokens: npt.NDArray[np.int64]
    observations: dict[str, npt.NDArray[np.int64]]
    share: dict[str, npt.NDArray[np.float64]]
    epochs: dict[str, npt.NDArray[np.float64]]


def place(name: str, given: Any) -> Place:
    """A position or `Tokens`.

    Raises:
        InvalidArgumentError: it is neither.
    """
    return given if isinstance(given, Tokens) else index(name, given)


def checked_stages(stages: Any, names: list[str]) -> list[Stage]:
    """The stages of a mixture of sources of these names.

    Raises:
        InvalidArgumentError: no list of stages, one that says not where it begins, or weights of no source.
    """
    if isinstance(stages, Stage) or not isinstance(stages, Sequence) or not stages:
        raise InvalidArgumentError(f"stages={stages!r:.80}: a list of at least one penstock.Stage is wanted")
    for number, stage in enumerate(stages):
        _check(stage, number, names)
    return list(stages)


def _check(stage: Any, number: int, names: list[str]) -> None:
    if not isinstance(stage, Stage):
        raise InvalidArgumentError(f"stage {number}: {stage!r:.80} is no penstock.Stage")
    if number > 0 and stage.at is None:
        raise InvalidArgumentError(f"stage {number}: it has no at=: give the position or Tokens at which it begins")
    for name in stage.weights or {}:
        check_name(f"stage {number}: weights", name, names)
    if stage.weights is not None:
        whole_weights(f"stage {number}: weights", stage.weights)


def check_name(what: str, name: Any, names: list[str]) -> None:
    """Refuses a name of no source.

    Raises:
        InvalidArgumentError: it is none; the message begins with `what`.
    """
    if name not in names:
        raise InvalidArgumentError(f"{what}: there is no source {name!r}; the sources are {quoted(names)}")
