"""The share of one DataLoader's worker in a rank's batches, read by a loader of its own."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from penstock._base.arguments import index
from penstock._base.errors import InvalidArgumentError, StateMismatchError
from penstock._data.batch import Batch
from penstock._data.job_text import state_of
from penstock._load.loader import Loader
from penstock._load.state import checked_state
from penstock.adapters._common import given

_BLOCK = 512  # batches of a worker between two loaders of its own; see Share
_MOST_POSITION = 1 << 63


class _Planned(NamedTuple):
    begin: int
    end: int
    size: int  # of the global batch


class _Delivered(Batch):
    """A batch that says the job's positions: those of a worker's loader leave out what others read."""

    __slots__ = ("_begin", "_end")

    def __init__(self, batch: Batch, planned: _Planned, job: tuple[int, str]) -> None:
        super().__init__(batch._native, batch._layout, job)
        self._begin, self._end = planned.begin, planned.end

    @property
    def position(self) -> int:
        return self._begin

    def state_dict(self) -> dict[str, Any]:
        assert self._job is not None
        return state_of(self._job, self._end)


class Share:
    """Worker w of n: the batches w, w + n, … of the rank, by a loader of its own that skips what the others read.

    The loader's skips are the positions of the others' batches, so it reads ahead what this worker gives and nothing
    else. They are a list, so a loader is made for so many batches, and then the next. A batch's size and where it ends
    are those of the job without these skips.
    """

    def __init__(self, dataset: Any, worker: int, workers: int) -> None:
        """Begins where the dataset, a `BatchDataset`, is; nothing is read."""
        self._dataset = dataset
        self._job = dataset._job()
        self._worker, self._workers = worker, workers
        self._position = dataset.position
        self._ahead = worker  # batches of others from the position to this worker's next
        self._planned: deque[_Planned] = deque()
        self._loader: Loader | None = None
        version, _, job = checked_state(self._job.state_dict(0))
        self._identity = (version, job)

    def __iter__(self) -> Share:
        """Itself."""
        return self

    def __next__(self) -> Any:
        """The worker's next batch."""
        if not self._planned:
            self._plan()
        if self._loader is None:
            raise StopIteration
        try:
            planned = self._planned[0]
            batch = _Delivered(next(self._loader), planned, self._identity)
            made = batch if self._dataset._transform is None else self._dataset._transform(batch)
        except BaseException:
            self._stop()  # it was not given: it comes again
            raise
        uneven = self._dataset._runs["uneven"]
        self._planned.popleft()
        self._position, self._ahead = planned.end, self._workers - 1
        if made is not batch:
            return given(made, uneven)
        return {**given(batch, uneven), "position": planned.begin, "state_dict": batch.state_dict()}

    def state_dict(self) -> dict[str, Any]:
        """For a StatefulDataLoader: where this worker is."""
        state = self._job.state_dict(self._position)
        return {**state, "ahead": self._ahead, "workers": self._workers, "batch_sizes": self._batch_sizes()}

    def _batch_sizes(self) -> list[list[int]]:
        return [list(each) for each in self._dataset._sizes]

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Goes on where a worker of the same number was.

        Raises:
            InvalidArgumentError: another number of workers, or other batch sizes.
            StateMismatchError: a state of another job, which several workers take under no `on_mismatch`.
        """
        checked_state(state)
        workers = state.get("workers")
        if workers != self._workers:
            raise InvalidArgumentError(
                f"num_workers={self._workers}: the state is of a StatefulDataLoader with {workers}: give as many, or "
                'save batch["state_dict"] and give it to BatchDataset.load_state_dict, which any number takes'
            )
        if state.get("batch_sizes") != self._batch_sizes():
            raise InvalidArgumentError(
                f"global batch sizes {self._batch_sizes()}: the state is of a StatefulDataLoader with "
                f"{state.get('batch_sizes')}, whose workers are each at another batch: give the same, or save "
                'batch["state_dict"] and give it to BatchDataset.load_state_dict, which any size takes'
            )
        if self._workers > 1:
            self._check_same_job(state)
        self._stop()
        self._position = self._dataset._resume(self._job, state).position
        self._ahead = index("ahead", state.get("ahead"), 0, self._workers)

    def _check_same_job(self, state: Mapping[str, Any]) -> None:
        """Refuses a state of another job, which on_mismatch would take.

        A StatefulDataLoader asks on from the worker that was next, which no worker's state tells: from another position
        than the saved ones the workers would give batches in another order, or one batch twice.
        """
        on_mismatch = self._dataset._on_mismatch
        try:
            self._dataset._resume(self._job, state, "refuse")
        except StateMismatchError as error:
            if on_mismatch == "refuse":
                raise
            if on_mismatch == "restart":
                advice = "load no state: the dataset begins at position 0 then"
            else:
                position = state.get("position")
                advice = f"give BatchDataset.load_state_dict this state with position {position}, and the loader none"
            raise StateMismatchError(
                f"on_mismatch={on_mismatch!r}: a StatefulDataLoader with num_workers={self._workers} asks the worker "
                f"that was next first, wherever the workers begin: {advice}. States of "
                f'batch["state_dict"], given to BatchDataset.load_state_dict, go with any workers. {error}'
            ) from error

    def _stop(self) -> None:
        if self._loader is not None:
            self._loader.close()
        self._loader = None
        self._planned.clear()

    def _plan(self) -> None:
        """Plans the next batches, and makes the loader that reads them; none at the end of the run."""
        if self._loader is not None and self._workers > 1:
            self._stop()
        dataset = self._dataset
        skip, at, ahead = list(dataset._skip), self._position, self._ahead
        while len(self._planned) < _BLOCK:
            plan = self._job.plan(at, dataset.rank, dataset.world_size)
            if plan is None:
                break
            if ahead > 0:
                skip.append((plan.position, plan.next_position))
                ahead -= 1
            else:
                size = [size for begin, size in dataset._sizes if begin <= plan.position][-1]
                self._planned.append(_Planned(plan.position, plan.next_position, size))
                ahead = self._workers - 1
            at = plan.next_position
        if not self._planned:
            self._stop()
        elif self._workers == 1:
            if self._loader is None:
                self._loader = self._started(dataset._sizes, dataset._skip)
        else:
            skip.append((at, _MOST_POSITION))
            self._loader = self._started(_sizes(self._planned), skip)

    def _started(self, sizes: list[tuple[int, int]], skip: list[tuple[int, int]]) -> Loader:
        loader: Loader = self._dataset._loader(sizes, skip, self._workers)
        loader.seek(self._position)
        return loader


def _sizes(planned: Iterable[_Planned]) -> list[tuple[int, int]]:
    """The schedule of batch sizes of a loader that reads these alone.

    It looks for a batch's size where the batch before ended, so a size holds from behind that one's beginning on.
    """
    sizes: list[tuple[int, int]] = []
    at = 0
    for each in planned:
        if not sizes or sizes[-1][1] != each.size:
            sizes.append((at, each.size))
        at = each.begin + 1
    return sizes
