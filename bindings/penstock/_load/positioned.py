"""Where a loader is in its job: position, state, and how it goes on elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from penstock._base.arguments import index
from penstock._base.errors import StateMismatchError
from penstock._data.job_text import JobText
from penstock._load.batch_sizes import global_size
from penstock._load.growth import grown_job, growth, growth_words
from penstock._load.job_arguments import JobArguments
from penstock._load.mismatch import advised
from penstock._load.resume import Resume, resumed
from penstock._load.state import checked_state
from penstock._native import Job
from penstock._native import Loader as NativeLoader


class Positioned:
    """The position of a native loader, which counts what the whole job has consumed."""

    world_size: int
    _native: NativeLoader
    _make_native: Callable[..., NativeLoader]  # of another job
    _job: JobText  # of states
    _arguments: JobArguments
    _view: Any
    _unit: int  # what one of a batch size is of a global one
    _on_mismatch: str
    _is_closed: bool
    _note_job: Callable[[], None]  # after the native loader's job may have changed

    def state_dict(self) -> dict[str, Any]:
        """Where the job is, for a checkpoint: three keys, the same on every rank, O(1).

        It is the state after the batch that `next` gave last. A loop that fetches a batch ahead of the one it trains
        saves `batch.state_dict()` of the batch trained last instead, or a resume leaves out the one fetched ahead.

        Returns:
            {"version": int, "position": int, "job": str}; the position counts what was delivered.
        """
        return {"version": self._job.version, "position": self._native.position, "job": self._job.all()}

    def load_state_dict(self, state: Mapping[str, Any]) -> Resume:
        """Goes on where a state was taken; O(1), nothing is read. Ranks, batch size and threads may differ.

        Of a steered mixture the weights that the state holds take the place of those that were set before its position;
        those that were set from there on stay.

        With on_mismatch="grown" lengths of epochs change with the state, and so do `len` and `step`; where they do,
        `metrics` counts from here on. Packed rows of the first shards are packed again then.

        Returns:
            Where it goes on; its `str` says so, and notes a position between two steps of this loader's batch sizes.

        Raises:
            StateMismatchError: the state is of another dataset, seed, order or window, and on_mismatch is "refuse", or
                "grown" and the dataset does not begin with the state's.
            InvalidArgumentError: it is no state.
        """
        version, position, job = checked_state(state)
        if self._on_mismatch == "grown":
            return self._load_grown(version, position, job)
        try:
            loaded = self._native.load(version, position, job, self._on_mismatch)
        except StateMismatchError as error:
            raise StateMismatchError(f"{advised(str(error), job, self._job.all())}{growth(self._view, job)}") from None
        self._note_job()
        return resumed(self._native.job, loaded)

    def _load_grown(self, version: int, position: int, text: str) -> Resume:
        before = self._native
        schedule = before.job.batching[0]  # with the sizes that were set
        job = grown_job(replace(self._arguments, schedule=schedule), version, position, text)
        if job.json != before.job.json:
            made = self._make_native(job=job)
            before.seek(position)  # refuses in a forked child, and where another thread is in next()
            before.close()
            self._native, self._job = made, JobText(job)
            if self._is_closed:
                made.close()
        resume = resumed(self._native.job, self._native.load(version, position, job.json, "refuse"))
        return replace(resume, message=resume.message + growth_words(job, position))

    @property
    def position(self) -> int:
        """Observations that the whole job has consumed."""
        return self._native.position

    @property
    def epoch(self) -> int:
        """The epoch of the next observation, from 0; after the last one, the number of epochs. Of a mixture: of its
        whole order, see `Mixture`.
        """
        job: Job = self._native.job
        return job.epoch(self.position)

    @property
    def step(self) -> int:
        """The number of the next batch in the run, from 0, by this loader's batch sizes."""
        job: Job = self._native.job
        return job.steps_before(self.position)

    @property
    def batch_size(self) -> int:
        """Rows of this rank's batches at the position, by the schedule and `set_batch_size`; padding counts."""
        return self._native.batch_rows

    def seek(self, position: int) -> None:
        """Goes on at `position`."""
        self._native.seek(index("position", position))

    def rewind(self) -> None:
        """Begins again at 0."""
        self._native.seek(0)

    def set_batch_size(self, size: int) -> None:
        """Changes the batch size, in the unit given at construction, from the next undelivered batch on.

        The size belongs to positions from here on, as in a schedule: after `rewind()` those before have theirs.

        Raises:
            InvalidArgumentError: a global size that the number of ranks does not divide, without uneven="pad"; a batch
                that no memory holds.
        """
        self._native.set_global_batch_size(global_size(size, self._unit))
