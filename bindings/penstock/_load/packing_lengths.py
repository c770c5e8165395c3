"""Lengths of packed rows by stage of a mixture: each source packed again for each length, with epochs of its own."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from penstock._base.errors import InvalidArgumentError
from penstock._data.view import View
from penstock._load.mixture_stages import Stage
from penstock._load.weights import whole_weights


class Length(NamedTuple):
    """How long rows and the documents in them are; None: the views' own `max_document`."""

    window: int
    max_document: int | None


class Lengths:
    """The sources of a mixture, by the numbers that its plan has: all of the views' own length, then of each other one.

    Attributes:
        windows: of each length, the views' own first.
        names: of the plan's sources: those of another length are called "name@window", or "name@window/max_document".
        views: of the plan's sources; None: no stage uses it.
    """

    def __init__(self, sources: Mapping[str, View], stages: Sequence[Stage], steered: bool = False) -> None:
        """Packs again what stages use, and may use in ramps or where they are steered; of views that are not packed,
        there is one length.

        Raises:
            InvalidArgumentError: a stage's lengths that its views cannot have; a source called like one of another
                length.
        """
        self._count = len(sources)
        first = next(iter(sources.values()))
        self.are_packed = first.kind == "packed"
        self._own = Length(first.window, None)
        self._max_documents = {each._max_document for each in sources.values()}
        self.stages = [self._length(stage, number) for number, stage in enumerate(stages)]
        self._all = list(dict.fromkeys([self._own, *self.stages]))
        self.windows = [each.window for each in self._all]
        self.names = [_called(name, each, self._own) for each in self._all for name in sources]
        for name in sources:
            if self.names.count(name) > 1:
                raise InvalidArgumentError(f"sources: {name!r} is called like another one's rows of a stage: rename it")
        weights = [None if each.weights is None else whole_weights("weights", each.weights) for each in stages]
        used = {
            (length, name)
            for length, whole, stage in zip(self.stages, weights, stages, strict=True)
            for name in sources
            if steered or stage.ramp or whole is None or whole.get(name, 0) > 0
        }
        self.views: list[View | None] = list(sources.values())
        for length in self._all[1:]:
            self.views += [
                view._packed_again(name, length.window, length.max_document) if (length, name) in used else None
                for name, view in sources.items()
            ]

    def _length(self, stage: Stage, number: int) -> Length:
        if self.are_packed:
            is_own = self._max_documents == {stage.max_document}  # else the same rows would have epochs of their own
            return Length(stage.window or self._own.window, None if is_own else stage.max_document)
        if stage.max_document is not None:
            raise InvalidArgumentError(
                f"stage {number}: max_document={stage.max_document}: it is of packed rows: give dataset.packed(…), or "
                "leave it out"
            )
        return self._own

    def weights(self, stage: int, of_sources: list[int]) -> list[int]:
        """Weights of the plan's sources in a stage."""
        before = self._all.index(self.stages[stage]) * self._count
        return [0] * before + of_sources + [0] * (len(self.names) - before - len(of_sources))

    def weights_at(self, position: int, of_sources: list[int], begins: Sequence[int]) -> list[int]:
        """Weights of the plan's sources from a position on, in the length that stages of these begins have there."""
        return self.weights(bisect_right(begins, position) - 1, of_sources)

    def by_source(self, of_plan: Sequence[int]) -> list[int]:
        """Sums over the lengths of each source."""
        return [sum(of_plan[number :: self._count]) for number in range(self._count)]


def _called(name: str, length: Length, own: Length) -> str:
    if length == own:
        return name
    more = "" if length.max_document is None else f"/{length.max_document}"
    return f"{name}@{length.window}{more}"
