"""Where a loader goes on after a state was loaded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Resume:
    """Where a loader goes on after `load_state_dict`; its `str` says it in words.

    Attributes:
        epoch: in which it goes on.
        position: observations that the job has consumed.
        step: steps of this loader's schedule from 0 to the position; of other batch sizes, the run took another number.
        message: all of it in words.
    """

    epoch: int
    position: int
    step: int
    message: str

    def __str__(self) -> str:
        """ "resumes at epoch 1, position 4,096, step 32"."""
        return self.message


def resumed(job: Any, loaded: tuple[int, int, int, str]) -> Resume:
    """The answer of a native `load`, with a note where the position is between two steps.

    Args:
        job: the native job that goes on.
        loaded: epoch, position, step and message.
    """
    epoch, position, step, message = loaded
    rows = _rows_of_cut_step(job, position, step)
    if rows is not None:
        place = f"position {position:,}, step {step:,}"
        note = f" (between steps {step - 1:,} and {step:,} of {rows:,} rows: saved with another batch size?)"
        message = message.replace(place, place + note, 1)
    return Resume(epoch, position, step, message)


def _rows_of_cut_step(job: Any, position: int, step: int) -> int | None:
    """Rows of the step that the position lies within; None: a step begins there, or the run has no later one."""
    schedule, end = job.batching[:2]
    if step == 0 or (end is not None and position >= end) or job.steps_before(position + 1) > step:
        return None
    if end is not None and job.steps_before(end) == step:
        return None
    rows: int = next(size for begin, size in reversed(schedule) if begin < position)
    return rows
