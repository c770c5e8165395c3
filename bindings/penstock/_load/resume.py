"""Where a loader goes on after a state was loaded."""

from __future__ import annotations

from dataclasses import dataclass


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
