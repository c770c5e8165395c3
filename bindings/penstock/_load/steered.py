"""Steering: weights of a mixture that are set while it runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from penstock import _native
from penstock._base.arguments import shown
from penstock._base.errors import InvalidArgumentError
from penstock._base.ranks import refuse_worker
from penstock._base.words import quoted
from penstock._data.job_text import JobText
from penstock._load.mixture import Mixture
from penstock._load.mixture_stages import MixtureStage, Place
from penstock._load.weights import Weight, whole_weights


class Steered:
    """A loader whose mixture's weights are set while it runs."""

    _native: _native.Loader
    _view: Any
    _job: JobText
    _endless: bool

    def set_weights(self, weights: Mapping[str, Weight], at: Place | None = None) -> int:
        """Begins a stage of these weights at the next global batch that was not given out; of a steered mixture.

        Every rank must call it at the same step with the same weights: `check_agreement` tells one that did not. Later
        stages of the mixture's list still come. The states from here on hold what was set, so that a resume needs no
        list of it.

        Args:
            weights: {name: number}, as in `Stage`; sources that are not named have 0. Floats count as their repr; those
                whose integers are too large together are rounded to 10^-9 of their sum.
            at: a position or `Tokens` from which they hold, not before `position`; None is `position`, the end of the
                batch given last. Where shorter windows are mixed in groups, the next whole group begins it. Of weights
                that were set for one place the last ones count. At the run's end nothing changes.

        Returns:
            The position at which they begin.

        Raises:
            InvalidArgumentError: a mixture that is not steered; an unknown name, no number, all 0, sources that have
                all given their caps; a position before this loader's; a DataLoader's worker, closed.

        Examples:
            >>> import numpy as np, os, penstock, tempfile
            >>> folder = tempfile.mkdtemp()
            >>> views = {}
            >>> for name in ("web", "code"):
            ...     path = os.path.join(folder, f"{name}.bin")
            ...     np.arange(1000, dtype=np.uint16).tofile(path)
            ...     views[name] = penstock.open(path, dtype="u2").windows(10)
            >>> mixture = penstock.Mixture(views, [penstock.Stage({"web": 1})], steered=True)
            >>> loader = penstock.Loader(mixture, batch_size=4, framework="numpy")
            >>> next(loader).sources.tolist()
            [0, 0, 0, 0]
            >>> loader.set_weights({"code": 0.5})
            4
            >>> next(loader).sources.tolist()
            [1, 1, 1, 1]
            >>> [(stage.begin, stage.weights) for stage in loader.stages]
            [(0, {'web': 1}), (4, {'code': 1})]
        """
        refuse_worker("set_weights", "Iterate a Loader without a DataLoader, and set them there", "they reach no other")
        mixture = self._view
        if not isinstance(mixture, Mixture) or not mixture.is_steered:
            raise InvalidArgumentError(
                "set_weights: this loader is not steered: give it a mixture that is, Mixture(…, steered=True) or "
                "mixture.steered()"
            )
        whole = _checked(weights, mixture.names)
        position = self._native.position if at is None else mixture._position("set_weights: at", at)
        begin = self._native.set_weights(position, mixture._weights_at(position, whole))
        self._note_job()
        return begin

    @property
    def stages(self) -> list[MixtureStage]:
        """The stages of a mixture as they came out so far, and as its list has them come; of another view none.

        Weights that were set begin stages as those of the list do; so this is the history of a steered run. Each look
        goes through all of them.
        """
        mixture = self._view
        return mixture._of_job(self._native.job).stages if isinstance(mixture, Mixture) else []

    def _note_job(self) -> None:
        """What follows from another native job of the same arguments."""
        job = self._native.job
        if job.is_steered:
            self._job = JobText(job)
            self._endless = job.batching[1] is None


def _checked(weights: Any, names: list[str]) -> dict[str, int]:
    if not isinstance(weights, Mapping):
        raise InvalidArgumentError(f"set_weights: weights={shown(weights)}: {{name: number}} is wanted")
    for name in weights:
        if name not in names:
            raise InvalidArgumentError(f"set_weights: there is no source {name!r}; the sources are {quoted(names)}")
    whole = whole_weights("set_weights: weights", weights)
    if not any(whole.values()):
        raise InvalidArgumentError("set_weights: all weights are 0: give at least one source more")
    return whole
