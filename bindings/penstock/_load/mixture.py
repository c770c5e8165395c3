"""Mixtures: several views as one, in stages of weights; what each source has given at any position."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from penstock import _native
from penstock._base.arguments import MOST, index, shown
from penstock._base.errors import InvalidArgumentError
from penstock._base.words import counted, excerpt
from penstock._data.loadable import Loadable, Resolve
from penstock._data.view import View
from penstock._load.mixture_file import read_mixture
from penstock._load.mixture_sources import checked_sources
from penstock._load.mixture_stages import (
    MixtureRun,
    MixtureStage,
    Place,
    Stage,
    Tokens,
    check_name,
    checked_stages,
    place,
)
from penstock._load.orders import Balanced, Bucketed, Custom, Order, Weighted
from penstock._load.packing_lengths import Lengths
from penstock._load.weights import whole_weights
from penstock._places.paths import PathLike

SourceOrder = str | Order | Mapping[str, str | Order]
"""An order, or one for each source by name; those that are not named have the default, "uniform"."""


class Mixture(Loadable):
    """Several views as one, for `Loader` and `Job`: at every position each source has given its share.

    At every position of a stage a source of weight w has given w / W of the observations since the stage began, within
    1 + S * w / W of them, for S sources whose weights add up to W. Each source has its own order and epochs, which go
    on from stage to stage: nothing is repeated or lost when weights change. Which source a position belongs to does not
    depend on the loader's seed.

    Examples:
        >>> import numpy as np, os, penstock, tempfile
        >>> folder = tempfile.mkdtemp()
        >>> views = {}
        >>> for name, length in (("web", 9000), ("code", 2000)):
        ...     path = os.path.join(folder, f"{name}.bin")
        ...     np.arange(length, dtype=np.uint16).tofile(path)
        ...     views[name] = penstock.open(path, dtype="u2").windows(10)
        >>> stages = [penstock.Stage({"web": 3, "code": 1}), penstock.Stage(at=400)]
        >>> mixture = penstock.Mixture(views, stages, end=600)
        >>> mixture.counts(400), mixture.counts(600)
        ({'web': 300, 'code': 100}, {'web': 400, 'code': 200})
        >>> loader = penstock.Loader(mixture, batch_size=8, seed=0, framework="numpy")
        >>> sorted(mixture.names[number] for number in next(loader).sources)
        ['code', 'code', 'web', 'web', 'web', 'web', 'web', 'web']

    Attributes:
        sources: the views, by name.
        names: of the sources: `batch.sources` are numbers of this list.
        is_steered: whether weights may be set while it runs, by `Loader.set_weights`.
    """

    def __init__(
        self,
        sources: Mapping[str, View],
        stages: Sequence[Stage],
        *,
        caps: Mapping[str, int] | None = None,
        epochs: Mapping[str, int] | None = None,
        end: Place | None = None,
        group: int = 1024,
        steered: bool = False,
    ) -> None:
        """Makes a mixture. Only two things are read: names of genes that sources of cells number otherwise, and lengths
        of documents where stages have packed rows of other lengths.

        Args:
            sources: {name: view}: views of one kind, window and lookahead, whose fields have the same names.
            stages: in their order; the first begins at 0.
            caps: {name: most observations of its view in the run}. A source that has given them leaves at once, and the
                others share its part; where none is left in the last stage, the run ends.
            epochs: {name: whole passes over its view}: another way to give a cap.
            end: where the run ends: a position or `Tokens`; None: where no source is left, or nowhere.
            group: a stage of shorter windows mixes the windows of this many observations of the view.
            steered: whether `Loader.set_weights` may set weights while it runs; this is part of the job.

        Raises:
            InvalidArgumentError: sources that differ in kind, window, lookahead, fields or genes; a weight, name, place
                or cap that cannot be.
        """
        self.sources = checked_sources(sources)
        self.names = list(self.sources)
        self.first = next(iter(self.sources.values()))
        given = checked_stages(stages, self.names)
        self._lengths = Lengths(self.sources, given, steered)
        if not self._lengths.are_packed and any(stage.window not in (None, self.first.window) for stage in given):
            for name, view in self.sources.items():
                view._check_cut(name)
        most = self._caps(caps, epochs)
        if not isinstance(steered, bool):
            raise InvalidArgumentError(f"steered={shown(steered)}: must be True or False")
        self.is_steered = steered
        self._arguments = (self.sources, given, dict(caps or {}), dict(epochs or {}), end, group, steered)
        self._plan = _native.MixturePlan(
            names=self._lengths.names,
            stages=[self._native_stage(number, stage) for number, stage in enumerate(given)],
            caps=most,
            window=self.first.window,
            group=index("group", group, 1),
            end=None if end is None else _pair(place("end", end)),
            are_packed=self._lengths.are_packed,
            of_each_length=len(self.names),
        )

    def _native_stage(
        self, number: int, stage: Stage
    ) -> tuple[tuple[int, bool], int, list[int], tuple[int, bool] | None]:
        weights = dict.fromkeys(self.names, 1) if stage.weights is None else whole_weights("weights", stage.weights)
        of_sources = [weights.get(name, 0) for name in self.names]
        ramp = None if stage.ramp is None else (stage.ramp.count, isinstance(stage.ramp, Tokens))
        return _pair(stage.at or 0), stage.window or 0, self._lengths.weights(number, of_sources), ramp

    def _caps(self, caps: Mapping[str, int] | None, epochs: Mapping[str, int] | None) -> list[int | None]:
        found: dict[str, tuple[int, str]] = {}
        for what, given in (("caps", caps or {}), ("epochs", epochs or {})):
            if not isinstance(given, Mapping):
                raise InvalidArgumentError(f"{what}={given!r:.80}: {{name: integer}} is wanted")
            for name, value in given.items():
                check_name(what, name, self.names)
                if name in found:
                    raise InvalidArgumentError(f"caps and epochs both have {name!r}: give one of them")
                found[name] = index(f"{what}[{name!r}]", value, 1), what
        return [self._cap(name, view, *found.get(name, (None, ""))) for name, view in self._all_views()]

    def _cap(self, name: str, view: View, number: int | None, what: str) -> int | None:
        size = len(view) if what == "epochs" else 1
        if number is not None and number * size > MOST:
            raise InvalidArgumentError(
                f"{what}[{name!r}]={number}: that many passes over {size:,} observations are more than 2^64 - 1: leave "
                "it out for no cap"
            )
        return None if number is None else number * size

    def _all_views(self) -> list[tuple[str, View]]:
        """(name, view) of the plan's sources; where no stage uses one, the view that is given."""
        views = [(name, view) for name, view in self.sources.items()] * len(self._lengths.windows)
        return [(name, own or view) for (name, view), own in zip(views, self._lengths.views, strict=True)]

    # --- what loaders ask

    def _views(self) -> dict[str, View]:
        return self.sources

    def _order(self, given: SourceOrder, seed: int, resolve: Resolve) -> _native.Order:
        chosen: dict[str, Any] = {}
        for name, each in given.items() if isinstance(given, Mapping) else ():
            check_name("order", name, self._lengths.names)
            chosen[name] = each
        default = "uniform" if isinstance(given, Mapping) else given
        number = index("seed", seed)
        orders = []
        named = zip(self._all_views(), self._lengths.names, self._lengths.views, strict=True)
        for (name, view), called, own in named:
            order = chosen.get(called, chosen.get(name, default))
            if own is not None and called != name and called not in chosen:
                _check_no_array(order, name, called)
            try:
                orders.append(resolve(order, view, _native.MixtureOrder.source_seed(number, called)))
            except InvalidArgumentError as error:
                if called == name:
                    raise
                raise InvalidArgumentError(
                    f"order of {called!r}, of which it may be one of its own: {error}"
                ) from error
        return _native.MixtureOrder(self._plan, orders, number, self.is_steered)

    def _ends(self, epochs: int | None, per_epoch: bool) -> tuple[int | None, bool]:
        if epochs is not None or per_epoch:
            given = "per_epoch=True" if epochs is None else f"epochs={epochs!r}"
            raise InvalidArgumentError(
                f"{given}: a mixture's sources have epochs of their own; say how long it runs by Mixture(end=…), and "
                "how often a source comes by Mixture(epochs={name: …})"
            )
        return None if self.run_end is None else 1, False

    def _for_evaluation(self, options: dict[str, Any]) -> None:
        if self.run_end is None:
            raise InvalidArgumentError(
                f"eval_loader: {self!r} has no end: give Mixture(…, end=…), or epochs= of each source"
            )

    def _identities(self) -> list[_native.SourceIdentity]:
        named = zip(self._lengths.names, self._lengths.views, strict=True)
        return [view._source.identity.named(name) for name, view in named if view is not None]

    def _native_sources(self) -> list[_native.Source]:
        found = [view._source for _, view in self._all_views()]
        for window in self._plan.windows[1:]:
            found += [view._cut(window) for view in self.sources.values()]
        return found

    def _windows(self) -> list[int]:
        return self._lengths.windows if self._lengths.are_packed else list(self._plan.windows)

    def _window_changes(self) -> list[tuple[int, int]]:
        changes: list[tuple[int, int]] = []
        for begin, _, window, *_ in self._plan.stages():
            if not changes or changes[-1][1] != window:
                changes.append((begin, window))
        return changes

    def _costs(self, given: Any) -> Mapping[str, Any]:
        if not isinstance(given, Mapping) or set(given) != set(self.sources):
            raise InvalidArgumentError(
                f"cost={excerpt(repr(given))}: of a mixture {{name: array}} of all its sources is wanted, "
                "'attention' or 'tokens'"
            )
        if len(self._windows()) > 1:
            raise InvalidArgumentError(
                "cost: arrays are of the views' observations, and stages have those of other lengths: use 'attention' "
                "or 'tokens'"
            )
        return given

    def _check_growable(self, what: str) -> None:
        raise InvalidArgumentError(
            f"{what}: a mixture's datasets are to stay: give the new shards as a source of a later stage, and its "
            "state goes on without it"
        )

    def _growing(self) -> None:
        return None

    # --- steering

    def steered(self) -> Mixture:
        """The same mixture, whose weights `Loader.set_weights` may set while it runs."""
        return Mixture(self.sources, **{**self._named_arguments(), "steered": True})

    def _weights_at(self, position: int, weights: Mapping[str, int]) -> list[int]:
        """Of the plan's sources, where weights are set."""
        of_sources = [weights.get(name, 0) for name in self.names]
        if not self._lengths.are_packed:
            return of_sources
        return self._lengths.weights_at(position, of_sources, self._plan.list_begins)

    def _named_arguments(self) -> dict[str, Any]:
        names = ("stages", "caps", "epochs", "end", "group", "steered")
        return dict(zip(names, self._arguments[1:], strict=True))

    def _of_job(self, job: _native.Job) -> Mixture:
        """This mixture as it comes out with the weights that were set in a job of it."""
        found = object.__new__(Mixture)  # copy.copy() would make it again
        found.__dict__.update(self.__dict__)
        plan = job.mixture_plan
        assert plan is not None
        found._plan = plan
        return found

    # --- what it comes to

    @property
    def stages(self) -> list[MixtureStage]:
        """The stages as they came out, up to the run's end: those given, and one wherever a source gave its cap."""
        has_tokens = self.first.window > 0
        end = MOST if self.run_end is None else self.run_end
        return [
            MixtureStage(
                begin,
                tokens if has_tokens else None,
                window if has_tokens else None,
                {self.names[number % len(self.names)]: weight for number, weight in weights},
                implied,
                ramp,
            )
            for begin, tokens, window, weights, implied, ramp in self._plan.stages()
            if begin < end
        ]

    @property
    def run_end(self) -> int | None:
        """The position at which the run ends; None: nowhere."""
        return self._plan.end

    def counts(self, position: Place) -> dict[str, int]:
        """Observations of each source before a position, or `Tokens`.

        Raises:
            InvalidArgumentError: a position after no source is left.
        """
        return dict(zip(self.names, self._count(self._position("position", position)), strict=True))

    def _count(self, position: int) -> list[int]:
        return self._lengths.by_source(self._plan.count(position))

    def plan(self, until: Place | None = None, points: int = 100) -> MixtureRun:
        """Observations that each source has given at `points` equally spaced positions from 0 to `until`.

        Args:
            until: a position or `Tokens`; None: the run's end.
            points: at least 2.

        Raises:
            InvalidArgumentError: no `until` for a run without end; one after no source is left, or beyond int64.
        """
        if until is None and self.run_end is None:
            raise InvalidArgumentError("plan: this mixture has no end: give until=, a position or Tokens")
        last = self._position("until", self.run_end if until is None else until)  # type: ignore[arg-type]
        wanted = index("points", points, 2, 1 << 20)
        tokens_then = self._plan.tokens_before(last)
        if max(last, tokens_then) >= 1 << 63:
            raise InvalidArgumentError(
                f"plan: until position {last:,}, where the run has given {tokens_then:,} tokens: at most 2^63 - 1"
            )
        position = [last * number // (wanted - 1) for number in range(wanted)]
        table = np.array([self._count(each) for each in position], np.int64)
        passes = self._passes(position)
        steps = np.diff(table, axis=0)
        first = self.stages[0].weights
        parts = np.concatenate([[[first.get(name, 0) for name in self.names]], steps]).astype(np.float64)
        # Where several points are one position, they have the share of the first of them.
        filled = np.where(parts.any(axis=1), np.arange(len(parts)), 0)
        parts = parts[np.maximum.accumulate(filled)]
        share = parts / parts.sum(axis=1, keepdims=True)

        def by_name(columns: npt.NDArray[Any]) -> dict[str, npt.NDArray[Any]]:
            return {name: columns[:, number].copy() for number, name in enumerate(self.names)}

        tokens = np.array([self._plan.tokens_before(each) for each in position], np.int64)
        return MixtureRun(np.array(position, np.int64), tokens, by_name(table), by_name(share), by_name(passes))

    def _passes(self, positions: list[int]) -> npt.NDArray[np.float64]:
        """Passes over its view, at all lengths, that each source has given before a position: [positions, sources]."""
        changes = self._window_changes()
        sizes = [len(view) for _, view in self._all_views()]
        found = np.zeros((len(positions), len(sizes)))
        for number, (begin, window) in enumerate(changes):
            end = changes[number + 1][0] if number + 1 < len(changes) else MOST
            parts = self.first.window // window if window and not self._lengths.are_packed else 1
            before = np.array(self._plan.count(begin), np.float64)
            for row, position in enumerate(positions):
                if position > begin:
                    found[row] += (np.array(self._plan.count(min(position, end)), np.float64) - before) / parts
        passes: npt.NDArray[np.float64] = (found / sizes).reshape(len(positions), -1, len(self.names)).sum(axis=1)
        return passes

    def _position(self, name: str, where: Place) -> int:
        return self._plan.position_of(*_pair(place(name, where)))

    @staticmethod
    def from_file(path: PathLike) -> Mixture:
        """A mixture that a JSON file describes: sources, stages and the arguments of `Mixture`; see docs/mixtures.md.

        Raises:
            InvalidArgumentError: what cannot be, with the file's name.
            NotFoundError: no such file, or no such dataset.
        """
        text, arguments = read_mixture(path)
        try:
            return Mixture(**arguments)
        except InvalidArgumentError as error:
            raise InvalidArgumentError(f"{text}: {error}") from error

    def __reduce__(self) -> Any:
        """Pickles as its views and arguments."""
        return _again, self._arguments

    def __repr__(self) -> str:
        """Sources, stages and the end."""
        end = "" if self.run_end is None else f", end at {self.run_end:,}"
        steered = ", steered" if self.is_steered else ""
        return f"Mixture({', '.join(self.names)}; {counted(len(self.stages), 'stage')}{end}{steered})"


def _again(sources: Any, stages: Any, caps: Any, epochs: Any, end: Any, group: Any, steered: Any) -> Mixture:
    return Mixture(sources, stages, caps=caps, epochs=epochs, end=end, group=group, steered=steered)


def _pair(where: Place) -> tuple[int, bool]:
    return (where.count, True) if isinstance(where, Tokens) else (where, False)


def _check_no_array(order: Any, name: str, called: str) -> None:
    """An array is of the rows of one length; rows of another length may be as many, and are others."""
    if isinstance(order, Bucketed | Weighted | Balanced) or (isinstance(order, Custom) and order.digest is not None):
        raise InvalidArgumentError(
            f"order of {called!r}: orders.{type(order).__name__} has an array of the rows of {name!r}, and these are "
            f"rows of another length: give it an order of its own, order={{{name!r}: …, {called!r}: …}}"
        )
