"""WindowView: windows of records that follow one another."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from penstock import _native
from penstock._base.errors import InvalidArgumentError
from penstock._data.bounds import Bounds
from penstock._data.fields import Leaf, token_field
from penstock._data.part import Steps
from penstock._data.spans import Metadata
from penstock._data.view import Of, View
from penstock._data.where import Choice, windows_in


class WindowView(View[Of]):
    """The view that `Dataset.windows` makes."""

    kind = "windows"

    def __init__(
        self,
        dataset: Of,
        metadata: Metadata,
        columns: tuple[str, ...],
        steps: Steps,
        window: int,
        lookahead: int = 0,
        phase_window: int = 0,
        bounds: Bounds | None = None,
    ) -> None:
        """Of arguments that were checked."""
        self.window = window
        self.lookahead = lookahead
        self.phase_window = phase_window
        self.bounds = bounds
        super().__init__(dataset, metadata, columns, steps)

    def _make(self) -> _native.Source:
        return self._in_windows(self.window)

    def _in_windows(self, window: int) -> _native.Source:
        native = self.dataset._native
        return _native.make_windows(native, window, self.lookahead, list(self.columns), self.phase_window)

    def _in_documents(self, choice: Choice) -> _native.Chosen:
        if self.phase_window:
            raise InvalidArgumentError(
                'where: windows of phase="random" begin elsewhere in each epoch, so other ones lie in the documents '
                "each time: leave phase= out, or fill rows with the documents by dataset.where(…).packed(…)"
            )
        return windows_in(self.dataset._native, choice, self.window, self.lookahead)

    def _why_none_lies_there(self) -> str:
        return (
            ": no window lies in chosen documents alone, with its lookahead: dataset.where(…).packed(…) fills rows "
            "with them"
        )

    def _own(self) -> tuple[Any, ...]:
        return self.window, self.lookahead, self.phase_window, self.bounds

    def _words(self) -> list[str]:
        return [f"{self.window}, lookahead={self.lookahead}", *(['phase="random"'] if self.phase_window else [])]

    def _label_field(self, fields: tuple[Leaf, ...]) -> tuple[str | None, str]:
        if self.lookahead == 0:
            return None, "the view was made without lookahead; use windows(window, lookahead=1)"
        return token_field(fields)

    def _column_bounds(self, given: Sequence[tuple[str, Any]]) -> Bounds | None:
        bounds = self.bounds
        if bounds is not None and set(given) - {(bounds.by, bounds.value)}:
            named = ", ".join(f"{side} is {value!r:.80}" for side, value in given)
            raise InvalidArgumentError(
                f"columns=: {named}, and the view was made with {bounds.by}={bounds.value}: give one"
            )
        return bounds

    def _check_lengths(self, cost: str, advice: str) -> None:
        if cost == "tokens":
            return
        if self.bounds is not None:
            raise InvalidArgumentError(
                f"cost={cost!r}: {self!r}: a token bounds its documents, so no index tells their lengths: {advice}"
            )
        if self.dataset.spans == 0 or self.dataset.layout == "ids":
            what = "its spans stand in the records" if self.dataset.layout == "ids" else "it has no spans"
            raise InvalidArgumentError(f"cost={cost!r}: {self!r}: {what}, so no index tells lengths: {advice}")

    def _cut(self, window: int) -> _native.Source:
        return _native.make_parts(self._in_windows(window), self._source, self.window // window)

    def _check_growable(self, what: str) -> None:
        if self.phase_window:
            raise InvalidArgumentError(
                f"{what}: windows of phase='random' begin where the length of the dataset says, so they are others in "
                "a longer one: leave phase= out"
            )
        super()._check_growable(what)


def positive(name: str, value: Any, least: int = 1) -> int:
    """A number of records that a user gave.

    Raises:
        InvalidArgumentError: no integer from `least` to 2^64 - 1.
    """
    try:
        number = operator.index(value)
    except TypeError:
        raise InvalidArgumentError(f"{name}={value!r}: must be an integer") from None
    if number < least:
        raise InvalidArgumentError(f"{name}={number}: must be at least {least}")
    if number >= 1 << 64:
        raise InvalidArgumentError(f"{name}={number}: must be below 2^64")
    return number
