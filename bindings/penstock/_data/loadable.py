"""What a loader loads: the questions that jobs and loaders ask of it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

from penstock import _native

Resolve = Callable[[Any, Any, int], _native.Order]
"""The native order that a user's order means for so many observations and a seed."""


class Loadable(ABC):
    """A view, or several views as one. Nothing that loads asks which: each answers for itself. Any thread."""

    @abstractmethod
    def _views(self) -> Mapping[str, Any]:
        """The views of which it consists, by name; one alone is called ""."""

    @abstractmethod
    def _native_sources(self) -> list[_native.Source]:
        """By the numbers of the native order's picks: the views, once for each of `_windows`."""

    @abstractmethod
    def _identities(self) -> list[_native.SourceIdentity]:
        """What a state says of each view."""

    @abstractmethod
    def _windows(self) -> list[int]:
        """The windows that the views' records are cut into, the views' own first; 0: they have none."""

    @abstractmethod
    def _window_changes(self) -> list[tuple[int, int]]:
        """(position, window) of each stretch with one window."""

    @abstractmethod
    def _order(self, given: Any, seed: int, resolve: Resolve) -> _native.Order:
        """The native order that a user's `given` means.

        Raises:
            InvalidArgumentError: it has no meaning here.
        """

    @abstractmethod
    def _ends(self, epochs: int | None, per_epoch: bool) -> tuple[int | None, bool]:
        """How many epochs the native job has, None for no end, and whether each ends by itself.

        Raises:
            InvalidArgumentError: it says itself where it ends.
        """

    @abstractmethod
    def _for_evaluation(self, options: dict[str, Any]) -> None:
        """Makes a loader's options those of one pass, where they do not say how many.

        Raises:
            InvalidArgumentError: it never ends.
        """

    @abstractmethod
    def _costs(self, given: Any) -> Mapping[str, Any]:
        """A user's costs of observations, by the names of the views.

        Raises:
            InvalidArgumentError: it has no meaning here.
        """

    @abstractmethod
    def _check_growable(self, what: str) -> None:
        """Refuses what has no meaning over a longer dataset; `what` asked for it.

        Raises:
            InvalidArgumentError: it has none; the message says what to do.
        """

    @abstractmethod
    def _growing(self) -> Any:
        """The dataset whose first shards a state may be of; None: no state is of some of it."""

    @property
    def _first(self) -> Any:
        """The first view, whose kind, window and lookahead all of them have."""
        return next(iter(self._views().values()))
